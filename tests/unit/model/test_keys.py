import json
import stat
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from provenance_store.cli.key import app
from provenance_store.errors import InputError
from provenance_store.model.ids import hash_key
from provenance_store.model.keys import KeyRing, fingerprint
from provenance_store.settings import Settings

PASSPHRASE = "correct horse battery"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


def test_a_version_keeps_its_secret(settings: Settings) -> None:
    ring = KeyRing(settings)
    first = ring.of_version("people", "v1")
    name = ring.rotate()
    assert settings.hmac_key() != first
    assert fingerprint(settings.hmac_key()) == name
    assert settings.hmac_keys()[1:] == [first]
    assert ring.of_version("people", "v1") == first
    assert KeyRing(settings).of_version("people", "v2") == settings.hmac_key()
    ring.rotate()
    assert ring.of_version("people", "v1") == first
    assert len(settings.hmac_keys()) == 3


def test_a_key_is_looked_for_under_every_secret(settings: Settings) -> None:
    ring = KeyRing(settings)
    old = settings.hmac_key()
    ring.rotate()
    assert ring.texts_of("a@b", "c") == [
        "a%40b,c",
        hash_key("a@b", "c", secret=settings.hmac_key()),
        hash_key("a@b", "c", secret=old),
    ]


def test_destroying(settings: Settings) -> None:
    ring = KeyRing(settings)
    old = fingerprint(ring.of_version("people", "v1"))
    with pytest.raises(InputError, match="rotate"):
        ring.destroy(old)
    ring.rotate()
    with pytest.raises(InputError, match="There is no key 0000"):
        ring.destroy("0000")
    assert ring.destroy(old) == ["lake:people/v1"]
    assert len(settings.hmac_keys()) == 1
    with pytest.raises(InputError, match="destroyed"):
        ring.of_version("people", "v1")
    with pytest.raises(InputError, match="There is no key"):
        ring.destroy(old)


def test_only_its_owner_reads_the_ring(settings: Settings) -> None:
    ring = KeyRing(settings)
    ring.of_version("people", "v1")
    ring.rotate()
    folder = settings.home / "secrets"
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not [file for file in folder.iterdir() if file.name.endswith(".new")]


def test_many_at_once_lose_nothing(settings: Settings) -> None:
    def work(number: int) -> None:
        ring = KeyRing(settings)
        for version in range(10):
            ring.of_version(f"d{number}", f"v{version}")
        ring.rotate()

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ring = KeyRing(settings).read()
    assert len(ring.secrets) == 5
    assert len(ring.versions) == 40
    assert set(ring.versions.values()) <= set(map(fingerprint, ring.secrets))


def test_an_export_makes_the_same_ids_elsewhere(settings: Settings, tmp_path: Path) -> None:
    ring = KeyRing(settings)
    ring.of_version("people", "v1")
    ring.rotate()
    ring.of_version("people", "v2")
    exported = ring.export(PASSPHRASE)
    for secret in settings.hmac_keys():
        assert secret.hex().encode() not in exported
        assert secret not in exported
    fresh = Settings(home=tmp_path / "fresh")
    assert KeyRing(fresh).add(exported, PASSPHRASE) == [fingerprint(secret) for secret in settings.hmac_keys()]
    assert KeyRing(fresh).read() == ring.read()
    assert KeyRing(fresh).add(exported, PASSPHRASE) == []

    used = Settings(home=tmp_path / "used")
    own = KeyRing(used).of_version("people", "v3")
    KeyRing(used).add(exported, PASSPHRASE)
    assert used.hmac_keys() == [own, *settings.hmac_keys()]
    assert KeyRing(used).of_version("people", "v1") == settings.hmac_keys()[1]
    assert KeyRing(used).of_version("people", "v3") == own


def test_an_export_that_cannot_be_taken_in_changes_nothing(settings: Settings, tmp_path: Path) -> None:
    KeyRing(settings).of_version("people", "v1")
    exported = KeyRing(settings).export(PASSPHRASE)
    other = Settings(home=tmp_path / "other")
    KeyRing(other).of_version("people", "v1")
    before = KeyRing(other).read()
    altered = exported.replace(b'"ring":"Z', b'"ring":"Y')
    for data, passphrase, sentence in (
        (exported, "wrong horse battery", "passphrase"),
        (altered, PASSPHRASE, "altered"),
        (exported[:-30], PASSPHRASE, "not an exported key ring"),
        (exported.replace(b'"format":1', b'"format":2'), PASSPHRASE, "update Headwater"),
        (exported, PASSPHRASE, "nothing taken in"),
    ):
        with pytest.raises(InputError, match=sentence):
            KeyRing(other).add(data, passphrase)
    assert KeyRing(other).read() == before
    with pytest.raises(InputError, match="soon guessed"):
        KeyRing(settings).export("short")


def test_the_command_line(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("provenance_store.cli.key.load_settings", lambda: settings)

    def run(*arguments: str, input: str = "") -> str:  # noqa: A002 - the runner's name
        result = CliRunner().invoke(app, ["key", *arguments], input=input, catch_exceptions=False)
        assert result.exit_code == 0
        return result.stdout

    KeyRing(settings).of_version("people", "v1")
    old = fingerprint(settings.hmac_key())
    new = run("rotate").split()[5].rstrip(".")
    assert json.loads(run("show", "--json")) == [{"key": new, "versions": 0}, {"key": old, "versions": 1}]
    assert settings.hmac_key().hex() not in run("show")
    (tmp_path / "pass").write_text(f"{PASSPHRASE}\nnot this\n")
    run("export", str(tmp_path / "ring"), "--passphrase-file", str(tmp_path / "pass"))
    assert stat.S_IMODE((tmp_path / "ring").stat().st_mode) == 0o600
    with pytest.raises(InputError, match="File exists"):
        run("export", str(tmp_path / "ring"), "--passphrase-file", str(tmp_path / "pass"))
    with pytest.raises(InputError, match="HEADWATER_PASSPHRASE"):
        run("export", str(tmp_path / "other"))
    assert CliRunner().invoke(app, ["key", "destroy", old], input="n\n").exit_code == 1
    assert "1 versions" in run("destroy", old, "--yes")
    monkeypatch.setenv("HEADWATER_PASSPHRASE", PASSPHRASE)
    assert old in run("import", str(tmp_path / "ring"))
    assert [secret_name["key"] for secret_name in json.loads(run("show", "--json"))] == [new, old]
    kinds = [json.loads(line)["kind"] for file in (settings.home / "audit").glob("*.jsonl") for line in file.open()]
    assert kinds == ["key rotate", "key export", "key export", "key destroy", "key import"]
