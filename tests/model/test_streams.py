"""Columns of streams."""

import numpy as np
import pytest

from streamplace.errors import GraphError
from streamplace.model import Operator, Operators, Stream, Streams


@pytest.fixture
def operators():
    """Three operators of different payloads."""
    return Operators.of([Operator("src", payload=50, rate=1), Operator("join"), Operator("sink")])


def test_rows_become_columns_and_rows_again(operators):
    rows = [Stream("src", "join", 0.5, 7.0, "hash"), Stream("join", "sink", payload="1 kB")]  # type: ignore[arg-type]
    streams = Streams.of(operators, rows)
    assert list(streams) == rows
    assert streams.source.dtype == np.int32
    assert streams.selectivity.dtype == np.float64
    assert streams.payload.tolist() == [7, 1000]
    assert len(Streams(operators, [], [])) == 0


def test_a_stream_inherits_the_payload_of_its_source(operators):
    """Unless it has one of its own, which may be 0."""
    rows = [Stream("src", "join"), Stream("src", "join", payload=0.0)]
    assert Streams.of(operators, rows).bytes_per_tuple().tolist() == [50, 0]


def test_a_label_stays_on_one_line():
    odd = Operators(["a\nb", "c"], rate=[1, 0])
    assert Streams(odd, [0], [1]).label(0) == "a\\nb→c"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"selectivity": [-0.5]}, "stream src→join has selectivity -0.5"),
        ({"payload": [-1]}, "stream src→join has payload -1; it"),
        ({"partitioning": ["shuffle; me"]}, "has partitioning 'shuffle; me'"),
        ({"partitioning": [3]}, "stream src→join has partitioning 3"),
        ({"source": [-1]}, "stream number 0 has source -1"),
        ({"target": [1, 2]}, "streams' column target must have 1 values"),
        ({"target": [10**20]}, "stream number 0 has target 1e.20"),
        ({"source": [[0], [1, 2]]}, "streams' column source must be whole numbers"),
    ],
)
def test_a_bad_column_is_refused(operators, columns, message):
    with pytest.raises(GraphError, match=message):
        Streams(operators, **{"source": [0], "target": [1], **columns})


def test_a_stream_to_an_unknown_operator_is_refused(operators):
    with pytest.raises(GraphError, match=r"stream src→nobody .*'nobody'"):
        Streams.of(operators, [Stream("src", "nobody")])
