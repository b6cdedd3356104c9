"""Throughput in tensors is the simulator's."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from problems import PROBLEMS
from streamsim import throughput as simulated
from streamsim_strategies import Description, Ints, placed, placed_joins

from streamplace.learn.reward import Reward, engine, steady
from streamplace.learn.tensors.rewards import Costs, can_compute, throughput

CASES = {
    "few sources": placed(count=3),
    "many sources": placed(count=2, max_sources=6, max_operators=7),
    "joins": placed_joins(count=3, max_sources=4, max_operators=7, limits=True),
    "everything": placed(count=2, max_sources=6, max_operators=7, limits=True),
}


@pytest.mark.parametrize("cases", CASES.values(), ids=CASES)
@given(data=st.data())
def test_rewards_are_those_of_the_simulator(
    cases: SearchStrategy[tuple[Description, Ints]], data: st.DataObject
) -> None:
    """NICs, overhead, gaps, cores, limits and groups of sources included."""
    problem, batch = data.draw(cases)
    instance = problem.instance
    found = throughput(Costs.of([instance]), torch.from_numpy(batch).long()[None])[0].numpy()
    assert found == pytest.approx(simulated(instance, batch), rel=1e-12, abs=1e-12)


@given(st.lists(placed() | placed(max_sources=1), min_size=2, max_size=4))
def test_problems_of_all_kinds_share_a_batch(cases: list[tuple[Description, Ints]]) -> None:
    """Padding has no load, and a selection of rows keeps what belongs to them."""
    instances = [problem.instance for problem, _ in cases]
    most = max(each.n_operators for each in instances)
    rows = np.zeros((len(cases), 1, most), np.int64)
    for row, (_, batch) in zip(rows, cases, strict=True):
        row[:, : batch.shape[1]] = batch
    order = torch.arange(len(cases)).flip(0)
    found = throughput(Costs.of(instances).of_rows(order, most), torch.from_numpy(rows)[order])
    expected = [simulated(one, batch)[0] for one, (_, batch) in zip(instances, cases, strict=True)]
    assert found[:, 0].tolist() == pytest.approx(expected[::-1], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("reward", "name", "computed"),
    [
        (steady, "heterogeneous, many sources", True),
        (steady, "constrained", False),
        (steady, "constant loads", False),
        (engine, "diamond", False),
    ],
)
def test_what_is_not_computed_is_left_to_the_simulator(
    reward: Reward, name: str, computed: bool
) -> None:
    assert can_compute(reward, [PROBLEMS["diamond"], PROBLEMS[name]]) == computed
