"""``streamplace placers``: a list of the placers with their options."""

from pathlib import Path

import click

from streamplace.cli._options import common
from streamplace.cli._output import deliver, print_table


@click.command("placers", epilog="Example: streamplace placers --json")
@common("Write the JSON document to this file.")
def command(as_json: bool, output: Path | None) -> None:
    """List the placers, including those of other packages."""
    from streamplace.placers.registry import PLACERS

    rows = [PLACERS[name] for name in PLACERS]
    document = [{"name": row.name, "summary": row.summary, "options": row.texts()} for row in rows]
    if deliver(document, output, as_json):
        return
    options = (", ".join(f"{name}={value}" for name, value in row.texts().items()) for row in rows)
    table = ((row.name, row.summary, text) for row, text in zip(rows, options, strict=True))
    print_table(("placer", "what it does", "options"), table)
