"""``streamplace library``: instances with best known solutions and proven bounds."""

from pathlib import Path

import click

from streamplace.cli._command import CommandGroup, GroupedOption, verb
from streamplace.cli._options import (
    AS_JSON,
    FILE,
    SEED,
    common,
    with_json,
    writes,
)
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
from streamplace.settings.option import WHAT

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


def _sizes() -> str:
    from streamplace.library.folder import SIZES

    return "|".join(SIZES)


of_class = click.option(
    "--class",
    "families",
    multiple=True,
    metavar="branched|random|…",
    help="Only instances whose name begins with this word, such as random. May be repeated.",
)
of_size = click.option(
    "--size",
    "sizes",
    multiple=True,
    cls=GroupedOption,
    names=_sizes,
    group=WHAT,
    help="Only entries of this size class: open where the proven bound leaves a gap, else by the "
    "time of the proof. May be repeated.",
)
closed_or_open = click.option(
    "--closed/--open",
    "closed",
    default=None,
    help="Only entries whose best known solution is proven to be the best, or only the others.",
)


@click.group(
    "library",
    cls=CommandGroup,
    short_help="Measure placers on instances with proven bounds.",
    epilog="Example: streamplace library list --size easy",
)
def command() -> None:
    """Measure placers on instances with best known solutions and proven bounds.

    Every instance has a best known solution and a bound that no placement beats, and a checker
    that shares no code with streamplace verifies both in exact fractions. 'run' measures placers
    and foreign programs, 'table' compares what they reach, and 'submit' adds a better solution.
    """


@verb(
    "list",
    "List instances, best known values and bounds.",
    "library list --class random --open --json",
    group=command,
)
@LIBRARY
@of_class
@of_size
@OBJECTIVE
@closed_or_open
@with_json
def list_(
    folder: Path | None,
    families: tuple[str, ...],
    sizes: tuple[str, ...],
    objective: str | None,
    closed: bool | None,
    as_json: bool,
) -> None:
    """List the entries of the library: an instance and an objective each.

    The gap is the distance between the best known value and the proven bound. It is 0 where the
    bound proves that no placement is better.
    """
    from streamplace.library.folder import open_library
    from streamplace.library.tables import entries_report, entry_document

    library = open_library(folder)
    entries = library.select(families=families, sizes=sizes, objective=objective, closed=closed)
    if as_json:
        print_json([entry_document(library, entry) for entry in entries])
    else:
        print_report(entries_report(library, entries))


@verb("show", "Show an instance and what is proven of it.", "library show random-00", group=command)
@click.argument("instance")
@LIBRARY
@with_json
def show_(instance: str, folder: Path | None, as_json: bool) -> None:
    """Show an INSTANCE: its size and origin, the best known values, the bounds and their proofs.

    It also names the folder of the files that 'check' verifies.
    """
    from streamplace.library.folder import open_library
    from streamplace.library.tables import entry_document, instance_report

    library = open_library(folder)
    if not as_json:
        print_report(instance_report(library, instance))
        return
    entries = [entry_document(library, entry) for entry in library.select([instance])]
    print_json({"file": str(library.instance_file(instance)), "entries": entries})


@verb(
    "check",
    "Verify solutions and bounds in exact fractions.",
    "library check random-00; "
    "streamplace library check instance.json solution.json certificate.json",
    group=command,
)
@click.argument("names", nargs=-1, metavar="[INSTANCE]... | FILES")
@LIBRARY
@of_class
@of_size
@OBJECTIVE
@with_json
def check_(
    names: tuple[str, ...],
    folder: Path | None,
    families: tuple[str, ...],
    sizes: tuple[str, ...],
    objective: str | None,
    as_json: bool,
) -> int:
    """Verify entries of the library, or the files INSTANCE SOLUTION [CERTIFICATE].

    The checker reads all numbers as exact fractions and trusts no solver. It runs in a process of
    its own, within one hour of processor time and 4 GiB for each entry. The exit status is 1 if it
    refuses any. Without names it verifies the whole library.
    """
    from dataclasses import asdict

    from streamplace.library.folder import open_library
    from streamplace.library.run_checker import ROLES, check_entry, check_files, is_list_of_files

    if files := is_list_of_files(names):
        results = {names[1]: check_files(*names)}
    else:
        library = open_library(folder)
        entries = library.select(names, families=families, sizes=sizes, objective=objective)
        with progress("checking", len(entries)) as tick:
            results = {e.name: check_entry(library, e) for e in tick.over(entries)}
    if as_json:
        print_json([{"entry": name, **asdict(one)} for name, one in results.items()])
    refused = sum(not result.accepted for result in results.values())
    for name, result in results.items() if not as_json else ():
        text = result.text
        role, _, reason = text.partition(": ")
        if files and role in ROLES:  # the file in which the fault is
            name, text = names[ROLES.index(role)], reason
        if text.startswith("makespan "):  # the checker leaves the unit out
            text = text.replace(" = ", " s = ")
        print_line(f"{'accepted' if result.accepted else 'refused'}: {name}: {text}")
    say(f"{counted(len(results), 'check')}, {refused} refused")
    return 1 if refused else 0


