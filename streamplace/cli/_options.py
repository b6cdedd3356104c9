"""Options that several commands share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.model.cluster import Cluster
    from streamplace.model.constraints import Constraints
    from streamplace.model.problem import Problem

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)
DEFAULTS = {"devices": 5, "mips": "2500 MIPS", "bandwidth": "1000 Mbps"}


def common(output: str) -> Callable[[F], F]:
    """``--json``, ``--seed``, ``-o`` and ``-v``; ``output`` says what ``-o`` writes."""

    def decorate(function: F) -> F:
        for option in (
            click.option("-v", "--verbose", is_flag=True, help="Say more on the way (stderr)."),
            click.option("-o", "--output", type=FILE, help=output),
            click.option(
                "--seed",
                type=click.IntRange(0),
                default=0,
                show_default=True,
                help="One seed gives one result.",
            ),
            click.option(
                "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
            ),
        ):
            function = option(function)
        return function

    return decorate


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """The cluster that the options describe."""

    file: Path | None
    devices: int | None
    mips: str | None
    bandwidth: str | None

    def build(self) -> "Cluster":
        """Build the cluster, from the file or from the three numbers."""
        from streamplace.io.clusters import read_cluster
        from streamplace.model.cluster import Cluster

        given = {"devices": self.devices, "mips": self.mips, "bandwidth": self.bandwidth}
        if self.file is None:
            chosen = {
                key: DEFAULTS[key] if value is None else value for key, value in given.items()
            }
            return Cluster.uniform(
                int(str(chosen["devices"])),
                mips=str(chosen["mips"]),
                bandwidth=str(chosen["bandwidth"]),
            )
        for key, value in given.items():
            if value is not None:
                raise SettingError(f"--{key} and --cluster exclude each other; drop one")
        return read_cluster(self.file)


def cluster(function: F) -> F:
    """``--devices --mips --bandwidth`` or ``--cluster``, passed on as one `ClusterChoice`."""

    def wrapper(*args: Any, **options: Any) -> Any:
        choice = ClusterChoice(
            options.pop("cluster_file"),
            options.pop("devices"),
            options.pop("mips"),
            options.pop("bandwidth"),
        )
        return function(*args, cluster=choice, **options)

    wrapper.__name__, wrapper.__doc__ = function.__name__, function.__doc__
    wrapper.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    decorated: Any = wrapper
    for option in (
        click.option(
            "--cluster",
            "cluster_file",
            type=FILE,
            help="TOML file of the cluster (see: streamplace schema cluster).",
        ),
        click.option("--bandwidth", help="Of every link.  [default: 1000 Mbps]"),
        click.option("--mips", help="Speed of every device.  [default: 2500 MIPS]"),
        click.option("--devices", type=int, help="Number of equal devices d0…  [default: 5]"),
    ):
        decorated = option(decorated)
    result: F = decorated
    return result


def constraints(function: F) -> F:
    """``--constraints``, a TOML file."""
    option = click.option(
        "--constraints",
        "constraints_file",
        type=FILE,
        help="TOML file of pins and more (see: streamplace schema constraints).",
    )
    return option(function)


def read_problem(
    graph: Path, cluster: ClusterChoice, rate: str | None, constraints_file: Path | None = None
) -> "Problem":
    """Graph file, cluster options, rate and constraints file as a problem."""
    from streamplace.io.graphs import read_graph
    from streamplace.model.problem import Problem
    from streamplace.model.units import tuple_rate

    stream_graph = read_graph(graph)
    if rate is not None:
        stream_graph = stream_graph.at_rate(tuple_rate(rate))
    return Problem(stream_graph, cluster.build(), constraints_of(constraints_file))


def constraints_of(file: Path | None) -> "Constraints":
    """Constraints of a file, none where there is no file."""
    from streamplace.io.clusters import read_constraints
    from streamplace.model.constraints import Constraints

    return Constraints() if file is None else read_constraints(file)
