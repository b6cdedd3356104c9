"""Watch a job of Flink's operator: its number of pods follows its rate, by patches.

Pods have other names after each start of the cluster, and the job may have another id. So the
resource is the job that is watched, its pods are numbered, and a plan is a number of equal pods
with one parallelism. Decisions are made as in watches of other jobs.
"""

import time
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace

from streamplace.display.report import duration
from streamplace.errors import SettingError
from streamplace.flink.advise.equal_pods import (
    SLOTS_SETTING,
    EqualPods,
    JobOnOffer,
    JobOnPods,
)
from streamplace.flink.constants import CHECK_SECONDS, CLEAR_GAIN
from streamplace.flink.decide.improving import Trial
from streamplace.flink.decide.rates import JobRates
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.layout import Layout
from streamplace.flink.operator.api import KubernetesApi
from streamplace.flink.operator.journal import PatchClaim, PatchJournal
from streamplace.flink.operator.patch_table import PatchStep
from streamplace.flink.operator.patching import PatchTransaction, check_change
from streamplace.flink.operator.resource import FAILED, FlinkResource, read_deployment
from streamplace.flink.rest.client import FlinkError, NoAnswer, only_job
from streamplace.flink.rest.plan import layout_of
from streamplace.flink.watch.acting import Notices, decision_of
from streamplace.flink.watch.deciding import (
    JobModel,
    LayoutOption,
    RoundObservation,
    WatchChoice,
)
from streamplace.flink.watch.log import WatchLog
from streamplace.flink.watch.modelling import limit_of, plan_sizes
from streamplace.flink.watch.rounds import JobRounds
from streamplace.flink.watches import MOVED, RETURNED, UNBEGUN, WatchDecision
from streamplace.io.ledger import errors_for
from streamplace.model import Cluster
from streamplace.model.prediction_intervals import RateInterval
from streamplace.model.units import digits
from streamplace.planning.offers import Catalogue, Offer

MAX_GROWTH = 2
"""Maximum number of pods without --at-most, as a multiple of the present number; judgement."""


def numbered(layout: Layout) -> Layout:
    """Layout on pods by number, in place of names that change.

    >>> numbered(Layout({"map": ["count-taskmanager-3-2", "count-taskmanager-3-1"]}))
    Layout({'map': ['pod-1', 'pod-0']})
    """
    names = {name: f"pod-{i}" for i, name in enumerate(sorted(layout.devices))}
    return Layout({task: [names[pod] for pod in pods] for task, pods in layout.items()})


@dataclass(frozen=True, slots=True)
class PodModeller:
    """Measures a job, and predicts its rate on other numbers of pods."""

    engine: FlinkEngine
    seconds: float  # length of a window of measurement
    max_pods: int

    def __call__(self, job: str, managers: Set[str], trials: Sequence[Trial]) -> JobModel:
        """Measure the job, as `JobModeller` does; its layouts are equal pods."""
        rest, running = self.engine.rest, self.engine.job()
        deployment = self.engine.deployment(running)
        measured = self.engine.measure(running, self.seconds)
        graph, present = measured.graph, layout_of(rest, running, rest.running_job(running))
        rates = JobRates(measured, present.by_task(graph))
        graph = rates.at_measured_costs(graph)
        offer = only_pod(measured.cluster)
        costs = measured.cluster.overhead_s, measured.cluster.overhead_s_per_byte
        only = Catalogue((offer,), *costs, slot_sharing=True)
        facts = JobOnPods.of(rest, deployment, float(offer.memory))
        on_offer = JobOnOffer(graph, only, facts, measured.shares)
        slots, errors = int(rest.settings().get(SLOTS_SETTING, "1")), errors_for(graph)

        def on_pods(number: int, parallel: int) -> tuple[float, list[Layout]]:
            return on_offer.on(EqualPods(offer, number, slots, parallel, facts.mode))

        def option(rate: float, layout: Layout) -> LayoutOption:
            interval = RateInterval(rate, rate, rate)
            if errors is not None:
                interval = errors.interval(rate)._replace(low=errors.at_least(rate))
            return LayoutOption(layout, interval, is_known=rates.contradiction is None)

        now = len(present.devices)
        rate, _ = on_pods(now, facts.parallelism)
        limits = [n for n in graph.operators.max_parallelism.tolist() if n]
        limit = 0 if graph.kept_parallelism else min(limits, default=self.max_pods * slots)
        sizes = {n: on_offer.parallelism_in(n * slots) for n in plan_sizes(self.max_pods)}
        predictions = {n: on_pods(n, p) for n, p in sizes.items() if 0 < p <= limit}
        options = {n: option(carried, layouts[0]) for n, (carried, layouts) in predictions.items()}
        return JobModel(
            option(rate, numbered(present)),
            tuple(other for n, other in options.items() if n != now),
            tuple(sorted({*options, now})),
            limit_of(measured, present.by_task(graph)),
            float(rates.sustained.sum()) / graph.source_rate,
        )


def only_pod(cluster: Cluster) -> Offer:
    """The pod, if all are equal; raise FlinkError if they differ, as on nodes of unequal speed."""
    cpu = cluster.devices.mips * cluster.devices.cores
    if cpu.max() > (1 + CLEAR_GAIN) * cpu.min():
        raise FlinkError(
            f"one of its pods has {digits(cpu.max() / cpu.min())} times the CPU of another, so "
            "the rate that they carry cannot be predicted from their number; use equal nodes"
        )
    return replace(Offer.of_device(cluster.devices[int(cpu.argmin())]), name="pod")


