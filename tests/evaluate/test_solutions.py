import sys
from multiprocessing.spawn import get_preparation_data
from typing import Any

import numpy as np
import pytest
from problems import chain

from streamplace.evaluate import solutions
from streamplace.evaluate.records import Record
from streamplace.evaluate.solutions import Solver
from streamplace.model import Cluster, Problem

GRAPHS = tuple(Problem(chain(n), Cluster.uniform(5)) for n in (2, 3))
ANSWERS = {
    ("exact", "chain2"): (0.5, 0.5, (0, 1)),
    ("exact", "chain3"): (0.4, 0.9, (0, 0, 1)),
    ("anneal", "chain3"): (0.6, None, (0, 1, 2)),
}


@pytest.fixture
def prepared():
    """What worker processes would be told to load."""
    return []


@pytest.fixture
def solver(tmp_path, monkeypatch, prepared):
    """A solver that reads its answers from a table."""

    def records_of(comparison, problems, file, *, on):
        prepared.append(get_preparation_data("worker"))
        for problem in problems:
            graph = problem.graph
            (placer,) = comparison.placers
            value, bound, devices = ANSWERS[placer, graph.name]
            facts: tuple[Any, ...] = (graph.name, graph.name, 1e4, placer, "")
            yield [Record(*facts, value, bound, 1.0, devices)]

    monkeypatch.setattr(solutions, "records_of", records_of)
    return Solver("throughput", 0, tmp_path)


def test_what_is_proven_is_an_optimum_and_else_the_better_answer_is_taught(solver):
    np.testing.assert_array_equal(solver.optima(GRAPHS), [0.5, np.nan])
    targets = solver.targets(GRAPHS)
    assert [None if t is None else t.tolist() for t in targets] == [[0, 1], [0, 1, 2]]


def test_a_search_of_so_many_evaluations_is_all_that_a_memory_begins_with(solver, monkeypatch):
    budgets: list[int | None] = []
    records_of = solutions.records_of

    def spied(comparison, *arguments, **keywords):
        budgets.append(comparison.budget.evaluations)
        return records_of(comparison, *arguments, **keywords)

    monkeypatch.setattr(solutions, "records_of", spied)
    (found,) = solver.searched(GRAPHS[1:], 70)
    assert found.tolist() == [0, 1, 2]
    assert budgets == [70]


def test_workers_leave_the_script_alone(solver, prepared):
    """Without a guard it would train again in each of them."""
    before = get_preparation_data("worker")
    solver.targets(GRAPHS)
    assert not any(key.startswith("init_main") for key in prepared[0])
    assert get_preparation_data("worker").keys() == before.keys()


def test_a_program_needs_no_script(solver, monkeypatch):
    """As an interactive one is; Ray takes a script that is nowhere for one that has no name."""
    main = sys.modules["__main__"]
    monkeypatch.delattr(main, "__file__", raising=False)
    solver.targets(GRAPHS)
    assert not hasattr(main, "__file__")
