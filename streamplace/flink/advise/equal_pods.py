"""The cheapest equal pods for a rate, and the patch of a FlinkDeployment that asks for them.

All TaskManagers of an application on Kubernetes are equal, nothing can be pinned to them, and
operators have the parallelism of the job unless the program sets another. So a plan is an offer, n
pods of it, s slots of each, a parallelism p of at most n · s, and a balance mode. It carries a rate
if every layout that Flink may choose in that mode carries it. The bound holds for all plans of
machines of one offer, with any parallelism and any placement.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from math import ceil, inf, nan
from typing import Any, NamedTuple

import numpy as np

from streamplace.engines.text import quoted_yaml
from streamplace.errors import ProblemError
from streamplace.flink.decide.slot_assignment import (
    MODE_SETTING,
    MODES,
    known_modes,
    layouts,
    parallelism,
    present_mode,
    slots_by_group,
)
from streamplace.flink.deployment import DEPLOYMENT, JobDeployment
from streamplace.flink.layout import Layout
from streamplace.flink.measure.cluster import POD_CPU_FACTOR, capacity
from streamplace.flink.measure.key_shares import Shares
from streamplace.flink.operator.merge_patch import merged
from streamplace.flink.operator.resource import API_VERSION, FlinkResource, nested
from streamplace.flink.rest.client import Rest
from streamplace.flink.rest.settings import USUAL, shown_settings
from streamplace.flink.versions import version_of
from streamplace.io.ledger import NOISE
from streamplace.model import Cluster, Operators, StreamGraph
from streamplace.model.arrays import Floats, Ints
from streamplace.model.message_text import shown
from streamplace.model.units import UNLIMITED_BPS, digits
from streamplace.model.units import mips as parsed_mips
from streamplace.planning.offers import Catalogue, Offer, exact_price
from streamplace.planning.planner import planned
from streamplace.planning.problem import PlannerSettings, PlanProblem
from streamplace.planning.result import PlanResult

SLOTS_SETTING = "taskmanager.numberOfTaskSlots"
PREDICTED = "predicted by streamplace to carry"
PATCH = "patch.yaml"
"""File of the patch in the folder of a plan."""
MORE_PODS = 2
"""If the bound allows n pods or more, n to 2 (n + 2) pods are tried."""
MIB = 2**20


def constant_of(operators: Operators, number: Ints | int) -> Floats:
    """Constant loads of operators with other numbers of subtasks, for equal loads per subtask."""
    return operators.constant * number / operators.parallelism


def cores(amount: object) -> float:
    """Cores in an amount of CPU as Kubernetes writes it; nan for another text.

    >>> cores("500m"), cores(2)
    (0.5, 2.0)
    """
    text = str(amount)
    try:
        return float(text.removesuffix("m")) / (1000 if text.endswith("m") else 1)
    except ValueError:
        return nan


class JobOnPods(NamedTuple):
    """Settings of an application's deployment that a plan may change."""

    parallelism: int  # of operators for which the program sets none
    mode: str  # balance mode
    modes: tuple[str, ...]  # modes that its Flink and its scheduler support
    memory: float  # bytes of a pod for each of its slots
    keeps_parallelism: bool = False  # whether Flink's autoscaler chooses the parallelism
    fills_slots: bool = False  # whether the number of pods decides on the parallelism

    @classmethod
    def of(cls, rest: Rest, deployment: JobDeployment, memory: float) -> "JobOnPods":
        """Read the settings of the JobManager; ``memory``: bytes of a pod."""
        settings = shown_settings(rest) or {}
        has_modes = deployment.scheduler == USUAL  # the adaptive scheduler has none
        return cls(
            int(settings.get("parallelism.default", "1")),
            present_mode(settings, version_of(rest)),
            known_modes(rest) if has_modes else (),
            memory / int(settings.get(SLOTS_SETTING, "1")),
            deployment.has_autoscaler,
            rest.resource is not None and rest.resource.counts_pods,
        )


