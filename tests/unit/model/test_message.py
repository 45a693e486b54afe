import pytest

from provenance_store.errors import MessageError
from provenance_store.model.account import Account, worst_verdict
from provenance_store.model.message import Headers, Manifest, Message

HEADERS = Headers(run="r1", dic="count", attempt="a_0", seq=3, task="m_0", function="map", node="n1")


def test_headers_are_strings_on_the_wire_and_come_back() -> None:
    strings = HEADERS.to_strings()
    assert all(isinstance(value, str) for value in strings.values())
    assert strings["schema"] == "1"
    assert strings["kind"] == "provenance"
    assert Headers.from_strings(strings) == HEADERS
    assert Message.of(HEADERS, b"{}").headers == strings


def test_a_message_without_our_headers_has_none() -> None:
    assert Headers.from_strings({}) is None
    assert Headers.from_strings({"traceparent": "00-ab"}) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"schema": "2"}, "schema '2' is not known"),
        ({"kind": "gossip"}, "kind 'gossip'"),
        ({"run": ""}, "'run' is missing"),
        ({"attempt": ""}, "'attempt' is missing"),
        ({"seq": "-1"}, "seq '-1' is not a whole number"),
        ({"seq": "two"}, "seq 'two' is not a whole number"),
        ({"seq": "²"}, "seq '²' is not a whole number"),
    ],
)
def test_headers_out_of_contract_say_which(change: dict[str, str], reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        Headers.from_strings(HEADERS.to_strings() | change)


def test_a_manifest_needs_only_its_run() -> None:
    headers = Headers.from_strings({"run": "r1", "kind": "manifest"})
    assert headers is not None
    assert headers.kind == "manifest"


def test_a_manifest_comes_back_and_a_later_releases_keys_are_passed_over() -> None:
    manifest = Manifest(attempts={"a": 2, "b": 0}, generation=4, marks=["limit"])
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest
    assert Manifest.from_bytes(b'{"attempts": {"a": 1}, "news": 1}') == Manifest(attempts={"a": 1})


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"{}", b'{"attempts": []}', b'{"attempts": {"a": -1}}', b'{"attempts": {"a": "2"}}']
)
def test_what_is_no_manifest_is_refused(value: bytes) -> None:
    with pytest.raises(MessageError, match="not a manifest"):
        Manifest.from_bytes(value)


def test_an_account_comes_back_from_its_file(tmp_path) -> None:
    account = Account(
        run="r1",
        dic="count",
        verdict="partial",
        messages=3,
        bytes=99,
        edges_in=12,
        edges_local=7,
        edges_out=5,
        duplicates=1,
        discarded=0,
        rejected=0,
        missing={"a_0": [2]},
        seconds=0.5,
    )
    account.write(tmp_path)
    assert Account.read(tmp_path) == account
    assert [path.name for path in tmp_path.iterdir()] == ["account.json"]


def test_a_folder_without_an_account_is_no_reduced_graph(tmp_path) -> None:
    with pytest.raises(ValueError, match="headwater reduce"):
        Account.read(tmp_path)
    (tmp_path / "account.json").write_text("{}")
    with pytest.raises(ValueError, match="is not an account"):
        Account.read(tmp_path)


def test_known_loss_is_worse_than_not_knowing() -> None:
    assert worst_verdict(["complete", "unknown", "partial"]) == "partial"
    assert worst_verdict(["complete", "unknown"]) == "unknown"
    assert worst_verdict([]) == "complete"
