"""The cheapest equal pods for a rate, and the patch of a FlinkDeployment that asks for them.

All TaskManagers of an application on Kubernetes are alike, nothing can be pinned to them, and
operators whose parallelism the program does not set have that of the job. So a plan is an offer, n
pods of it, s slots of each, a parallelism p of at most n · s, and a balance mode. It carries a rate
if all layouts carry it that Flink may choose in that mode. The bound is that of plans with any
parallelism and any placement on machines of one offer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any, NamedTuple, cast

import numpy as np

from streamplace.engines.flink.decide.slot_assignment import (
    MODE_SETTING,
    MODES,
    Mode,
    known_modes,
    layouts,
    parallelism,
)
from streamplace.engines.flink.deployment import JobDeployment
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.cluster import POD_CPU_FACTOR, MeasuredCluster, capacity
from streamplace.engines.flink.measure.key_shares import Shares
from streamplace.engines.flink.operator.resource import FlinkResource
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.settings import USUAL, shown_settings
from streamplace.engines.text import quoted_yaml
from streamplace.errors import ProblemError
from streamplace.io.ledger import NOISE
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import shown
from streamplace.model.units import UNLIMITED_BPS, digits
from streamplace.model.units import mips as parsed_mips
from streamplace.planning.offers import Catalogue, Offer, exact_price
from streamplace.planning.planner import planned
from streamplace.planning.problem import PlannerSettings, PlanProblem
from streamplace.planning.result import PlanResult

SLOTS_SETTING = "taskmanager.numberOfTaskSlots"
PATCH = "patch.yaml"
"""File of the patch in the folder of a plan."""
MORE_PODS = 2
"""Pods that are tried, as a multiple of the fewest that the bound allows, and of as many more."""
MIB = 2**20


class JobOnPods(NamedTuple):
    """What the deployment of an application sets, and the plan may change."""

    parallelism: int  # of operators whose program sets none
    mode: str  # balance mode
    modes: tuple[Mode, ...]  # those that its Flink supports; none if its scheduler has none
    memory: float  # bytes of a pod for each of its slots
    keeps_parallelism: bool = False  # whether Flink's autoscaler chooses the parallelism

    @classmethod
    def of(cls, rest: Rest, deployment: JobDeployment, cluster: MeasuredCluster) -> "JobOnPods":
        """Read it from the settings of the JobManager; ``cluster``: its TaskManagers."""
        settings = shown_settings(rest) or {}
        replaces = deployment.scheduler == USUAL  # the adaptive one has no balance modes
        return cls(
            int(settings.get("parallelism.default", "1")),
            settings.get(MODE_SETTING, "NONE").upper(),
            known_modes(rest) if replaces else (),
            (cluster.devices[0].memory or 0) / int(settings.get(SLOTS_SETTING, "1")),
            deployment.has_autoscaler,
        )


@dataclass(frozen=True, slots=True)
class PodPatch:
    """Merge patch of a FlinkDeployment."""

    head: tuple[str, ...]  # lines that say what it is
    changes: tuple[tuple[str, Any, str], ...]  # path, value and comment of each field

    @property
    def document(self) -> dict[str, Any]:
        """The patch itself.

        >>> changes = ("job/parallelism", 2, ""), ("taskManager/resource/cpu", 1, "was 2")
        >>> PodPatch((), changes).document
        {'spec': {'job': {'parallelism': 2}, 'taskManager': {'resource': {'cpu': 1}}}}
        """
        spec: dict[str, Any] = {}
        for path, value, _ in self.changes:
            place = spec
            *sections, key = path.split("/")
            for section in sections:
                place = place.setdefault(section, {})
            place[key] = value
        return {"spec": spec}

    def __str__(self) -> str:
        """Text of a YAML file, with comments."""
        comments = {path: f"  # {shown(was)}" for path, _, was in self.changes if was}

        def lines(document: Mapping[str, Any], above: str, depth: str) -> Iterator[str]:
            for key, value in document.items():
                if isinstance(value, Mapping):
                    yield f"{depth}{key}:"
                    yield from lines(value, f"{above}{key}/", f"{depth}  ")
                else:
                    text = quoted_yaml(value) if isinstance(value, str) else f"{value:g}"
                    yield f"{depth}{key}: {text}{comments.get(above + key, '')}"

        body = lines(self.document["spec"], "", "  ")
        return "".join(
            f"{line}\n" for line in (*(f"# {line}" for line in self.head), "spec:", *body)
        )


@dataclass(frozen=True, slots=True)
class EqualPods:
    """Equal pods, and how a job runs on them."""

    offer: Offer
    number: int
    slots: int  # of each
    parallelism: int  # of operators whose program sets none
    mode: str  # balance mode

    def changes(
        self, resource: FlinkResource, mips: float, memory: float | None
    ) -> list[tuple[str, Any, str]]:
        """Fields of the specification that change: path, value, and what it was.

        ``mips``, ``memory``: speed of a core, and bytes of a TaskManager of the resource.
        """
        manager = resource.spec.get("taskManager") or {}
        present, settings = manager.get("resource") or {}, resource.configuration
        needed = float(self.offer.memory)
        limit = self.offer.cores * parsed_mips(self.offer.mips) / mips
        cpu = round(limit / float(settings.get(POD_CPU_FACTOR, "1")), 3)  # what is requested
        rows: list[tuple[str, Any, Any]] = [("taskManager/resource/cpu", cpu, present.get("cpu"))]
        if needed not in (inf, memory):
            size = f"{int(needed) // MIB}m"
            rows.append(("taskManager/resource/memory", size, present.get("memory")))
        if resource.counts_pods:
            rows.append(("taskManager/replicas", self.number, manager.get("replicas")))
        for key, value, usual in (
            (SLOTS_SETTING, f"{self.slots}", "1"),
            (MODE_SETTING, self.mode, "NONE"),
        ):
            rows.append((f"flinkConfiguration/{key}", value, settings.get(key, usual)))
        if not resource.has_autoscaler:
            rows.append(("job/parallelism", self.parallelism, resource.job.get("parallelism")))
        return [
            (path, value, "" if before is None else f"was {before}")
            for path, value, before in rows
            if str(value).removesuffix(".0") != str(before).removesuffix(".0")
        ]

    def patch(
        self, resource: FlinkResource, mips: float, memory: float | None, plan: PlanResult
    ) -> PodPatch:
        """Patch by which a resource gets these pods, as `changes`."""
        interval = plan.interval
        ends = "" if interval is None else f" ({interval.ends})"
        head = (
            f"{resource.title} for {digits(plan.rate, 6)} "
            f"tuples/s: {self.number} × {self.offer.name}, {plan.cost:g} per hour,",
            f"predicted to carry {digits(plan.carries, 6)} tuples/s{ends}",
        )
        return PodPatch(head, tuple(self.changes(resource, mips, memory)))


def patch_commands(resource: FlinkResource, path: str, patch: PodPatch) -> Iterator[str]:
    """Lines that apply a patch in a file; none if it changes nothing."""
    if not patch.changes:
        return
    if resource.has_autoscaler:
        yield "# Flink's autoscaler chooses the parallelism, so the patch leaves it"
    if resource.owner:
        yield (
            f"# {resource.owner} keeps the specification, and may undo this: put the fields of "
            f"{path} into its files instead"
        )
    yield resource.patch_command(path)


def planned_pods(
    graph: StreamGraph,
    catalogue: Catalogue,
    settings: PlannerSettings,
    job: JobOnPods,
    shares: Shares,
) -> tuple[EqualPods, PlanResult]:
    """Plan the cheapest equal pods for the rate of a graph, and the bound of their cost.

    ``shares``: operator → shares of its subtasks at the present parallelism, if they are uneven.
    """
    best: EqualPods | None = None
    bounds, refusal = [], None
    seconds = settings.budget.seconds
    part = None if seconds is None else seconds / (len(catalogue.offers) + 1)
    settings = replace(settings, budget=replace(settings.budget, seconds=part))
    operators = graph.operators
    least = replace(operators, constant=operators.constant / operators.parallelism)
    for offer in sorted(catalogue.offers, key=lambda offer: offer.price):
        only = replace(catalogue, offers=(offer,))
        try:
            bounds.append(planned(graph.with_operators(least), only, settings).bound)
        except ProblemError as error:
            refusal = error
            continue
        fewest = max(offer.at_least, ceil(bounds[-1] / exact_price(offer.price)))
        for number in range(fewest, min(offer.at_most, MORE_PODS * (fewest + MORE_PODS)) + 1):
            if best is not None and number * offer.price >= best.number * best.offer.price:
                break
            if (found := _on_pods(graph, only, settings, job, shares, number)) is not None:
                best = found
                break
    if best is None:
        raise refusal or ProblemError(
            f"no number of equal pods was found that carries {digits(graph.source_rate, 6)} "
            "tuples/s in the layouts that Flink may choose; add larger offers, or lower the rate"
        )
    only = replace(catalogue, offers=(best.offer,))
    carried = carried_on(graph, only, job, shares, best)
    exact = replace(best.offer, at_least=best.number, at_most=best.number)
    fixed = _as_deployed(graph, job, best.parallelism)
    plan = planned(fixed, replace(only, offers=(exact,)), replace(settings, keep_parallelism=True))
    slots = replace(plan.slots, machines={best.offer.name: best.slots})
    return best, replace(plan, bound=min(bounds), carries=carried, slots=slots)


def _on_pods(
    graph: StreamGraph,
    only: Catalogue,
    settings: PlannerSettings,
    job: JobOnPods,
    shares: Shares,
    number: int,
) -> EqualPods | None:
    """A number of pods of the only offer on which the job carries the rate; None if none does.

    What changes least comes first: the present parallelism, few slots, the present mode.
    """
    (offer,) = only.offers
    needed = graph.source_rate / (1 - PlanProblem.of(graph, only, settings).headroom)
    modes = sorted(job.modes or MODES[:1], key=lambda mode: (mode != job.mode, mode != "SLOTS"))
    largest = max(_fixed(graph, job).values(), default=1)
    each = range(1, max(offer.cores, ceil(largest / number)) + 1)
    options = [(ceil(max(job.parallelism, largest) / number), job.parallelism)]
    if not _keeps_parallelism(graph, job):
        options += [(slots, number * slots) for slots in each]
    most = [n for n in graph.operators.max_parallelism.tolist() if n]
    for slots, parallel in options:
        in_use = max(parallel, largest)
        if (
            ceil(in_use / slots) != number
            or parallel > min(most, default=parallel)
            or slots > offer.slots
            or slots * job.memory > (1 + NOISE) * float(offer.memory)
        ):
            continue
        for mode in modes:
            pods = EqualPods(offer, number, slots, parallel, mode)
            if carried_on(graph, only, job, shares, pods) >= needed:
                return pods
    return None


def carried_on(
    graph: StreamGraph, only: Catalogue, job: JobOnPods, shares: Shares, pods: EqualPods
) -> float:
    """Least tuples/s that a job carries on pods, over the layouts that Flink may choose."""
    names = [f"{pods.offer.name}-{i}" for i in range(pods.number)]
    cluster = Cluster.of(
        [pods.offer.device(name) for name in names],
        bandwidth=UNLIMITED_BPS,
        overhead=only.overhead,
        overhead_per_byte=only.overhead_per_byte,
    )
    deployed = _as_deployed(graph, job, pods.parallelism)
    known = shares if pods.parallelism == job.parallelism else {}
    return graph.source_rate * min(
        capacity(deployed, cluster, layout, known) for layout in layouts_on(graph, job, pods)
    )


def layouts_on(graph: StreamGraph, job: JobOnPods, pods: EqualPods) -> list[Layout]:
    """Layouts of a job that Flink may choose on pods, which are numbered."""
    names = [f"{pods.offer.name}-{i}" for i in range(pods.number)]
    deployed = _as_deployed(graph, job, pods.parallelism)
    return layouts(deployed, dict.fromkeys(names, pods.slots), cast(Mode, pods.mode))


def _keeps_parallelism(graph: StreamGraph, job: JobOnPods) -> bool:
    """Whether the parallelism stays: receivers of a broadcast would get other copies of tuples."""
    return job.keeps_parallelism or bool(graph.kept_parallelism)


def _fixed(graph: StreamGraph, job: JobOnPods) -> dict[str, int]:
    """Operators with another parallelism than that of the job, which their program sets."""
    return {name: n for name, n in parallelism(graph).items() if n != job.parallelism}


def _as_deployed(graph: StreamGraph, job: JobOnPods, parallel: int) -> StreamGraph:
    """Graph whose operators have a parallelism, but for those whose program sets another.

    Each subtask has a constant load.
    """
    operators, fixed = graph.operators, _fixed(graph, job)
    numbers = np.array([fixed.get(name, parallel) for name in operators.name], np.int32)
    constant = operators.constant * numbers / operators.parallelism
    return graph.with_operators(replace(operators, parallelism=numbers, constant=constant))