@dataclass(frozen=True, slots=True)
class PodPatch:
    """Merge patch of a FlinkDeployment, which is also a strategic patch for Kustomize."""

    head: tuple[str, ...]  # comment lines above it
    changes: tuple[tuple[str, Any, str], ...]  # path, value and previous value of each field
    why: str = ""  # purpose of all fields together
    namespace: str = ""
    name: str = ""  # of the resource

    @property
    def document(self) -> dict[str, Any]:
        """The patch itself.

        >>> changes = ("job/parallelism", 2, ""), ("taskManager/resource/cpu", 1, "was 2")
        >>> PodPatch((), changes).document["spec"]
        {'job': {'parallelism': 2}, 'taskManager': {'resource': {'cpu': 1}}}
        """
        spec: dict[str, Any] = {}
        rows = (nested(path.split("/"), value) for path, value, _ in self.changes)
        return {
            "apiVersion": API_VERSION,
            "kind": DEPLOYMENT,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": reduce(merged, rows, spec),
        }

    def comment(self, path: str) -> str:
        """Why a field is changed, and what it was."""
        was = next(was for other, _, was in self.changes if other == path)
        return shown(f"streamplace: {self.why}{was and f'; {was}'}")

    @staticmethod
    def value_text(value: object) -> str:
        """Value of a field in a YAML file."""
        return quoted_yaml(value) if isinstance(value, str) else f"{value:g}"

    def __str__(self) -> str:
        """Text of a YAML file, with comments."""
        comments = {path: f"  # {self.comment(path)}" for path, *_ in self.changes}

        def lines(document: Mapping[str, Any], above: str, depth: str) -> Iterator[str]:
            for key, value in document.items():
                if isinstance(value, Mapping):
                    yield f"{depth}{key}:"
                    yield from lines(value, f"{above}{key}/", f"{depth}  ")
                else:
                    yield f"{depth}{key}: {self.value_text(value)}{comments[above + key]}"

        top = (
            *(f"# {line}" for line in self.head),
            f"apiVersion: {API_VERSION}",
            f"kind: {DEPLOYMENT}",
            f"metadata: {{name: {self.name}, namespace: {self.namespace}}}",
            "spec:",
        )
        body = lines(self.document["spec"], "", "  ")
        return "".join(f"{line}\n" for line in (*top, *body))


@dataclass(frozen=True, slots=True)
class EqualPods:
    """Equal pods, and how a job runs on them."""

    offer: Offer
    number: int
    slots: int  # of each pod
    parallelism: int  # of operators for which the program sets none
    mode: str  # balance mode

    @property
    def names(self) -> list[str]:
        """Names of the pods, which are numbered."""
        return [f"{self.offer.name}-{i}" for i in range(self.number)]

    def changes(
        self, resource: FlinkResource, mips: float, memory: float | None
    ) -> list[tuple[str, Any, str]]:
        """Fields of the specification that change: path, value, and previous value.

        ``mips``, ``memory``: speed of a core, and bytes of a TaskManager of the resource.
        """
        settings = resource.configuration
        limit = self.offer.cores * parsed_mips(self.offer.mips) / mips
        rows: list[tuple[str, Any, Any]] = []
        for path, before in resource.pod_amounts("cpu").items():
            factor = 1.0 if "/limits/" in path else float(settings.get(POD_CPU_FACTOR, "1"))
            if cores(before) != (cpu := round(limit / factor, 3)):
                rows.append((path, cpu, before))
        if (needed := float(self.offer.memory)) not in (inf, memory):
            for path, before in resource.pod_amounts("memory").items():
                unit = "Mi" if "/resources/" in path else "m"
                rows.append((path, f"{int(needed) // MIB}{unit}", before))
        for key, value, usual in (
            (SLOTS_SETTING, f"{self.slots}", "1"),
            (MODE_SETTING, self.mode, present_mode(settings, resource.version)),
        ):
            rows.append(("/".join(resource.setting_path(key)), value, settings.get(key, usual)))
        if resource.counts_pods:
            replicas = resource.spec["taskManager"]["replicas"]
            rows.append(("taskManager/replicas", self.number, replicas))
        elif not resource.has_autoscaler:
            rows.append(("job/parallelism", self.parallelism, resource.job.get("parallelism")))
        return [
            (path, value, "" if before is None else f"was {before}")
            for path, value, before in rows
            if str(value).removesuffix(".0") != str(before).removesuffix(".0")
        ]

    def patch(
        self, resource: FlinkResource, mips: float, memory: float | None, plan: PlanResult
    ) -> PodPatch:
        """Patch with the `changes` that give a resource these pods."""
        interval = plan.interval
        ends = "" if interval is None else f" ({interval.ends})"
        head = (
            f"{resource.title} for {digits(plan.rate, 6)} "
            f"tuples/s: {self.number} × {self.offer.name}, {plan.cost:g} per hour,",
            f"{PREDICTED} {digits(plan.carries, 6)} tuples/s{ends}",
        )
        changes = tuple(self.changes(resource, mips, memory))
        why = f"{self.number} × {self.offer.name} for {digits(plan.rate, 6)} tuples/s"
        return PodPatch(
            head, changes, why, resource.namespace, resource.cluster["metadata"]["name"]
        )


