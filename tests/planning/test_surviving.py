"""Plans of which a share of the rate is carried after the loss of any one machine."""

import contextlib

import pytest
from planning_cases import chain
from ruled_plans import cheapest_ruled, ruled_question

import streamplace
from streamplace import Budget, Offer, Operator, StreamplaceError
from streamplace.errors import ProblemError
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


def test_no_plan_survives_below_the_cost_of_one_that_need_not():
    """Bounds of small questions grow with the share, and every plan is checked on its way out."""
    carried = 0
    for seed in range(30):
        graph, catalogue, rules = ruled_question(seed, linked=False)
        plain = cheapest_ruled((graph, catalogue, rules))
        for share in (0.5, 1.0):
            settings = PlannerSettings(budget=FEW, constraints=rules, survives=share)
            with contextlib.suppress(ProblemError):
                result = planned(graph, catalogue, settings)
                assert result.cost >= max(plain, float(result.bound)) - MILLIONTH, seed
                assert result.losses[0].relative_throughput >= share * (1 - MILLIONTH), seed
                carried += 1
    assert carried > 20
