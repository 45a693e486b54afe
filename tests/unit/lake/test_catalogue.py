"""The catalogue: what a person may tell, what is refused and how, and what the files are held to."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from provenance_store.cli.main import app
from provenance_store.errors import InputError
from provenance_store.lake import layout, orders, tweets
from provenance_store.lake.catalogue import FILE, Catalogue, Dataset, Delete, Hold, Recompute, Redact, list_all
from provenance_store.lake.checking import find_faults

DELETE = 'policy = { do = "delete" }\n'
FIELDS = 'format = "csv"\ncolumns = ["a", "b"]\n'


def tell(root: Path, text: str) -> Catalogue:
    root.mkdir(exist_ok=True)
    (root / FILE).write_text(text)
    return Catalogue.load(root)


def put(root: Path, dataset: str, files: dict[str, bytes], version: str = "v1") -> None:
    with layout.new_version(layout.version_of(root, dataset, version), {}) as folder:
        for name, content in files.items():
            (folder / name).write_bytes(content)


def test_all_that_may_be_told(tmp_path: Path) -> None:
    catalogue = tell(
        tmp_path,
        """
        [a]
        format = "parquet"
        key = ["x", "y"]
        personal = ["y"]
        suite = "a.json"
        policy = { do = "redact", null = ["y"], replace = { z = "removed", n = 0 } }
        ["b.2"]
        format = "text"
        columns = ["hashtag", "count"]
        separator = "\\t"
        policy = { do = "recompute" }
        [c]
        format = "csv"
        columns = ["one"]
        policy.do = "hold"
        policy.who = "Legal"
        policy.why = "case 17"
        [d]
        format = "text"
        personal = ["value"]
        policy = { do = "delete" }
        """,
    )
    a, b, c, d = catalogue.datasets.values()
    assert a == catalogue.of("a")
    assert isinstance(a.policy, Redact)
    assert a.policy.fields == {"y": None, "z": "removed", "n": 0}
    assert (a.known_columns, a.divides_at) == (None, None)
    assert (b.policy, b.known_columns, b.divides_at) == (Recompute(), ("hashtag", "count"), "\t")
    assert (c.policy, c.divides_at) == (Hold(who="Legal", why="case 17"), ",")
    assert (d.policy, d.known_columns, d.divides_at) == (Delete(), ("value",), None)
    with pytest.raises(InputError, match=r"Dataset 'e' is not in .*catalogue\.toml: tell its format and policy there"):
        catalogue.of("e")
    assert Catalogue.load(tmp_path / "nowhere").datasets == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[a", r"catalogue\.toml is not TOML: "),
        ("a = 1", r"catalogue\.toml, dataset 'a': Expected a table, got `int`\."),
        (f'["a/b"]\n{FIELDS}{DELETE}', r"catalogue\.toml: 'a/b' cannot name a dataset"),
        (f"[a]\n{FIELDS}", "dataset 'a': it lacks the field `policy`"),
        (f'[a]\nformat = "orc"\n{DELETE}', "dataset 'a', field format: Invalid enum value 'orc'. Use parquet, jsonl"),
        (f"[a]\n{FIELDS}policy = 'delete'", "field policy: Expected a table, got `str`. Write one as { do = "),
        (f"[a]\n{FIELDS}policy = {{ do = 'burn' }}", "field policy.do: Invalid value 'burn'. Use delete, redact"),
        (f"[a]\n{FIELDS}policy = {{ do = 'hold', who = 'me' }}", "field policy: it lacks the field `why`"),
        (f"[a]\n{FIELDS}policy = {{ do = 'hold', who = ' ', why = 'x' }}", "hold needs who holds the records, and why"),
        (f"[a]\n{FIELDS}policy = {{ do = 'redact' }}", "field policy: redact names no field"),
        (f"[a]\n{FIELDS}policy = {{ do = 'redact', null = ['a'], replace = {{ a = 1 }} }}", "both in null and in rep"),
        (f"[a]\n{FIELDS}policy = {{ do = 'redact', null = ['c'] }}", "field policy: there is no column 'c'"),
        (f"[a]\n{FIELDS}{DELETE}keys = ['a']", "dataset 'a': there is no field `keys`"),
        (f"[a]\n{FIELDS}{DELETE}key = [1]", "field key.0.: Expected `str`"),
        (f"[a]\n{FIELDS}{DELETE}key = ['c']", "field key: there is no column 'c'; there are a, b"),
        (f"[a]\n{FIELDS}{DELETE}personal = ['a', 'a']", "field personal: 'a' is named twice"),
        (f"[a]\n{FIELDS}{DELETE}separator = '::'", "field separator: it must be one ASCII character"),
        (f"[a]\nformat = 'csv'\n{DELETE}", "field columns: name the columns of CSV"),
        (f"[a]\nformat = 'text'\nseparator = ';'\n{DELETE}", "field separator: lines of text are divided if both"),
        (
            f"[a]\nformat = 'jsonl'\ncolumns = ['a']\n{DELETE}",
            "field columns: the files of format jsonl tell their own",
        ),
    ],
)
def test_a_mistake_is_told_with_file_dataset_and_field(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        tell(tmp_path, text)


def test_generators_add_what_they_make_and_change_nothing(tmp_path: Path) -> None:
    mine = f'[tweets]\nformat = "text"\npersonal = ["value"]\n{DELETE}# mine'
    tell(tmp_path, mine)
    tweets.generate(tmp_path, count=10, seed=1)
    orders.generate(tmp_path, count=10, seed=1)
    written = (tmp_path / FILE).read_text()
    assert written.startswith(f"{mine}\n")
    orders.generate(tmp_path, count=20, seed=1)
    assert (tmp_path / FILE).read_text() == written
    told = Catalogue.load(tmp_path).datasets
    assert told["tweets"] == Dataset(format="text", personal=("value",), policy=Delete())
    assert [name for name, one in told.items() if isinstance(one.policy, Recompute)] == [
        "hashtag_counts", "category_totals", "country_totals", "top_orders",
    ]  # fmt: skip
    assert told["customers"].personal == ("customer_id", "email")
    assert [(one.dataset, one.versions) for one in list_all(tmp_path) if one.versions] == [
        ("categories", ["n10-s1"]),
        ("customers", ["n10-s1", "n20-s1"]),
        ("orders", ["n10-s1", "n20-s1"]),
        ("tweets", ["n10-s1"]),
    ]
    assert list(find_faults(tmp_path)) == []


def test_a_broken_catalogue_is_told_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("[a")
    with pytest.raises(InputError, match="is not TOML"):
        orders.generate(tmp_path, count=10, seed=1)
    assert layout.list_datasets(tmp_path) == []


@pytest.mark.parametrize(
    ("told", "content"),
    [
        ('format = "jsonl"\nkey = ["a"]', b'{"a": 1}\n\n{"b": {"c": 2}}\n'),
        ('format = "jsonl"\nkey = ["a"]', b""),
        (FIELDS, b'1,2\n"x,y",z\r\n"a\\"b,","c"",d"\n,\nback\\,slash\n'),
        (f'{FIELDS}separator = "|"', b"1|2\n"),
        ('format = "text"\ncolumns = ["a", "b"]\nseparator = "\\t"', b'"a\tb"\n'),
        ('format = "text"\npersonal = ["value"]', b"anything\xff\n"),
    ],
)
def test_what_fits_has_no_fault(tmp_path: Path, told: str, content: bytes) -> None:
    tell(tmp_path, f"[d]\n{told}\n{DELETE}")
    put(tmp_path, "d", {"plain": content, "packed.gz": gzip.compress(content)})
    assert list(find_faults(tmp_path)) == []


@pytest.mark.parametrize(
    ("told", "content", "fault"),
    [
        ('format = "jsonl"', b'{"a": 1}\n[secret]\n', "d/v1: lake:d/v1/f#9 is not a JSON object."),
        ('format = "jsonl"\nkey = ["b"]', b'{"a": 1}\n', "d/v1: no record has a column 'b'."),
        (FIELDS, b"1,2\n1,2,secret\n", "d/v1: lake:d/v1/f#4 is not a line of 2 columns."),
        (FIELDS, b'"a,b"\n', "d/v1: lake:d/v1/f#0 is not a line of 2 columns."),
        ('format = "parquet"', b"secret\n", "d/v1: {file} cannot be read as parquet: "),
        ('format = "text"', b"PAR1", "d/v1: {file} is Parquet, and its format is told to be one of lines."),
        ('format = "text"\nsuite = "s.json"', b"x\n", "d: its suite {lake}/s.json cannot be read: No such file"),
    ],
)
def test_what_does_not_fit_is_told_without_its_contents(tmp_path: Path, told: str, content: bytes, fault: str) -> None:
    tell(tmp_path, f"[d]\n{told}\n{DELETE}")
    put(tmp_path, "d", {"f": content})
    (found,) = find_faults(tmp_path)
    assert found.startswith(fault.format(lake=tmp_path, file=tmp_path / "d" / "v1" / "f"))
    assert "secret" not in found


def test_columns_of_parquet_and_columns_that_a_redaction_forgets(tmp_path: Path) -> None:
    policy = "policy = { do = 'redact', null = ['b'] }"
    tell(tmp_path, f"[d]\nformat = 'parquet'\nkey = ['a']\npersonal = ['a', 'b']\n{policy}\nsuite = 's.json'")
    (tmp_path / "s.json").write_text("{")
    for name, frame in {"good": {"a": [1], "b": [2]}, "bad": {"a": [1]}}.items():
        with layout.new_version(layout.version_of(tmp_path, "d", name), {}) as folder:
            pl.DataFrame(frame).write_parquet(folder / "f")
    personal, suite, column = find_faults(tmp_path)
    assert personal.startswith("d: column 'a' is personal, and its policy leaves that as it is")
    assert suite.startswith(f"d: its suite {tmp_path}/s.json is not JSON")
    assert column == f"d/bad: {tmp_path}/d/bad/f has no column 'b'; it has a."


def test_the_command_shows_what_is_told_and_what_is_not(tmp_path: Path) -> None:
    tell(tmp_path, "[held]\nformat = 'text'\npolicy = { do = 'hold', who = 'Legal', why = 'case [17]' }\n")
    put(tmp_path, "stray", {"f": b"x\n"})
    put(tmp_path, "stray", {"f": b"x\n"}, version="v2")
    runner = CliRunner()
    shown = runner.invoke(app, ["catalogue", "--lake", str(tmp_path)]).stdout
    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["held", "text", "hold", "by", "Legal:", "case", "[17]", "none"],
        ["stray", "undeclared", "2,", "newest", "v2"],
    ]
    listed = json.loads(runner.invoke(app, ["catalogue", "--lake", str(tmp_path), "--json"]).stdout)
    assert listed[0]["told"]["policy"] == {"do": "hold", "who": "Legal", "why": "case [17]"}
    assert listed[1] == {"dataset": "stray", "told": None, "versions": ["v1", "v2"]}
    checked = runner.invoke(app, ["catalogue", "check", "--lake", str(tmp_path), "--json"])
    assert isinstance(checked.exception, InputError)
    (fault,) = json.loads(checked.stdout)["faults"]
    assert fault.startswith("stray is in the lake and not in")
    tell(tmp_path, f"[stray]\nformat = 'text'\n{DELETE}")
    assert runner.invoke(app, ["catalogue", "check", "--lake", str(tmp_path)]).stdout == (
        "The lake is as its catalogue tells.\n"
    )
