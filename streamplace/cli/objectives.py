"""``streamplace objectives``: a list of the objectives."""

from streamplace.cli._command import verb
from streamplace.cli._options import with_json
from streamplace.cli._output import print_json, print_report


@verb("objectives", "List the objectives.", "objectives --json")
@with_json
def command(as_json: bool) -> None:
    """List the objectives for --objective and --require, including those of other packages."""
    from streamplace.display.report import Report, Sheet
    from streamplace.objectives.registry import OBJECTIVES

    rows = [OBJECTIVES[name] for name in OBJECTIVES]
    document = [
        {"name": row.name, "sense": row.sense, "unit": row.unit, "summary": row.summary}
        for row in rows
    ]
    if as_json:
        print_json(document)
        return
    head = ("objective", "best", "unit", "what it is")
    table = tuple((row.name, row.sense, row.unit, row.summary) for row in rows)
    print_report(Report((Sheet(head, table),)))
