"""Graphs whose model contradicts what was measured are doubted first, and then refused."""

from dataclasses import replace

import pytest

from streamplace import Offer, place, plan
from streamplace.errors import ProblemError
from streamplace.io.graphs import write_graph
from streamplace.model.graph import CONSISTENCY_ERROR, CPU_ORIGIN, PROFILE_DRIFT, StreamGraph
from streamplace.model.operators import Operator
from streamplace.model.profile_trust import check_trust, trust_of
from streamplace.model.streams import Stream


def measured(error):
    """A graph that was measured, with what its model is off by."""
    facts: dict[str, str | float] = {"mips": 2500.0}
    if error is not None:
        facts[CONSISTENCY_ERROR] = error
    operators = [Operator("src", 1e6, rate=100.0), Operator("sink: Committer", 1e6)]
    return StreamGraph.of("job", operators, [Stream("src", "sink: Committer")], facts)


@pytest.mark.parametrize("error", [None, 0.0, 0.14, -0.14])
def test_a_graph_that_agrees_needs_no_word(error):
    assert check_trust(measured(error)) is None


@pytest.mark.parametrize("error", [0.2, -0.29])
def test_a_doubtful_graph_is_said(error):
    assert f"off by {error:+.0%}" in check_trust(measured(error))


@pytest.mark.parametrize("error", [552.25, -0.31, 1e6])
def test_a_wrong_graph_is_refused_unless_it_is_trusted(error):
    with pytest.raises(ProblemError, match="trust-profile"):
        check_trust(measured(error))
    assert check_trust(measured(error), trusts=True) is not None
    assert trust_of(measured(error).at_rate(7.0)).is_wrong


def test_what_changes_in_a_cold_job_does_not_make_its_profile_wrong():
    """Its CPU per tuple still varied by half; intervals allow for that, and a warning says it."""
    graph = measured(0.6)
    cold = replace(graph, attributes={**graph.attributes, PROFILE_DRIFT: 0.5})
    assert "off by +60%" in check_trust(cold)
    with pytest.raises(ProblemError, match="off by \\+96%"):
        check_trust(replace(cold, attributes={**cold.attributes, CONSISTENCY_ERROR: 0.96}))
    with pytest.raises(ProblemError, match="off by -60%"):
        check_trust(replace(cold, attributes={**cold.attributes, CONSISTENCY_ERROR: -0.6}))


def test_place_says_it_first_and_refuses(run, tmp_path):
    write_graph(measured(-0.2), tmp_path / "doubtful.json")
    write_graph(measured(552.25), tmp_path / "wrong.json")
    doubtful = run("place", "doubtful.json", "--devices", "2")
    assert doubtful.status == 0
    assert doubtful.err.startswith("warning: the model is off by -20%")
    wrong = run("place", "wrong.json", "--devices", "2", "-o", "placement.json")
    assert wrong.status == 2
    assert "+55225%" in wrong.err
    assert not (tmp_path / "placement.json").exists()
    (tmp_path / "trusting.toml").write_text("trust-profile = true\n")
    trusting = ("--devices", "2", "--settings", "trusting.toml")
    assert run("place", "wrong.json", *trusting).status == 0


def test_place_in_python_refuses_as_well():
    with pytest.raises(ProblemError, match="55225%"):
        place(measured(552.25), 2)
    assert place(measured(552.25), 2, trust_profile=True).value > 0
    assert place(measured(-0.2), 2).value > 0


@pytest.mark.parametrize(("rate", "is_far"), [(199.0, False), (201.0, True)])
def test_a_plan_says_when_its_rate_is_far_beyond_what_was_measured(rate, is_far):
    """Beyond twice; a graph that was not measured has no such rate."""
    graph = StreamGraph.of("job", [Operator("src", ipt=1e6, rate=100.0)], [])
    offers = [Offer("small", 1.0)]
    assert not any("measured" in note for note in plan(graph, rate=rate, offers=offers).notes)
    measured = replace(graph, attributes={CPU_ORIGIN: "threads"})
    notes = plan(measured, rate=rate, offers=offers, confidence=0.0).notes
    assert any("times the measured rate" in note for note in notes) is is_far
