"""GiPH's changing networks."""

from itertools import pairwise

import numpy as np
import pytest

from streamplace.io.problems import problem_line
from streamplace.papers.families.giph_adaptive import GiphAdaptive, giph_adaptive

FEW = GiphAdaptive(programs=2)


@pytest.fixture(scope="module")
def sequence():
    """Two task graphs through 20 changes."""
    return list(giph_adaptive(FEW, 0))


def test_every_task_graph_walks_through_all_steps(sequence):
    steps = [(p.graph.attributes["program"], p.graph.attributes["step"]) for p in sequence]
    assert steps == [(program, step) for program in range(2) for step in range(21)]
    assert sequence[22].graph.name == "p01-step01"
    assert GiphAdaptive().n_graphs == 420


def test_two_leave_then_four_then_two_join_then_four(sequence):
    """By name: who leaves does not come back, and who stays keeps speed, hardware and links."""
    sizes = [problem.n_devices for problem in sequence[:21]]
    assert sizes == [20, 18, 14, 16, 20] + [18, 14, 16, 20] * 4
    gone = set()
    for before, after in pairwise(problem.cluster for problem in sequence[:21]):
        old, new = before.devices, after.devices
        stayed = [name for name in new.name if name in old]
        assert {old[name] for name in stayed} == {new[name] for name in stayed}
        rows = [[devices.index(name) for name in stayed] for devices in (old, new)]
        links = [c.bandwidth_bps[np.ix_(r, r)] for c, r in zip((before, after), rows, strict=True)]
        assert (links[0] == links[1]).all()
        gone |= set(old.name)
        assert not (set(new.name) - set(old.name)) & gone


def test_every_task_graph_stays_the_same_on_the_same_networks(sequence):
    assert all(problem.graph.operators == sequence[0].graph.operators for problem in sequence[:21])
    assert sequence[0].graph.operators != sequence[21].graph.operators
    assert [p.cluster for p in sequence[:21]] == [p.cluster for p in sequence[21:]]


def test_new_devices_are_weaker(sequence):
    """After 20 changes few of the first devices are left, so speeds and bandwidths fall."""
    first, last = sequence[0].cluster, sequence[20].cluster
    assert last.devices.mips.mean() < 0.75 * first.devices.mips.mean()
    remote = ~np.eye(20, dtype=bool)
    assert last.bandwidth_bps[remote].mean() < 0.75 * first.bandwidth_bps[remote].mean()
    new = [device.mips for device in last.devices if int(device.name[1:]) >= 20]
    assert 0.5 * 3 - 1e-3 <= min(new) <= max(new) <= 0.5 * 7 + 1e-3


def test_fewer_changes_and_programs_are_the_beginning_of_more(sequence):
    less = list(giph_adaptive(GiphAdaptive(programs=1, changes=3), 0))
    assert [problem_line(p) for p in less] == [problem_line(p) for p in sequence[:4]]