def patch_commands(resource: FlinkResource, path: str, patch: PodPatch) -> Iterator[str]:
    """Lines that apply a patch in a file; none if it changes nothing."""
    if not patch.changes:
        return
    if resource.has_autoscaler:
        yield "# Flink's autoscaler chooses the parallelism, so the patch leaves it"
    if resource.owner:
        yield (
            f"# {resource.owner} keeps the specification, and may undo this: put the fields of "
            f"{path} there instead"
        )
    yield resource.patch_command(path)


@dataclass(frozen=True, slots=True)
class JobOnOffer:
    """A measured job that should carry the rate of its graph on equal pods of one offer."""

    graph: StreamGraph
    catalogue: Catalogue  # that offer alone
    job: JobOnPods
    shares: Shares  # operator → uneven shares of its subtasks at the present parallelism

    @property
    def fixed(self) -> dict[str, int]:
        """Operators for which the program sets another parallelism than the job's."""
        numbers = parallelism(self.graph)
        return {name: n for name, n in numbers.items() if n != self.job.parallelism}

    def deployed(self, parallel: int) -> StreamGraph:
        """Graph with a parallelism, except for operators for which the program sets another."""
        operators, numbers = self.graph.operators, np.array(self._numbers(parallel), np.int32)
        constant = constant_of(operators, numbers)
        return self.graph.with_operators(replace(operators, parallelism=numbers, constant=constant))

    def _numbers(self, parallel: int) -> list[int]:
        """Number of subtasks of every operator with a parallelism of the job."""
        fixed = self.fixed
        return [fixed.get(name, parallel) for name in self.graph.operators.name]

    def slots_needed(self, parallel: int) -> int:
        """Slots that the job needs with a parallelism: each slot sharing group has its own."""
        groups = self.graph.operators.slot_sharing_group
        return sum(slots_by_group(groups, self._numbers(parallel)).values())

    def parallelism_in(self, slots: int) -> int:
        """Largest parallelism that fits into slots; 0 if none does."""
        return next((n for n in range(slots, 0, -1) if self.slots_needed(n) <= slots), 0)

    def on(self, pods: EqualPods) -> tuple[float, list[Layout]]:
        """Layouts that Flink may choose on pods, and the lowest rate that they carry in tuples/s.

        The rate is 0, and there are no layouts, if the pods have too few slots.
        """
        deployed = self.deployed(pods.parallelism)
        slots = dict.fromkeys(pods.names, pods.slots)
        possible = layouts(deployed, slots, pods.mode)
        cluster = Cluster.of(
            [pods.offer.device(name) for name in pods.names],
            bandwidth=UNLIMITED_BPS,
            overhead=self.catalogue.overhead,
            overhead_per_byte=self.catalogue.overhead_per_byte,
        )
        shares = self.shares if pods.parallelism == self.job.parallelism else {}
        rates = [capacity(deployed, cluster, layout, shares) for layout in possible]
        return self.graph.source_rate * min(rates, default=0.0), possible

    def fitting(self, number: int, settings: PlannerSettings) -> tuple[EqualPods, float] | None:
        """Settings with which a number of pods carries the rate, and their rate; None without any.

        Small changes come first: the present parallelism, few slots, the present mode.
        """
        job, (offer,) = self.job, self.catalogue.offers
        problem = PlanProblem.of(self.graph, self.catalogue, settings)
        needed = problem.with_reserve(problem.rate)
        modes = sorted(job.modes or MODES[:1], key=lambda mode: (mode != job.mode, mode != "SLOTS"))
        options = [(ceil(self.slots_needed(job.parallelism) / number), job.parallelism)]
        # with more or fewer receivers, a broadcast has more or fewer copies of tuples
        if not (job.keeps_parallelism or self.graph.kept_parallelism):
            max_slots = max(offer.cores, ceil(self.slots_needed(1) / number))
            options += [(n, self.parallelism_in(number * n)) for n in range(1, max_slots + 1)]
        limits = [n for n in self.graph.operators.max_parallelism.tolist() if n]
        for slots, parallel in options:
            if (
                not parallel
                or ceil(self.slots_needed(parallel) / slots) != number
                or (job.fills_slots and parallel != number * slots)
                or parallel > min(limits, default=parallel)
                or slots > offer.slots
                or slots * job.memory > (1 + NOISE) * float(offer.memory)
            ):
                continue
            for mode in modes:
                pods = EqualPods(offer, number, slots, parallel, mode)
                carried, _ = self.on(pods)
                if carried >= needed:
                    return pods, carried
        return None


