"""``streamplace placers``: a list of the placers with their options."""

from streamplace.cli._command import verb
from streamplace.cli._options import with_json
from streamplace.cli._output import print_json, print_report


@verb("placers", "", "placers --json")
@with_json
def command(as_json: bool) -> None:
    """List the placers, including those of other packages."""
    from streamplace.display.report import Brief, Detail, Names, Report, Sheet
    from streamplace.placers.registry import PLACERS

    rows = [PLACERS[name] for name in PLACERS]
    document = [{"name": row.name, "summary": row.summary, "options": row.texts()} for row in rows]
    if as_json:
        print_json(document)
        return
    streams = [row for row in rows if not row.objectives or "throughput" in row.objectives]
    tasks = ", ".join(row.name for row in rows if row not in streams)
    table = tuple(
        (row.name, row.summary, ", ".join(f"{name}={text}" for name, text in row.texts().items()))
        for row in rows
    )
    lines = tuple((row.name, Names((row.summary,), lines=1)) for row in streams)
    print_report(
        Report(
            (
                Brief(Sheet(("placer", "what it does"), lines)),
                Brief(f"For task graphs alone: {tasks}. With -v all are described."),
                Detail(Sheet(("placer", "what it does", "options"), table)),
            )
        )
    )
