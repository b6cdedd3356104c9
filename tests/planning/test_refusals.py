"""Refusals: why no machines carry a rate, and the largest rate for which a plan was found."""

from dataclasses import replace

import pytest
from planning_cases import chain

import streamplace
from streamplace import Budget, Offer, Operator, StreamGraph
from streamplace.errors import ProblemError, StreamplaceError
from streamplace.model.operators import Window
from streamplace.planning.offers import Catalogue

GPU = frozenset({"gpu"})
ONE, TWO = Offer("a", 1.0, mips=1.0), Offer("b", 1.0, mips=1.0, at_most=2)
THIN = Offer("a", 1.0, egress="1 kbps", slots=1, at_most=2)
FAST, SLOW = (Offer(f"{m}", m, mips=m, slots=2, at_most=1) for m in (2.0, 0.5))
SHARED = Catalogue.of([replace(TWO, cores=9, slots=2)], slot_sharing=True)
PAIR = Operator("u", rate=1000, payload=125, max_parallelism=4), Operator("v", max_parallelism=2)
ASKING = Operator("src", rate=1000), Operator("ask", max_rate=100, max_parallelism=4)
THREE = StreamGraph.of("g", [Operator(v, 600, rate=1e3, max_parallelism=1) for v in "abc"])
WINDOWED = Operator("s", rate=50), Operator("w", window=Window(1.0, 1.0, 25.0, 0.5))


def one(ipt, **changes):
    """An operator that reads 1000 tuples/s, unless it says otherwise."""
    return StreamGraph.of("g", [Operator("v", ipt=ipt, **{"rate": 1000, **changes})])


def asked(graph, *offers, **options):
    """Arguments of a plan."""
    return {"graph": graph, "offers": offers, "budget": Budget(None, 1000), **options}


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (asked(one(3000, max_parallelism=2), ONE), "'v' .*1.5 MIPS, .*1;"),
        (  # of three key groups, it has two
            asked(one(3000, parallelism=2, max_parallelism=3), ONE, keep_parallelism=True),
            "parallelism 2, .*'v' .*2 MIPS",
        ),
        (
            asked(chain(*ASKING, kind="rebalance"), ONE),
            "max_parallelism 4, .*'ask' .*250 tuples/s, .*max_rate is 100; .*400 tuples/s",
        ),
        (asked(one(3000), TWO), "3 MIPS .*'v', .*2 MIPS"),
        (asked(one(1, requires=GPU), ONE), "'v' requires gpu"),
        (asked(one(3000, requires=GPU), ONE, replace(TWO, tags=GPU)), "gpu .*3 MIPS .*'v', .*2"),
        (asked(one(5000), offers=SHARED), "5 slots, .*'v', .*4 slots"),
        (asked(THREE, TWO), "parts of operators"),
        (asked(chain(*PAIR, kind="hash"), THIN), "network cards"),
        # there is CPU enough, but too few slots, at any parallelism
        (asked(one(2500), FAST, SLOW), "1000 tuples/s: CPU, memory, slots"),
        (
            asked(one(1, rate=10, memory=6, max_parallelism=2), Offer("a", 1.0, memory=2)),
            "offer 'a'",
        ),
        (asked(one(1e6, rate=1e8, max_parallelism=1), Offer("a", 1.0, mips=7.0)), "7 tuples/s"),
        (asked(one(1e6, rate=2200), replace(ONE, at_most=2100)), "2100 tuples/s"),
        (asked(one(3000, rate=1e15), replace(ONE, at_most=5)), "'v' .*1000000 subtasks"),
        (asked(one(0), ONE, rate="max"), "any rate of 'g'"),
        (asked(chain(*WINDOWED, Operator("j", fires="all")), ONE), "window"),
    ],
)
def test_what_nothing_carries_is_refused(question, reason):
    with pytest.raises(ProblemError, match=reason):
        streamplace.plan(**question)


@pytest.mark.parametrize("headroom", ["high", 1])
def test_an_impossible_headroom_is_refused(headroom):
    with pytest.raises(StreamplaceError, match="headroom"):
        streamplace.plan(**asked(one(1), ONE, headroom=headroom))
