"""``streamplace library submit``: better solutions and bounds that the checker accepts."""

from pathlib import Path

import click

from streamplace.cli._library import LIBRARY
from streamplace.cli._options import FILE, common
from streamplace.cli._output import print_json, print_line, save_document


@click.command(
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
    if output is not None:
        save_document(documents, output)
    if as_json:
        print_json(documents)
