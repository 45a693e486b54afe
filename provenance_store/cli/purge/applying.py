"""`headwater purge apply`: the step that changes the lake."""

import sys

import typer

from provenance_store.cli.console import show_progress
from provenance_store.cli.purge.options import Json, Plan
from provenance_store.cli.purge.proof import show_certificate
from provenance_store.settings import load_settings

commands = typer.Typer()


@commands.command("apply")
def apply(plan: Plan, *, as_json: Json = False) -> None:
    """Follow an approved plan to its certificate, going on where it was cut off; exit code 1 if it does not verify."""
    from provenance_store.purge.certificate import read_all
    from provenance_store.services.application import listen

    with show_progress("purging") as say:
        (told,) = listen([sys.executable, "-m", "spark_apps.purge", plan], "The purge", say)
    issued = {certificate.number: certificate for certificate in read_all(load_settings().lake)}
    certificate = issued[told["certificate"]]
    show_certificate(certificate, as_json=as_json)
    if not certificate.passed:
        raise typer.Exit(1)
