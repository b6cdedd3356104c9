"""Rules of a plan: constraints of operators, as sets of offers and as groups of operators.

A rule about machines becomes a tag that these machines have and the operator requires. A machine
that a rule names becomes an offer of one machine. Groups are the same as in
`Expansion.constraints`: subtasks of colocated operators with parallelisms p and q come in gcd(p, q)
parts that share a machine, and no two subtasks of exlocated operators share one.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamplace.errors import ProblemError
from streamplace.model.arrays import Ints
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import TAG, Constraints
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import counted, listed, quoted
from streamplace.model.placement_rules import rows_apart, rows_of, units_of
from streamplace.planning.offers import ON, Catalogue, is_place, offer_of


@dataclass(frozen=True, slots=True, eq=False)
class PlanRules:
    """Where operators may run, and which share machines."""

    unit: Ints  # [N] colocated operators have equal numbers
    apart: tuple[tuple[int, ...], ...]  # operators of which no two share a machine
    requires: tuple[frozenset[str], ...]  # [N] required tags, including tags of machines
    unpinned: tuple[frozenset[str], ...]  # [N] the same tags without tags of pins
    tags: dict[str, frozenset[str]]  # tags of machines, by the name of an offer or a device


def without_rules(graph: StreamGraph) -> PlanRules:
    """Tags that operators require, and no other rules."""
    tags = graph.operators.requires
    return PlanRules(np.arange(graph.n_operators, dtype=np.int32), (), tags, tags, {})


def words_of(tags: Collection[str]) -> str:
    """Requirements of tags, in words.

    >>> words_of({"gpu", f"{ON}0 box-1"}), words_of({"gpu"})
    ('require gpu and must run on box-1', 'require gpu')
    """
    real = sorted(tag for tag in tags if not is_place(tag))
    places = sorted(tag.partition(" ")[2] for tag in tags if is_place(tag))
    parts = [f"require {', '.join(real)}"] if real else []
    parts += [f"must run on {' and on '.join(places)}"] if places else []
    return " and ".join(parts)


def rules_on_offers(
    graph: StreamGraph, constraints: Constraints, catalogue: Catalogue
) -> tuple[PlanRules, Catalogue]:
    """Rules of the operators, and the catalogue with an offer for each machine that they name."""
    offers = {offer.name: offer for offer in catalogue.offers}

    def is_one_of_several(label: str) -> bool:
        """Whether a label is the name of an offer with the number of one of its machines."""
        name, _, number = label.rpartition("-")
        offer = offers.get(name)
        if offer is None or offer.owned == 1 or not number.isdecimal():
            return False
        return str(int(number)) == number and int(number) < offer.at_most

    labels = [
        *constraints.pin.values(),
        *(x for names in constraints.allowed.values() for x in names),
    ]
    named = {  # machines of offers with several
        x for x in labels if isinstance(x, str) and x not in offers and is_one_of_several(x)
    }
    singles = tuple(
        replace(offer, name=name, at_most=1, at_least=min(1, offer.at_least))
        for name in sorted(named)
        for offer in [offers[offer_of(name)]]
    )
    rest = tuple(
        replace(offer, at_most=offer.at_most - fewer, at_least=max(0, offer.at_least - fewer))
        for offer in catalogue.offers
        for fewer in [sum(offer_of(name) == offer.name for name in named)]
        if fewer < offer.at_most
    )
    pinned = {*constraints.pin.values()}
    for offer in catalogue.offers:
        loose = sorted(name for name in named - pinned if offer_of(name) == offer.name)
        if offer.at_least and loose:
            raise ProblemError(
                f"allowed names {listed(loose)} and offer {quoted(offer.name)} has at_least; a "
                "plan cannot keep both, so drop at_least or give that machine an offer of its own"
            )
    split = replace(catalogue, offers=(*rest, *singles), singled=frozenset(named))

    def machines(label: str, rule: str) -> frozenset[str]:
        several = label in offers and offers[label].at_most > 1
        if rule.startswith("pin") and several:
            raise ProblemError(
                f"{rule} names {quoted(label)}, and a plan may have several machines of it; write "
                f"{quoted(f'{label}-0')}, or use allowed"
            )
        if label in named:
            return frozenset({label})
        if label in offers:
            return frozenset(o.name for o in split.offers if split.family(o.name) == label)
        with_tag = frozenset(o.name for o in split.offers if label.removeprefix(TAG) in o.tags)
        if label.startswith(TAG) and with_tag and not rule.startswith("pin"):
            return with_tag
        raise ProblemError(
            f"{rule} names the unknown machine {quoted(label)}; the offers are "
            f"{listed(list(offers))}"
        )

    tags = {offer.name: offer.tags for offer in split.offers}
    numbers = {offer.name: offer.at_most for offer in split.offers}
    rules = _compiled(graph, constraints, machines, tags, numbers)
    tagged = tuple(replace(o, tags=o.tags | rules.tags[o.name]) for o in split.offers)
    return rules, replace(split, offers=tagged)


def rules_on_cluster(graph: StreamGraph, constraints: Constraints, cluster: Cluster) -> PlanRules:
    """Rules of the operators on the devices of a cluster."""
    devices = cluster.devices

    def machines(label: str, rule: str) -> frozenset[str]:
        if label not in devices:
            raise ProblemError(
                f"{rule} names the unknown device {quoted(label)}; the cluster has "
                f"{listed(list(devices.name))}"
            )
        return frozenset({label})

    tags = dict(zip(devices.name, devices.tags, strict=True))
    numbers = dict.fromkeys(devices.name, 1)
    return _compiled(graph, constraints.on(devices), machines, tags, numbers)


def _compiled(
    graph: StreamGraph,
    constraints: Constraints,
    machines: Callable[[str, str], frozenset[str]],
    tags: dict[str, frozenset[str]],
    numbers: dict[str, int],
) -> PlanRules:
    """Rules of operators; ``machines`` resolves labels, ``tags`` and ``numbers`` are by machine."""
    unit = units_of(graph, constraints.colocate)
    places: dict[int, frozenset[str]] = {}
    unpinned: dict[int, frozenset[str]] = {}
    requires: dict[int, frozenset[str]] = {}
    for v, needed in zip(unit.tolist(), graph.operators.requires, strict=True):
        requires[v] = requires.get(v, frozenset()) | needed
    for name, labels, what in constraints.limits():
        rule = f"{what} of {quoted(name)}"
        (v,) = rows_of(graph, [name], what)
        allowed = frozenset[str]().union(*(machines(str(label), rule) for label in sorted(labels)))
        for where in (places, *((unpinned,) if what == "allowed" else ())):
            where[int(unit[v])] = where.get(int(unit[v]), frozenset(tags)) & allowed
    for u, place in places.items():
        if not any(requires[u] <= tags[name] for name in place):
            mates = [graph.operators.name[v] for v in np.flatnonzero(unit == u).tolist()]
            raise ProblemError(
                f"no machine is left for {listed(mates)}: pins, allowed machines and required tags "
                "exclude each other; loosen one"
            )
    groups = tuple(tuple(rows_apart(graph, group, unit)) for group in constraints.exlocate)
    everywhere = frozenset(tags)
    where = [places.get(u, everywhere) for u in unit.tolist()]
    _check_room(graph, groups, where, numbers)
    every = sorted({*places.values(), *unpinned.values()}, key=sorted)
    words = {place: f"{ON}{i} {listed(sorted(place))}" for i, place in enumerate(every)}

    def tagged(places: dict[int, frozenset[str]]) -> tuple[frozenset[str], ...]:
        return tuple(
            requires[u] | {w for place, w in words.items() if u in places and places[u] <= place}
            for u in unit.tolist()
        )

    return PlanRules(
        unit,
        groups,
        tagged(places),
        tagged(unpinned),
        {name: frozenset(w for place, w in words.items() if name in place) for name in tags},
    )


def each_left_out(constraints: Constraints) -> Iterator[tuple[str, Constraints]]:
    """Each rule in words, and the constraints without it."""
    c = constraints
    for name, label in c.pin.items():
        pins = {other: place for other, place in c.pin.items() if other != name}
        yield f"pin of {quoted(name)} to {quoted(label)}", replace(c, pin=pins)
    for name in c.allowed:
        rest = {other: places for other, places in c.allowed.items() if other != name}
        yield f"allowed of {quoted(name)}", replace(c, allowed=rest)
    for rule in ("colocate", "exlocate"):
        groups: tuple[frozenset[str], ...] = getattr(c, rule)
        for i, group in enumerate(groups):
            fewer: Any = {rule: groups[:i] + groups[i + 1 :]}
            yield f"{rule} of {listed(sorted(group))}", replace(c, **fewer)


def _check_room(
    graph: StreamGraph,
    groups: tuple[tuple[int, ...], ...],
    where: list[frozenset[str]],
    numbers: dict[str, int],
) -> None:
    """Refuse groups of exlocated operators with more members than machines."""
    names = graph.operators.name
    for group in groups:
        for place in {where[v] for v in group} | {frozenset(numbers)}:
            members = [names[v] for v in group if where[v] <= place]
            machines = sum(numbers[name] for name in place)
            if len(members) > machines:
                raise ProblemError(
                    f"exlocate keeps {listed(members)} apart, and only "
                    f"{counted(machines, 'machine')} may run them ({listed(sorted(place))}); add "
                    "machines or drop names from exlocate"
                )
