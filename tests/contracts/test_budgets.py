"""What a budget that counts evaluations promises, of every placer and of plans."""

import math
from functools import partial

import pytest
from placer_cases import EVALUATIONS, SEED, VARIED, case, first_answer, make_busy, question
from problems import PROBLEMS
from rooms import NO_PAPERS

import streamplace
from streamplace import Offer
from streamplace.errors import SettingError
from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer
from streamplace.placers.registry import PLACERS, Budget
from streamplace.placers.result import Result

pytestmark = pytest.mark.xdist_group("placers")
CASES = [
    case(placer, problem, slow=problem not in VARIED)
    for placer in PLACERS
    for problem in PROBLEMS
    if PROBLEMS[problem].rules is None
]
SEARCHES = {
    "anneal": 20_000,
    "auto": 20_000,
    "exact": 20_000,
    "pilot:samples=5": 20_000,
    "random": 20_000,
    **({} if NO_PAPERS else {"giph:start=anneal": 300, "placeto:start=auto": 300}),
}
"""Placers that search or hand on a part of their budget, with more than their least work."""
QUICK = ("throughput", "makespan")
"""Objectives of which the quick tests ask searches, too."""
OFFERS = (Offer("small", 0.3, cores=1), Offer("big", 1.0, cores=4, mips=3000))
GIVEN = Cluster.uniform(12, bandwidth="100 Gbps")


@pytest.fixture
def busy(monkeypatch):
    """Return how the machine becomes so busy that every budget in seconds is over at once."""
    return partial(make_busy, monkeypatch)


def answered(placer, problem, evaluations, judge):
    """All that a placer answers but its times."""
    budget = Budget(evaluations=evaluations)
    return told(placer.place(problem, OBJECTIVES[judge], seed=SEED, budget=budget))


def told(result):
    """All of a result but its times."""
    steps = [(step.value, step.evaluations) for step in result.trace]
    order = None if result.placement.priority is None else result.placement.priority.tolist()
    return result.placement.index.tolist(), order, result.value, result.bound, steps


def drawn(seed, operators=12):
    """A random graph whose CPU and network are both scarce."""
    parameters = RandomDag(operators=operators, streams=2 * operators, devices=3.0, network=300.0)
    return next(random_dag(parameters, seed))


@pytest.mark.parametrize("evaluations", [0, -1, 2.5, math.nan])
def test_evaluations_are_counted_in_whole_numbers(evaluations):
    with pytest.raises(SettingError, match=r"evaluations"):
        Budget(evaluations=evaluations)


@pytest.mark.parametrize(("placer", "problem"), CASES)
def test_evaluations_alone_give_the_same_bits_on_a_busy_machine(placer, problem, busy):
    """No placer looks at the clock: placement, order, value, bound and every improvement."""
    judge = question(placer).name
    calm = first_answer(placer, problem, judge, EVALUATIONS)
    assert isinstance(calm, Result)
    busy()
    assert answered(PLACERS[placer], PROBLEMS[problem], EVALUATIONS, judge) == told(calm)


@pytest.mark.parametrize(
    ("judge", "placer", "seed"),
    [
        pytest.param(
            judge,
            placer,
            seed,
            marks=() if seed == 1 and many > 300 and judge in QUICK else pytest.mark.slow,
        )
        for judge in ("throughput", "makespan", "devices", "latency")
        for placer, many in SEARCHES.items()
        for seed in range(8)
    ],
)
def test_beyond_the_least_work_no_search_looks_at_the_clock(placer, judge, seed, busy):
    """Nor does a placer that it asks: random graphs of all sizes, on which little is proven."""
    chosen, problem = named_placer(placer), Problem(drawn(seed, 12 + 12 * seed), Cluster.uniform(4))
    if not chosen.judges(OBJECTIVES[judge]):
        pytest.skip("not for this objective")
    counts = (40, 3000, SEARCHES[placer]) if SEARCHES[placer] > 3000 else (40, SEARCHES[placer])
    calm = [answered(chosen, problem, evaluations, judge) for evaluations in counts]
    busy()
    assert [answered(chosen, problem, evaluations, judge) for evaluations in counts] == calm


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("machines", ["offers", "cluster"])
def test_plans_of_so_many_moves_are_the_same_on_a_busy_machine(seed, machines, busy):
    """Machines, parallelism, placement, bound, what it carries and the neighbouring steps."""
    what: dict[str, object] = {
        "offers": OFFERS if machines == "offers" else None,
        "cluster": GIVEN if machines == "cluster" else None,
    }

    def document():
        plan = streamplace.plan(drawn(seed), seed=seed, budget=Budget(evaluations=500), **what)
        return plan.to_json()

    calm = document()
    busy()
    assert document() == calm
