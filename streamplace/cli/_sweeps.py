"""What commands that go over data sets share: where they compute, what it costs, what failed."""

from collections.abc import Callable
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamplace.cli._output import print_json, print_line, say

if TYPE_CHECKING:
    from streamplace.evaluate.estimate import Estimate

F = TypeVar("F", bound=Callable[..., Any])
SOME_FAILED = 1
"""Exit status of a sweep that went through, but for some graphs."""
MOST_NAMED = 20


def spread(function: F) -> F:
    """``--jobs`` and ``--on``."""
    jobs = click.option("--jobs", type=click.IntRange(1), help="Processes.  [default: all cores]")
    on = click.option(
        "--on",
        metavar="RAY",
        help="Compute on Ray: 'ray' starts one here, 'auto' or an address takes a cluster that "
        "runs.",
    )
    return jobs(on(function))


def dry_run(function: F) -> F:
    """``--dry-run``."""
    option = click.option(
        "--dry-run",
        is_flag=True,
        help="Try some graphs and say how many placements there are and how long they take.",
    )
    return option(function)


class Failures:
    """Graphs that failed, named on stderr as they come; the first twenty of them."""

    def __init__(self) -> None:
        self.graphs: dict[str, None] = {}

    def __call__(self, graph: str, why: str) -> None:
        """Count one and name it."""
        self.graphs[graph] = None
        if len(self.graphs) <= MOST_NAMED:
            say(f"failed: {graph}: {why}")

    @property
    def status(self) -> int:
        """Exit status; says how many failed, if any did."""
        if not self.graphs:
            return 0
        say(f"{len(self.graphs)} graphs failed")
        return SOME_FAILED


def tell_estimate(found: "Estimate", as_json: bool) -> None:
    """Print what a sweep will cost."""
    known = isfinite(found.standard_error)
    if as_json:
        print_json({**asdict(found), "standard_error": found.standard_error if known else None})
        return
    print_line(f"{found.placements} placements of {found.graphs} graphs")
    error = f" ± {found.standard_error:.2g}" if known else ""
    print_line(
        f"{found.core_hours:.3g}{error} core hours, by {found.tried} graphs that were tried here "
        f"({found.seconds_per_graph:.3g} s each)"
    )
