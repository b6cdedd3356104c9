"""Curves of cost against rate, and their pictures."""

import pytest
from planning_cases import pipeline

from streamplace import Offer, Operator, Stream, StreamGraph, plan, plan_frontier
from streamplace.errors import SettingError
from streamplace.placers.registry import Budget

OFFERS = [Offer("small", 0.1, mips=4.0, cores=2), Offer("large", 0.35, mips=4.0, cores=8)]
BUDGET = Budget(None, 5_000)


def test_a_frontier_has_the_plan_of_every_rate():
    curve = plan_frontier(pipeline(), [4000, "1 k/s"], offers=OFFERS, budget=BUDGET)
    alone = [plan(pipeline(), rate=r, offers=OFFERS, budget=BUDGET) for r in (1000, 4000)]
    assert curve.values == (1000, 4000)
    assert [result.to_json() for result in curve.results] == [each.to_json() for each in alone]
    assert [document["rate"] for document in curve.to_json()] == [1000, 4000]
    assert "cost per hour" in str(curve)
    assert "<svg" in curve._repr_html_()


def test_a_plan_draws_its_machines():
    """The same picture every time, in notebooks and as a file of the plan."""
    result = plan(pipeline(), rate=4000, offers=OFFERS, budget=BUDGET)
    picture = result._repr_svg_()
    assert picture == result.files()["plan.svg"]
    for name in (*result.cluster.devices.name, "source", "count", "CPU in use"):
        assert f"<!-- {name} -->" in picture


def test_a_curve_needs_values():
    with pytest.raises(SettingError, match="rates"):
        plan_frontier(pipeline(), [], offers=OFFERS)


def test_an_operator_is_kept_by_its_name():
    operators = [Operator("src", ipt=1, rate=1), Operator("map", parallelism=3), Operator("m")]
    graph = StreamGraph.of("job", operators, [Stream("src", "map"), Stream("map", "m")])
    result = plan(graph, offers=OFFERS, keep_parallelism="map", budget=BUDGET)
    assert result.parallelism == {"src": 1, "map": 3, "m": 1}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_plans_whatever_the_jobs():
    once, again = (
        plan_frontier(pipeline(), [500, 1500, 3000], offers=OFFERS, budget=BUDGET, jobs=jobs)
        for jobs in (1, 2)
    )
    assert once.to_json() == again.to_json()
