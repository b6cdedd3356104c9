"""Placements in the document: values that Python computed, and bottlenecks."""

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from streamplace.io.fields import plain
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.makespan.options import PassOptions
from streamplace.objectives.makespan.timeline import KINDS, pass_schedule
from streamplace.objectives.registry import Objective
from streamplace.report.document import (
    ChainPiece,
    LimitPart,
    LoadsPart,
    MarksPart,
    PassPart,
    PlacementPart,
    ResourceKind,
    numbers,
    rounded,
    rows,
)

if TYPE_CHECKING:
    from streamsim.steady import Loads


class Shown(NamedTuple):
    """A placement in a report."""

    name: str
    placement: Placement
    bound: float | None = None  # bound on the objective's value of any placement; None if unknown


def placement_part(problem: Problem, shown: Shown, judge: Objective) -> PlacementPart:
    """Describe a placement with its values."""
    from streamsim import bottleneck, resource_loads, source_rates, throughput

    placement, instance = shown.placement, problem.instance
    place = placement.index
    loads = resource_loads(instance, place)
    top = bottleneck(loads)
    rates = source_rates(instance, place)
    value = judge.value(problem, placement)
    part = PlacementPart(
        name=shown.name,
        place=place.tolist(),
        throughput=plain(float(throughput(instance, place[None, :])[0])),
        sources=[(int(v), plain(float(rates[v]))) for v in problem.graph.sources],
        bottleneck=LimitPart(
            kind=cast(ResourceKind, top.kind), device=top.device, peer=top.peer, load=plain(top.use)
        ),
        loads=LoadsPart(
            devices=numbers(loads.devices),
            cores=numbers(loads.cores),
            egress=numbers(loads.egress),
            ingress=numbers(loads.ingress),
            links=_links(loads),
        ),
        value=plain(value),
        words=judge.format(value),
        marks=_marks(problem, placement, judge),
    )
    if placement.priority is not None:
        part["priority"] = numbers(placement.priority)
    if shown.bound is not None:
        part["bound"] = shown.bound
    part["one_pass"] = _pass(problem, placement, judge)
    return part


def _links(loads: "Loads") -> list[tuple[int, int, float]]:
    """Loads of the links in use."""
    a, b = np.nonzero(loads.links)
    return list(zip(a.tolist(), b.tolist(), rounded(loads.links[a, b]), strict=True))


def _marks(problem: Problem, placement: Placement, judge: Objective) -> MarksPart:
    picture = judge.pictured(problem, placement)
    return MarksPart(
        title=picture.title,
        subtitle=picture.subtitle,
        operators=rows(picture.operators),
        streams=rows(picture.streams),
    )


def pass_options(judge: Objective) -> PassOptions:
    """Options of the pass that an objective simulates, by default the usual ones."""
    name, *options = judge.plain.name.split(":")
    if name != "makespan":
        return PassOptions()
    return PassOptions.of(dict(option.split("=", 1) for option in options))


def _pass(problem: Problem, placement: Placement, judge: Objective) -> PassPart:
    options = pass_options(judge)
    rules, _ = options.rules_of(placement)
    schedule = pass_schedule(problem, placement, options)
    chain = schedule.chain
    times = numbers(chain.times)
    part = PassPart(
        queue=rules.queue,
        network=rules.network,
        pause=rules.pause,
        spacing=rules.spacing,
        makespan=plain(schedule.makespan),
        start=rounded(schedule.start),
        finish=rounded(schedule.finish),
        chain=[
            ChainPiece(what=KINDS[kind.name], operator=v, stream=e, begin=begin, end=end)
            for kind, v, e, begin, end in zip(
                chain.parts, chain.operator.tolist(), chain.stream.tolist(), times[:-1], times[1:],
                strict=True,
            )
        ],
    )  # fmt: skip
    if rules.network != "free":
        part["departure"] = rounded(schedule.departure)
        part["arrival"] = rounded(schedule.arrival)
    return part
