"""Proofs of plans against every placement of small jobs, and against every packing of items."""

import itertools

import numpy as np
from hypothesis import example, given, settings
from planning_cases import MOST_MACHINES, SmallQuestion, carried, machine_counts, small_questions
from streamsim import throughput

import streamplace
from streamplace import Offer, Operator, Stream, StreamGraph
from streamplace.errors import ProblemError, StreamplaceError
from streamplace.model import Problem
from streamplace.model.arrays import Bools
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import expand
from streamplace.model.subtasks import with_parallelism
from streamplace.model.units import UNLIMITED_BPS
from streamplace.placers.registry import Budget
from streamplace.planning.bounds import proven_bound
from streamplace.planning.demand import ALL_TO_ALL, connected, demand_of, slot_groups, slots_of
from streamplace.planning.offers import Catalogue

MOST_SUBTASKS = 6


def carrying_counts(question):
    """Numbers of machines that carry the rate, with some parallelism and contents."""
    for counts in machine_counts(question.catalogue, MOST_MACHINES):
        if any(_carries(question, counts, vector) for vector in _parallelisms(question)):
            yield counts


def _parallelisms(question):
    ranges = [
        [one.parallelism] if one.name in question.kept else range(1, (one.max_parallelism or 3) + 1)
        for one in question.graph.operators
    ]
    for numbers in itertools.product(*ranges):
        if question.keeps is True or sum(numbers) <= MOST_SUBTASKS:
            yield np.array(numbers, np.int32)


def _carries(question, counts, vector):
    """Whether contents carry the rate whichever subtasks of each operator a machine runs."""
    catalogue = question.catalogue
    kinds = np.repeat(np.arange(len(counts)), counts).tolist()
    machines = [catalogue.offers[kind].device(f"m{m}") for m, kind in enumerate(kinds)]
    cluster = Cluster.of(
        machines,
        bandwidth=UNLIMITED_BPS,
        overhead=catalogue.overhead,
        overhead_per_byte=catalogue.overhead_per_byte,
    )
    try:
        expansion = expand(with_parallelism(question.graph, vector))
        problem = Problem(expansion.graph, cluster)
    except StreamplaceError:  # forward streams of unequal ends, or too little memory
        return False
    d, n = len(kinds), expansion.graph.n_operators
    places = (np.arange(d**n)[:, None] // d ** np.arange(n) % d).astype(np.int32)
    fine = problem.legal(places) & (throughput(problem.instance, places) >= 1 - 1e-9)
    if not fine.any():
        return False
    demand = demand_of(question.graph)
    number = _contents(demand, vector, places, d)
    spoiled = np.bincount(number, ~fine) > 0
    slots = np.array([catalogue.offers[kind].slots for kind in kinds])
    return any(
        _fits_slots(demand, catalogue, expansion.operator, place, slots)
        for place in places[~spoiled[number]]
    )


def _contents(demand, vector, places, machines):
    """Number of the contents of each placement; subtasks that are joined one to one move together.

    Placements of the same contents differ by the order of subtasks alone.
    """
    equal = vector[demand.source] == vector[demand.target]
    joined = (demand.joined != ALL_TO_ALL) & equal
    group = connected(len(vector), demand.source[joined], demand.target[joined])
    first, whole = np.cumsum(vector) - vector, np.zeros(len(places), np.int64)
    for chain in np.unique(group).tolist():
        members = np.flatnonzero(group == chain).tolist()
        lanes = np.zeros((len(places), vector[members[0]]), np.int64)
        for v in members:
            lanes = machines * lanes + places[:, first[v] : first[v] + vector[v]]
        for lane in np.sort(lanes, axis=1).T:
            whole = whole * machines ** len(members) + lane
    return np.unique(whole, return_inverse=True)[1].astype(np.int32)


def _fits_slots(demand, catalogue, operator, place, slots):
    taken = np.zeros((len(slots), demand.n_operators), np.int64)
    np.add.at(taken, (place, operator), 1)
    full: Bools = slots_of(slot_groups(demand, catalogue), taken) > slots
    return not full.any()


APART = SmallQuestion(
    StreamGraph.of(
        "apart",
        [
            Operator("v0", ipt=1000, rate=1000, cores=1.5),
            Operator("v1", ipt=400, payload=100, rate=1000),
            Operator(
                "v2",
                payload=100,
                memory=90,
                max_parallelism=3,
                slot_sharing_group="own",
                constant=1.0,
                max_rate=900,
            ),
        ],
        [Stream("v0", "v2", 0.5), Stream("v1", "v2", 0.5, ipt=300, partitioning="rebalance")],
    ),
    Catalogue.of(
        [Offer("box", 0.5, mips=1.5, memory=130, egress=4e5, ingress=4e5, slots=2, at_most=3)],
        overhead=1e-4,
        slot_sharing=True,
    ),
    keeps=False,
)
"""Plans are charged for the largest parts of v2's tuples, and of its constant load, at once."""


@settings(max_examples=12, deadline=None)
@example(APART)
@given(small_questions())
def test_no_machines_refute_a_proof(question):
    """Bounds and refusals of a question against its cheapest machines by brute force."""
    graph, catalogue, keeps = question
    carrying = list(carrying_counts(question))
    bound = proven_bound(demand_of(graph, fixed=keeps), catalogue)
    if bound is None:
        assert not carrying
        return
    values = [*bound.by_strength.values()]  # each relaxation keeps the cuts of those before
    assert values == sorted(values)
    assert all(cut.holds(bound.counts) for cut in bound.cuts)
    prices = [offer.price for offer in catalogue.offers]
    cheapest = min((float(np.dot(prices, counts)) for counts in carrying), default=np.inf)
    assert all(cut.holds(counts) for cut in bound.cuts for counts in carrying)
    assert float(bound.value) <= cheapest * (1 + 1e-9)
    refused, budget = "", Budget(None, 300)
    try:
        result = streamplace.plan(graph, offers=catalogue, keep_parallelism=keeps, budget=budget)
        assert carried(result) >= 1 - 1e-8
        assert float(result.bound) <= cheapest * (1 + 1e-9)  # raised by trying all plans
    except ProblemError as error:
        refused = str(error)
    assert "no offers carry" not in refused or not carrying
