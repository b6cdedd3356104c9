"""Random layered graphs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.errors import SettingError, UnitError
from streamplace.families.random_dag import RandomDag, random_dag


@st.composite
def parameters(draw):
    """Any legal parameters of a small graph."""
    operators = draw(st.integers(1, 60))
    sources = draw(st.integers(1, operators))
    others = operators - sources
    values = {
        "operators": operators,
        "sources": sources,
        "layers": draw(st.integers(2, others + 1)) if others else 1,
        "reach": draw(st.integers(1, 5)),
        "parallel": draw(st.booleans()),
        "selectivity": draw(st.floats(1, 10)),
        "devices": draw(st.floats(0.1, 100)),
        "network": draw(st.floats(0.1, 100)),
        "skew": draw(st.sampled_from([0.0, 1.0, 2.0])),
    }
    least, most = RandomDag(**values).stream_range
    return RandomDag(**values, streams=draw(st.integers(least, min(most, least + 200))))


def stream_rates(graph):
    """Tuples/s on every stream."""
    return graph.input_rate[graph.streams.source] * graph.streams.selectivity


@given(parameters(), st.integers(0, 2**32))
def test_graphs_have_the_size_and_the_totals_that_were_asked_for(p, seed):
    """Operators, streams, sources, CPU, traffic and rate, exactly."""
    (graph,) = random_dag(p, seed)
    assert (graph.n_operators, graph.n_streams) == (p.operators, p.n_streams)
    assert graph.sources.tolist() == list(range(p.sources))
    assert graph.source_rate == pytest.approx(p.rate, rel=1e-12)
    assert (graph.input_rate * graph.operators.ipt).sum() == pytest.approx(
        p.devices * 2.5e9, rel=1e-9
    )
    if p.n_streams:
        traffic = (stream_rates(graph) * graph.streams.bytes_per_tuple()).sum()
        assert traffic == pytest.approx(p.network * 125e6, rel=1e-9)


@given(parameters(), st.integers(0, 2**32))
def test_streams_go_forward_and_reach_every_operator(p, seed):
    """Rising rows mean no cycle; a positive rate means a path from a source."""
    (graph,) = random_dag(p, seed)
    source, target = graph.streams.source, graph.streams.target
    assert (source < target).all()
    assert (graph.input_rate > 0).all()
    if not p.parallel:
        assert len(set(zip(source.tolist(), target.tolist(), strict=True))) == graph.n_streams


@given(parameters(), st.integers(0, 2**32))
def test_operators_emit_within_the_selectivity(p, seed):
    """Between 1/r and r tuples per tuple, so rates stay within r of the flow."""
    (graph,) = random_dag(p, seed)
    emitted = np.bincount(graph.streams.source, graph.streams.selectivity, p.operators)
    feeding = np.bincount(graph.streams.source, minlength=p.operators) > 0
    assert (emitted[feeding] <= p.selectivity * (1 + 1e-9)).all()
    assert (emitted[feeding] >= (1 - 1e-9) / p.selectivity).all()
    assert graph.input_rate.max() <= p.rate * p.selectivity * (1 + 1e-9)


def test_rates_neither_grow_nor_fade_along_a_deep_chain():
    (graph,) = random_dag(RandomDag(operators=10_000, layers=10_000, streams=9_999), 0)
    assert 5e3 <= graph.input_rate.min() <= graph.input_rate.max() <= 2e4


def test_skew_makes_heavy_tails():
    """The largest of many lognormal operators dwarfs the median."""
    (even,) = random_dag(RandomDag(operators=1000), 0)
    (skewed,) = random_dag(RandomDag(operators=1000, skew=2.0), 0)
    assert even.operators.ipt.max() < 3 * np.median(even.operators.ipt)
    assert skewed.operators.ipt.max() > 30 * np.median(skewed.operators.ipt)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"operators": 3, "sources": 4}, "sources is 4"),
        ({"operators": 3, "layers": 4}, "layers is 4; .* between 2 and 3"),
        ({"operators": 3, "layers": 1}, "layers is 1"),
        ({"operators": 3, "streams": 1}, "streams is 1"),
        ({"operators": 3, "layers": 3, "streams": 4}, "allow 2 to 3"),
        ({"bandwidth": "fast"}, "bandwidth"),
        ({"parallel": 1}, "parallel is 1"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(values, message):
    with pytest.raises((SettingError, UnitError), match=message):
        RandomDag(**values)
