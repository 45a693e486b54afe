"""Approving a plan: who answers for it, kept beside the plan and bound to its hash."""

from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from provenance_store.errors import InputError
from provenance_store.model.files import create_whole
from provenance_store.purge.plan import StoredPlan, open_plan
from provenance_store.purge.selection import check_who
from provenance_store.purge.state import Runs, find_changes
from provenance_store.settings import Settings

FILE = "approval.json"


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """Who approved which plan when; `despite` tells why, where provenance is incomplete."""

    plan: str
    # The SHA-256 of what was approved.
    digest: str
    who: str
    when: str
    despite: str = ""


def approve(settings: Settings, graph: Runs, plan: str, *, by: str, despite: str = "") -> Approval:
    """Approve a plan that is as it was made and still true; one that rests on incomplete provenance needs a reason."""
    who, reason = check_who(by), despite.strip()
    stored = open_plan(settings.lake, plan)
    if given := _read(stored):
        return _same(given, who, reason)
    if stored.plan.holds:
        held = "; ".join(
            f"{one.dataset} ({one.records:,} records) is held by {one.who}: {one.why}" for one in stored.plan.holds
        )
        raise InputError(f"Plan {plan} touches what may not be changed. {held}")
    if stored.plan.incomplete and not reason:
        raise InputError(
            f"Plan {plan} rests on incomplete provenance, so records may be missed:\n  "
            + "\n  ".join(stored.plan.incomplete)
            + "\nMend that and plan anew, or approve it with --despite REASON."
        )
    _check_stands(settings, graph, stored)
    approval = Approval(
        plan=plan, digest=stored.digest, who=who, when=datetime.now(UTC).isoformat(timespec="seconds"), despite=reason
    )
    content = msgspec.json.format(msgspec.json.encode(approval)) + b"\n"
    # Of two who approve at once, the first does.
    with suppress(FileExistsError):
        create_whole(stored.path / FILE, content)
    return _same(read_approval(stored), who, reason)


def check_may_begin(settings: Settings, graph: Runs, stored: StoredPlan) -> Approval:
    """The approval of a plan that may be followed; InputError where it has none, has expired, or is void."""
    given = read_approval(stored)
    _check_stands(settings, graph, stored)
    return given


def read_approval(stored: StoredPlan) -> Approval:
    """The approval of a plan; InputError where there is none."""
    given = _read(stored)
    if given is None:
        raise InputError(f"Plan {stored.id} is not approved: `headwater purge approve {stored.id} --by NAME`.")
    return given


def _check_stands(settings: Settings, graph: Runs, stored: StoredPlan) -> None:
    """InputError where the plan has expired, or is void because the lake has moved on under it."""
    if stored.plan.has_expired():
        raise InputError(f"Plan {stored.id} expired on {stored.plan.expires}: make the plan anew.")
    if changes := find_changes(settings.lake, graph, stored.plan):
        raise InputError(
            f"Plan {stored.id} is void: the lake has moved on since it was made ({', '.join(changes)} changed). "
            "Make the plan anew."
        )


def _read(stored: StoredPlan) -> Approval | None:
    path = stored.path / FILE
    try:
        given = msgspec.json.decode(path.read_bytes(), type=Approval)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError:
        raise InputError(f"{path} is no approval: remove it, and approve the plan again.") from None
    if (given.plan, given.digest) != (stored.id, stored.digest):
        raise InputError(f"{path} approves another plan than the one beside it: remove it, and approve again.")
    return given


def _same(given: Approval, who: str, reason: str) -> Approval:
    if (given.who, given.despite) != (who, reason):
        raise InputError(f"Plan {given.plan} was approved by {given.who} on {given.when}: that stands.")
    return given
