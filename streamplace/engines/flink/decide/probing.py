"""Probing: move a job to an even spread once, to measure the cost of remote tuples.

A profile cannot show that cost if no or hardly any tuple goes from one TaskManager to another. A
probe moves the job to an even spread and measures it there. Both measurements together decide where
the job should run, and it is moved there, or back. Until then a record of the probe lies beside the
savepoints, so that a job can be moved back if its probe is interrupted.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from streamplace.engines.flink.cpu.threads import processes_of
from streamplace.engines.flink.decide.candidates import Question, can_spread, check_model
from streamplace.engines.flink.decide.improving import JobImprover
from streamplace.engines.flink.decide.layouts import Layout, even_layout
from streamplace.engines.flink.decide.proposal import Proposal
from streamplace.engines.flink.measure.background import flows_of_job
from streamplace.engines.flink.move.move import PATIENCE_SECONDS, FlinkMove, MovePlan
from streamplace.engines.flink.move.outcomes import FlinkMoved, Undecided
from streamplace.engines.flink.move.settling import SourceFlow, check_rate
from streamplace.engines.flink.pin.pinning import by_operator
from streamplace.engines.flink.program.chains import operators_in
from streamplace.engines.flink.rest.client import ENDED, FlinkError, NoAnswer
from streamplace.engines.flink.rest.job_ids import chain_of
from streamplace.engines.flink.rest.plan import pointwise_pairs, read_plan
from streamplace.engines.live import Measurement
from streamplace.errors import SettingError, StreamplaceError
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import shown
from streamplace.model.streams import RESCALE, STRAIGHT

PREFIX, SUFFIX = "streamplace-probe-", ".json"


class ProbeRecord(BaseModel):
    """Record of a probe."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job: str  # the probed job; the ids of its successors follow from it
    before: Layout  # operator → device of each of its subtasks, before the probe
    spread: Layout  # the same during the probe


@dataclass(frozen=True, slots=True)
class Probed:
    """A job that was measured twice, and now runs at the even spread."""

    proposal: Proposal  # where it should run, with a plan of the move from the spread
    back: MovePlan  # plan of the move back to its previous devices
    record: ProbeRecord  # record to delete once the job has left the spread
    flow: SourceFlow | None = None  # output of its sources before the probe; None if unknown


