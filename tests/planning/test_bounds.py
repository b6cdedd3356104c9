"""Bounds of the cost of plans."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from planning_cases import chain, pipeline
from streamsim import throughput

from streamplace import Budget, plan
from streamplace.model import Operator, Problem, Stream, StreamGraph
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import expand
from streamplace.model.subtasks import with_parallelism
from streamplace.model.units import UNLIMITED_BPS
from streamplace.planning.bounds import proven_bound
from streamplace.planning.cuts import Cut, cheapest_counts, least_cost, resource_cuts
from streamplace.planning.demand import demand_of
from streamplace.planning.offers import Catalogue, Offer


def bound_of(graph, *offers, fixed=False):
    """Proven bound where there are machines enough."""
    return proven_bound(demand_of(graph, fixed=fixed), Catalogue.of(offers))


def alone(ipt, **changes):
    """An operator that reads 1000 tuples/s."""
    return StreamGraph.of("one", [Operator("v", ipt=ipt, rate=1000, **changes)])


@pytest.mark.parametrize(("width", "machines"), [(0.26, 2), (0.24, None)])
def test_unequal_kept_parallelisms_are_shuffled(width, machines):
    """On two machines of three slots, a quarter of the stream leaves each; five are no help."""
    graph = chain(
        Operator("u", rate=1000, payload=125, parallelism=4), Operator("v", parallelism=2)
    )
    catalogue = Catalogue.of([Offer("one", 1.0, egress=width * 1e6, slots=3, at_most=5)])
    bound = proven_bound(demand_of(graph, fixed=True), catalogue)
    assert (None if bound is None else bound.value) == machines


def test_items_that_cannot_be_divided_need_machines_of_their_own():
    """Three operators of 60 % of a machine need three, where shares would need two."""
    operators = [Operator(f"v{i}", ipt=600, rate=1000, max_parallelism=1) for i in range(3)]
    bound = bound_of(StreamGraph.of("three", operators), Offer("one", 1.0, mips=1.0))
    assert bound.by_strength["resources"] == 2
    assert bound.by_strength["items"] == bound.value == 3


def test_contents_are_stronger_than_items():
    """CPU and memory that no machine has together: each resource alone needs three machines."""
    operators = [
        Operator(f"v{i}", ipt=ipt, rate=1000, max_parallelism=1, memory=memory)
        for i, (ipt, memory) in enumerate([(700, 30), (700, 30), (30, 70), (30, 70), (400, 40)])
    ]
    operators += [Operator("w", ipt=400, rate=1000, max_parallelism=1, memory=40)]
    graph, offer = StreamGraph.of("both", operators), Offer("one", 1.0, mips=1.0, memory=100.0)
    bound = bound_of(graph, offer)
    assert bound.by_strength["items"] == 3
    assert bound.value == 3


def test_the_network_needs_machines():
    """A shuffle over thin network cards does not get by with the CPU of two machines."""
    graph = pipeline(2000.0)
    wide = Catalogue.of([Offer("one", 1.0, mips=5.0, cores=2)])
    thin = Catalogue.of([Offer("one", 1.0, mips=5.0, cores=2, egress=2e5, ingress=2e5)])
    bounds = [proven_bound(demand_of(graph), catalogue) for catalogue in (wide, thin)]
    assert bounds[0].value == 2
    assert bounds[1] is None or bounds[1].value > 2


def test_a_slot_holds_more_than_an_even_share_of_key_groups():
    """Two subtasks have two and one of three key groups, and a slot of a machine each."""
    graph, offer = alone(1000, max_parallelism=3), Offer("one", 1.0, mips=0.67, slots=1)
    assert bound_of(graph, offer).value == 2


def test_the_proof_of_whole_numbers_does_without_the_solver():
    """It agrees with CP-SAT on a knapsack, and refutes no numbers that there are."""
    catalogue = Catalogue.of([Offer("a", 0.3), Offer("b", 0.7), Offer("c", 1.1)])
    cuts = [Cut((Fraction(2), Fraction(5), Fraction(8)), Fraction(31), "cpu")]
    counts = cheapest_counts(cuts, catalogue)
    cost = 3 * counts[0] + 7 * counts[1] + 11 * counts[2]
    assert least_cost(cuts, catalogue, cost, lambda: False) == Fraction(cost, 10)
    assert least_cost(cuts, catalogue, cost + 1, lambda: False) < Fraction(cost + 1, 10)


def test_whole_numbers_of_hundreds_of_types_are_refuted():
    """As many types as a plan takes; the first is the cheapest."""
    offers = [Offer("first", 1.0, at_most=1), *(Offer(f"type{i}", 1.5) for i in range(499))]
    cuts = [Cut((Fraction(2),) * 500, Fraction(3), "cpu")]
    assert least_cost(cuts, Catalogue.of(offers), 5, lambda: False) == Fraction(5, 2)


@pytest.mark.parametrize("price", [1 / 3, 0.1 + 0.2, 1e-9 / 3])
def test_prices_may_have_any_number_of_digits(price):
    """The integers of such prices are too large for the solver, which is no proof of anything."""
    bound = bound_of(alone(1500), Offer("one", price, mips=1.0), Offer("two", 1.0, mips=2.0))
    assert bound.value == 2 * Fraction(repr(price))


def test_numbers_that_are_too_few_are_refuted_however_long_prices_are():
    """Three large machines cost 3 · 10¹⁹ units of the prices; 2.4 of them would be enough."""
    small, large = Offer("small", 1 / 30, mips=0.1, at_most=1), Offer("large", 100.0, mips=1.0)
    assert bound_of(alone(2500), small, large).value == 300


def test_cuts_do_not_depend_on_the_hashes_of_tags():
    """They are in the order of the tags, as the solver finds other machines for other orders."""
    needs = {"d": 1, "b": 2, "f": 4, "a": 8, "e": 16, "c": 32}
    operators = [
        Operator(tag, ipt=ipt, rate=1.0, requires=frozenset(tag)) for tag, ipt in needs.items()
    ]
    offers = Catalogue.of([Offer("all", 1.0, tags=frozenset(needs))])
    cuts = list(resource_cuts(demand_of(StreamGraph.of("tagged", operators)), offers))
    cpu = [int(cut.demand) for cut in cuts if cut.origin == "cpu"]
    assert cpu == [sum(needs.values()), *(needs[tag] for tag in sorted(needs))]


def test_a_solver_that_gives_up_proves_nothing(monkeypatch):
    """Only a cut that all machines together violate says that there are too few."""
    monkeypatch.setattr("streamplace.planning.bounds.cheapest_counts", lambda *_: None)
    few, enough = (Offer("one", 1.0, mips=1.0, at_most=limit) for limit in (1, 3))
    assert proven_bound(demand_of(alone(1500)), Catalogue.of([few])) is None
    assert bound_of(alone(1500), enough).value == 2


def test_a_solver_that_goes_round_in_circles_ends():
    """It does where operators take a billionth of a core of each machine."""
    loads = (20_000, 300_000, 200_000)
    operators = [Operator(f"o{i}", ipt=ipt, rate=0 if i else 1e-9) for i, ipt in enumerate(loads)]
    graph = StreamGraph.of("slow", operators, [Stream("o0", "o1"), Stream("o1", "o2")])
    offers = Catalogue((Offer("small", 0.1, cores=2), Offer("large", 0.35, cores=8)))
    assert plan(graph, offers=offers, budget=Budget(evaluations=300)).cost == 0.1


def of_three(v, ipt=600, **changes):
    """Operator whose two subtasks have two and one of three key groups."""
    return Operator(v, ipt=ipt, payload=100, max_parallelism=3, **changes)


@pytest.mark.parametrize(
    ("graph", "offer"),
    [
        (alone(1, max_parallelism=3, constant=1.0), Offer("one", 1.0, mips=0.51)),
        (
            chain(of_three("u", 0.1, rate=1e3), Operator("v", memory=90), kind="forward"),
            Offer("one", 1.0, mips=1.0, memory=46.0),
        ),
        (
            chain(of_three("u", rate=1e3), Operator("v", ipt=600)),
            Offer("one", 1.0, mips=0.41, cores=2, egress=1.0, ingress=1.0, slots=2),
        ),
        (
            StreamGraph.of(
                "inputs",
                [
                    replace(of_three("t", rate=1e3), max_parallelism=2),
                    of_three("u", rate=1e3),
                    Operator("v", ipt=10),
                ],
                [Stream(name, "v", partitioning="forward") for name in "tu"],
            ),
            Offer("one", 1.0, mips=0.8, egress=1.0, ingress=1.0),
        ),
    ],
    ids=["constant loads", "memory", "slots", "inputs"],
)
def test_subtasks_may_have_unequal_and_equal_parts(graph, offer):
    """Two subtasks of each operator, a pair on each of two machines, carry the rate."""
    two = with_parallelism(graph, np.full(graph.n_operators, 2, np.int32))
    cluster = Cluster.of([offer.device("a"), offer.device("b")], bandwidth=UNLIMITED_BPS)
    problem = Problem(expand(two).graph, cluster)
    place = np.tile(np.array([0, 1], np.int32), graph.n_operators)[None]
    assert problem.legal(place)[0]
    assert throughput(problem.instance, place)[0] == pytest.approx(1.0, rel=1e-9)
    assert bound_of(graph, offer).value == bound_of(two, offer, fixed=True).value == 2


def test_memory_of_key_groups_is_unequal_even_where_tuples_are_dealt_evenly():
    """Two subtasks would have 60 and 30 bytes; three have 30 each."""
    ends = Operator("u", ipt=10, rate=10.0), Operator("v", ipt=1, memory=90, max_parallelism=3)
    graph = chain(*ends, kind="rebalance")
    offers = [Offer("one", 1.0, mips=1.0, memory=46.0)]
    result = plan(graph, offers=offers, budget=Budget(None, 2000))
    assert result.is_cheapest
    assert result.parallelism["v"] == result.machines["one"] == 3


def test_memory_may_be_divided_among_thousands_of_subtasks():
    """The tiny machine holds one of 4,100 parts, and the large one all others."""
    operator = Operator("a", ipt=1, rate=1, memory=4100.0, parallelism=4100)
    graph = StreamGraph.of("m", [operator])
    offers = [Offer("large", 100.0, memory=4099.0), Offer("tiny", 1.0, memory=1.0)]
    kept = plan(graph, offers=offers, keep_parallelism=True, budget=Budget(None, 2000))
    assert kept.cost == 101
    assert plan(graph, offers=offers, budget=Budget(None, 2000)).bound <= 101


def test_thirds_fit_where_floats_of_them_would_not():
    """A slot holds a third and two hold two thirds, whose floats add up to less than one."""
    offers = [Offer(f"{n}", 1.0, mips=0.5, cores=2, slots=n, at_most=1) for n in (1, 2)]
    bound = bound_of(alone(1000, max_parallelism=3), *offers)
    assert all(cut.holds((1, 1)) for cut in bound.cuts)
