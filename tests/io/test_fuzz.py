"""Readers answer spoiled input with an error of ours, on one line, and nothing else.

Every example spoils a valid document in ten ways, one at a time.
"""

import gzip

import pytest
from fuzzing import (
    CLUSTER,
    CONSTRAINTS,
    GRAPH,
    PLACEMENT,
    answer,
    scratched,
    scratches,
    spoiled,
    spoilers,
    to_json,
    to_toml,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from streamplace.io.clusters import parse_cluster, parse_constraints
from streamplace.io.files import located
from streamplace.io.graphs import graph_line, parse_graph, read_graphs
from streamplace.io.placements import parse_placement
from streamplace.model import Cluster, Problem, units
from streamplace.model.messages import quoted

BARE = {"operators": [{"name": n, "rate": 1} for n in ("src", "join", "sink")]}
PROBLEM = Problem(parse_graph(to_json(BARE), "bare"), Cluster.uniform(2))


def compiled(content):
    """Constraints, read and checked against a problem."""
    rules = parse_constraints(content, "here")
    with located("here"):
        return Problem(PROBLEM.graph, PROBLEM.cluster, rules)


READERS = {
    "graph": (lambda content: parse_graph(content, "here"), GRAPH, to_json),
    "placement": (lambda content: parse_placement(content, "here", PROBLEM), PLACEMENT, to_json),
    "cluster": (lambda content: parse_cluster(content, "here"), CLUSTER, to_toml),
    "constraints": (lambda content: compiled(content), CONSTRAINTS, to_toml),
}

fuzz = settings(max_examples=800, deadline=None, derandomize=True, database=None)
few = settings(fuzz, max_examples=250)


@pytest.mark.parametrize("name", READERS)
def test_the_unspoiled_document_is_read(name):
    """Otherwise the rest would prove nothing."""
    parse, document, write = READERS[name]
    assert answer(parse, write(document)) is not None


@pytest.mark.parametrize("name", READERS)
@fuzz
@given(spoilers=spoilers)
def test_documents_with_a_spoiled_value_are_read_or_refused(name, spoilers):
    """Eight thousand documents each."""
    parse, document, write = READERS[name]
    for spoiler in spoilers:
        answer(parse, write(spoiled(document, *spoiler)))


@pytest.mark.parametrize("name", READERS)
@few
@given(scratches=scratches)
def test_scratched_texts_are_read_or_refused(name, scratches):
    """Two and a half thousand texts each."""
    parse, document, write = READERS[name]
    for scratch in scratches:
        answer(parse, scratched(write(document), *scratch))


@pytest.mark.parametrize("name", READERS)
@few
@given(content=st.binary() | st.text().map(str.encode))
def test_arbitrary_bytes_are_refused(name, content):
    """Nothing of the kind is a document, except constraints that say nothing."""
    parse, _, _ = READERS[name]
    answer(parse, content)


@few
@given(spoilers=spoilers)
def test_what_was_read_can_be_written_and_read_again(spoilers):
    """A graph that survives its spoiling is a good graph."""
    for spoiler in spoilers:
        graph = answer(READERS["graph"][0], to_json(spoiled(GRAPH, *spoiler)))
        if graph is not None:
            assert parse_graph(graph_line(graph), "again") == graph


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".json"])
@settings(fuzz, max_examples=340)
@given(scratches=scratches)
def test_scratched_files_are_read_or_refused(suffix, tmp_path_factory, scratches):
    """Packed files are scratched after packing; ten thousand files in all."""
    path = tmp_path_factory.getbasetemp() / f"scratched{suffix}"
    content = to_json(GRAPH) + b"\n" + to_json(GRAPH)
    content = gzip.compress(content, 1) if suffix.endswith("gz") else content
    for scratch in scratches:
        path.write_bytes(scratched(content, *scratch))
        answer(lambda file: list(read_graphs(file)), path, where=f"{path}:")


PARSERS = [
    units.bandwidth_bps,
    units.size_bytes,
    units.seconds,
    units.mips,
    units.tuple_rate,
]


@settings(fuzz, max_examples=1000)
@given(
    st.lists(
        st.text()
        | st.floats()
        | st.integers()
        | st.from_regex(r"\s*[-+]?\d{0,5}\.?\d{0,3}(e[-+]?\d{1,4})? ?[kKMGT]?i?(B|bps|bit|/s|s)?"),
        min_size=10,
        max_size=10,
    )
)
def test_quantities_are_read_or_refused(values):
    """Ten thousand values by five readers; what is read is in range."""
    for value in values:
        for parse in PARSERS:
            number = answer(parse, value, where=quoted(value)[:10])
            assert number is None or 0 <= number <= units.LARGEST