@dataclass(frozen=True, slots=True)
class Prober(JobImprover):
    """A JobImprover that also measures a job at an even spread before it decides."""

    @property
    def mover(self) -> FlinkMove:
        """The object that moves the job, whose program must be known."""
        if self.move is None:
            raise ValueError("a probe moves the job, so its program must be known")
        return self.move

    def probe(self, job: str) -> Probed | None:
        """Measure a job with its present layout and at an even spread; None if that is not needed.

        If it raises an error, the job runs on its previous devices.
        """
        present = self._present(job)
        if self.cluster is not None or self._is_known(job, present):
            self.tell("--probe is not needed: what crossing costs is known where the job runs")
            return None
        first = self._measured(job)
        plan = self.mover.plan(job, by_operator(self._spread(first.graph)))
        if not plan.is_needed:
            raise SettingError(
                "the job runs at an even spread, and too few tuples cross there to measure what "
                "that costs; drop --probe"
            )
        plan = replace(plan, varies=first.varies)
        self.tell(
            "no or hardly any tuple crosses between TaskManagers, so the job is moved to an even "
            "spread to measure what that costs, and then to where it should run, or back; each of "
            "the two moves stops it for about a second"
        )
        record = ProbeRecord(job=job, before=plan.before, spread=plan.after)
        flow = self.mover.rate(plan)
        with self.mover.folder() as folder:
            folder.write(f"{PREFIX}{job}{SUFFIX}", record.model_dump_json())
        try:
            moved = unwatched(self.mover).run(plan)
        except Undecided:
            raise
        except StreamplaceError:  # it runs on its previous devices
            forget(self.mover, record)
            raise
        try:
            return replace(self._decided(moved, first, present, record), flow=flow)
        except Undecided:
            raise
        except StreamplaceError as error:
            self.tell(f"the job cannot be measured at the even spread: {error}")
            resumed(self.mover, job)
            raise

    def finish(self, probed: Probed) -> FlinkMoved:
        """Move a job from the even spread to the layout that it should have, or back.

        It goes back also if it is slower there than before the probe.
        """
        proposal = probed.proposal
        if not proposal.moves or proposal.plan is None:
            self.tell("the job goes back to where it ran")
            moved = unwatched(self.mover).run(probed.back)
        elif not proposal.plan.is_needed:
            self.tell("the job stays at the even spread")
            moved = self._unless_slower(FlinkMoved(proposal.job, 0.0, None), probed)
        else:
            try:
                moved = self._unless_slower(self.run(proposal), probed)
            except Undecided:
                raise
            except StreamplaceError as error:
                self.tell(str(error))
                return resumed(self.mover, probed.record.job)
        forget(self.mover, probed.record)
        return moved

    def _unless_slower(self, moved: FlinkMoved, probed: Probed) -> FlinkMoved:
        """Move a job back if it is slower than before the probe."""
        rest = self.engine.rest.patient(PATIENCE_SECONDS, self.tell)
        try:
            check_rate(rest, moved.job, self.mover.settings.settling, probed.flow)
        except NoAnswer as error:
            self.tell(f"note: {error}, so its rate is not compared with that before the probe")
        except FlinkError as error:
            self.tell(f"{error}, so the job goes back to where it ran before the probe")
            back = self.mover.plan(moved.job, probed.record.before)
            return unwatched(self.mover).run(back)
        return moved

    def _decided(
        self, moved: FlinkMoved, first: Measurement, present: Layout, record: ProbeRecord
    ) -> Probed:
        second = self._measured(moved.job)
        spread = Question(second, self._present(moved.job), {}, spreads=True)
        warning = check_model(spread, trusts=self.trusts_profile)
        if warning is not None:
            self.tell(f"warning: at the even spread, {warning}")
        back = self.mover.plan(moved.job, record.before)
        # Moves are judged as if the job still had its first layout.
        proposal = self.decided(moved.job, fitted_together(first, second), present)
        return Probed(self.planned(proposal) if proposal.moves else proposal, back, record)

    def _is_known(self, job: str, present: Layout) -> bool:
        """Whether enough tuples cross between devices in the present layout to measure their cost.

        There is nothing to know of a job without streams.
        """
        _, tasks, edges = read_plan(self.engine.rest, job)
        name_of = {
            task.id: next(one for one in (task.name, *operators_in(task.name)) if one in present)
            for task in tasks
        }
        streams = [
            (name_of[e.source], name_of[e.target], "forward" if e.is_pointwise else e.partitioning)
            for e in edges
        ]
        if not streams or not crosses(present, streams):
            return not streams
        return bool(flows_of_job(self.engine.rest, job, self.seconds))

    def _spread(self, graph: StreamGraph) -> Layout:
        """Return the even spread of a job; raise an error if no tuples would cross devices."""
        rest = self.engine.rest
        devices = [str(manager["id"]) for manager in rest.task_managers()]
        if len(processes_of(rest)) < len(devices):
            raise SettingError(
                "--probe measures the threads of all TaskManagers, which do not all run on this "
                "machine; drop --probe"
            )
        layout = even_layout(graph, devices)
        if not can_spread(rest):
            layout = {
                name: [devices[i % len(devices)]] * len(places)
                for i, (name, places) in enumerate(layout.items())
            }
        streams = [(one.source, one.target, one.partitioning or "") for one in graph.streams]
        if not crosses(layout, streams):
            raise SettingError(
                "no tuple would cross at an even spread either, so there is nothing to probe; drop "
                "--probe"
            )
        return layout


def crosses(layout: Layout, streams: Iterable[tuple[str, str, str]]) -> bool:
    """Return whether a layout sends tuples between devices.

    A stream is its source, target and partitioning.

    >>> layout = {"src": ["a", "b"], "map": ["a", "b"]}
    >>> crosses(layout, [("src", "map", "forward")]), crosses(layout, [("src", "map", "hash")])
    (False, True)
    >>> crosses(layout, [("src", "map", "rescale")])
    False
    """
    for source, target, partitioning in streams:
        senders, receivers = layout[source], layout[target]
        if partitioning in (*STRAIGHT, RESCALE):
            pairs = pointwise_pairs(len(senders), len(receivers))
            if any(senders[i] != receivers[j] for i, j in pairs):
                return True
        elif len({*senders, *receivers}) > 1:
            return True
    return False


def unwatched(move: FlinkMove) -> FlinkMove:
    """Return a mover that accepts a lower rate at the new devices."""
    settling = replace(move.settings.settling, least_rate=0.0)
    return replace(move, settings=replace(move.settings, settling=settling))


