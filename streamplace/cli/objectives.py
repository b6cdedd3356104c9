"""``streamplace objectives``: a list of the objectives."""

from pathlib import Path

from streamplace.cli._command import verb
from streamplace.cli._options import common
from streamplace.cli._output import deliver, print_table


@verb("objectives", "List the objectives.", "objectives --json")
@common("Write the JSON document to this file.")
def command(as_json: bool, output: Path | None) -> None:
    """List the objectives for --objective and --require, including those of other packages."""
    from streamplace.objectives.registry import OBJECTIVES

    rows = [OBJECTIVES[name] for name in OBJECTIVES]
    document = [
        {"name": row.name, "sense": row.sense, "unit": row.unit, "summary": row.summary}
        for row in rows
    ]
    if deliver(document, output, as_json):
        return
    head = ("objective", "best", "unit", "what it is")
    print_table(head, ((row.name, row.sense, row.unit, row.summary) for row in rows))
