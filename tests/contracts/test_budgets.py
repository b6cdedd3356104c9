"""What a budget that counts evaluations promises, of every placer, of plans and of every door."""

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from placer_cases import EVALUATIONS, SEED, VARIED, first_answer, make_busy, question
from problems import PROBLEMS

import streamplace
from streamplace import Offer
from streamplace.errors import SettingError
from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.io.clusters import write_cluster
from streamplace.io.graphs import write_graph
from streamplace.model import Cluster, Problem, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer
from streamplace.placers.registry import PLACERS, Budget, Placer
from streamplace.placers.result import Result

pytestmark = pytest.mark.xdist_group("placers")
LONG = {(p, name) for p in ("doppler", "giph", "placeto") for name in ("joined", "many sources")}
"""Placers whose least work takes ten seconds; others of their problems are quick."""
CASES = [
    pytest.param(
        placer,
        problem,
        id=f"{placer}-{problem}",
        marks=() if problem in VARIED and (placer, problem) not in LONG else pytest.mark.slow,
    )
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
    "giph:start=anneal": 300,
    "placeto:start=auto": 300,
}
"""Placers that search or hand on a part of their budget, with more than their least work."""
OFFERS = (Offer("small", 0.3, cores=1), Offer("big", 1.0, cores=4, mips=3000))
GIVEN = Cluster.uniform(12, bandwidth="100 Gbps")


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return how the machine becomes so busy that every budget in seconds is over at once."""
    return partial(make_busy, monkeypatch)


def answered(placer: Placer, problem: Problem, evaluations: int, judge: str) -> tuple[object, ...]:
    """All that a placer answers but its times."""
    budget = Budget(evaluations=evaluations)
    return told(placer.place(problem, OBJECTIVES[judge], seed=SEED, budget=budget))


def told(result: Result) -> tuple[object, ...]:
    """All of a result but its times."""
    steps = [(step.value, step.evaluations) for step in result.trace]
    order = None if result.placement.priority is None else result.placement.priority.tolist()
    return result.placement.index.tolist(), order, result.value, result.bound, steps


def drawn(seed: int, operators: int = 12) -> StreamGraph:
    """A random graph whose CPU and network are both scarce."""
    parameters = RandomDag(operators=operators, streams=2 * operators, devices=3.0, network=300.0)
    return next(random_dag(parameters, seed))


@pytest.mark.parametrize("evaluations", [0, -1, 2.5, math.nan])
def test_evaluations_are_counted_in_whole_numbers(evaluations: Any) -> None:
    with pytest.raises(SettingError, match=r"evaluations; it must be a whole number from 1 on"):
        Budget(evaluations=evaluations)


@pytest.mark.parametrize(("placer", "problem"), CASES)
def test_evaluations_alone_give_the_same_bits_on_a_busy_machine(
    placer: str, problem: str, busy: Callable[[], None]
) -> None:
    """No placer looks at the clock: placement, order, value, bound and every improvement."""
    judge = question(placer).name
    calm = first_answer(placer, problem, judge, EVALUATIONS)
    assert isinstance(calm, Result)
    busy()
    assert answered(PLACERS[placer], PROBLEMS[problem], EVALUATIONS, judge) == told(calm)


@pytest.mark.parametrize("placer", SEARCHES)
@pytest.mark.parametrize("judge", ["throughput", "makespan"])
def test_beyond_the_least_work_no_search_looks_at_the_clock(
    placer: str, judge: str, busy: Callable[[], None]
) -> None:
    """Nor does a placer that it asks: a random graph, on which little is proven."""
    chosen, evaluations = named_placer(placer), SEARCHES[placer]
    if not chosen.judges(OBJECTIVES[judge]):
        pytest.skip("not for this objective")
    problem = Problem(drawn(1, 24), Cluster.uniform(4))
    calm = answered(chosen, problem, evaluations, judge)
    busy()
    assert answered(chosen, problem, evaluations, judge) == calm


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "placer", ["auto", "anneal", "exact", "pilot", "random", "giph:start=auto"]
)
def test_random_graphs_of_all_sizes_are_placed_alike(
    placer: str, seed: int, busy: Callable[[], None]
) -> None:
    """By every search and objective, up to 30,000 evaluations."""
    chosen, problem = named_placer(placer), Problem(drawn(seed, 12 + 12 * seed), Cluster.uniform(4))
    cases = [
        (judge, evaluations)
        for judge in ("throughput", "makespan", "devices", "latency")
        for evaluations in (40, 3000, 30_000)
        if chosen.judges(OBJECTIVES[judge])
    ]
    calm = [answered(chosen, problem, evaluations, judge) for judge, evaluations in cases]
    busy()
    assert [answered(chosen, problem, evaluations, judge) for judge, evaluations in cases] == calm


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("machines", ["offers", "cluster"])
def test_plans_of_so_many_moves_are_the_same_on_a_busy_machine(
    seed: int, machines: str, busy: Callable[[], None]
) -> None:
    """Machines, parallelism, placement, bound, what it carries and the neighbouring steps."""
    what: dict[str, object] = {
        "offers": OFFERS if machines == "offers" else None,
        "cluster": GIVEN if machines == "cluster" else None,
    }

    def document() -> dict[str, object]:
        plan = streamplace.plan(drawn(seed), seed=seed, budget=Budget(evaluations=500), **what)
        return plan.to_json()

    calm = document()
    busy()
    assert document() == calm


def test_the_command_line_and_python_mean_the_same_by_evaluations(
    run: Callable[..., Any], tmp_path: Path, busy: Callable[[], None]
) -> None:
    """``place``, ``plan`` and ``compare``; those of Python on a busy machine."""
    graph = drawn(3)
    write_graph(graph, tmp_path / "graph.json")
    write_cluster(GIVEN, tmp_path / "cluster.toml")
    common = ("graph.json", "--cluster", "cluster.toml", "--evaluations", "500", "--json")
    placed, planned, compared = (
        json.loads(run(command, *common, *options).out)
        for command, options in (
            ("place", ()),
            ("plan", ("--rate", "3000")),
            ("compare", ("--placers", "anneal")),
        )
    )
    busy()
    asked = graph, tmp_path / "cluster.toml"
    result = streamplace.place(*asked, budget=Budget(evaluations=500))
    assert placed["assignment"] == dict(result.placement)
    plan = streamplace.plan(graph, rate=3000, cluster=asked[1], budget=Budget(evaluations=500))
    assert planned == json.loads(json.dumps(plan.to_json()))
    comparison = streamplace.compare(
        graph, "anneal", cluster=asked[1], budget=Budget(evaluations=500)
    )
    rows = [
        row for by_placer in compared["rates"].values() for row in by_placer["placers"].values()
    ]
    assert [row["mean"] for row in rows] == [row.mean for *_, row in comparison.rows()]
