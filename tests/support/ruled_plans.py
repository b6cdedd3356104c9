"""Small plans under rules, on owned and bought machines and their links, and all by brute force."""

import itertools
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from streamsim import throughput

from streamplace.errors import ProblemError
from streamplace.model import Cluster, Constraints, Operator, Problem, Stream, StreamGraph
from streamplace.model.expansion import expand
from streamplace.model.subtasks import with_parallelism
from streamplace.model.units import UNLIMITED_BPS
from streamplace.planning.offers import Catalogue, Offer


class RuledQuestion(NamedTuple):
    """A graph whose operators have one or two subtasks, offers, and constraints."""

    graph: StreamGraph
    catalogue: Catalogue
    constraints: Constraints


def ruled_question(seed, *, linked):
    """Two or three operators, five machines at most of three offers, and one to three rules."""
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 4))
    names = [f"v{v}" for v in range(n)]
    operators = [
        Operator(
            name,
            ipt=float(random.choice([50, 100, 200, 400, 700])),
            payload=float(random.choice([5, 100])),
            rate=0.0 if v else 1000.0,
            max_parallelism=int(random.integers(1, 3)),
            memory=float(random.choice([0, 0, 60, 90])),
        )
        for v, name in enumerate(names)
    ]
    kinds = ["hash", "rebalance", ""]
    streams = [
        Stream(names[int(random.integers(v))], names[v], partitioning=str(random.choice(kinds)))
        for v in range(1, n)
    ]
    offers = [
        _offer(random, "gateway", 0.0, owned=1),
        _offer(random, "rack", float(random.choice([0.0, 0.05])), owned=2),
        _offer(random, "small", float(random.choice([0.1, 0.3])), at_most=2),
    ]
    links = []
    for ends in itertools.product(("gateway", "rack", "small"), repeat=2) if linked else ():
        if random.random() < 0.5:
            speed = random.choice([4e3, 2e4, 1e5, 1e6])
            links.append({"from": ends[0], "to": ends[1], "bandwidth": f"{speed} bps"})
    overhead = float(random.choice([0.0, 1e-4]))
    catalogue = Catalogue.of(offers, overhead, links=links)
    return RuledQuestion(
        StreamGraph.of("asked", operators, streams), catalogue, _rules(random, names)
    )


def _offer(random, name, price, **numbers):
    return Offer(
        name,
        price,
        mips=float(random.choice([0.5, 1.0, 1.5])),
        cores=int(random.choice([1, 2])),
        memory=float(random.choice([np.inf, np.inf, 50.0, 100.0])),
        egress=float(random.choice([np.inf, np.inf, 4e5])),
        **numbers,
    )


def _rules(random, names):
    def some(least):
        return random.choice(names, int(random.integers(least, len(names) + 1)), replace=False)

    machines = ["gateway", "rack-0", "rack-1", "small-0", "small-1"]
    labels = [*machines, "rack", "small"]
    rules: dict[str, Any] = {}
    for kind in random.choice(["pin", "allowed", "colocate", "exlocate"], 2).tolist():
        if kind == "pin":
            rules["pin"] = {str(v): str(random.choice(machines)) for v in some(1)[:2]}
        elif kind == "allowed":
            rules["allowed"] = {
                str(v): random.choice(labels, 3, replace=False).tolist() for v in some(1)[:2]
            }
        else:
            rules[kind] = [some(2).tolist()]
    return Constraints(**rules)


def cheapest_ruled(question, share=0.0):
    """Least price of all sets of machines on which some subtasks carry the rate by the rules.

    Everything is tried: sets of machines, parallelisms, and placements of the subtasks, as the
    simulator and the rules of subtasks judge them. With a share, it must survive any one loss.
    Infinite if nothing carries the rate.
    """
    graph, catalogue, _ = question
    machines = [
        (offer, f"{offer.name}-{i}" if offer.owned != 1 else offer.name)
        for offer in catalogue.offers
        for i in range(offer.at_most)
    ]
    subsets = [
        chosen
        for size in range(1, len(machines) + 1)
        for chosen in itertools.combinations(machines, size)
    ]
    limits = graph.operators.max_parallelism.tolist()
    expansions = [
        expand(with_parallelism(graph, np.array(p, np.int32)))
        for p in itertools.product(*(range(1, limit + 1) for limit in limits))
    ]
    for chosen in sorted(subsets, key=_price):
        if any(_carried(fleet(question, chosen, expansion), share) for expansion in expansions):
            return _price(chosen)
    return np.inf


