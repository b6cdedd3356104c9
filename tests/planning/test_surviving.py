"""Plans of which a share of the rate is carried after the loss of any one machine."""

from dataclasses import replace

import numpy as np
import pytest
from planning_cases import chain
from ruled_plans import RuledQuestion, cheapest_ruled, fleet, ruled_question, survives

import streamplace
from streamplace import Budget, Offer, Operator, StreamplaceError
from streamplace.errors import ProblemError
from streamplace.model import Constraints
from streamplace.model.expansion import expand
from streamplace.planning.cuts import Cut, solve_counts
from streamplace.planning.planner import planned
from streamplace.planning.problem import PlannerSettings

FEW = Budget(None, 20_000)
MILLIONTH = 1e-6
BOXES = [Offer("box", 1.0, mips=1.0)]


def parts(groups, ipt=1000.0):
    """One operator that takes ``ipt`` / 1000 cores of 1 MIPS, in as many parts."""
    return chain(Operator("a", ipt=ipt, rate=1000, max_parallelism=groups))


def plan(graph, offers=BOXES, require="survives>=1", **settings):
    return streamplace.plan(graph, offers=offers, require=require, budget=FEW, **settings)


@pytest.mark.parametrize(
    ("require", "boxes", "carried"),
    [("survives>=1", 3, 1.0), ("survives>=0.5", 2, 0.5), ((), 2, None)],
)
def test_two_full_machines_survive_half_and_need_a_spare_for_all(require, boxes, carried):
    """Two cores in two parts."""
    result = plan(parts(2, 2000.0), require=require)
    assert (result.machines, result.is_cheapest) == ({"box": boxes}, True)
    assert result.to_json().get("survives") == (pytest.approx(carried) if carried else None)


def test_no_machine_survives_alone():
    """All of the load fits on one machine, and two are needed."""
    assert plan(parts(2, 500.0)).machines == {"box": 2}


def test_headroom_survives_as_well():
    """0.9 of a core, and 1.125 with the headroom, on two machines and a third one."""
    assert plan(parts(4, 900.0)).machines == {"box": 2}
    assert plan(parts(4, 900.0), headroom=0.2).machines == {"box": 3}


def test_slots_hold_after_a_loss():
    """Three subtasks of one slot each, of which a machine has two."""
    offers = [Offer("box", 1.0, mips=1.0, slots=2)]
    graph = chain(
        Operator("a", ipt=1, rate=9, max_parallelism=1),
        Operator("b", ipt=1, max_parallelism=1),
        Operator("c", ipt=1, max_parallelism=1),
        kind="hash",
    )
    assert plan(graph, offers).machines == {"box": 3}


def test_a_pin_to_the_lost_machine_does_not_count():
    offers = [Offer("gateway", owned=1, mips=1.0), *BOXES]
    result = plan(parts(1, 500.0), offers, constraints={"pin": {"a": "gateway"}})
    assert result.machines == {"gateway": 1, "box": 1}
    assert result.losses[0].moved == {"a": "box-0"}
    assert "Pins do not count after the loss of their machine: a to gateway." in str(result)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"constraints": {"allowed": {"a": ["gateway"]}}}, "'a' after gateway is lost"),
        ({"require": "throughput>=1"}, "'survives>=0.9'"),
        ({"require": "survives<=1"}, "may only be required to survive"),
        ({"require": "survives>=2"}, "give a share from 0 to 1"),
        ({"offers": [Offer("gateway", owned=1)]}, "'a' after gateway is lost"),
        ({"offers": [Offer("box", owned=2, mips=0.3)]}, "after the loss of one box"),
    ],
)
def test_what_cannot_survive_is_refused_in_one_line(asked, reason):
    offers = asked.pop("offers", [Offer("gateway", owned=1, mips=1.0), *BOXES])
    with pytest.raises(StreamplaceError, match=reason) as caught:
        plan(parts(4, 500.0), offers, **asked)
    assert "\n" not in str(caught.value)


def test_cuts_after_a_loss_hold_for_all_machines_but_the_largest():
    cut = Cut((1, 5), 5, "cpu", after_loss=True)
    assert [cut.holds(x) for x in [(5, 0), (6, 0), (5, 1), (4, 1), (0, 2)]] == [
        False,
        True,
        True,
        False,
        True,
    ]
    assert solve_counts((1, 9), [(0, 9), (0, 9)], [cut], 1.0)[0] == (6, 0)


def small_question(seed):
    """Two or three operators, a gateway and two small machines, and for every second seed rules."""
    graph, catalogue, rules = ruled_question(seed, linked=seed % 3 == 2)
    labels = {"gateway", "small", "small-0", "small-1"}
    offers = tuple(offer for offer in catalogue.offers if offer.name in labels)
    links = tuple(link for link in catalogue.links if {link.source, link.target} <= labels)
    pins = {v: machine for v, machine in rules.pin.items() if machine in labels}
    constraints = Constraints(pins, rules.colocate, rules.exlocate) if seed % 2 else Constraints()
    smaller = replace(catalogue, offers=offers, links=links)
    return RuledQuestion(graph.at_rate(700), smaller, constraints)


def test_plans_survive_by_enumeration_and_no_bound_or_refusal_is_wrong():
    """All machines, parallelisms, placements and places after every loss of small questions."""
    carried = refused = 0
    for seed in range(16):
        question, share = small_question(seed), (0.3, 0.5, 0.7, 0.9, 1.0)[seed % 5]
        graph, catalogue, rules = question
        best, result, reason = cheapest_ruled(question, share), None, ""
        try:
            settings = PlannerSettings(budget=FEW, constraints=rules, survives=share)
            result = planned(graph, catalogue, settings)
        except ProblemError as error:
            reason = str(error)
        if result is None:
            assert best == np.inf or "one may exist" in reason, seed
            refused += 1
            continue
        assert float(result.bound) - MILLIONTH <= best <= result.cost + MILLIONTH, seed
        offers = {offer.name: offer for offer in catalogue.offers}
        machines = [(offers[name.split("-")[0]], name) for name in result.cluster.devices.name]
        problem, place = fleet(question, machines, expand(result.graph)), result.placement.index
        assert problem.legal(place)[0]
        assert survives(problem, place, share), seed
        carried += 1
    assert min(carried, refused) > 3
