"""Conversion of settings: objects, paths of files, and texts and numbers for them."""

from collections.abc import Mapping
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, TypeGuard

from streamplace.errors import SettingError
from streamplace.io.clusters import cluster_from_tables, read_cluster, read_constraints
from streamplace.io.files import located
from streamplace.io.parsing import parse_tables
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.messages import quoted
from streamplace.model.relocation import Relocation
from streamplace.model.units import seconds
from streamplace.objectives.registry import Objective
from streamplace.placers.named import named_placer, with_weights
from streamplace.placers.registry import Budget, Placer

FilePath = str | PathLike[str]
ClusterLike = Cluster | int | Mapping[str, Any] | FilePath
"""A cluster, a number of equal devices, the tables of a cluster file, or its path."""
ConstraintsLike = Constraints | Mapping[str, Any] | FilePath
"""Constraints, the tables of a constraints file, or its path."""
BudgetLike = Budget | float | str
"""A budget, seconds, or a text such as ``"50 ms"``."""


def cluster_of(cluster: ClusterLike | None) -> Cluster | None:
    """Convert a description to a cluster; None for None.

    >>> cluster_of({"devices": [{"name": "a"}, {"name": "gpu", "count": 2}]}).devices.name
    ('a', 'gpu0', 'gpu1')
    """
    if cluster is None or isinstance(cluster, Cluster):
        return cluster
    if isinstance(cluster, Integral) and not isinstance(cluster, bool):
        return Cluster.uniform(int(cluster))
    if isinstance(cluster, Mapping):
        tables = parse_tables("cluster", dict(cluster), "cluster")
        with located("cluster"):
            return cluster_from_tables(tables)
    if is_path(cluster):
        return read_cluster(Path(cluster))
    raise wrong(
        "cluster", cluster,
        "a Cluster, a number of equal devices, the tables of a cluster file, or its path",
    )  # fmt: skip


def constraints_of(constraints: ConstraintsLike | None) -> Constraints | None:
    """Convert a description to constraints; None for None."""
    if constraints is None or isinstance(constraints, Constraints):
        return constraints
    if isinstance(constraints, Mapping):
        tables = {
            name: _plain_groups(table) if name in ("colocate", "exlocate", "allowed") else table
            for name, table in constraints.items()
        }
        return Constraints(**parse_tables("constraints", tables, "constraints"))
    if is_path(constraints):
        return read_constraints(Path(constraints))
    raise wrong(
        "constraints", constraints,
        "Constraints, a mapping with pin, colocate, exlocate or allowed, or the path of a file",
    )  # fmt: skip


def _plain_groups(table: Any) -> Any:
    """Convert sets and tuples of names to lists, as in a file."""
    if isinstance(table, Mapping):
        return {name: _plain_groups(group) for name, group in table.items()}
    if isinstance(table, set | frozenset):
        return sorted(table, key=str)
    return [_plain_groups(group) for group in table] if isinstance(table, list | tuple) else table


def budget_of(budget: BudgetLike | None) -> Budget | None:
    """Convert a description to a budget; None for None.

    >>> budget_of("50 ms"), budget_of(2)
    (Budget(seconds=0.05), Budget(seconds=2.0))
    """
    if budget is None or isinstance(budget, Budget):
        return budget
    if isinstance(budget, str):
        return Budget(seconds(budget))
    if isinstance(budget, Real) and not isinstance(budget, bool):
        return Budget(float(budget))
    raise wrong("budget", budget, "a number of seconds, a text such as '50 ms', or a Budget")


def checked_objective(objective: str | Objective) -> str | Objective:
    """Objective or its name; raise SettingError for anything else."""
    if isinstance(objective, str | Objective):
        return objective
    raise wrong("objective", objective, "a name, as in 'makespan:network=link', or Objective")


def checked_relocation(relocation: Relocation | None) -> Relocation | None:
    """Relocation or None; raise SettingError for anything else."""
    if relocation is None or isinstance(relocation, Relocation):
        return relocation
    raise wrong("relocation", relocation, "a Relocation, as in Relocation(placement, 1000)")


def placer_of(placer: str | Placer, weights: FilePath | None = None) -> Placer:
    """Placer itself or by name, with weights if there are any."""
    if isinstance(placer, str):
        chosen = named_placer(placer)
    elif isinstance(placer, Placer):
        chosen = placer
    else:
        raise wrong("placer", placer, "a name, as in 'metis:k=3', or a Placer")
    if weights is None:
        return chosen
    if not is_path(weights):
        raise wrong("weights", weights, "the path of a weights file")
    return with_weights(chosen, Path(weights))


def seed_of(seed: int) -> int:
    """Convert a seed to a plain integer."""
    if isinstance(seed, Integral) and not isinstance(seed, bool) and seed >= 0:
        return int(seed)
    raise wrong("seed", seed, "a whole number, 0 or more")


def path_of(argument: str, path: FilePath) -> Path:
    """Path of a file or folder."""
    if is_path(path):
        return Path(path)
    raise wrong(argument, path, "a path")


def is_path(value: object) -> TypeGuard[FilePath]:
    """Whether a value is a path."""
    return isinstance(value, str | PathLike)


def wrong(argument: str, value: object, wanted: str) -> SettingError:
    """Build the error for an argument of a wrong type."""
    return SettingError(f"{argument} is {quoted(value)}; it must be {wanted}")
