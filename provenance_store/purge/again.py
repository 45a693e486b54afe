"""Verifying a purge again, at any time after it: its certificate, all certificates with it, its plan, and the lake."""

import msgspec

from provenance_store.errors import InputError
from provenance_store.graph.queries import LakeGraph
from provenance_store.purge.burial import bury
from provenance_store.purge.certificate import check_chain, read_all
from provenance_store.purge.done import StepDone
from provenance_store.purge.findings import Finding
from provenance_store.purge.journal import Journal
from provenance_store.purge.plan import open_plan
from provenance_store.purge.verify import verify
from provenance_store.settings import Settings


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What was found: faults of certificates, and findings of the lake."""

    plan: str
    # None where the purge has none yet.
    certificate: int | None
    faults: list[str]
    findings: list[Finding]

    @property
    def passed(self) -> bool:
        """Whether nothing that was looked at failed."""
        return not self.faults and all(finding.passed is not False for finding in self.findings)


def verify_again(settings: Settings, graph: LakeGraph, name: str, *, buries: bool = False) -> Verified:
    """Look again at the purge of a certificate, by its number, or of a plan; where asked to, bury what went first."""
    faults = check_chain(settings.lake).faults
    known = {certificate.plan: certificate for certificate in read_all(settings.lake)}
    plan = next((plan for plan, one in known.items() if name.isdecimal() and one.number == int(name)), name)
    certificate = known.get(plan)
    stored = open_plan(settings.lake, _check_plan(plan))
    if certificate is not None and certificate.plan_digest != stored.digest:
        faults = [*faults, f"Certificate {certificate.number} is of another plan than {plan} as it is now."]
    done = certificate.done if certificate is not None else _done(settings, plan)
    if buries:
        bury(settings, graph, stored)
    return Verified(
        plan=plan,
        certificate=certificate.number if certificate is not None else None,
        faults=faults,
        findings=verify(settings, graph, stored, done),
    )


def _check_plan(name: str) -> str:
    if name.isdecimal():
        raise InputError(f"There is no certificate {name}: `headwater purge certificates` lists them.")
    return name


def _done(settings: Settings, plan: str) -> list[StepDone]:
    journal = Journal.open(open_plan(settings.lake, plan))
    if journal is None or journal.ended is None:
        raise InputError(f"Plan {plan} was not applied to its end, so there is nothing to verify yet.")
    return list(journal.done.values())
