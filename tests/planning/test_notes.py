"""Notes of a plan."""

from math import inf

import pytest
from planning_cases import chain

from streamplace import Budget, Offer, Operator, plan

QUICK = Budget(evaluations=2000)


def parsed(*needs):
    """Two chained operators of one subtask that need so many MIPS."""
    ends = (
        Operator("parse", ipt=1000 * needs[0], rate=1000, payload=10, max_parallelism=1),
        Operator("rule", ipt=1000 * needs[1]),
    )
    return chain(*ends, kind="chained")


def test_what_one_machine_less_carries_is_said():
    """Each machine has a core for one of the two operators."""
    offers = [Offer("small", 1.0, mips=1.0)]
    result = plan(parsed(0.8, 0.7), offers=offers, budget=QUICK)
    assert result.machines == {"small": 2}
    assert result.notes[0].startswith("With one small less, a plan carries 666.")
    with_headroom = plan(parsed(0.4, 0.4), offers=offers, budget=QUICK, headroom=0.25)
    assert with_headroom.machines == {"small": 2}
    assert with_headroom.notes[0].startswith("With one small less, a plan carries 1250 ")


@pytest.mark.parametrize("evaluations", [50, 200, 1000, 5000, 20_000, 200_000])
def test_a_search_that_the_budget_ends_says_nothing_of_one_machine_less(evaluations):
    """Four of five machines carry four fifths, which a short search does not find."""
    operators = [Operator(f"v{i}", ipt=300, rate=0 if i else 1000, payload=8) for i in range(12)]
    graph = chain(*operators)
    offers = [Offer("small", 1.0, mips=1.0)]
    notes = plan(graph, offers=offers, budget=Budget(evaluations=evaluations)).notes
    told = [note for note in notes if "less, a plan carries" in note]
    rates = [float(note.split(" carries ")[1].split(" ")[0]) for note in told]
    assert all(rate > 700 for rate in rates)
    assert told or evaluations < 200_000


@pytest.mark.parametrize(
    ("memory", "payload", "told"),
    [
        ("8 GB", 10, "no operator needs memory."),
        (inf, 0, "no memory limit; streams carry no bytes (payload)."),
    ],
)
def test_what_nobody_stated_is_a_note(memory, payload, told):
    graph = chain(Operator("a", ipt=10, rate=10, payload=payload), Operator("b", ipt=10))
    result = plan(graph, offers=[Offer("one", 1.0, memory=memory)], budget=QUICK)
    assert result.notes == (f"Assumed: {told}",)
    assert "No plan costs less." in str(result)
