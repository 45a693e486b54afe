"""`headwater purge …`: what happens before anything is changed, the change itself, and what proves it, a file each."""

import typer

from provenance_store.cli.purge import applying, planning, proof

purge_app = typer.Typer(
    help="Take records and all that was made from them out of the lake, step by step.", no_args_is_help=True
)
for part in (planning, applying, proof):
    purge_app.add_typer(part.commands)

app = typer.Typer()
app.add_typer(purge_app, name="purge")