@verb(
    "submit",
    "Add a better solution or bound.",
    "library submit mine.json --instance random-00 --by 'A. Author' --seconds 60",
    group=command,
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@LIBRARY
@click.option("--instance", help="Name of the instance.  [default: the graph that a file names]")
@click.option(
    "--by", default="not stated", show_default=True, help="Who or what found the solution."
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    help="Time in which it was found, on one core.",
)
@with_json
def submit_(
    files: tuple[Path, ...],
    folder: Path | None,
    instance: str | None,
    by: str,
    seconds: float | None,
    as_json: bool,
) -> None:
    """Check solution or certificate FILES, and store those that improve the library.

    The checker verifies each file in exact fractions. A solution replaces the best known one if
    its value is better by more than a billionth, and a certificate replaces the present one if its
    bound is tighter. The library never gets worse, even if the command is killed.
    """
    from streamplace.library.submission import submit
    from streamplace.library.tables import exact_text

    documents = []
    for file in files:
        result = submit(file, instance=instance, by=by, seconds=seconds, library=folder)
        entry, before = result.entry, result.before
        documents.append(
            {
                "file": str(file), "improved": result.improved, "entry": entry.document(),
                "before": {"value": before.value, "bound": before.bound},
            }
        )  # fmt: skip
        if not as_json:
            verdict = "stored" if result.improved else "not better than what the library has"
            value, old, bound, old_bound = (
                exact_text(entry.objective, number)
                for number in (entry.value, before.value, entry.bound, before.bound)
            )
            print_line(
                f"{entry.name}: {verdict}: value {value} (was {old}), "
                f"bound {bound} (was {old_bound})"
            )
    if as_json:
        print_json(documents)


@verb(
    "run",
    "Measure placers and foreign programs.",
    "library run --placer anneal --size easy --seconds 1 --seconds 10 -o results.jsonl",
    group=command,
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
    "--memory", default="4 GiB", show_default=True, help="Memory of each process of a run."
)
@click.option("--solutions", type=FILE, help="Folder for the answers, as files for 'submit'.")
@SEED
@common("Add the results to this JSONL file. Runs that it has are not repeated.")
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
    operator may be added. Each run is a process of its own. It is ended with the processes
    of its group if it exceeds its processor time by more than 10 s, or ten times as much on the
    clock; more memory is refused to it. A program that reacts to no limit should read {seconds}.
    """
    from dataclasses import asdict

    from streamplace.library.folder import open_library
    from streamplace.library.runs import RunPlan, methods_of, runs
    from streamplace.library.tables import exact_text
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


@verb(
    "table",
    "Compare methods by their results.",
    "library table results.jsonl -o results.md",
    group=command,
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
    from dataclasses import replace

    from streamplace.io.files import spot, write_text
    from streamplace.library.folder import open_library
    from streamplace.library.runs import read_all_runs
    from streamplace.library.tables import as_markdown, summaries_document, table_report

    if output is not None and output.suffix not in (".md", ".html"):
        raise SettingError(f"-o {spot(output)} must end in .md or .html; name such a file")
    library = open_library(folder)
    runs = read_all_runs(results)
    report = table_report(library, runs)
    if output is not None:
        if output.suffix == ".html":
            replace(report, title=title).save(output)
        else:
            write_text(output, as_markdown(report, title))
        say_written("page", output)
    if as_json:
        print_json(summaries_document(library, runs))
    elif output is None:
        print_report(report)