def planned_pods(
    graph: StreamGraph,
    catalogue: Catalogue,
    settings: PlannerSettings,
    job: JobOnPods,
    shares: Shares,
) -> tuple[EqualPods, PlanResult]:
    """Plan the cheapest equal pods for the rate of a graph, and the bound of their cost."""
    best: tuple[JobOnOffer, EqualPods, float] | None = None
    bounds, refusal = [], None
    seconds = settings.budget.seconds
    part = None if seconds is None else seconds / (len(catalogue.offers) + 1)
    settings = replace(settings, budget=replace(settings.budget, seconds=part))
    single = replace(graph.operators, constant=constant_of(graph.operators, 1))
    lightest = graph.with_operators(single)
    for offer in sorted(catalogue.offers, key=lambda offer: offer.price):
        on_offer = JobOnOffer(graph, replace(catalogue, offers=(offer,)), job, shares)
        try:
            bounds.append(planned(lightest, on_offer.catalogue, settings).bound)
        except ProblemError as error:
            refusal = error
            continue
        fewest = max(offer.at_least, ceil(bounds[-1] / exact_price(offer.price)))
        for number in range(fewest, min(offer.at_most, MORE_PODS * (fewest + MORE_PODS)) + 1):
            if best is not None and number * offer.price >= best[1].number * best[1].offer.price:
                break
            if (fitting := on_offer.fitting(number, settings)) is not None:
                best = on_offer, *fitting
                break
    if best is None:
        raise refusal or ProblemError(
            f"no number of equal pods was found that carries {digits(graph.source_rate, 6)} "
            "tuples/s in the layouts that Flink may choose; add larger offers, or lower the rate"
        )
    on_offer, pods, carried = best
    exact = replace(pods.offer, at_least=pods.number, at_most=pods.number)
    plan = planned(
        on_offer.deployed(pods.parallelism),
        replace(on_offer.catalogue, offers=(exact,)),
        replace(settings, keep_parallelism=True),
    )
    slots = replace(plan.slots, machines={pods.offer.name: pods.slots})
    return pods, replace(plan, bound=min(bounds), carries=carried, slots=slots)