def parallelism_to(before: Layout, after: Layout) -> int:
    """Parallelism of a job after a change; operators whose program sets one keep theirs.

    >>> parallelism_to(Layout({"map": ["pod-0"], "sink": ["pod-0"] * 4}),
    ...                Layout({"map": ["pod-0", "pod-1"], "sink": ["pod-0"] * 4}))
    2
    """
    numbers = {name: len(places) for name, places in after.items()}
    changed = [n for name, n in numbers.items() if n != len(before.get(name, ()))]
    return max(changed or numbers.values())


@dataclass(slots=True)
class PodMover:
    """Carries out the decisions of a watch by patches, each at most once."""

    api: KubernetesApi
    resource: FlinkResource  # as it was read before the job was measured
    log: WatchLog
    timeout: float  # seconds in which a changed specification must be stable
    resume_by: str  # command that finishes an interrupted change

    def carry_out(self, job: str, here: LayoutOption, choice: WatchChoice) -> str:
        """Change the number of pods to the chosen one; return the job.

        Raises FlinkError if others have changed the conditions since the watch began.
        """
        target = choice.target
        assert target is not None
        self.finish_unrecorded()
        check_change(self.api, self.resource)
        if self.resource.has_autoscaler:
            raise FlinkError("Flink's autoscaler chooses the parallelism now")
        number = self.log.begin(decision_of(choice, here, job, job))
        patch = {"job": {"parallelism": parallelism_to(here.layout, target.layout)}}
        if self.resource.counts_pods:
            patch = {"taskManager": {"replicas": target.machines}}
        journal = PatchJournal.of(self.resource, patch, self.resume_by)
        return self._ended(number, PatchClaim.begin(self.api, journal))

    def finish(self, number: int) -> str:
        """Finish an interrupted change, or note that none was begun; return the job."""
        try:
            return self._ended(number, self._claim_again())
        except SettingError as error:  # no journal
            decision = self.log.decisions[number]
            self.log.end(number, UNBEGUN, str(error), decision.job)
            return decision.job

    def finish_unrecorded(self) -> None:
        """Finish a change without a decision in this log, as one begun on another machine."""
        with suppress(SettingError):  # no journal
            claim = self._claim_again()
            ended = PatchTransaction(self.api, claim, self.log.tell, self.timeout).run()
            self.log.tell(f"a change was interrupted: {ended.step.value}, because {ended.reason}")

    def _claim_again(self) -> PatchClaim:
        return PatchClaim.take(self.api, self.resource.namespace, self.resource.name)

    def note_rate(self, decision: WatchDecision, rate: float, is_limited: bool) -> None:
        """Write the measured rate after a change."""
        self.log.note_rate(decision, rate)

    def _ended(self, number: int, claim: PatchClaim) -> str:
        """Carry out a change; it does not depend on the rate, which the next round measures."""
        ended = PatchTransaction(self.api, claim, self.log.tell, self.timeout).run()
        states = {
            PatchStep.KEPT: MOVED,
            PatchStep.ENDED_AS_CHANGED: MOVED,
            PatchStep.UNCHANGED: UNBEGUN,
            PatchStep.CONFLICT: UNBEGUN,
        }
        job = self.log.decisions[number].job
        self.log.end(number, states.get(ended.step, RETURNED), ended.reason, job)
        took = "" if ended.seconds is None else f"; it took {duration(ended.seconds)} in all"
        self.log.tell(f"{job}: {ended.step.value}, because {ended.reason}{took}")
        return job


@dataclass(slots=True)
class PodRounds(JobRounds):
    """Rounds of a job whose pods are numbered."""

    mover: PodMover | None
    max_pods: int = 1

    def _observe(self, job: str) -> RoundObservation:
        try:
            running = only_job(self.rest, None)
        except SettingError as error:  # the cluster starts again, or the job has just ended
            raise FlinkError(str(error)) from None
        observation = JobRounds._observe(self, running)
        layout = numbered(observation.sample.layout)
        pods = frozenset(f"pod-{i}" for i in range(max(self.max_pods, len(layout.devices))))
        sample = replace(observation.sample, job=job, layout=layout, managers=pods)
        return replace(observation, sample=sample)


def watch_pods(api: KubernetesApi, resource: FlinkResource, rounds: PodRounds) -> None:
    """Watch a job until it ends; FlinkError if its resource is deleted or suspended."""
    notices = Notices(rounds.log.tell)
    while True:
        if rounds.is_due:
            try:
                now = read_deployment(api, resource.namespace, resource.name)
            except NoAnswer as error:
                notices(str(error))
            else:
                if now is None:
                    raise FlinkError(f"{resource.title} was deleted")
                if now.has_ended:
                    rounds.log.tell(f"the job of {resource.title} has ended")
                    return
                if not now.error or now.lifecycle == FAILED:  # other errors pass, as of lost nodes
                    now.check()
                if rounds.mover is not None:
                    rounds.mover.resource = now
                try:
                    rounds.pass_round(resource.title)
                    notices("")
                except FlinkError as error:  # the job may be restarting
                    notices(str(error))
        time.sleep(CHECK_SECONDS)
