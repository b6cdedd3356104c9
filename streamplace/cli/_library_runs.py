"""``streamplace library run`` and ``table``, and options that the library's commands share."""

from pathlib import Path

import click

from streamplace.cli._command import GroupedCommand
from streamplace.cli._options import AS_JSON, FILE, OneOf, seeded, writes
from streamplace.cli._output import (
    counted,
    print_json,
    print_line,
    print_report,
    progress,
    say,
    say_written,
)
from streamplace.errors import SettingError

LIBRARY = click.option(
    "--library",
    "folder",
    type=FILE,
    help="Folder of the library.  [default: STREAMPLACE_LIBRARY, or the one that comes with "
    "streamplace]",
)
OBJECTIVE = click.option(
    "--objective",
    type=click.Choice(["throughput", "makespan", "plan"]),
    help="Only entries for this objective.",
)


def _sizes() -> tuple[str, ...]:
    from streamplace.library.entries import SIZES

    return SIZES


of_class = click.option(
    "--class",
    "families",
    multiple=True,
    type=OneOf("class", lambda: ("branched", "random", "…")),
    help="Only instances whose name begins with this word, such as random. May be repeated.",
)
of_size = click.option(
    "--size",
    "sizes",
    multiple=True,
    type=OneOf("size", _sizes),
    help="Only entries of this size class: open where the proven bound leaves a gap, else by the "
    "time of the proof. May be repeated.",
)
closed_or_open = click.option(
    "--closed/--open",
    "closed",
    default=None,
    help="Only entries whose best known solution is proven to be the best, or only the others.",
)


@click.command(
    "run",
    cls=GroupedCommand,
    short_help="Measure placers and foreign programs.",
    epilog="Example: streamplace library run --placer anneal --size easy --seconds 1 "
    "--seconds 10 -o results.jsonl",
)
@click.argument("instances", nargs=-1, metavar="[INSTANCE]...")
@click.option(
    "--placer",
    "placers",
    multiple=True,
    help="Placer to measure, with options after colons. May be repeated.",
)
@click.option(
    "--command",
    "commands",
    multiple=True,
    metavar="NAME=COMMAND",
    help="Program to measure. {problem} and {answer} stand for the file that it reads and the file "
    "that it writes; {objective}, {seconds} and {seed} may be used as well. May be repeated.",
)
@LIBRARY
@of_class
@of_size
@OBJECTIVE
@click.option(
    "--seconds",
    multiple=True,
    type=click.FloatRange(0, 1e6, min_open=True),
    help="Processor time of a search. May be repeated, for gaps over time.  [default: 1]",
)
@click.option(
    "--memory", default="4 GiB", show_default=True, help="Memory of a run, all processes together."
)
@click.option("--solutions", type=FILE, help="Folder for the answers, as files for 'submit'.")
@seeded("Add the results to this JSONL file. Runs that it has are not repeated.")
def run_(
    instances: tuple[str, ...],
    placers: tuple[str, ...],
    commands: tuple[str, ...],
    folder: Path | None,
    families: tuple[str, ...],
    sizes: tuple[str, ...],
    objective: str | None,
    seconds: tuple[float, ...],
    memory: str,
    solutions: Path | None,
    as_json: bool,
    seed: int,
    output: Path | None,
) -> None:
    """Run placers and foreign programs on entries of the library, one after the other on one core.

    A program reads an instance, a problem in the native format, and writes a placement file such
    as {"assignment": {"source": "d0"}}; for a makespan, "queue": "order" and a "priority" for every
    operator may be added. Each run is a process of its own. It is ended with everything that it
    started if it exceeds its processor time by more than 10 s, ten times as much on the clock, or
    its memory. A program that reacts to no limit should read {seconds}.
    """
    from dataclasses import asdict

    from streamplace.library.folder import open_library
    from streamplace.library.reports import exact_text
    from streamplace.library.runs import RunPlan, methods_of, runs
    from streamplace.model.units import size_bytes

    library = open_library(folder)
    plan = RunPlan(
        methods_of(placers, commands),
        library.select(instances, families=families, sizes=sizes, objective=objective),
        seconds or (1.0,),
        int(size_bytes(memory)),
        seed,
        solutions,
    )
    records = []
    with progress("running", plan.n_runs) as tick:
        for record in tick.over(runs(library, plan, output)):
            records.append(record)
            if not as_json:
                result = record.error or record.status
                if record.value is not None:
                    result = exact_text(record.objective, record.value)
                print_line(
                    f"{record.instance}/{record.objective} {record.method} {record.limit:g} s: "
                    f"{result} ({record.seconds:.1f} s, {record.memory / 2**20:.0f} MiB)"
                )
    if as_json:
        print_json([asdict(record) for record in records])
    answers = sum(record.value is not None for record in records)
    say(f"{counted(len(records), 'run')}, {counted(answers, 'answer')}")
    if output is not None:
        say_written("results", output)
    if solutions is not None:
        say_written("answers", solutions)


@click.command(
    "table",
    cls=GroupedCommand,
    short_help="Compare methods by their results.",
    epilog="Example: streamplace library table results.jsonl -o results.md",
)
@click.argument("results", nargs=-1, required=True, type=FILE)
@LIBRARY
@click.option(
    "--title", default="Results on the library", show_default=True, help="Title of the page."
)
@AS_JSON
@writes("Write a page to this .md or .html file.")
def table_(
    results: tuple[Path, ...], folder: Path | None, title: str, as_json: bool, output: Path | None
) -> None:
    """Compare the methods in RESULTS, files that 'run' has written.

    For every method and time limit, the table has the share of entries that it solves, geometric
    means of its ratios to the best known value and to the bound, and shifted geometric means of
    its gaps.
    """
    from streamplace.io.files import spot, write_text
    from streamplace.library.folder import open_library
    from streamplace.library.runs import read_all_runs
    from streamplace.library.tables import as_markdown, as_page, summaries_document, table_report

    if output is not None and output.suffix not in (".md", ".html"):
        raise SettingError(f"-o {spot(output)} must end in .md or .html; name such a file")
    library = open_library(folder)
    runs = read_all_runs(results)
    report = table_report(library, runs)
    if output is not None:
        make = as_page if output.suffix == ".html" else as_markdown
        write_text(output, make(report, title))
        say_written("page", output)
    if as_json:
        print_json(summaries_document(library, runs))
    elif output is None:
        print_report(report)
