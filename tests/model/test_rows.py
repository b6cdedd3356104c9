"""Arguments of operators, streams, devices, clusters and constraints, and messages about them."""

import math
import pickle
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import chain

from streamplace import Cluster, Constraints, Device, Operator, Stream, StreamGraph, Window
from streamplace.errors import StreamplaceError
from streamplace.io.clusters import cluster_from_tables, cluster_to_tables
from streamplace.model import Operators
from streamplace.model.message_text import quoted, shown
from streamplace.planning.offers import Offer

PIPE = StreamGraph.of("pipe", [Operator("a", rate=100), Operator("b")], [Stream("a", "b")])


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Operator(5), "an operator is called 5; a name must be a text"),
        (lambda: Operator("a", ipt=-1), "operator 'a' has ipt -1"),
        (lambda: Operator("a", ipt="many"), "operator 'a' has ipt 'many'"),
        (lambda: Operator("a", memory=math.inf), "operator 'a' has memory inf"),
        (lambda: Operator("a", max_rate="3 MB"), "operator 'a': rate '3 MB' has the unknown unit"),
        (lambda: Operator("a", payload="3 bananas"), "operator 'a': size '3 bananas' has the unkn"),
        (lambda: Operator("a", parallelism=0), "parallelism 0"),
        (lambda: Operator("a", parallelism="2"), "parallelism '2'"),
        (lambda: Operator("a", max_parallelism=1.5), "max_parallelism 1.5"),
        (lambda: Operator("a", kind=3), "operator 'a' has kind 3"),
        (lambda: Operator("a", requires="gpu"), "requires 'gpu'"),
        (lambda: Operator("a", window=3), "operator 'a' has window 3"),
        (lambda: Operator("a", fires="any"), "operator 'a' fires 'any'"),
        (lambda: Window("2 m", 1), "time '2 m' has the unknown unit 'm'"),
        (lambda: Window(None, 1), "window has size None"),
        (lambda: Window(0, 1), "window has size 0"),
        (lambda: Window(1, 1, factor=math.nan), "window has factor nan"),
        (lambda: Window(1, 2), "the size must be 1 to 100000 whole advances"),
        (lambda: Window(1, 1, limit=0), "window has limit 0"),
        (lambda: Stream("a", "b", ipt=None), "stream a→b has ipt None"),
        (lambda: Stream("a", 2), "the target of a stream is called 2; a name must be a text"),
        (lambda: Stream("a", "b", partitioning="key"), "it must be one of forward, rebalance"),
        (lambda: Device(""), "a device has an empty name"),
        (lambda: Device("d", mips="fast"), "device 'd': speed 'fast' is not a number with a unit"),
        (lambda: Device("d", mips=0), "device 'd' has mips 0"),
        (lambda: Device("d", cores=0), "device 'd' has cores 0"),
        (lambda: Device("d", cores=10**9), "device 'd' has cores 1e+09"),
        (lambda: Cluster.uniform("5"), "the cluster has '5' devices"),
        (lambda: Cluster.uniform(4097), "the cluster has 4097 devices"),
        (lambda: Cluster.uniform(5, bandwidth="1000"), "'1000' has no unit"),
        (lambda: Cluster.uniform(5, bandwidth=10), "bandwidth 10 is 10 bit/s, as it has no unit"),
        (lambda: Device("d", mips=2.5e9), "write '2500 MIPS' or '2.5e+09 MIPS'"),
        (lambda: Cluster.of([Device("d")], overhead=-1), "time -1 must be between 0"),
        (lambda: Constraints(pin={"a": 5}), "pin 'a' is 5"),
        (lambda: Constraints(pin="a"), "pin is 'a'"),
        (lambda: Constraints(exlocate=3), "exlocate is 3"),
        (lambda: StreamGraph.of("g", ["a"]), "'a' is no operator"),
        (lambda: StreamGraph.of("g", [Operator("a")], [("a", "b")]), "is no stream"),
        (lambda: StreamGraph.of([Operator("a")], []), "it must be a string, and comes first"),
        (lambda: StreamGraph.of("\ud800", [Operator("a", rate=1)]), r"a graph is '\ud800'"),
        (lambda: PIPE.at_rate("2x"), "rate '2x' has the unknown unit 'x'"),
        (lambda: PIPE.at_rate("0"), "rate '0' must be above 0"),
        (lambda: PIPE.at_rate(-1), "the rate is -1"),
    ],
)
def test_bad_arguments_are_refused_at_once(make, complaint):
    with pytest.raises(StreamplaceError) as error:
        make()
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_numbers_may_be_texts():
    assert PIPE.at_rate("20 k/s").source_rate == 20_000
    assert Device("d", mips="2.5 GIPS", memory="4 GB", egress="1 Gbps").mips == 2500
    operator = Operator("a", payload="12.5 kB", rate="10 k/s", memory="2 GB")  # type: ignore[arg-type]
    assert (operator.payload, operator.rate, operator.memory) == (12500, 10_000, 2e9)


@pytest.mark.parametrize(
    ("make", "other"),
    [
        (lambda: Operators(["a"], ipt=[1], window={0: Window(2, 1)}), Operators(["a"], ipt=[1])),
        (lambda: Cluster.uniform(3), Cluster.uniform(3, bandwidth=1e8)),
        (chain, chain(rate=2)),
    ],
)
def test_equal_content_is_equal_and_hashes_alike(make, other):
    assert make() == make() == pickle.loads(pickle.dumps(make()))
    assert hash(make()) == hash(make())
    assert make() != other


def test_every_field_survives_columns_files_and_offers():
    """Also one that is added; offers say neither watts nor that price."""
    device = Device("a", 1500.0, 4, frozenset({"gpu"}), 2000.0, 1e9, 2e9, 3.0, 90.0, 0.5)
    assert all(getattr(device, field.name) != field.default for field in fields(Device))
    stored = Cluster.of([device])
    assert list(stored.devices) == [device]
    assert list(cluster_from_tables(cluster_to_tables(stored)).devices) == [device]
    assert Offer.of_device(device).device("a") == replace(device, watts=0.0, price=0.0)


@given(st.text() | st.binary() | st.lists(st.text()) | st.integers() | st.floats())
def test_a_quoted_value_is_short_and_printable(value):
    text = quoted(value)
    assert text.isprintable()
    assert len(text) < 1000


@given(st.text(st.characters()))
def test_a_shown_text_is_short_and_printable(text):
    assert shown(text).isprintable()
    assert len(shown(text)) <= 10 * 80


def test_endless_integers_and_deep_lists_are_abridged():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert quoted(10**5000) == "a number of thousands of digits"
    assert quoted(deep) == "[[[[...]]]]"
