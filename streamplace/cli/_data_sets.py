"""Options and output of the commands on data sets."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamplace.cli._output import counted, say

MOST_NAMED = 20


@contextmanager
def resumable(output: Path | None) -> Iterator[None]:
    """Say at Ctrl-C in this block that repeating the command continues, or how it would."""
    try:
        yield
    except KeyboardInterrupt:
        if output is None:
            say("stopped; nothing was kept, but with -o the same command continues where it ended")
        else:
            say(f"stopped; {output} holds what is done, and the same command continues from there")
        raise


class FailedGraphs:
    """Graphs that failed; the first twenty are reported on stderr at once."""

    def __init__(self) -> None:
        self.graphs: dict[str, None] = {}

    def __call__(self, graph: str, reason: str) -> None:
        """Count a failed graph, and report it."""
        self.graphs[graph] = None
        if len(self.graphs) <= MOST_NAMED:
            say(f"failed: {graph}: {reason}")

    @property
    def status(self) -> int:
        """Exit status: 1 if some failed, whose number is printed."""
        if not self.graphs:
            return 0
        say(f"{counted(len(self.graphs), 'graph')} failed")
        return 1
