"""``streamplace library``: instances with best known solutions and proven bounds."""

from pathlib import Path
from typing import Literal

import click

from streamplace.cli._command import CommandGroup, verb
from streamplace.cli._options import with_json
from streamplace.cli._output import counted, print_json, print_line, print_report, progress, say
from streamplace.settings.base import VerbSettings
from streamplace.settings.convert import Texts
from streamplace.settings.option import WHERE, names_in, option


class OfLibrary(VerbSettings):
    """A library of instances."""

    folder: Path | None = option(
        "--library FILE",
        "Folder of the library.  [default: STREAMPLACE_LIBRARY, or the one that comes with "
        "streamplace]",
        WHERE,
    )


class CheckedEntries(OfLibrary):
    """Entries of a library."""

    families: Texts = option(
        "--class NAME…",
        "Only instances whose name begins with this word, such as random. May be repeated.",
    )
    sizes: Texts = option(
        "--size NAME…",
        "Only entries of this size class: open where the proven bound leaves a gap, else by the "
        "time of the proof. May be repeated.",
        choices=names_in("streamplace.library.folder:SIZES"),
    )
    objective: Literal["throughput", "makespan", "plan"] | None = option(
        "--objective NAME", "Only entries for this objective: throughput, makespan or plan."
    )


class ListedEntries(CheckedEntries):
    """Entries of a library, by whether they are solved."""

    closed: bool = option(
        "--closed", "Only entries whose best known solution is proven to be the best."
    )
    open: bool = option("--open", "Only entries whose proven bound leaves a gap.")

    def check(self) -> None:
        """Refuse two options that leave no entry."""
        super().check()
        self.exclude("closed", "open")


@click.group(
    "library",
    cls=CommandGroup,
    short_help="List and check instances with proven bounds.",
    epilog="Example: streamplace library list --size easy",
)
def command() -> None:
    """List and check instances with best known solutions and proven bounds.

    Every instance has a best known solution and a bound that no placement beats, and a checker
    that shares no code with streamplace verifies both in exact fractions.
    """


@verb(
    "list",
    "List instances, best known values and bounds.",
    "library list --class random --open --json",
    group=command,
    settings=ListedEntries,
)
@with_json
def list_(settings: ListedEntries, as_json: bool) -> None:
    """List the entries of the library: an instance and an objective each.

    The gap is the distance between the best known value and the proven bound. It is 0 where the
    bound proves that no placement is better.
    """
    from streamplace.library.folder import open_library
    from streamplace.library.tables import entries_report, entry_document

    library = open_library(settings.folder)
    closed = settings.closed if settings.closed or settings.open else None
    entries = library.select(
        families=settings.families,
        sizes=settings.sizes,
        objective=settings.objective,
        closed=closed,
    )
    if as_json:
        print_json([entry_document(library, entry) for entry in entries])
    else:
        print_report(entries_report(library, entries))


@verb(
    "show",
    "Show an instance and what is proven of it.",
    "library show random-00",
    group=command,
    settings=OfLibrary,
)
@click.argument("instance")
@with_json
def show_(instance: str, settings: OfLibrary, as_json: bool) -> None:
    """Show an INSTANCE: its size and origin, the best known values, the bounds and their proofs.

    It also names the folder of the files that 'check' verifies.
    """
    from streamplace.library.folder import open_library
    from streamplace.library.tables import entry_document, instance_report

    library = open_library(settings.folder)
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
    settings=CheckedEntries,
)
@click.argument("names", nargs=-1, metavar="[INSTANCE]... | FILES")
@with_json
def check_(names: tuple[str, ...], settings: CheckedEntries, as_json: bool) -> int:
    """Verify entries of the library, or the files INSTANCE SOLUTION [CERTIFICATE].

    The checker reads all numbers as exact fractions and trusts no solver. It runs in a process of
    its own, within one hour and 4 GiB for each entry. The exit status is 1 if it
    refuses any. Without names it verifies the whole library.
    """
    from dataclasses import asdict

    from streamplace.library.folder import open_library
    from streamplace.library.run_checker import ROLES, check_entry, check_files, is_list_of_files

    if files := is_list_of_files(names):
        results = {names[1]: check_files(*names)}
    else:
        library = open_library(settings.folder)
        entries = library.select(
            names, families=settings.families, sizes=settings.sizes, objective=settings.objective
        )
        with progress("checking", len(entries)) as tick:
            results = {e.name: check_entry(library, e) for e in tick.over(entries)}
    if as_json:
        print_json([{"entry": name, **asdict(result)} for name, result in results.items()])
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
