"""Flink as an engine: measure, place, verify and move its running jobs from Python."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from streamplace.errors import SettingError
from streamplace.flink.deployment import JobDeployment, deployment_of
from streamplace.flink.layout import Layout
from streamplace.flink.measure.cluster import (
    MeasuredCluster,
    Measurement,
    background,
    cores_used,
    fast_enough,
    measured_cluster,
)
from streamplace.flink.measure.cost_fit import Observed
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.measure.profile import JobProfile, steady_profile
from streamplace.flink.measure.source_lag import requested_rate
from streamplace.flink.move.move import FlinkMove, Tell
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.move.transaction import FlinkMoved
from streamplace.flink.pin.apply import Verification, apply, verify
from streamplace.flink.program.program import Program, Savepoint
from streamplace.flink.rest.client import FlinkError, Rest, only_job
from streamplace.model import Cluster, StreamGraph
from streamplace.model.defaults import FLINK_HEADROOM, PATIENCE_SECONDS, SPEED
from streamplace.model.message_text import shown
from streamplace.model.units import Quantity, bandwidth_bps
from streamplace.model.units import mips as parsed_mips

if TYPE_CHECKING:
    from streamplace.flink.advise.advise import Advice, MeasuredJob
    from streamplace.flink.prometheus.job_history import JobHistory
    from streamplace.planning.offers import Catalogue
    from streamplace.planning.problem import PlannerSettings

Placed = Mapping[str, Sequence[str] | str]
"""Operator, or subtask, → device; or operator → device of each of its subtasks."""


@dataclass(frozen=True, slots=True)
class FlinkEngine:
    """A running Flink cluster, whose jobs can be measured, placed, verified and moved."""

    rest: Rest  # REST interface of the cluster
    mips: str = SPEED  # speed of a core, which Flink does not measure
    # Bandwidth of a link. By default ``"1000 Mbps"`` are assumed, or more if network cards are
    # known to be faster, or the measured job sends more.
    bandwidth: str | None = None
    moves: MoveSettings = field(default_factory=MoveSettings)  # how jobs are moved
    # Function that receives messages on the steps of a move.
    tell: Tell = field(default=lambda _: None)
    # TaskManager → speed of its network card, such as ``"1 Gbps"``; the name "" stands for all.
    # Others are assumed to have ``bandwidth``.
    cards: Mapping[str, str] = field(default_factory=dict)
    # Maximum number of seconds to wait until a job is steady.
    patience: float = PATIENCE_SECONDS

    def job(self, given: str | None = None) -> str:
        """Job ID: given, or the only active one, or the resource's."""
        return only_job(self.rest, given)

    def deployment(self, job: str) -> JobDeployment:
        """How a running job is deployed; this decides which commands work."""
        return deployment_of(self.rest, job)

    def measure(
        self,
        job: str,
        seconds: float = 5.0,
        *,
        cluster: Cluster | None = None,
        observed: Observed = MappingProxyType({}),
    ) -> Measurement:
        """Measure a running job once it is steady, and its TaskManagers.

        Parameters
        ----------
        seconds
            Length of each measured window of the job.
        cluster
            The devices, if known; otherwise they are measured as well.
        observed
            `Measurement.observed` of the job in earlier layouts; costs are fitted to all of them.
        """
        profile, graph = self._profiled(job, seconds, observed)
        return self.measurement(profile, graph, cluster)

    def measurement(
        self, profile: JobProfile, graph: StreamGraph, cluster: Cluster | None = None
    ) -> Measurement:
        """Measure the devices of a profiled job, if they are not known."""
        if cluster is None:
            measured = self._machines_of(profile, graph)
            if measured.unmeasured_sending and len(graph.streams):
                profile.doubts.append(measured.unmeasured_sending)
            cluster = measured.cluster()
        doubts = tuple(profile.doubts)
        return Measurement(graph, cluster, profile.flow, doubts, profile.shares, profile.observed)

    def _profiled(
        self, job: str, seconds: float, observed: Observed = MappingProxyType({})
    ) -> tuple[JobProfile, StreamGraph]:
        """Profile of a job once it is steady, and its graph."""
        profile = steady_profile(self.rest, job, seconds, self.patience)
        profile = replace(profile, earlier=observed)
        return profile, measured_graph(profile, parsed_mips(self.mips))

    def _machines_of(self, profile: JobProfile, graph: StreamGraph) -> MeasuredCluster:
        """TaskManagers of a profiled job; doubts about them are added to its profile."""
        present = profile.present
        measured = measured_cluster(
            self.rest,
            self.mips,
            self.bandwidth,
            self.cards,
            java=profile.java,
            sending=profile.sending,
            beside=present.beside,
            used=profile.used,
        )
        profile.doubts.extend(measured.notes)
        measured, raised = fast_enough(measured, graph, present.devices, profile.shares)
        if raised is not None:
            profile.doubts.append(raised)
        return measured

    def cluster(
        self, job: str | None = None, seconds: float = 10.0, *, beside: Sequence[str] = ()
    ) -> MeasuredCluster:
        """Measure the TaskManagers without profiling a job.

        Parameters
        ----------
        job
            A running job, to measure the CPU of Java and of remote tuples; by default any
            running one.
        beside
            Jobs that stay where they run; the CPU of their tasks is reserved.
        """
        if job is not None and job in beside:
            raise SettingError(
                f"job {shown(job)} is given as the one to place and with --beside; its own CPU "
                "would be reserved, so drop one"
            )
        java, cost = background(self.rest, job, seconds)
        used = cores_used(self.rest, beside, seconds)
        return measured_cluster(
            self.rest, self.mips, self.bandwidth, self.cards, java=java, sending=cost, beside=used
        )

    def advise(
        self,
        job: str,
        rate: Quantity,
        machines: "Catalogue | Cluster | None" = None,
        settings: "PlannerSettings | None" = None,
        *,
        seconds: float = 10.0,
        program: Program | None = None,
        folder: Path | None = None,
        history: "JobHistory | None" = None,
        measured: "MeasuredJob | None" = None,
        costs: bool = True,
    ) -> "Advice":
        """Plan the cheapest machines for a rate from measurements of a running job; change nothing.

        Parameters
        ----------
        rate
            Tuples/s of all sources together, or a multiple such as ``"2x"`` of the rate that is
            offered now.
        machines
            Offers, or existing machines; by default the TaskManagers.
        settings
            How machines are planned; by default, 3 % of CPU and network cards of offers stay free.
        seconds
            Length of each measured window of the job.
        program
            Program of the job, whose parallelism the plan then keeps.
        folder
            Folder that the plan will be written to, for the commands that change the job.
        history
            History of the job, which takes the place of a measurement. The rate may then be a
            percentile of it, such as ``"95%"``, and multiples are of its peak.
        measured
            Measurement of the job by `measured_job`; by default it is measured.
        costs
            Whether machines for other rates of the history are planned, too.
        """
        from streamplace.flink.advise.advise import FOLDER, advise
        from streamplace.io.ledger import errors_for
        from streamplace.planning.problem import PlannerSettings

        if history is not None:
            rate = history.requested_rate(str(rate))
        requested_rate(rate)  # refuse invalid values before a measurement of minutes
        bandwidth_bps(self.bandwidth or 0.0)
        parsed_mips(self.mips)
        deployment = self.deployment(job) if measured is None else measured.deployment
        self.tell(f"deployment: {deployment}")
        if program is not None and deployment.without_jars:
            raise FlinkError(
                f"{deployment.without_jars}, and the program of the job cannot be planned there; "
                "leave out JAR and its options, and compare the parallelism of the plan with it"
            )
        measured = measured or self.measured_job(job, deployment, seconds, history)
        settings = settings or PlannerSettings(FLINK_HEADROOM)
        settings = replace(settings, errors=errors_for(measured.graph))
        return advise(
            self.rest,
            measured,
            rate,
            machines,
            settings,
            program,
            folder or FOLDER,
            history,
            has_costs=costs,
        )

    def measured_job(
        self,
        job: str,
        deployment: JobDeployment,
        seconds: float = 10.0,
        history: "JobHistory | None" = None,
    ) -> "MeasuredJob":
        """Measure a running job with its TaskManagers, or read the job from its history."""
        from streamplace.flink.advise.advise import MeasuredJob

        if history is None:
            profile, graph = self._profiled(job, seconds)
        else:
            profile = history.profile(is_spread=deployment.has_equal_pods)
            graph = measured_graph(profile, parsed_mips(self.mips))
        cluster = self._machines_of(profile, graph)
        alone = measured_cluster(self.rest, self.mips, self.bandwidth)
        return MeasuredJob(job, profile, graph, cluster, alone, deployment)

    def apply(
        self, program: Program, placement: Placed, *, savepoint: Savepoint | None = None
    ) -> str:
        """Submit a job with a placement, and return its id once all of it runs."""
        layout = Layout.of(placement)
        seconds = self.moves.seconds
        return apply(self.rest, program, layout, savepoint=savepoint, seconds=seconds)

    def verify(self, job: str, placement: Placed) -> Verification:
        """Ask Flink where every subtask of a job runs."""
        return verify(self.rest, job, Layout.of(placement))

    def moving(self, program: Program, options: Sequence[str] = ()) -> FlinkMove:
        """Return an object that plans, runs and resumes moves of a job step by step.

        Parameters
        ----------
        options
            Options by which printed commands reach the cluster, such as ``--settings FILE``.
        """
        return FlinkMove(self.rest, program, self.tell, self.moves, options)

    def move(self, job: str, program: Program, placement: Placed) -> FlinkMoved:
        """Move a running job, with its state, to the devices of a placement.

        Parameters
        ----------
        program
            Jar, entry class and arguments of the job.
        placement
            Operator, or subtask, → device.

        Raises
        ------
        StreamplaceError
            As ``FlinkMove.plan`` and ``FlinkMove.run`` do.
        """
        move = self.moving(program)
        plan = move.plan(job, Layout.of(placement))
        return move.run(plan) if plan.is_needed else FlinkMoved(job, 0.0, None)
