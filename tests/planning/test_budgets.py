"""What a search for the highest rate does to end in its time, whatever the computer."""

from itertools import count
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from streamplace.io.graphs import read_graph
from streamplace.placers.meter import ENDLESS, Remaining
from streamplace.placers.registry import Budget
from streamplace.planning import planner
from streamplace.planning.deployment import _placed
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.packing import first_fit, first_fit_until, machine_kinds, packing_of
from streamplace.planning.parallelism import parallelism_on_slowest, streams_between
from streamplace.planning.problem import PlannerSettings, PlanProblem
from streamplace.planning.search import PlanSearch

MACHINES = 300
APPLICATIONS = Path(__file__).parents[2] / "datasets/applications"
OFFERS = Catalogue(
    (
        Offer("small", 0.10, cores=4, egress="1 Gbps", ingress="1 Gbps"),
        Offer("large", 0.36, cores=16, egress="5 Gbps", ingress="5 Gbps"),
    ),
    overhead=5e-7,
)


def problem(rate=2e7, seconds=None):
    graph = read_graph(APPLICATIONS / "word-count.json").at_rate(rate)
    return PlanProblem.of(graph, OFFERS, PlannerSettings(budget=Budget(seconds)))


def packing(machines):
    own = problem()
    counts = (machines, machines)
    vector = parallelism_on_slowest(own.demand, OFFERS, counts)
    return packing_of(own.demand, OFFERS, vector), machine_kinds(OFFERS, counts)


def test_first_fit_fills_the_same_machines_whether_it_may_be_stopped_or_not():
    packed, kinds = packing(MACHINES)
    rows, left = first_fit_until(packed, kinds, ENDLESS)
    whole = first_fit(packed, kinds)
    assert (rows == whole[0]).all()
    assert (left == whole[1]).all()


def test_first_fit_ends_with_the_budget_unless_it_began_after_it():
    packed, kinds = packing(MACHINES)
    many = packed._replace(parallelism=np.full_like(packed.parallelism, 10**6))
    clock = count()
    assert first_fit_until(many, kinds, Remaining(0.5, None, lambda: float(next(clock)))) is None
    assert first_fit_until(packed, kinds, Remaining(0.0)) is not None


def test_a_search_tries_no_more_streams_than_it_is_told():
    own = problem()
    free = PlanSearch(own, lambda: ENDLESS, None).pack((0, 60), 1000)
    streams = streams_between(own.demand, free.parallelism)
    few = PlanSearch(own, lambda: ENDLESS, None, streams - 1).pack((0, 60), 1000)
    assert few is None or streams_between(own.demand, few.parallelism) < streams


@pytest.mark.parametrize(("seconds", "halvings"), [(0.01, 0), (1.0, 2)])
def test_a_rate_is_halved_until_there_is_time_to_check_it(monkeypatch, seconds, halvings):
    """Deploying it takes as long as the square of the rate says."""
    clock = [0.0]

    def deployed(at, packed):
        clock[0] += seconds * (at.rate / 1e7) ** 2

    monkeypatch.setattr(planner, "now", lambda: clock[0])
    monkeypatch.setattr(planner, "deployed", deployed)
    own = problem(1e7, seconds=5.0)
    found = planner.packed_at(own)
    meter = planner.Meter(Budget(1.0), 1)
    rate, packed, took = planner._checkable(own, 1e7, found, meter)
    assert rate == 1e7 / 2**halvings
    assert took == pytest.approx(seconds / 4**halvings)
    assert (packed is found) == (halvings == 0)


@pytest.mark.parametrize("seed", range(5))
def test_subtasks_are_put_beside_their_partners_where_there_is_room(seed):
    """Each machine takes the first of those whose partners it has, and the rest in order."""
    rng = np.random.default_rng(seed)
    row = rng.integers(0, 6, 7).astype(np.int32)
    partners = rng.integers(-1, 7, row.sum()).astype(np.int32)
    place, rest = np.full(len(partners), -1), row.copy()
    for m in range(len(row)):
        chosen = np.flatnonzero(partners == m)[: row[m]]
        place[chosen], rest[m] = m, row[m] - len(chosen)
    place[place < 0] = np.repeat(np.arange(len(row)), rest)
    assert _placed(row, partners).tolist() == place.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1.0, 5.0])
def test_the_highest_rate_is_found_in_time(seconds):
    graph = read_graph(APPLICATIONS / "word-count.json")
    planner.planned_most(graph, OFFERS, PlannerSettings(budget=Budget(0.3)))
    start = perf_counter()
    planner.planned_most(graph, OFFERS, PlannerSettings(budget=Budget(seconds)))
    assert perf_counter() - start < 1.2 * seconds