def fitted_together(first: Measurement, second: Measurement) -> Measurement:
    """Combine two measurements: costs of operators from both, the cost of sending from the second.

    Rates, selectivities and payloads are those of the first, and so is the CPU of devices: what
    TaskManagers that share CPU count with depends on what they use. The rest is of the second.
    """
    graph, other = first.graph, second.graph
    if graph.operators.name == other.operators.name and len(graph.streams) == len(other.streams):
        tuples = graph.input_rate, other.input_rate
        work = _mean((graph.operators.ipt, other.operators.ipt), tuples)
        sources = graph.streams.source
        sent = tuples[0][sources], tuples[1][sources]
        each = _mean((graph.streams.ipt, other.streams.ipt), sent)
        constant = (graph.operators.constant + other.operators.constant) / 2
        operators = replace(graph.operators, ipt=work, constant=constant)
        streams = replace(graph.streams, operators=operators, ipt=each)
        graph = replace(graph, operators=operators, streams=streams)
    return replace(
        second,
        graph=graph,
        cluster=_with_cpu_of(first.cluster, second.cluster),
        is_limited=first.is_limited,
        held_back=first.held_back,
    )


def _with_cpu_of(first: Cluster, second: Cluster) -> Cluster:
    """Second cluster with the CPU of the devices of the first, if they are the same."""
    if first.devices.name != second.devices.name:
        return second
    cpu = {name: getattr(first.devices, name) for name in ("mips", "cores", "reserved")}
    return replace(second, devices=replace(second.devices, **cpu))


def _mean(costs: tuple[Floats, Floats], tuples: tuple[Floats, Floats]) -> Floats:
    """Mean cost per tuple of two measurements, weighted by tuples."""
    whole = tuples[0] + tuples[1]
    total = costs[0] * tuples[0] + costs[1] * tuples[1]
    return np.divide(total, whole, out=costs[0].copy(), where=whole > 0)


def resumed(move: FlinkMove, job: str | None) -> FlinkMoved:
    """Finish an interrupted move; if it was a probe, move the job back to its previous devices."""
    record = left_probe(move, job)
    if record is None:
        return move.resume(job)
    chain = chain_of(record.job)
    broken = [one for one in move.unfinished_moves() if one.job in chain]
    moved = move.resume(broken[0].job) if broken else None
    states = {job: state for job, state in move.rest.jobs().items() if state not in ENDED}
    running = next((one for one in reversed(chain) if one in states), None)
    if running is not None:
        if states[running] != "RUNNING":
            raise SettingError(
                f"job {running} is {shown(states[running])}, and is moved back from its probe "
                f"once it runs; wait, and then give: {move.resume_line(record.job)}"
            )
        back = move.plan(running, record.before)
        is_spread = all(
            sorted(back.before.get(name, ())) == sorted(devices)
            for name, devices in record.spread.items()
        )
        if is_spread:
            move.tell("the probe was interrupted, so the job goes back to where it ran")
            moved = unwatched(move).run(back)
        moved = moved or FlinkMoved(running, 0.0, None)
    forget(move, record)
    if moved is None:
        raise SettingError(f"job {record.job} does not run any more, so its probe is over")
    return moved


def check_probes(move: FlinkMove, job: str) -> None:
    """Raise SettingError if a probe of a job was interrupted."""
    if left_probe(move, job) is not None:
        raise SettingError(
            f"a probe of job {job} was interrupted; move it back with: {move.resume_line(job)}"
        )


def left_probe(move: FlinkMove, job: str | None) -> ProbeRecord | None:
    """Record of an interrupted probe of a job, or of the only one; None if there is none."""
    with move.folder() as folder:
        names = [entry.name for entry in folder.entries(PREFIX)]
        texts = [folder.read(name) for name in names if name.endswith(SUFFIX)]
    records = []
    for text in texts:
        try:
            records.append(ProbeRecord.model_validate_json(text))
        except ValidationError:  # it is of a later version, or incomplete
            continue
    own = [record for record in records if job is None or job in chain_of(record.job)]
    return own[0] if len(own) == 1 else None


def forget(move: FlinkMove, record: ProbeRecord) -> None:
    """Delete the record of a probe."""
    with move.folder() as folder:
        folder.delete(f"{PREFIX}{record.job}{SUFFIX}")
