"""Options that several commands share."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from streamplace.cli._output import verbose
from streamplace.cli._types import FILE as FILE
from streamplace.cli._types import TIME as TIME
from streamplace.cli._types import OneOf as OneOf
from streamplace.cli._types import Share as Share
from streamplace.cli._types import check_output as check_output
from streamplace.cli._types import reads as reads
from streamplace.cli._types import spare_inputs as spare_inputs
from streamplace.cli._types import writes as writes
from streamplace.errors import SettingError
from streamplace.model.defaults import PLACE_SECONDS

if TYPE_CHECKING:
    from streamplace.io.datasets import DataSet
    from streamplace.model.cluster import Cluster
    from streamplace.model.constraints import Constraints
    from streamplace.model.problem import Problem
    from streamplace.model.relocation import Relocation

LOG = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])


OFFERS = click.option(
    "--offers",
    "offers_file",
    type=FILE,
    help="TOML file with the types of machines and their prices.",
)
CLUSTER = click.option(
    "--cluster",
    "cluster_file",
    type=FILE,
    help="TOML file that describes the cluster (see: streamplace schema cluster).",
)
TRUST = click.option(
    "--trust-profile",
    is_flag=True,
    help="Use a measured graph whose model is off by more than 30 % for the placement that was "
    "profiled.",
)
CONFIDENCE = click.option(
    "--confidence",
    type=Share(click.FloatRange(0, 1, max_open=True)),
    help="Confidence of the interval of what is predicted for a measured graph; 0 uses the "
    "prediction alone.  [default: 0.9; none for graphs that were not measured]",
)
LEDGER = click.option(
    "--ledger",
    type=FILE,
    help="File of predicted and measured rates, from which intervals are learned.  "
    "[default: $XDG_STATE_HOME/streamplace/ledger.jsonl]",
)
LAG = click.option(
    "--lag", default="1 min", show_default=True, help="Time by which tuples may be late."
)
AS_JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
)
DEFAULTS = {"devices": "5", "mips": "2500 MIPS", "bandwidth": "1000 Mbps"}


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


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """The cluster that the options describe."""

    file: Path | None
    devices: int | None
    mips: str | None
    bandwidth: str | None

    @property
    def options(self) -> dict[str, str | Path | None]:
        """The options by name."""
        return {
            "cluster": self.file,
            "devices": None if self.devices is None else str(self.devices),
            "mips": self.mips,
            "bandwidth": self.bandwidth,
        }

    def build_if_given(self) -> "Cluster | None":
        """Build the cluster; None without any option for it."""
        return None if self == NO_CHOICE else self.build()

    def build(self) -> "Cluster":
        """Build the cluster, from the file or from the three numbers."""
        from streamplace.io.clusters import read_cluster
        from streamplace.model.cluster import Cluster

        given = {"devices": self.devices, "mips": self.mips, "bandwidth": self.bandwidth}
        if self.file is None:
            return Cluster.uniform(self.devices, mips=self.mips, bandwidth=self.bandwidth)
        for key, value in given.items():
            if value is not None:
                raise SettingError(f"--{key} and --cluster exclude each other; drop one")
        return read_cluster(self.file)


NO_CHOICE = ClusterChoice(None, None, None, None)


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

    return with_options(
        wrapper,
        function,
        CLUSTER,
        click.option("--bandwidth", help="Bandwidth of every link.  [default: 1000 Mbps]"),
        click.option("--mips", help="Speed of every device.  [default: 2500 MIPS]"),
        click.option("--devices", type=int, help="Number of equal devices d0…  [default: 5]"),
    )


def search(function: F) -> F:
    """``--budget`` and ``--evaluations``, passed on as one `Budget`."""

    def wrapper(*args: Any, budget: float | None, evaluations: int | None, **options: Any) -> Any:
        from streamplace.placers.registry import USUAL_BUDGET, Budget

        is_limited = budget is not None or evaluations is not None
        limits = Budget(budget, evaluations) if is_limited else USUAL_BUDGET
        return function(*args, budget=limits, **options)

    return with_options(
        wrapper,
        function,
        click.option(
            "--evaluations",
            type=click.IntRange(1),
            help="Maximum number of placements to try. Results then do not depend on the machine.",
        ),
        click.option(
            "--budget",
            type=TIME,
            help="Search time per graph in seconds, or with a unit, as in '50 ms'.  "
            f"[default: {PLACE_SECONDS:g}; no limit where --evaluations is given]",
        ),
    )


def _objectives() -> Iterable[str]:
    from streamplace.objectives.registry import OBJECTIVES

    return OBJECTIVES


def control_policies() -> Iterable[str]:
    """Names of the policies that choose among plans when the rate changes."""
    from streamplace.control.policy import POLICIES

    return POLICIES


objective = click.option(
    "--objective",
    type=OneOf("objective", _objectives),
    default="",
    help="What to optimise (see: streamplace objectives). Options follow the name, separated "
    "by colons, as in makespan:network=link.  [default: makespan for task graphs, throughput "
    "for stream graphs]",
)


conditions = click.option(
    "--require",
    multiple=True,
    metavar="CONDITION",
    help="Condition that the placement must meet, such as 'throughput>=0.99' or "
    "'latency<=20ms'. May be given several times.",
)


def is_given(name: str) -> bool:
    """Whether an option of the running command stands on its command line."""
    context = click.get_current_context()
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_unused(needed: Mapping[str, str]) -> None:
    """Raise SettingError for an option without effect: each of them needs another one."""
    for name, other in needed.items():
        if is_given(name) and not is_given(other):
            option, needs = (_flag(each) for each in (name, other))
            raise SettingError(f"{option} has no effect without {needs}; add it, or drop {option}")


def refuse_given(names: Iterable[str], reason: str) -> None:
    """Raise SettingError for the first of some options that is on the command line."""
    for name in filter(is_given, names):
        raise SettingError(f"{_flag(name)} {reason}")


def _flag(name: str) -> str:
    """Option of the running command as it is typed."""
    command = click.get_current_context().command
    return next(each.opts[0] for each in command.params if each.name == name)


constraints = click.option(
    "--constraints",
    "constraints_file",
    type=FILE,
    help="TOML file with constraints, such as pins (see: streamplace schema constraints).",
)


def present(function: F) -> F:
    """``--from`` and ``--startup``: the current placement of the graph."""
    return with_each(
        function,
        click.option(
            "--startup",
            help="Time that a moved operator needs to start, such as '2 s'. Only for problems that "
            "do not specify it.",
        ),
        click.option(
            "--from",
            "present",
            type=FILE,
            help="The current placement. The cost of moving away from it is included in the "
            "objective.",
        ),
    )


def relocation_of(
    present: Path | None, startup: str | None, passes: float = inf
) -> "Relocation | None":
    """Relocation that the options describe; None without ``--from``."""
    from streamplace.io.placements import read_present
    from streamplace.model.relocation import Relocation
    from streamplace.model.units import seconds

    if present is None:
        if startup is None:
            return None
        raise SettingError("--startup needs --from; add --from with the current placement")
    return Relocation(read_present(present), passes, None if startup is None else seconds(startup))


split = click.option("--split", help="Use only the graphs of this split, such as test.")
limit = click.option(
    "--limit", type=click.IntRange(1), help="Number of graphs to read, from the first."
)
rates = click.option(
    "--rate",
    "rates",
    multiple=True,
    help="Total rate of the sources; repeat it for several rates.  "
    "[default: the rate of each graph]",
)


def data_set(
    data: Path,
    split: str | None = None,
    limit: int | None = None,
    cluster: ClusterChoice = NO_CHOICE,
    constraints_file: Path | None = None,
) -> "DataSet":
    """Problems of a split of a data set; graphs are placed on the chosen cluster."""
    from streamplace.io.datasets import DataSet, Reader

    constraints = None if constraints_file is None else constraints_of(constraints_file)
    return DataSet(data, split, limit, Reader(cluster.build_if_given(), constraints))


def read_problem(
    graph: Path,
    cluster: ClusterChoice,
    rate: str | None,
    constraints_file: Path | None = None,
    changes: Mapping[str, Any] | None = None,
) -> "Problem":
    """Read a graph or a problem, with the options for cluster, rate and constraints.

    ``changes`` are arguments of `streamplace.model.what_if.what_if`.
    """
    from streamplace.io.graphs import only
    from streamplace.model.units import total_rate
    from streamplace.model.what_if import what_if

    graphs = data_set(graph, cluster=cluster, constraints_file=constraints_file)
    problem = only(iter(graphs), graph, "graph")
    if changes:
        problem = what_if(problem, **changes)
    if rate is not None:
        problem = problem.at_rate(total_rate(rate))
    LOG.info(
        "%d operators, %d streams, %d devices, %g tuples/s",
        problem.n_operators,
        problem.graph.n_streams,
        problem.n_devices,
        problem.graph.source_rate,
    )
    return problem


def constraints_of(file: Path | None) -> "Constraints":
    """Constraints of a file; none without a file."""
    from streamplace.io.clusters import read_constraints
    from streamplace.model.constraints import Constraints

    return Constraints() if file is None else read_constraints(file)


def with_options(wrapper: Callable[..., Any], wrapped: F, *options: Callable[[Any], Any]) -> F:
    """Copy name, help text and options of a command to its wrapper, and add options, last first."""
    decorated: Any = wrapper
    decorated.__name__, decorated.__doc__ = wrapped.__name__, wrapped.__doc__
    decorated.__click_params__ = getattr(wrapped, "__click_params__", [])
    result: F = with_each(decorated, *options)
    return result
