"""``streamplace library``: instances with best known solutions and proven bounds."""

from pathlib import Path

import click

from streamplace.cli._groups import CommandGroup
from streamplace.cli._library_runs import (
    LIBRARY,
    OBJECTIVE,
    closed_or_open,
    of_class,
    of_size,
    run_,
    table_,
)
from streamplace.cli._options import FILE, common, reads, spare_inputs
from streamplace.cli._output import (
    counted,
    deliver,
    print_line,
    print_report,
    progress,
    say,
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


@command.command(
    "list",
    short_help="List instances, best known values and bounds.",
    epilog="Example: streamplace library list --class random --open --json",
)
@LIBRARY
@of_class
@of_size
@OBJECTIVE
@closed_or_open
@common("Write the JSON document to this file.")
def list_(
    folder: Path | None,
    families: tuple[str, ...],
    sizes: tuple[str, ...],
    objective: str | None,
    closed: bool | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """List the entries of the library: an instance and an objective each.

    The gap is the distance between the best known value and the proven bound. It is 0 where the
    bound proves that no placement is better.
    """
    from streamplace.library.folder import open_library
    from streamplace.library.reports import entries_report, entry_document

    library = open_library(folder)
    entries = library.select(families=families, sizes=sizes, objective=objective, closed=closed)
    document = [entry_document(library, entry) for entry in entries]
    if not deliver(document, output, as_json):
        print_report(entries_report(library, entries))


@command.command(
    "show",
    short_help="Show an instance and what is proven of it.",
    epilog="Example: streamplace library show random-00",
)
@click.argument("instance")
@LIBRARY
@common("Write the JSON document to this file.")
def show_(instance: str, folder: Path | None, as_json: bool, output: Path | None) -> None:
    """Show an INSTANCE: its size and origin, the best known values, the bounds and their proofs.

    It also names the folder of the files that 'check' verifies.
    """
    from streamplace.library.folder import open_library
    from streamplace.library.reports import entry_document, instance_report

    library = open_library(folder)
    document = {
        "file": str(library.instance_file(instance)),
        "entries": [entry_document(library, entry) for entry in library.select([instance])],
    }
    if not deliver(document, output, as_json):
        print_report(instance_report(library, instance))


@command.command(
    "check",
    short_help="Verify solutions and bounds in exact fractions.",
    epilog="Example: streamplace library check random-00; "
    "streamplace library check instance.json solution.json certificate.json",
)
@click.argument("names", nargs=-1, metavar="[INSTANCE]... | FILES")
@LIBRARY
@of_class
@of_size
@OBJECTIVE
@common("Write the JSON document to this file.")
def check_(
    names: tuple[str, ...],
    folder: Path | None,
    families: tuple[str, ...],
    sizes: tuple[str, ...],
    objective: str | None,
    as_json: bool,
    output: Path | None,
) -> int:
    """Verify entries of the library, or the files INSTANCE SOLUTION [CERTIFICATE].

    The checker reads all numbers as exact fractions and trusts no solver. It runs in a process of
    its own, within one hour of processor time and 4 GiB for each entry. The exit status is 1 if it
    refuses any. Without names it verifies the whole library.
    """
    from streamplace.library.checking import ROLES, check_entry, check_files, is_list_of_files
    from streamplace.library.folder import open_library

    if files := is_list_of_files(names):
        for name in names:
            reads(Path(name))
        spare_inputs(*([] if output is None else [output]))
        results = {names[1]: check_files(*names)}
    else:
        library = open_library(folder)
        entries = library.select(names, families=families, sizes=sizes, objective=objective)
        with progress("checking", len(entries)) as tick:
            results = {e.name: check_entry(library, e) for e in tick.over(entries)}
    document = [{"entry": name, **result.document()} for name, result in results.items()]
    deliver(document, output, as_json)
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


@command.command(
    "submit",
    short_help="Add a better solution or bound.",
    epilog="Example: streamplace library submit mine.json --instance random-00 --by 'A. Author' "
    "--seconds 60",
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
@common("Write the JSON document to this file.")
def submit_(
    files: tuple[Path, ...],
    folder: Path | None,
    instance: str | None,
    by: str,
    seconds: float | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Check solution or certificate FILES, and store those that improve the library.

    The checker verifies each file in exact fractions. A solution replaces the best known one if
    its value is better by more than a billionth, and a certificate replaces the present one if its
    bound is tighter. The library never gets worse, even if the command is killed.
    """
    from streamplace.library.reports import exact_text
    from streamplace.library.submission import submit

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
    deliver(documents, output, as_json)


for _part in (run_, table_):
    command.add_command(_part)
