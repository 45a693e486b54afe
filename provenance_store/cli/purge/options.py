"""Arguments and options that several commands of a purge take."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="JSON for scripts.")]
By = Annotated[str | None, typer.Option(metavar="NAME", help="Who does this; you, where not given.")]
Plan = Annotated[str, typer.Argument(metavar="PLAN", help="The id of a plan, p-….")]
