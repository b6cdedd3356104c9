"""Weights and records of decisions, shared by policies of the core and of torch."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from streamplace.model.arrays import Bools, Singles

N = TypeVar("N", bound=tuple[Any, ...])
Row = Annotated[Singles, "row"]
"""Matrix of a map with one output, as a row."""


def weights_of(network: type[N], tensors: Mapping[str, Singles], path: str = "") -> N:
    """Weights of a network from named tensors, by the names of its fields; empty if there are none.

    A field is a matrix [in, out], which is [out, in] in tensors, a `Row`, the bias ``NAME_bias`` of
    the map ``NAME``, or other weights whose names it begins.
    """
    kinds = get_type_hints(network, include_extras=True).items()
    return network(*(_part(kind, tensors, f"{path}{name}") for name, kind in kinds))


def _part(kind: Any, tensors: Mapping[str, Singles], name: str) -> Any:
    if hasattr(kind, "_fields"):
        return weights_of(kind, tensors, f"{name}.")
    if name.endswith("_bias"):
        bias = tensors.get(f"{name.removesuffix('_bias')}.bias", np.zeros(0))
        return np.array(bias, np.float32)
    matrix = tensors.get(f"{name}.weight", np.zeros((0, 0)))
    transposed = np.ascontiguousarray(np.swapaxes(matrix, -1, -2), np.float32)
    return transposed[:, 0].copy() if kind == Row else transposed


class DecisionRecord(NamedTuple):
    """S rollouts of T decisions about D devices."""

    devices: Singles  # [S, T, D, F] features of every device
    steps: Singles  # [S, T, G] features of the decision itself
    open: Bools  # [S, T, D] devices that could be chosen


def feature_names(columns: type[IntEnum]) -> list[str]:
    """Names of the columns of features, as weights files have them."""
    return [column.name.lower().replace("_", "-") for column in columns]


def packed(tables: Sequence[NDArray[Any]], missing: float = 0) -> NDArray[Any]:
    """Tables [S, T, D, …] as rows of decisions, padded to the largest D."""
    width = max(table.shape[2] for table in tables)
    rows = [table.reshape(-1, *table.shape[2:]) for table in tables]
    others = ((0, 0),) * (rows[0].ndim - 2)
    return np.concatenate(
        [
            np.pad(row, ((0, 0), (0, width - row.shape[1]), *others), constant_values=missing)
            for row in rows
        ]
    )


def joined(records: Sequence[DecisionRecord]) -> tuple[Singles, Singles, Bools]:
    """Decisions of records one after the other: devices [P, D, F], steps [P, G], open [P, D]."""
    return (
        packed([record.devices for record in records]),
        np.concatenate([record.steps.reshape(-1, record.steps.shape[2]) for record in records]),
        packed([record.open for record in records]),
    )
