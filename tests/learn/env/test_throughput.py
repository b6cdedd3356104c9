"""Throughput in tensors is the simulator's."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from streamsim import throughput as simulated
from streamsim_strategies import flowing, placed, placed_joins

from streamplace.learn.env import ProblemTensors, throughput

CASES = {
    "few sources": placed(count=3),
    "many sources": placed(count=2, max_sources=6, max_operators=7),
    "joins": placed_joins(count=3, max_sources=4, max_operators=7),
    "constants": placed(count=3, constants=True) | placed_joins(count=3, constants=True),
    "limits": placed(count=3, limits=True) | placed_joins(count=3, limits=True),
    "everything": placed(count=2, max_sources=6, max_operators=7, constants=True, limits=True),
}


def tensors_of(descriptions):
    """Tensors of problems that have nothing but arrays."""
    problems = [
        SimpleNamespace(
            instance=flowing(each).instance,
            n_operators=each.n_operators,
            n_devices=each.n_devices,
            rules=None,
            interchangeable=np.arange(each.n_devices),
        )
        for each in descriptions
    ]
    return ProblemTensors(problems)  # type: ignore[arg-type]


@pytest.mark.parametrize("cases", CASES.values(), ids=CASES)
@given(data=st.data())
def test_throughput_is_that_of_the_simulator(cases, data):
    """NICs, overhead, gaps, cores, constant loads, limits and groups of sources included."""
    problem, rows = data.draw(cases)
    batch = tensors_of([problem]).batch(torch.tensor([0]))
    found = throughput(batch, torch.from_numpy(rows).long()[None])[0].numpy()
    expected = simulated(flowing(problem).instance, rows)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(st.lists(placed() | placed(constants=True, limits=True), min_size=2, max_size=4))
def test_problems_of_all_kinds_share_a_batch(cases):
    """Padding has no load, and a selection of rows keeps what belongs to them."""
    tensors, order = tensors_of([problem for problem, _ in cases]), range(len(cases))[::-1]
    batch = tensors.batch(torch.tensor(order))
    padded = torch.zeros(len(cases), 1, batch.order.shape[1], dtype=torch.long)
    for row, i in zip(padded, order, strict=True):
        row[:, : cases[i][1].shape[1]] = torch.from_numpy(cases[i][1])
    expected = [simulated(flowing(cases[i][0]).instance, cases[i][1])[0] for i in order]
    assert throughput(batch, padded)[:, 0].tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12)
