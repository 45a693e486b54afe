"""Certificates: who approved what when, what was done, and what verification found; without anything personal.

They lie in `<lake>/_purges/certificates/`, numbered from 1. Each holds the hash of the one before, so one that was
altered or taken out shows, unless all after it were written anew; against that, keep the last hash that
`headwater purge certificates` tells elsewhere.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from provenance_store.errors import InputError
from provenance_store.model.files import create_whole, in_turn
from provenance_store.purge import folders
from provenance_store.purge.approval import Approval
from provenance_store.purge.done import StepDone
from provenance_store.purge.findings import Finding
from provenance_store.purge.journal import FILE as JOURNAL
from provenance_store.purge.plan import StoredPlan, Topic, list_plans
from provenance_store.settings import Settings

FORMAT = 1
_FOLDER = "certificates"
_FILE = re.compile(r"(\d{6,})\.json")


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """One purge, as it is proven. Times are ISO 8601, in UTC."""

    format: int = FORMAT
    number: int
    # The SHA-256 of the file of the certificate before; None for the first.
    previous: str | None
    plan: str
    # The SHA-256 of the plan that was approved.
    plan_digest: str
    selection: str
    approved_by: str
    approved_at: str
    # Why it was approved although provenance was incomplete.
    despite: str
    began: str
    ended: str
    # What was done, by version.
    done: list[StepDone]
    findings: list[Finding]
    # Where records cannot be deleted singly, and when they have expired.
    topics: list[Topic]
    # Stream runs of whose events nothing is kept any more to replay from: checkpoints and caches were removed.
    forgotten: list[str] | msgspec.UnsetType = msgspec.UNSET

    @property
    def passed(self) -> bool:
        """Whether nothing that was looked at failed."""
        return all(finding.passed is not False for finding in self.findings)


def issue(  # noqa: PLR0917 - in the order in which a purge gets to know them
    settings: Settings,
    stored: StoredPlan,
    approval: Approval,
    done: Sequence[StepDone],
    findings: Sequence[Finding],
    began: str,
    ended: str,
    forgotten: Sequence[str] = (),
) -> Certificate:
    """Certify a purge; one that has its certificate keeps it."""
    folder = _folder(settings.lake)
    folder.mkdir(parents=True, exist_ok=True)
    with in_turn(folders.work_folder(settings) / _FOLDER / ".lock"):
        known = {certificate.plan: certificate for certificate in read_all(settings.lake)}
        if stored.id in known:
            return known[stored.id]
        last = max(_numbers(folder), default=0)
        certificate = Certificate(
            number=last + 1,
            previous=folders.digest_of(_path(folder, last)) if last else None,
            plan=stored.id,
            plan_digest=stored.digest,
            selection=stored.plan.selection,
            approved_by=approval.who,
            approved_at=approval.when,
            despite=approval.despite,
            began=began,
            ended=ended,
            done=sorted(done, key=lambda one: (one.dataset, one.version)),
            findings=list(findings),
            topics=stored.plan.topics,
            # Left out where there is none, as in certificates that were written before there were streams.
            forgotten=list(forgotten) or msgspec.UNSET,
        )
        create_whole(_path(folder, certificate.number), _encode(certificate))
    return certificate


def read_all(lake: Path) -> Iterator[Certificate]:
    """All certificates of a lake, the oldest first; one that cannot be read is an error, not left out."""
    folder = _folder(lake)
    for number in _numbers(folder):
        yield _decode(_path(folder, number))


class Chain(msgspec.Struct, frozen=True):
    """What a look at all certificates found: what is wrong, in sentences, and the hash of the last."""

    certificates: int
    faults: list[str]
    last: str | None


def check_chain(lake: Path) -> Chain:
    """Follow the hashes from the first certificate to the last, and see that each purge that ended has one."""
    folder = _folder(lake)
    numbers = _numbers(folder)
    faults: list[str] = []
    plans: set[str] = set()
    digest: str | None = None
    for number in range(1, max(numbers, default=0) + 1):
        path = _path(folder, number)
        if number not in numbers:
            faults.append(f"Certificate {number} is missing.")
            continue
        certificate = _as_written(path, number)
        if certificate is None:
            faults.append(f"Certificate {number} was altered: {path} is not as it was written.")
        else:
            plans.add(certificate.plan)
            if number - 1 in numbers and certificate.previous != digest:
                faults.append(f"Certificate {number - 1} was altered: certificate {number} holds another hash of it.")
        digest = folders.digest_of(path)
    for plan in sorted(set(_ended(lake)) - plans):
        faults.append(
            f"Plan {plan} was followed to its end and has no certificate: `headwater purge apply {plan}` issues it; if "
            "it was issued before, it was taken away."
        )
    return Chain(len(numbers), faults, digest)


def _as_written(path: Path, number: int) -> Certificate | None:
    try:
        certificate = _decode(path)
    except InputError:
        return None
    is_ours = certificate.number == number and (certificate.previous is None) == (number == 1)
    return certificate if is_ours and _encode(certificate) == path.read_bytes() else None


def _ended(lake: Path) -> Iterator[str]:
    """The plans that were followed to their end, by their journals."""
    for plan in list_plans(lake):
        journal = folders.folder_of(lake, "plans", plan) / JOURNAL
        if journal.exists() and msgspec.json.decode(journal.read_bytes()).get("ended"):
            yield plan


def _folder(lake: Path) -> Path:
    return lake.absolute() / folders.ROOT / _FOLDER


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.json"


def _numbers(folder: Path) -> list[int]:
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(found[1]) for name in names if (found := _FILE.fullmatch(name)))


def _encode(certificate: Certificate) -> bytes:
    return msgspec.json.format(msgspec.json.encode(certificate, order="sorted")) + b"\n"


def _decode(path: Path) -> Certificate:
    try:
        content = msgspec.json.decode(path.read_bytes())
        if isinstance(content, dict) and content.get("format") != FORMAT:
            raise InputError(f"{path} has format {content.get('format')}, and this release reads {FORMAT}.")
        return msgspec.convert(content, Certificate)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise InputError(f"{path} is not a certificate as it was written: {error}") from None
