"""Inputs of the decisions of rollouts, as training evaluates them again."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamplace.model.arrays import Bools, Singles


class DecisionRecord(NamedTuple):
    """S rollouts of T decisions about D devices; of length 0 where nothing is to be recorded."""

    devices: Singles  # [S, T, D, F] features of every device
    steps: Singles  # [S, T, G] features of the decision itself
    open: Bools  # [S, T, D] devices that could be chosen


def empty_record(shape: tuple[int, int, int], of_device: int, of_step: int) -> DecisionRecord:
    """Record of rollouts of this shape (S, T, D), with so many features."""
    return DecisionRecord(
        np.zeros((*shape, of_device), np.float32),
        np.zeros((*shape[:2], of_step), np.float32),
        np.zeros(shape, np.bool_),
    )


def packed(tables: Sequence[NDArray[Any]], missing: float = 0) -> NDArray[Any]:
    """Tables [S, T, D, …] as rows of decisions, as wide as that with the most devices."""
    most = max(table.shape[2] for table in tables)
    rows = [table.reshape(-1, *table.shape[2:]) for table in tables]
    room = ((0, 0),) * (rows[0].ndim - 2)
    return np.concatenate(
        [
            np.pad(row, ((0, 0), (0, most - row.shape[1]), *room), constant_values=missing)
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
