"""Options that several commands share."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from streamplace.cli._output import verbose
from streamplace.cli._types import FILE as FILE
from streamplace.cli._types import OneOf as OneOf
from streamplace.cli._types import check_output as check_output
from streamplace.cli._types import reads as reads
from streamplace.cli._types import spare_inputs as spare_inputs
from streamplace.cli._types import writes as writes

if TYPE_CHECKING:
    from streamplace.io.datasets import DataSet
    from streamplace.model.cluster import Cluster
    from streamplace.model.constraints import Constraints
    from streamplace.model.problem import Problem

LOG = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])


CLUSTER = click.option(
    "--cluster",
    "cluster_file",
    type=FILE,
    help="TOML file that describes the cluster (see: streamplace schema cluster).",
)
JAR = click.argument("jar", type=FILE, required=False)
ARGUMENTS = click.argument("arguments", nargs=-1)
HOME = click.option(
    "--flink-home",
    type=FILE,
    help="Folder of a Flink installation, whose libraries are used.  [default: $FLINK_HOME, or "
    "what pip or 'flink fetch' has installed]",
)
AS_JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
)


def common(output: str, *, folder: bool | None = False) -> Callable[[F], F]:
    """``--json``, ``-o`` and ``-v``; ``output`` describes the file of ``-o``, or the folder."""
    return lambda function: with_each(function, verbose, writes(output, folder=folder), AS_JSON)


def seeded(output: str, *, folder: bool | None = False) -> Callable[[F], F]:
    """``--json``, ``--seed``, ``-o`` and ``-v``; ``output`` describes what ``-o`` writes."""
    seed = click.option(
        "--seed",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="The same seed gives the same result.",
    )
    output_file = writes(output, folder=folder)
    return lambda function: with_each(function, verbose, output_file, seed, AS_JSON)


def with_each(function: F, *options: Callable[[F], F]) -> F:
    """Add options to a command, last first."""
    for option in options:
        function = option(function)
    return function


def is_given(name: str) -> bool:
    """Whether an option of the running command stands on its command line."""
    context = click.get_current_context()
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


constraints = click.option(
    "--constraints",
    "constraints_file",
    type=FILE,
    help="TOML file with constraints, such as pins (see: streamplace schema constraints).",
)


split = click.option("--split", help="Use only the graphs of this split, such as test.")


def data_set(
    data: Path,
    split: str | None = None,
    limit: int | None = None,
    cluster: "Cluster | None" = None,
    constraints: "Constraints | None" = None,
) -> "DataSet":
    """Problems of a split of a data set; graphs are placed on the cluster."""
    from streamplace.io.datasets import DataSet, Reader

    return DataSet(data, split, limit, Reader(cluster, constraints))


def read_problem(
    graph: Path,
    cluster: "Cluster | None" = None,
    rate: float | None = None,
    constraints: "Constraints | None" = None,
    changes: Mapping[str, Any] | None = None,
) -> "Problem":
    """Read a graph or a problem, with a cluster, a rate and constraints for it.

    ``changes`` are arguments of `streamplace.model.what_if.what_if`.
    """
    from streamplace.io.graphs import only
    from streamplace.model.what_if import what_if

    graphs = data_set(graph, cluster=cluster, constraints=constraints)
    problem = only(iter(graphs), graph, "graph")
    if changes:
        problem = what_if(problem, **changes)
    if rate is not None:
        problem = problem.at_rate(rate)
    LOG.info(
        "%d operators, %d streams, %d devices, %g tuples/s",
        problem.n_operators,
        problem.graph.n_streams,
        problem.n_devices,
        problem.graph.source_rate,
    )
    return problem


def with_options(wrapper: Callable[..., Any], wrapped: F, *options: Callable[[Any], Any]) -> F:
    """Copy name, help text and options of a command to its wrapper, and add options, last first."""
    decorated: Any = wrapper
    decorated.__name__, decorated.__doc__ = wrapped.__name__, wrapped.__doc__
    decorated.__click_params__ = getattr(wrapped, "__click_params__", [])
    result: F = with_each(decorated, *options)
    return result
