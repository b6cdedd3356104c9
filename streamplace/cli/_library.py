"""Options that the commands of the library share."""

import click

from streamplace.cli._options import FILE, OneOf

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


def _families() -> tuple[str, ...]:
    return ("branched", "random", "…")


def _sizes() -> tuple[str, ...]:
    from streamplace.library.entries import SIZES

    return SIZES


of_class = click.option(
    "--class",
    "families",
    multiple=True,
    type=OneOf("class", _families),
    help="Only instances of this class (see: streamplace library list). May be repeated.",
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
