"""Proofs of plans against every placement of small jobs, and against every packing of items."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_cases import carried
from streamsim import throughput

import streamplace
from streamplace.errors import ProblemError, StreamplaceError
from streamplace.model import Operator, Problem, Stream, StreamGraph
from streamplace.model.arrays import Bools, Ints
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import expand, with_parallelism
from streamplace.model.units import UNLIMITED_BPS
from streamplace.placers.registry import Budget
from streamplace.planning.bounds import proven_bound
from streamplace.planning.demand import (
    ALL_TO_ALL,
    Demand,
    connected,
    demand_of,
    slot_groups,
    slots_of,
)
from streamplace.planning.offers import Catalogue, Offer

MOST_SUBTASKS, MOST_MACHINES = 6, 3


class Question(NamedTuple):
    """A graph, offers, and whether the parallelism of the graph is kept."""

    graph: StreamGraph
    catalogue: Catalogue
    keeps: bool


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Draw up to three operators of unequal parts, and up to three machines."""
    keeps, n = draw(st.booleans()), draw(st.integers(1, 3))
    n_sources = draw(st.integers(1, max(1, n - 1)))
    subtasks = [draw(st.integers(1, 3)) if keeps else 1 for _ in range(n)]
    operators = []
    for v in range(n):
        groups = draw(st.sampled_from([0, 2, 3, 5]))
        operators.append(
            Operator(
                f"v{v}",
                ipt=draw(st.sampled_from([0, 10, 400, 700, 1000])),
                payload=draw(st.sampled_from([0, 5, 100])),
                rate=1000.0 if v < n_sources else 0.0,
                parallelism=subtasks[v],
                max_parallelism=groups if groups >= subtasks[v] else 0,
                memory=draw(st.sampled_from([0, 0, 60, 90])),
                constant=draw(st.sampled_from([0, 0, 0, 0.5, 1.0])),
                slot_sharing_group=draw(st.sampled_from(["", "own"])),
            )
        )
    streams = []
    for v in range(n_sources, n):
        for u in draw(st.sets(st.integers(0, v - 1), min_size=1)):
            kinds = ["", "rebalance", "hash"]
            kinds += ["forward"] if not keeps or subtasks[u] == subtasks[v] else []
            part = draw(st.sampled_from([0.5, 1.0, 2.0]))
            kind = draw(st.sampled_from(kinds))
            streams.append(Stream(f"v{u}", f"v{v}", part, partitioning=kind))
    offers = [
        Offer(
            f"type{t}",
            draw(st.sampled_from([0.1, 1 / 3, 0.7])),
            mips=draw(st.sampled_from([0.5, 0.75, 1.5, 3.0])),
            cores=draw(st.sampled_from([1, 2])),
            memory=draw(st.sampled_from([np.inf, 46.0, 61.0, 130.0])),
            egress=draw(st.sampled_from([np.inf, 1.0, 4e5])),
            ingress=draw(st.sampled_from([np.inf, 1.0, 4e5])),
            slots=draw(st.sampled_from([np.inf, 1, 2, 4])),
            at_most=draw(st.integers(1, MOST_MACHINES)),
            reserved=draw(st.sampled_from([0.0, 0.0, 0.25])),
        )
        for t in range(draw(st.integers(1, 2)))
    ]
    overhead = draw(st.sampled_from([0.0, 1e-4]))
    catalogue = Catalogue.of(offers, overhead, slot_sharing=draw(st.booleans()))
    messages = {"message ipt": draw(st.sampled_from([0, 0, 300])), "buffer timeout": 0.1}
    return Question(StreamGraph.of("asked", operators, streams, messages), catalogue, keeps)


def carrying_counts(question: Question) -> Iterator[tuple[int, ...]]:
    """Numbers of machines that carry the rate, with some parallelism and contents."""
    offers = question.catalogue.offers
    for counts in itertools.product(*(range(offer.at_most + 1) for offer in offers)):
        if 0 < sum(counts) <= MOST_MACHINES and any(
            _carries(question, counts, vector) for vector in _parallelisms(question)
        ):
            yield counts


def _parallelisms(question: Question) -> Iterator[Ints]:
    operators = question.graph.operators
    if question.keeps:
        yield operators.parallelism
        return
    ranges = [range(1, (limit or 3) + 1) for limit in operators.max_parallelism.tolist()]
    for numbers in itertools.product(*ranges):
        if sum(numbers) <= MOST_SUBTASKS:
            yield np.array(numbers, np.int32)


def _carries(question: Question, counts: tuple[int, ...], vector: Ints) -> bool:
    """Whether contents carry the rate whichever subtasks of each operator a machine runs."""
    catalogue = question.catalogue
    kinds = np.repeat(np.arange(len(counts)), counts).tolist()
    machines = [catalogue.offers[kind].device(f"m{m}") for m, kind in enumerate(kinds)]
    cluster = Cluster.of(machines, bandwidth=UNLIMITED_BPS, overhead=catalogue.overhead)
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


def _contents(demand: Demand, vector: Ints, places: Ints, machines: int) -> Ints:
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


def _fits_slots(
    demand: Demand, catalogue: Catalogue, operator: Ints, place: Ints, slots: np.ndarray
) -> bool:
    taken = np.zeros((len(slots), demand.n_operators), np.int64)
    np.add.at(taken, (place, operator), 1)
    full: Bools = slots_of(slot_groups(demand, catalogue), taken) > slots
    return not full.any()


@settings(max_examples=12, deadline=None)
@given(questions())
def test_no_machines_refute_a_proof(question: Question) -> None:
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
    for counts in carrying:
        cost = sum(offer.price * x for offer, x in zip(catalogue.offers, counts, strict=True))
        assert all(cut.holds(counts) for cut in bound.cuts)
        assert all(float(value) <= cost * (1 + 1e-9) for value in bound.by_strength.values())
    refused, budget = "", Budget(None, 300)
    try:
        result = streamplace.plan(graph, offers=catalogue, keep_parallelism=keeps, budget=budget)
        assert carried(result) >= 1 - 1e-8
    except ProblemError as error:
        refused = str(error)
    assert "no offers carry" not in refused or not carrying
