"""Arguments of operators, streams, devices, clusters and constraints are checked at once."""

from collections.abc import Callable

import pytest

from streamplace import Cluster, Constraints, Device, Operator, Stream, StreamGraph, Window
from streamplace.errors import StreamplaceError

PIPE = StreamGraph.of("pipe", [Operator("a", rate=100), Operator("b")], [Stream("a", "b")])


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Operator(5), "an operator is called 5; a name must be a text"),
        (lambda: Operator("a", parallelism=0), "parallelism 0; it must be a whole number from 1"),
        (lambda: Operator("a", parallelism="2"), "parallelism '2'; it must be a whole number"),
        (lambda: Operator("a", max_parallelism=1.5), "max_parallelism 1.5; it must be a whole"),
        (lambda: Operator("a", kind=3), "operator 'a' has kind 3; it must be a text"),
        (lambda: Operator("a", requires="gpu"), "requires 'gpu'; it must be a set of texts"),
        (lambda: Operator("a", window=3), "operator 'a' has window 3; it must be a Window"),
        (lambda: Operator("a", fires="any"), "operator 'a' fires 'any'; it must be 'each' or"),
        (lambda: Window("2 s", 1), "window has size '2 s'; it must be a number"),
        (lambda: Stream("a", "b", selectivity=None), "stream a→b has selectivity None; it must"),
        (lambda: Stream("a", "b", ipt=None), "stream a→b has ipt None; it must be a number"),
        (lambda: Stream("a", 2), "the target of a stream is called 2; a name must be a text"),
        (lambda: Stream("a", "b", partitioning="key"), "it must be one of forward, rebalance"),
        (lambda: Device(5), "a device is called 5; a name must be a text"),
        (lambda: Device("d", mips="fast"), "device 'd': speed 'fast' is not a number with a unit"),
        (lambda: Device("d", mips=0), "device 'd' has mips 0; it must be ≥ 0.001"),
        (lambda: Device("d", cores=0), "device 'd' has cores 0; it must be a whole number from 1"),
        (lambda: Device("d", watts=None), "device 'd' has watts None; it must be a number ≥ 0"),
        (lambda: Cluster.uniform("5"), "the cluster has '5' devices; it must have 1 to"),
        (lambda: Cluster.uniform(5, bandwidth="1000"), "'1000' has no unit; write '1000 Mbps' or"),
        (lambda: Constraints(pin={"a": 5}), "pin 'a' is 5; it must be the name of a device"),
        (lambda: Constraints(pin="a"), "pin is 'a'; it must map operators to devices"),
        (lambda: Constraints(exlocate=3), "exlocate is 3; it must be a list of lists of names"),
        (lambda: StreamGraph.of("g", ["a"]), r"'a' is no operator; write each operator as Operat"),
        (lambda: StreamGraph.of("g", [Operator("a")], [("a", "b")]), r"is no stream; write each"),
        (lambda: StreamGraph.of([Operator("a")], []), "it must be a string, and comes first"),
        (lambda: PIPE.at_rate("2x"), "rate '2x' has the unknown unit 'x'; write '10 k/s'"),
        (lambda: PIPE.at_rate("0"), "rate '0' must be above 0"),
        (lambda: PIPE.at_rate(None), "the rate is None; it must be above 0"),
    ],
)
def test_a_bad_argument_is_refused_where_it_is_given(
    make: Callable[[], object], complaint: str
) -> None:
    """In one line that names the value and the rule."""
    with pytest.raises(StreamplaceError) as error:
        make()
    assert complaint in str(error.value)


def test_a_rate_may_be_a_text() -> None:
    """As everywhere else."""
    assert PIPE.at_rate("20 k/s").source_rate == 20_000


def test_the_numbers_of_a_device_may_be_texts() -> None:
    """They are read where it is made."""
    assert Device("d", mips="2.5 GIPS", memory="4 GB", egress="1 Gbps").mips == 2500