def survives(problem, place, share):
    """Whether the subtasks of any one device carry a share at some other places, without pins."""
    places = _placements(problem.n_devices, problem.n_operators) if share else ()
    for d in np.unique(place) if share else ():
        stays = place != d
        tried = places[(places != d).all(axis=1) & (places[:, stays] == place[stays]).all(axis=1)]
        tried = tried[problem.unpinned.legal(tried)]
        if not len(tried) or throughput(problem.instance, tried).max() < share * (1 - 1e-9):
            return False
    return True


def _price(machines):
    return round(sum(offer.price for offer, _ in machines), 9)


def fleet(question, machines, expansion):
    """Subtasks on machines, each with its offer; None if they do not have what the rules name."""
    _, catalogue, constraints = question
    names = [name for _, name in machines]
    families = [offer.name for offer, _ in machines]

    def on(label):
        return {n for n, f in zip(names, families, strict=True) if label in (n, f)}

    if not set(constraints.pin.values()) <= set(names):
        return None
    allowed = {v: set().union(*map(on, labels)) for v, labels in constraints.allowed.items()}
    if not all(allowed.values()):
        return None
    rules = Constraints(constraints.pin, constraints.colocate, constraints.exlocate, allowed)
    speed = np.full((len(names),) * 2, UNLIMITED_BPS)
    for link in catalogue.links:
        for i, j in itertools.product(range(len(names)), repeat=2):
            if (families[i], families[j]) == (link.source, link.target):
                speed[i, j] = link.bandwidth
    devices = [offer.device(name) for offer, name in machines]
    cluster = Cluster.of(devices, bandwidth=speed, overhead=catalogue.overhead)
    try:
        return Problem(expansion.graph, cluster, expansion.constraints(rules))
    except ProblemError:
        return None


def _carried(problem, share):
    if problem is None:
        return False
    places = _placements(problem.n_devices, problem.n_operators)
    places = places[problem.legal(places)]
    full = places[throughput(problem.instance, places) >= 1 - 1e-9] if len(places) else places
    return any(survives(problem, place, share) for place in full)


def ruled_cluster(seed):
    """Graph, four devices with prices and links, and rules that name these devices."""
    question = ruled_question(seed, linked=False)
    random = np.random.default_rng((seed, 1))
    machines = ["gateway", "rack-0", "rack-1", "small-0"]
    devices = [
        replace(_offer(random, "any", 1.0).device(name), price=float(random.choice([0, 0.1, 0.3])))
        for name in machines
    ]
    speed = random.choice([2e4, 1e5, 1e9], (4, 4))
    rules, graph = question.constraints, question.graph
    known = {name: place for name, place in rules.pin.items() if place in machines}
    allowed = {name: {*places} & {*machines} for name, places in rules.allowed.items()}
    rules = Constraints(
        known, rules.colocate, rules.exlocate, {v: place for v, place in allowed.items() if place}
    )
    return graph, Cluster.of(devices, bandwidth=speed), rules


def cheapest_of_cluster(question):
    """Least price, or number without prices, of the devices of all placements that carry it."""
    graph, cluster, constraints = question
    price = cluster.devices.price if cluster.devices.price.any() else np.ones(len(cluster))
    least = np.inf
    for p in itertools.product(*(range(1, n + 1) for n in graph.operators.max_parallelism)):
        expansion = expand(with_parallelism(graph, np.array(p, np.int32)))
        places = _placements(len(cluster), expansion.graph.n_operators)
        try:
            problem = Problem(expansion.graph, cluster, expansion.constraints(constraints))
            places = places[problem.legal(places)]
        except ProblemError:
            continue
        if len(places):
            places = places[throughput(problem.instance, places) >= 1 - 1e-9]
        used = (places[:, :, None] == np.arange(len(cluster))).any(axis=1)
        least = min(least, float((used @ price).min(initial=np.inf)))
    return least


def _placements(machines, subtasks):
    return np.indices((machines,) * subtasks).reshape(subtasks, -1).T.astype(np.int32).copy()
