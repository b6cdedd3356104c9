"""The checker agrees with streamplace, and its bounds hold for every placement and every order."""

import itertools
import json
from contextlib import suppress
from fractions import Fraction

import check
import library_certificates
import library_planted
import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from library_documents import instance_document, plan_document
from placer_cases import all_legal
from strategies import graphs, placements

from streamplace import Offer, Operator, Stream, StreamGraph
from streamplace.errors import ProblemError
from streamplace.library.documents import library_problem, solution_document
from streamplace.model import Cluster, Constraints, Device, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.planning.offers import Catalogue

SAME = 1e-12
FEW = settings(max_examples=settings().max_examples // 4)
"""Examples of which each tries all placements, or all orders of the operators too."""


@st.composite
def library_problems(draw, **kinds):
    """Problems that instances can express, on devices of few kinds."""
    graph = draw(graphs(**kinds))
    kinds_of_devices = [Device("d", 2500), Device("d", 1000), Device("d", egress=5e8, memory=3e6)]
    chosen = draw(st.lists(st.sampled_from(kinds_of_devices), min_size=1, max_size=4))
    devices = [
        Device(f"d{i}", d.mips, memory=d.memory, egress=d.egress) for i, d in enumerate(chosen)
    ]
    link = st.sampled_from([1e9, 1e9, 1e8])
    bandwidth = [[draw(link) for _ in devices] for _ in devices]
    cluster = Cluster.of(devices, bandwidth=bandwidth, latency=draw(st.sampled_from([0, 1e-3])))
    names = st.sampled_from(graph.operators.name), st.sampled_from(cluster.devices.name)
    try:
        return Problem(graph, cluster, Constraints(pin=draw(st.dictionaries(*names, max_size=1))))
    except ProblemError:  # the operators do not fit
        reject()
        raise


def document_of(problem, objective):
    """Return an instance as the checker reads it."""
    made = instance_document(problem, OBJECTIVES[objective])
    return dict(json.loads(json.dumps(made)))


def value(problem, objective, place, *order):
    return float(OBJECTIVES[objective].evaluate(problem, np.array([place]), *order)[0])


def judged(document, solution):
    return check.VALUES[document["objective"]](check.Instance(document), solution)


def proves(document, bound, given):
    try:
        check.PROOFS[document["objective"]](check.Instance(document), bound, given)
    except check.RefusedError:
        return False
    return True


@settings(max_examples=25)
@given(st.data())
def test_values_are_those_of_streamplace(data):
    problem = data.draw(library_problems(windowed=True))
    document = document_of(problem, "throughput")
    restored = library_problem(document)
    place = data.draw(placements(restored))
    if restored.legal(place)[0]:
        exact = judged(document, {"place": list(place)})
        assert abs(exact - value(restored, "throughput", place)) <= SAME
    else:
        with pytest.raises(check.RefusedError, match=r"too little memory|may not run"):
            judged(document, {"place": list(place)})


@settings(max_examples=25)
@given(st.data())
def test_one_source_keeps_its_value_in_a_document(data):
    problem = data.draw(library_problems())
    document, instance = document_of(problem, "throughput"), problem.instance
    place = data.draw(placements(problem))
    assume(len(instance.sources) == 1 and problem.legal(place)[0])
    ordered = [place[v] for v in instance.order.tolist()]
    assert judged(document, {"place": ordered}) == pytest.approx(
        value(problem, "throughput", place), rel=1e-5
    )


@settings(max_examples=25)
@given(st.data())
def test_schedules_take_as_long_as_in_streamplace(data):
    problem = data.draw(library_problems())
    document = document_of(problem, "makespan")
    restored = library_problem(document)
    place = data.draw(placements(restored))
    assume(restored.legal(place)[0])
    solution = solution_document(restored, restored.placement(place), OBJECTIVES["makespan"])
    exact, fifo = judged(document, solution), value(restored, "makespan", place)
    priority = np.empty(restored.n_operators)
    priority[solution["order"]] = -np.arange(restored.n_operators)
    in_order = restored.placement(solution["place"], priority, "order")
    held = OBJECTIVES["makespan"].value(restored, in_order)
    assert abs(exact - held) <= SAME * held
    assert exact <= fifo * (1 + SAME)


def two_kinds(objective, **limits):
    """Instance of two operators on two devices of different kinds."""
    kind = {"memory": 10} | limits
    return {
        "name": "two",
        "objective": objective,
        "second": 1000,
        "kinds": [kind, kind | {"cpu": 3000}],
        "devices": [0, 1],
        "links": [[[1, 0]] * 2] * 2,
        "operators": [{"pieces": 1, "memory": 1, "work": [2000, 4000]}] * 2,
        "streams": [[0, 1, 8]],
    }


def test_limits_that_a_kind_does_not_state_are_none():
    """A kind without cpu carries any work; a pass takes its work whatever the cpu."""
    for place in itertools.product(range(2), repeat=2):
        document = two_kinds("throughput")
        exact = judged(document, {"place": list(place)})
        assert value(library_problem(document), "throughput", place) == pytest.approx(float(exact))
        document = two_kinds("makespan")
        exact = judged(document, {"place": list(place), "order": [0, 1]})
        assert value(library_problem(document), "makespan", place) == pytest.approx(float(exact))


def test_slots_that_placers_do_not_know_are_refused():
    with pytest.raises(ProblemError, match="limits slots"):
        library_problem(two_kinds("throughput", slots=1))
    library_problem(two_kinds("throughput", slots=2))
    library_problem(two_kinds("makespan", slots=1))


def values_of(document, places):
    """Values of placements, and of makespans in all orders in which inputs come first."""
    for order in itertools.permutations(range(len(document["operators"]))):
        if all(order.index(u) < order.index(v) for u, v, _ in document["streams"]):
            for place in places:
                with suppress(check.RefusedError):
                    yield judged(document, {"place": list(place), "order": list(order)})
        if document["objective"] == "throughput":
            break


def assert_proves_the_best(document, values, proof):
    """Check that a proof shows the best value, and nothing better."""
    if document["objective"] == "throughput":
        best = max(values)
        better = best * Fraction(999_999_999, 10**9)
    else:
        best = min(values)
        better = best + Fraction(1, document["second"])
    assert proves(document, best, proof)
    assert not proves(document, better, proof)


@pytest.mark.parametrize("objective", ["throughput", "makespan"])
@FEW
@given(library_problems(most=4))
def test_a_search_proves_the_best_value_and_nothing_better(objective, problem):
    document = document_of(problem, objective)
    values = list(values_of(document, all_legal(library_problem(document)).tolist()))
    assume(max(values) > 0)
    assert_proves_the_best(document, values, library_certificates.proof(document))


@st.composite
def small_plans(draw):
    n = draw(st.integers(1, 3))
    operators = [
        Operator(
            f"v{v}",
            ipt=draw(st.integers(1, 9)) * 1e5,
            payload=draw(st.integers(0, 9)) * 100,
            rate=3e3 if v == 0 else 0.0,
            memory=draw(st.integers(0, 4)) * 1e9,
            max_parallelism=draw(st.integers(1, 3)),
        )
        for v in range(n)
    ]
    streams = [Stream(f"v{v}", f"v{v + 1}", partitioning="hash") for v in range(n - 1)]
    offers = [
        Offer("small", 3, cores=1, memory="5 GB", egress=draw(st.sampled_from([1e7, 1e9]))),
        Offer("large", draw(st.integers(4, 7)), cores=2, slots=draw(st.integers(2, 5))),
    ]
    try:
        return plan_document(StreamGraph.of("plan", operators, streams), Catalogue.of(offers))
    except ProblemError:
        assume(False)
        raise


def cheapest(document):
    """Least cost of all plans of at most three machines, by enumeration."""
    pieces = [row["pieces"] for row in document["operators"]]
    costs = []
    for size in range(1, 4):
        for kinds in itertools.combinations_with_replacement(range(2), size):
            splits = [
                [s for s in itertools.product(range(p + 1), repeat=size) if sum(s) == p]
                for p in pieces
            ]
            for split in itertools.product(*splits):
                machines = [
                    [k, [[v, s[m]] for v, s in enumerate(split) if s[m]]]
                    for m, k in enumerate(kinds)
                ]
                try:
                    costs.append(judged(document, {"machines": machines}))
                except check.RefusedError:
                    continue
    return min(costs, default=None)


@settings(max_examples=10, deadline=None)
@given(small_plans(), st.data())
def test_no_worths_prove_more_than_is_true(document, data):
    best, n = cheapest(document), len(document["operators"])
    assume(best is not None)
    worth = data.draw(st.lists(st.integers(0, 10**15), min_size=n, max_size=n))
    weights = [{"cpu": data.draw(st.integers(0, 3))} for _ in document["kinds"]]
    assert not proves(document, best + 1, {"worth": worth, "weights": weights})


@pytest.mark.parametrize("make", ["planted_throughput", "planted_makespan", "planted_plan"])
@pytest.mark.parametrize("large", [0, 2])
def test_planted_solutions_are_the_best(make, large):
    planted = getattr(library_planted, make)(library_planted.PlantedShape(24, 3, 0.3, large), 7)
    assert judged(planted.document, planted.solution) == Fraction(planted.bound)
    assert proves(planted.document, Fraction(planted.bound), planted.proof)


@pytest.mark.slow
@given(st.data())
def test_no_proof_shows_a_bound_better_than_the_best(data):
    """Orders and weights at random, limits and loads of zero, kinds that differ."""
    objective = data.draw(st.sampled_from(["throughput", "makespan"]))
    document = data.draw(small_documents(objective))
    n, devices = len(document["operators"]), len(document["devices"])
    values = list(values_of(document, itertools.product(range(devices), repeat=n)))
    assume(values)
    weights = data.draw(st.lists(st.integers(0, 3), min_size=2, max_size=2))
    given = {"order": data.draw(st.permutations(range(n))), "weights": weights}
    assert_proves_the_best(document, values, given)


@st.composite
def small_documents(draw, objective):
    """Instances of up to three operators and devices, with small numbers."""
    few = st.integers(0, 3)
    limits = st.fixed_dictionaries(
        {"cpu": few}, optional={"memory": few, "slots": few, "out": few, "in": few}
    )
    n = draw(st.integers(1, 3))
    works = st.lists(st.one_of(st.none(), few), min_size=2, max_size=2).filter(
        lambda line: line != [None, None]
    )
    pairs = list(itertools.combinations(range(n), 2))
    pair = st.lists(few, min_size=2, max_size=2)
    return {
        "objective": objective,
        "second": draw(st.integers(1, 3)),
        "kinds": [draw(limits) for _ in range(2)],
        "devices": draw(st.lists(st.integers(0, 1), min_size=1, max_size=3)),
        "links": [[draw(pair) for _ in range(2)] for _ in range(2)],
        "operators": [{"pieces": 1, "memory": draw(few), "work": draw(works)} for _ in range(n)],
        "streams": [[u, v, draw(few)] for u, v in pairs if draw(st.booleans())],
    }


def test_operators_have_pieces_in_plans_only():
    document = library_planted.planted_makespan(library_planted.PlantedShape(4, 2), 0).document
    document["operators"][0]["pieces"] = 2
    with pytest.raises(check.RefusedError, match="2 is no whole number in its range"):
        check.Instance(document)


def test_a_search_ends_at_its_number_of_nodes(monkeypatch):
    planted = library_planted.planted_throughput(library_planted.PlantedShape(12, 3), 0)
    monkeypatch.setattr(check, "NODES", 7)
    with pytest.raises(check.RefusedError, match="too many nodes"):
        check.no_placement(
            check.Instance(planted.document), Fraction(1, 2), planted.proof | {"weights": [0]}
        )
