"""`headwater purge verify, certificates, recognise`: what proves a purge, looked at again at any time."""

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from provenance_store.cli.console import make_console, print_json
from provenance_store.cli.purge.options import Json
from provenance_store.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provenance_store.purge.certificate import Certificate
    from provenance_store.purge.findings import Finding

commands = typer.Typer()

_PASSED = {True: Text("passed", "green"), False: Text("FAILED", "bold red"), None: Text("not checked", "yellow")}


@commands.command("verify")
def verify(
    name: Annotated[str, typer.Argument(metavar="CERTIFICATE|PLAN", help="The number of a certificate, or a plan.")],
    *,
    bury: Annotated[
        bool, typer.Option("--bury", help="First make tombstones that the lake graph lacks, as after a restore.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read the lake again: is it as the purge left it, and are all certificates as they were issued? Or exit code 1."""
    from provenance_store.graph.queries import LakeGraph
    from provenance_store.purge.again import verify_again

    settings = load_settings()
    with LakeGraph(settings) as graph:
        verified = verify_again(settings, graph, name, buries=bury)
    if as_json:
        print_json({**msgspec.to_builtins(verified), "passed": verified.passed})
    else:
        for fault in verified.faults:
            make_console().print(Text(fault, "bold red"))
        make_console().print(_table(verified.findings))
    if not verified.passed:
        raise typer.Exit(1)


@commands.command("certificates")
def certificates(*, as_json: Json = False) -> None:
    """List the certificates, and follow their hashes: one that is missing or was altered gives exit code 1."""
    from provenance_store.purge.certificate import check_chain, read_all

    lake = load_settings().lake
    chain = check_chain(lake)
    issued = [] if chain.faults else list(read_all(lake))
    if as_json:
        print_json({**msgspec.to_builtins(chain), "issued": msgspec.to_builtins(issued)})
    else:
        _list(issued)
        for fault in chain.faults:
            make_console().print(Text(fault, "bold red"))
        if chain.last is not None:
            print(f"The hash of the last: {chain.last}")
    if chain.faults:
        raise typer.Exit(1)


@commands.command("recognise")
def recognise(
    version: Annotated[
        str, typer.Argument(metavar="DATASET[/VERSION]", help="A version; the newest, where not given.")
    ],
    *,
    as_json: Json = False,
) -> None:
    """Find the records of a version that were purged before and came back; exit code 1 where there are any."""
    from provenance_store.graph.queries import LakeGraph
    from provenance_store.lake.layout import resolve
    from provenance_store.purge.fingerprints import recognise as recognise_records

    settings = load_settings()
    with LakeGraph(settings) as graph:
        found = [one._asdict() for one in recognise_records(settings, graph, resolve(settings.lake, version))]
    if as_json:
        print_json({"records": found})
    else:
        for one in found:
            print(f"{one['id']} was purged as {one['purged']} by {one['purge']}")
        print(f"{len(found):,} records of {version} were purged before.")
    if found:
        raise typer.Exit(1)


def show_certificate(certificate: "Certificate", *, as_json: bool) -> None:
    """A certificate, for whoever asked for the purge."""
    if as_json:
        print_json({**msgspec.to_builtins(certificate), "passed": certificate.passed})
        return
    print(f"Certificate {certificate.number} of plan {certificate.plan}, approved by {certificate.approved_by}")
    table = Table("version", "deleted", "redacted", "recomputed", "vanished", "added", box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for one in certificate.done:
        numbers = (one.deleted, one.redacted, one.recomputed, one.vanished, one.appended)
        table.add_row(Text(f"{one.dataset}/{one.version}"), *(f"{number:,}" for number in numbers))
    make_console().print(table)
    make_console().print(_table(certificate.findings))
    for topic in certificate.topics:
        print(f"Topic {topic.name}: its messages expire {topic.until or 'at a time that is not known'}.")
    for run in certificate.forgotten or ():
        print(f"Stream run {run}: its checkpoints and cached events were removed.")


def _list(issued: "Sequence[Certificate]") -> None:
    table = Table("number", "plan", "approved by", "ended", "removed", "findings", box=None, header_style="bold")
    for one in issued:
        removed = sum(done.deleted + done.vanished for done in one.done)
        passed = sum(finding.passed is True for finding in one.findings)
        result = Text(f"{passed} of {len(one.findings)} passed", "" if one.passed else "bold red")
        table.add_row(str(one.number), one.plan, Text(one.approved_by), one.ended, f"{removed:,}", result)
    make_console().print(table)


def _table(findings: "Sequence[Finding]") -> Table:
    table = Table("finding", "", "", box=None, header_style="bold")
    for finding in findings:
        table.add_row(Text(finding.name), _PASSED[finding.passed], Text(finding.sentence))
    return table
