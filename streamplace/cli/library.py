"""``streamplace library``: instances with best known solutions and proven bounds."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click

from streamplace.cli._command import CommandGroup
from streamplace.cli._verbs import command_of
from streamplace.model.message_text import counted
from streamplace.settings.convert import Texts
from streamplace.settings.option import WHERE, argument, names_in, option
from streamplace.settings.verb import SILENT, Listing, Progress, Verb, Written


class LibraryOptions(Verb):
    """A library of instances."""

    folder: Path | None = option(
        "--library FILE",
        "Folder of the library.  [default: STREAMPLACE_LIBRARY, or the one that comes with "
        "streamplace]",
        WHERE,
    )


class EntryOptions(LibraryOptions):
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


class ListEntries(EntryOptions):
    """List the entries of the library: an instance and an objective each.

    The gap is the distance between the best known value and the proven bound. It is 0 where the
    bound proves that no placement is better.
    """

    closed: bool = option(
        "--closed", "Only entries whose best known solution is proven to be the best."
    )
    open: bool = option("--open", "Only entries whose proven bound leaves a gap.")

    def check(self) -> None:
        """Refuse two options that leave no entry."""
        super().check()
        self.exclude("closed", "open")

    def run(self, progress: Progress = SILENT) -> Listing:
        """Select the entries."""
        from streamplace.library.folder import open_library
        from streamplace.library.tables import entries_report, entry_document

        library = open_library(self.folder)
        closed = self.closed if self.closed or self.open else None
        entries = library.select(
            families=self.families, sizes=self.sizes, objective=self.objective, closed=closed
        )
        return Listing(
            lambda: entries_report(library, entries),
            lambda: [entry_document(library, entry) for entry in entries],
        )


class ShowInstance(LibraryOptions):
    """Show an INSTANCE: its size and origin, the best known values, the bounds and their proofs.

    It also names the folder of the files that 'check' verifies.
    """

    instance: str = argument(is_file=False)

    def run(self, progress: Progress = SILENT) -> Listing:
        """Find the instance."""
        from streamplace.library.folder import open_library
        from streamplace.library.tables import entry_document, instance_report

        library, name = open_library(self.folder), self.instance

        def document() -> dict[str, Any]:
            entries = [entry_document(library, entry) for entry in library.select([name])]
            return {"file": str(library.instance_file(name)), "entries": entries}

        return Listing(lambda: instance_report(library, name), document)


class CheckEntries(EntryOptions):
    """Verify entries of the library, or the files INSTANCE SOLUTION [CERTIFICATE].

    The checker reads all numbers as exact fractions and trusts no solver. It runs in a process of
    its own, within one hour and 4 GiB for each entry. The exit status is 1 if it refuses any.
    Without names it verifies the whole library.
    """

    names: Texts = argument(
        is_file=False, is_repeatable=True, is_needed=False, word="[INSTANCE]... | FILES"
    )

    def run(self, progress: Progress = SILENT) -> Written:
        """Check the entries, or the files."""
        from streamplace.library.folder import open_library
        from streamplace.library.run_checker import (
            ROLES,
            check_entry,
            check_files,
            is_list_of_files,
        )
        from streamplace.progress import tracked

        names = self.names
        if files := is_list_of_files(names):
            results = {names[1]: check_files(*names)}
        else:
            library = open_library(self.folder)
            entries = library.select(
                names, families=self.families, sizes=self.sizes, objective=self.objective
            )
            each = tracked(entries, "checking", len(entries))
            results = {entry.name: check_entry(library, entry) for entry in each}
        for name, result in results.items():
            text = result.text
            role, _, reason = text.partition(": ")
            if files and role in ROLES:  # the faulty file
                name, text = names[ROLES.index(role)], reason
            if text.startswith("makespan "):  # the checker leaves the unit out
                text = text.replace(" = ", " s = ")
            progress.suggest(f"{'accepted' if result.accepted else 'refused'}: {name}: {text}")
        refused = sum(not result.accepted for result in results.values())
        total = f"{counted(len(results), 'check')}, {refused} refused"
        progress.say(total) if progress.as_json else progress.hint(total)
        facts = [{"entry": name, **asdict(result)} for name, result in results.items()]
        return Written(facts, status=int(refused > 0))


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


command_of(
    ListEntries,
    "list",
    "List instances, best known values and bounds.",
    "library list --class random --open --json",
    group=command,
)
command_of(
    ShowInstance,
    "show",
    "Show an instance and its proofs.",
    "library show random-00",
    group=command,
)
command_of(
    CheckEntries,
    "check",
    "Verify solutions and bounds in exact fractions.",
    "library check random-00; "
    "streamplace library check instance.json solution.json certificate.json",
    group=command,
)
