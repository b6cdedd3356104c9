"""Offers: reading, units, and what is refused."""

import math

import numpy as np
import pytest
from refusals import refusal_of

import streamplace
from streamplace import Budget, Offer, Operator, Stream, StreamGraph
from streamplace.errors import StreamplaceError
from streamplace.planning.offers import parse_offers
from streamplace.planning.result import contents_of
from streamplace.report.pages import document_of

ROW = 'name = "a"\nprice = 0.1\n'


def test_an_offer_has_units_and_defaults():
    """Quantities are texts or numbers; what is left out is no limit."""
    text = (
        'overhead = "2 us"\noverhead_per_byte = "3 ns"\nslot_sharing = true\n'
        '[[offers]]\nname = "a"\nprice = 0.1\ncores = 4\nmips = "2 GIPS"\n'
        'memory = "8 GB"\negress = "1 Gbps"\ntags = ["ssd"]\nat_most = 3\n'
        'reserved = "400 MIPS"\n'
    )
    catalogue = parse_offers(text.encode(), "offers.toml")
    offer = catalogue.offers[0]
    assert (offer.instructions, offer.memory, offer.egress) == (7.6e9, 8e9, 1e9)
    assert (offer.ingress, offer.slots, offer.at_least, offer.at_most) == (math.inf,) * 2 + (0, 3)
    assert offer.tags == {"ssd"}
    assert (catalogue.overhead, catalogue.overhead_per_byte) == pytest.approx((2e-6, 3e-9))
    assert catalogue.slot_sharing
    assert not parse_offers(f"[[offers]]\n{ROW}".encode(), "offers.toml").slot_sharing


@pytest.mark.parametrize(
    ("cpu", "cores", "mips"), [(0.25, 1, 625), (1, 1, 2500), (1.5, 2, 1875), (4, 4, 2500)]
)
def test_cpu_is_cores_of_the_default_speed(cpu, cores, mips):
    """The fewest cores, as those that a quota of a pod is measured as."""
    text = f'per_core = 0.04\n[[offers]]\nname = "a"\ncpu = {cpu}'
    offer = parse_offers(text.encode(), "offers.toml").offers[0]
    assert (offer.cores, offer.mips, offer.price) == (cores, mips, pytest.approx(0.04 * cpu))


def test_offers_may_be_called_as_machines_of_others():
    """The only machine of the second has a name that is not that of one of the first."""
    needs = Operator("b", requires=frozenset({"gpu"}))
    graph = StreamGraph.of("g", [Operator("a", ipt=1e6, rate=2), needs], [Stream("a", "b")])
    pool = Offer("pool", 1.0, mips=1.0, at_least=2)
    offers = [pool, Offer("pool-0", 5.0, mips=1.0, slots=1, tags=frozenset({"gpu"}))]
    result = streamplace.plan(graph, offers=offers, budget=Budget(None, 100))
    assert contents_of(result) == {"pool": "a 2", "pool-0": "b"}
    (problem,) = document_of(result.report())["problems"]
    assert problem["devices"]["price"] == [1.0, 1.0, 5.0]


MANY = "".join(f"[[offers]]\nname = 'm{i}'\nprice = 1\n" for i in range(1001))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "offers"),
        ("offers = []", "offers"),
        ('[[offers]]\nname = "a"', "offer 'a' has no price"),
        ('per_core = 1\nper_gb = 1\n[[offers]]\nname = "a"', "offer 'a' has no price"),
        ('[[offers]]\nname = "a"\nprice = 0', "offer 'a' has price 0"),
        (f"[[offers]]\n{ROW}colour = 1", "colour"),
        (f'[[offers]]\n{ROW}memory = "8 Gbps"', "offer 'a': size '8 Gbps'"),
        (f"[[offers]]\n{ROW}memory = 0", "offer 'a' has memory 0"),
        (f"[[offers]]\n{ROW}slots = 0", "slots"),
        (f"[[offers]]\n{ROW}cpu = 0", "cpu"),
        (f"[[offers]]\n{ROW}cpu = 1\nmips = 1", "offer 'a' has cpu and mips"),
        (f"slot_sharing = 1\n[[offers]]\n{ROW}", "slot_sharing"),
        (f"[[offers]]\n{ROW}at_least = 3\nat_most = 2", "offer 'a' has at_least 3 and at_most 2"),
        (f"[[offers]]\n{ROW}[[offers]]\n{ROW}", "'a'"),
        ('[[offers]]\nname = ""\nprice = 1', "name"),
        (MANY, "1001 offers"),
    ],
)
def test_bad_offers_are_refused_in_one_line(text, place):
    assert place in refusal_of("offers.toml", parse_offers, text.encode(), "offers.toml")


def test_tags_may_be_a_list_as_those_of_devices():
    gpu = Operator("a", ipt=1, rate=1, requires=frozenset({"gpu"}))
    offers = [Offer("m", 1.0, tags=["gpu"])]  # type: ignore[arg-type]
    result = streamplace.plan(StreamGraph.of("g", [gpu]), offers=offers, budget=Budget(None, 100))
    assert result.machines == {"m": 1}
    with pytest.raises(StreamplaceError, match="offer 'm' has tags 'gpu'"):
        Offer("m", 1.0, tags="gpu")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "value"), [("price", "0.1"), ("cores", 1.5), ("slots", math.nan)]
)
def test_offers_in_python_are_checked_as_those_of_files(column, value):
    with pytest.raises(StreamplaceError, match=f"^offer 'a' has {column} {value!r}"):
        Offer(**{"name": "a", "price": 0.1, column: value})  # type: ignore[arg-type]


def test_whole_numbers_of_offers_may_come_as_floats():
    offer = Offer("a", 0.1, cores=4.0, slots=2.0, at_most=np.int64(3))  # type: ignore[arg-type]
    assert repr((offer.cores, offer.slots, offer.at_most)) == "(4, 2, 3)"
