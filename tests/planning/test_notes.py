"""Notes on what a reader of the graph would not expect of a plan."""

from math import inf

import pytest
from planning_cases import chain

from streamplace import Budget, Offer, Operator, StreamGraph, plan

QUICK = Budget(evaluations=2000)


def parsed(kind: str, needs: tuple[float, float], most: int = 0) -> StreamGraph:
    """Two operators that need so many MIPS, joined by a stream of a kind."""
    first = 1000 * needs[0]
    ends = (
        Operator("parse", ipt=first, rate=1000, payload=10, max_parallelism=most),
        Operator("rule", ipt=1000 * needs[1]),
    )
    return chain(*ends, kind=kind)


@pytest.mark.parametrize("kind", ["forward", "chained"])
def test_an_operator_with_more_subtasks_than_it_needs_is_named(kind: str) -> None:
    """Flink joins the subtasks of forward streams one to one."""
    offers = [Offer("large", 1.0, mips=1.0, cores=16)]
    result = plan(parsed(kind, (11.9, 0.1)), offers=offers, budget=QUICK)
    assert result.parallelism["rule"] == 12
    assert result.notes[1].startswith("One subtask would do for rule (12), but forward streams")
    assert "--keep rule" in str(result)


def test_a_broken_chain_is_named() -> None:
    """Each machine has a core for one of the two operators."""
    offers = [Offer("small", 1.0, mips=1.0)]
    result = plan(parsed("chained", (0.8, 0.7), most=1), offers=offers, budget=QUICK)
    assert result.machines == {"small": 2}
    assert result.notes[0].startswith("With one small less, a plan carries 666.")
    with_headroom = plan(parsed("chained", (0.4, 0.4), most=1), offers=offers, budget=QUICK,
                         headroom=0.25)  # fmt: skip
    assert with_headroom.machines == {"small": 2}
    assert with_headroom.notes[0].startswith("With one small less, a plan carries 1250 ")
    assert result.notes[-1:] == (
        "Chained operators run on different machines, where Flink must not chain them: "
        "parse and rule (1 pair of subtasks).",
    )


@pytest.mark.parametrize(
    ("memory", "payload", "told"),
    [
        ("8 GB", 10, "no operator needs memory."),
        (inf, 0, "no memory limit; streams carry no bytes (payload)."),
    ],
)
def test_what_nobody_stated_is_said_beside_the_proof(
    memory: float, payload: float, told: str
) -> None:
    graph = chain(Operator("a", ipt=10, rate=10, payload=payload), Operator("b", ipt=10))
    result = plan(graph, offers=[Offer("one", 1.0, memory=memory)], budget=QUICK)
    assert result.notes == (f"Assumed: {told}",)
    assert "No plan costs less." in str(result)
