"""``streamplace flink advise``: the cost of a running job, and the cheapest machines for a rate."""

from pathlib import Path

from streamplace.cli import _options
from streamplace.cli._command import verb
from streamplace.cli._output import print_json, print_line, print_report, say, say_written, waiting
from streamplace.cli._settings import settings_of
from streamplace.model.messages import counted
from streamplace.settings.flink import FlinkAdviseSettings


@verb(
    "advise",
    "Plan the cheapest machines for a running job.",
    "flink advise --rest http://localhost:8081 --rate 2x --offers offers.toml",
)
@_options.JAR
@_options.ARGUMENTS
@settings_of(FlinkAdviseSettings)
@_options.common(
    "Folder for plan.json, graph.json, cluster.toml, placement.json, plan.svg and report.html, or "
    "the report alone (.html).",
    folder=None,
)
def advise_(
    jar: Path | None,
    arguments: tuple[str, ...],
    asked: FlinkAdviseSettings,
    as_json: bool,
    output: Path | None,
) -> int:
    """Read a running job, and plan the cheapest machines for a rate. Nothing is changed.

    The command watches the job until it is steady. It prints what the TaskManagers cost by the
    offers, rate and CPU of the job, the cheapest plan that carries the rate, with a proven bound,
    what is not known of it, what changing would gain, and the commands that would do it.

    The plan keeps the parallelism that the program sets: to find it, the program's main method is
    run twice, without submitting anything. Give JAR, its options and ARGUMENTS as the job was
    submitted with; leave them out if streamplace has submitted or moved the job on this machine.
    """
    from streamplace.planning.result import FILES

    folder = None if output is None or output.suffix == ".html" else output
    if folder is not None:
        _options.spare_inputs(*(folder / name for name in FILES))
    _options.check_output(is_folder=folder is not None)
    settings = asked.advice(asked.program(jar, arguments), folder)
    engine, machines = asked.engine(say), asked.offers or asked.cluster
    with waiting("watching the job until it is steady, then planning"):
        advice = engine.advise(engine.job(asked.job), asked.rate or "", machines, settings)
    if output is not None:
        advice.plan.write(output)
    if as_json:
        print_json(advice.to_json())
    else:
        print_report(advice.summary())
        for command in advice.commands:
            print_line(f"  {command}")
        if advice.notes:
            say(f"-v shows {counted(len(advice.notes), 'note')} on what is not known")
    if output is not None:
        say_written("report" if folder is None else ", ".join(FILES), output)
    return 0
