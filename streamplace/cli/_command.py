"""The command in a report, which simulates the placement that the page shows."""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from streamplace.cli._options import NO_CHOICE, ClusterChoice

if TYPE_CHECKING:
    from streamplace.model.report import Report


def with_command(
    report: "Report",
    graph: Path,
    cluster: ClusterChoice = NO_CHOICE,
    options: Mapping[str, str | Path | tuple[str, ...] | None] | None = None,
) -> "Report":
    """Add the command that simulates a placement of GRAPH, read from stdin, to a report.

    ``options`` are those of ``simulate`` by name, except the options of the cluster.

    The report has no command if a file cannot be read again, like a pipe, or if its name cannot
    be typed on a terminal.
    """
    from dataclasses import replace

    given = {
        **(options or {}),
        "cluster": cluster.file,
        "devices": None if cluster.devices is None else str(cluster.devices),
        "mips": cluster.mips,
        "bandwidth": cluster.bandwidth,
    }
    used = {name: value for name, value in given.items() if value not in (None, "", ())}
    files = [graph, *(value for value in used.values() if isinstance(value, Path))]
    words = ["streamplace", "simulate", _as_argument(graph), "/dev/stdin"]
    for name, value in used.items():
        for single in value if isinstance(value, tuple) else (value,):
            words += [f"--{name}", str(single)]
    if not all(file.is_file() for file in files) or not all(map(str.isprintable, words)):
        return report
    return replace(report, command=" ".join(map(quote, words)))


def _as_argument(path: Path) -> str:
    """Name of a file that is not parsed as an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)
