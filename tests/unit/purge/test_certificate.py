"""Certificates: one for each purge, chained, so that one that is missing or was altered shows."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from provenance_store.errors import InputError
from provenance_store.purge import certificate as certificate_module
from provenance_store.purge.certificate import check_chain, issue, read_all
from provenance_store.purge.findings import Finding
from provenance_store.purge.plan import StoredPlan
from tests.verifying import DONE, PurgedLake

FOUND = [Finding(name="gone", passed=True, counts={"records": 2}, sentence="Of 2, 0 stand.")]


@pytest.fixture
def lake(tmp_path: Path) -> PurgedLake:
    return PurgedLake(tmp_path)


def plan_of(lake: PurgedLake, number: int) -> StoredPlan:
    stored = lake.stored
    return StoredPlan(f"p-{number:016x}", stored.digest, stored.path, stored.plan)


def certify(lake: PurgedLake, number: int, findings=FOUND, ended="ended"):
    return issue(lake.settings, plan_of(lake, number), lake.approval(), DONE, findings, "began", ended)


def path_of(lake: PurgedLake, number: int) -> Path:
    return lake.root / "_purges" / "certificates" / f"{number:06d}.json"


def test_what_it_tells(lake):
    certificate = issue(lake.settings, lake.stored, lake.approval(), DONE, FOUND, "began", "ended")
    (read,) = read_all(lake.root)
    assert read == certificate
    assert certificate.passed
    none = dict.fromkeys(("deleted", "redacted", "recomputed", "vanished", "appended"), 0)
    assert json.loads(path_of(lake, 1).read_text()) == {
        "format": 1,
        "number": 1,
        "previous": None,
        "plan": lake.stored.id,
        "plan_digest": lake.stored.digest,
        "selection": "s-0123456789abcdef",
        "approved_by": "officer",
        "approved_at": "2026-03-04T05:06:07+00:00",
        "despite": "",
        "began": "began",
        "ended": "ended",
        "done": [
            {**none, "dataset": "customers", "version": "v", "redacted": 1},
            {**none, "dataset": "hashtag_counts", "version": "r", "recomputed": 2, "vanished": 1},
            {**none, "dataset": "tweets", "version": "v", "deleted": 2},
        ],
        "findings": [{"name": "gone", "passed": True, "counts": {"records": 2}, "sentence": "Of 2, 0 stand."}],
        "topics": [{"name": "headwater.hashtag-count", "until": "2026-03-05T00:00:00+00:00"}],
    }


def test_a_plan_keeps_its_certificate(lake):
    first = certify(lake, 1)
    certify(lake, 2)
    assert certify(lake, 1, [], ended="much later") == first
    assert [one.number for one in read_all(lake.root)] == [1, 2]


def test_one_that_failed_says_so(lake):
    bad = Finding(name="gone", passed=False, counts={}, sentence="1 stands.")
    unknown = Finding(name="gone", passed=None, counts={}, sentence="Not checked.")
    assert not certify(lake, 1, [*FOUND, bad]).passed
    assert certify(lake, 2, [*FOUND, unknown]).passed


def test_the_chain_is_whole(lake):
    assert check_chain(lake.root) == certificate_module.Chain(0, [], None)
    issued = [certify(lake, number) for number in range(1, 4)]
    chain = check_chain(lake.root)
    assert (chain.certificates, chain.faults) == (3, [])
    certify(lake, 4)
    assert list(read_all(lake.root))[-1].previous == chain.last
    assert [one.previous is None for one in issued] == [True, False, False]


def test_one_that_is_missing_shows(lake):
    for number in range(1, 4):
        certify(lake, number)
    path_of(lake, 2).unlink()
    assert check_chain(lake.root).faults == ["Certificate 2 is missing."]


def test_the_last_that_is_missing_shows_by_the_journal(lake):
    (lake.stored.path / "journal.json").write_text('{"began": "then", "ended": "later"}')
    (fault,) = check_chain(lake.root).faults
    assert lake.stored.id in fault
    issue(lake.settings, lake.stored, lake.approval(), DONE, FOUND, "began", "ended")
    assert check_chain(lake.root).faults == []


@pytest.mark.parametrize("number", [1, 2])
def test_one_that_was_altered_shows(lake, number):
    for one in range(1, 4):
        certify(lake, one)
    path = path_of(lake, number)
    path.write_text(path.read_text().replace("officer", "someone"))
    (fault,) = check_chain(lake.root).faults
    assert fault.startswith(f"Certificate {number} was altered")


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": 1}', '{"format": 9}'])
def test_one_that_is_none_shows(lake, content):
    certify(lake, 1)
    path_of(lake, 1).write_text(content)
    (fault,) = check_chain(lake.root).faults
    assert fault.startswith("Certificate 1 was altered")
    with pytest.raises(InputError):
        list(read_all(lake.root))


def test_spaces_are_an_alteration_too(lake):
    certify(lake, 1)
    path_of(lake, 1).write_text(path_of(lake, 1).read_text() + "\n")
    assert len(check_chain(lake.root).faults) == 1


def test_two_never_share_a_number(lake):
    with ThreadPoolExecutor(8) as pool:
        issued = list(pool.map(lambda number: certify(lake, number % 10 + 1), range(40)))
    assert sorted({one.number for one in issued}) == list(range(1, 11))
    assert len({(one.number, one.plan) for one in issued}) == 10
    assert check_chain(lake.root).faults == []
