"""Improve a running job: try promising layouts, measure each, and end on the best measured one.

    measured = {present layout: rate now}
    while tries remain:
        target = the layout with the highest optimistic rate of those that were not tried
        stop if that is not worth it, compared with the best rate that was measured
        move there, wait until the rate is steady, measure it, and fit the model to all windows
    end on the best layout that was measured

Every move is a transaction: if the job does not run in a layout, it is back where it was, and the
layout counts as tried. The optimistic rate of a layout is the upper end of its interval
(`Proposal.optimistic`), so a model that is uncertain makes the job try more, and refuses nothing.
Whatever interrupts the trials, the job goes back to the best layout that was measured.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType

from streamplace.engines.flink.decide.candidates import (
    Candidate,
    Question,
    can_spread,
    candidates,
    configured_mode,
    is_placed,
    known_modes,
    occupied_devices,
    slots_for,
)
from streamplace.engines.flink.decide.proposal import Proposal, Trial
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.cluster import unpinnable
from streamplace.engines.flink.measure.fit import Observed
from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.engines.flink.move.interruption import (
    Interruption,
    expected_interruption,
    sent_since,
    warm_up_seconds,
)
from streamplace.engines.flink.move.journal import MoveUnderWay
from streamplace.engines.flink.move.move import FlinkMove
from streamplace.engines.flink.move.outcomes import FlinkMoved, Undecided
from streamplace.engines.flink.move.saving import stopped_with
from streamplace.engines.flink.move.settling import flow_there, note, seconds_for
from streamplace.engines.flink.pin.fitting import left_without
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.rest.client import FINISHED, FlinkError
from streamplace.engines.flink.rest.tasks import layout_of
from streamplace.errors import StreamplaceError
from streamplace.io.ledger import errors_for
from streamplace.io.placements import Prediction
from streamplace.model.cluster import Cluster
from streamplace.model.defaults import TRIES
from streamplace.model.messages import listed
from streamplace.model.report import duration
from streamplace.model.trust import profile_drift, profile_spread
from streamplace.model.units import digits

LOG = logging.getLogger(__name__)
BY = "flink move"


@dataclass(frozen=True, slots=True)
class JobImprover:
    """Measures a job, tries layouts, and leaves it in the best one."""

    engine: FlinkEngine
    # Carries out moves. None if the program is unknown, so that only a proposal can be made.
    move: FlinkMove | None
    seconds: float = 5.0  # length of each window in which it is measured
    # Tuples/s that all sources are offered together; None for the emitted rate, or for the maximum
    # if the sources are back-pressured.
    rate: float | None = None
    cluster: Cluster | None = None  # the devices, if known; otherwise they are measured
    tell: Callable[[str], None] = field(default=lambda _: None)
    tries: int = TRIES  # most layouts that are tried
    most_interruption: float = inf  # most seconds for which the job may be stopped in all
    agrees: Callable[[str], bool] = field(default=lambda _: True)  # asked before every trial
    # Finds layouts, and predicts them.
    decides: Callable[[Question], Sequence[Candidate]] = candidates

    def propose(
        self, job: str, observed: Observed = MappingProxyType({}), trials: Sequence[Trial] = ()
    ) -> Proposal:
        """Measure a running job, and predict its layouts; nothing is stopped.

        ``observed``: what the subtasks of its operators took in earlier layouts.
        ``trials``: layouts that were measured before.
        """
        rest = self.engine.rest
        engine = replace(self.engine, tell=LOG.info) if trials else self.engine
        measured = engine.measure(job, self.seconds, cluster=self.cluster, observed=observed)
        question = Question(
            measured,
            self._present(job),
            slots_for(rest, job),
            can_spread(rest),
            self.rate,
            occupied_devices(rest, job),
            known_modes(rest),
            configured_mode(rest),
            left_without(rest, job),
            is_placed(rest, job),
            errors_for(measured.graph),
        )
        left_out = [device for device in unpinnable(rest) if device in question.occupied]
        if left_out and not trials:
            self.tell(
                f"note: nothing can be pinned to {listed(left_out)}, so nothing is placed there; "
                "to use it, add the output of 'streamplace flink config' to its config.yaml and "
                "restart it"
            )
        if (against := question.rates.contradiction) is not None and not trials:
            self.tell(f"note: {against}; layouts are tried all the same, and measured")
        found = tuple(self.decides(question))
        present = Trial.present(question)
        pause = self._interruption(job, trials)
        return Proposal(job, question, found, pause, (*trials, present), present)

    def _interruption(self, job: str, trials: Sequence[Trial]) -> Interruption:
        """How long a move is expected to interrupt a job: as its moves so far, if any."""
        known = [trial.outage for trial in trials if trial.outage is not None]
        if known:
            return Interruption.measured(known)
        return expected_interruption(self.engine.rest, job)

    def planned(self, proposal: Proposal) -> Proposal:
        """Check the program with the next layout, so that errors are found while the job runs.

        A job that stays is checked with its present layout, if TaskManagers are configured for
        that.
        """
        if self.move is None:
            return proposal
        target = proposal.target
        layout = self._present(proposal.job) if target is None else target.layout
        is_whole = not layout.spread_devices
        rest = self.engine.rest
        if target is None and (unpinnable(rest) or not (is_whole or can_spread(rest))):
            return proposal
        return replace(proposal, plan=self.move.plan(proposal.job, layout.by_operator()))

    def run(self, proposal: Proposal) -> Proposal:
        """Try layouts, measure them, and end on the best one that was measured."""
        try:
            for _ in range(self.tries):
                target = _named(proposal)
                if target is None or not self._may_try(target, proposal):
                    break
                proposal = self._tried(proposal, target)
                if not proposal.where.runs:  # it could not be measured, or the job has finished
                    break
            return proposal if proposal.best is proposal.where else self._returned(proposal)
        except KeyboardInterrupt:
            self.tell(f"interrupted; the job goes back to {proposal.best.name}")
            try:
                self._returned(proposal)
            except StreamplaceError as error:
                self.tell(str(error))
            raise

    def _may_try(self, target: Candidate, proposal: Proposal) -> bool:
        """Whether the user pays for one more trial, and for going back if it is worse."""
        failed = sum(bool(trial.failure) for trial in proposal.trials)  # there and back, untimed
        spent = (proposal.stopped or 0.0) + 2 * proposal.outage.value * failed
        once = proposal.outage
        if spent + 2 * once.value > self.most_interruption:
            self.tell(
                f"no further layout is tried: moving there stops the job for about {once}, and so "
                f"does going back; {duration(self.most_interruption)} are allowed in all, of which "
                f"{duration(spent)} are used"
            )
            return False
        return self.agrees(
            f"try {target.name}: {target.predicted}; moving there stops the job for about {once}"
        )

    def _tried(self, proposal: Proposal, target: Candidate) -> Proposal:
        """Move a job to a layout, and measure it there."""
        told = proposal.outage.value
        trial = Trial(
            target.name, target.layout, line=target.line, predicted=target.predicted, told=told
        )
        try:
            moved = self._moved(proposal, target.layout)
        except (Undecided, MoveUnderWay):
            raise
        except StreamplaceError as error:
            self.tell(f"{target.name} does not run: {error}")
            if self._has_finished(proposal.job):
                return proposal.after(proposal.job, trial)
            if (job := self._running(proposal.job)) is None:
                raise
            return proposal.after(job, replace(trial, failure=str(error)))
        trial = replace(trial, outage=moved.outage)
        return self._measured(proposal, target, trial, moved)

    def _moved(self, proposal: Proposal, layout: Layout) -> FlinkMoved:
        """Move a job to a layout; its rate is not a condition, because it is measured there."""
        assert self.move is not None
        move, job, plan = self.move.for_trials(), proposal.job, proposal.plan
        after = layout.by_operator()
        if plan is None or plan.job != job or after.moved_from(plan.after):
            plan = move.plan(job, after)
        return move.run(replace(plan, varies=proposal.measured.varies))

    def _measured(
        self, proposal: Proposal, target: Candidate, trial: Trial, moved: FlinkMoved
    ) -> Proposal:
        """Measure a job in a new layout, and fit the model again if that is possible."""
        rest = self.engine.rest
        sent = sent_since(rest, moved.job)
        try:
            self._await_running(moved.job)
            now = self.propose(moved.job, proposal.measured.observed, proposal.trials)
        except FlinkError as error:
            if self._has_finished(moved.job):
                return proposal.after(moved.job, trial, moved.savepoint)
            self.tell(f"{target.name} is not measured well: {error}")
            seconds = seconds_for(varies=proposal.measured.varies)
            flow = flow_there(rest, moved.job, self.tell, seconds)
            if flow is not None:
                trial = replace(trial, rate=flow.rate, is_limited=flow.is_limited)
            return proposal.after(moved.job, trial, moved.savepoint)
        there = now.where
        stopped = ""
        if moved.outage is not None:
            warm_up = warm_up_seconds(sent, sent_since(rest, moved.job), there.rate)
            trial = replace(trial, outage=moved.outage + warm_up)
            stopped = f", interrupted for {duration(moved.outage + warm_up)}"
        self.tell(f"  {digits(there.rate)} tuples/s were measured there{stopped}")
        self._record(proposal, target, there)
        trial = replace(trial, rate=there.rate, is_limited=there.is_limited, layout=there.layout)
        trials = (*proposal.trials, trial)
        outage = self._interruption(moved.job, trials)
        return replace(now, trials=trials, where=trial, savepoint=moved.savepoint, outage=outage)

    def _record(self, proposal: Proposal, target: Candidate, there: Trial) -> None:
        """Record what a layout was predicted to carry and what it carries."""
        graph, errors = proposal.measured.graph, proposal.question.errors
        predicted = Prediction(
            graph.name,
            target.predicted,
            None if errors is None else errors.supported,
            profile_drift(graph),
            target.kept,
            profile_spread(graph),
        )
        flow = SourceFlow(there.rate, is_limited=there.is_limited)
        note(BY, predicted, flow, self.tell)

    def _returned(self, proposal: Proposal) -> Proposal:
        """Move a job back to the best layout that was measured, unless it is there."""
        best, job = proposal.best, self._running(proposal.job) or proposal.job
        if self._has_finished(job):
            self.tell("the job has finished")
            return proposal
        self._await_running(job)
        if best.is_at(self._present(job)):
            return replace(proposal, job=job, where=best)
        moved = self._moved(replace(proposal, job=job), best.layout)
        self.tell(f"back in {best.name}, the best layout that was measured")
        back = replace(best, outage=(best.outage or 0.0) + (moved.outage or 0.0))
        trials = tuple(back if one is best else one for one in proposal.trials)
        return replace(
            proposal, job=moved.job, trials=trials, where=back, savepoint=moved.savepoint
        )

    def _running(self, job: str) -> str | None:
        """Id of a job or its successor that runs; None unless there is exactly one."""
        states = chain_states(self.engine.rest, job)
        running = [one for one, state in states.items() if state == "RUNNING"]
        return running[0] if len(running) == 1 else None

    def _await_running(self, job: str) -> None:
        """Wait until all of a job runs: Flink may have restarted it since it was moved."""
        assert self.move is not None
        self.engine.rest.wait_running(job, self.move.settings.seconds)

    def _has_finished(self, job: str) -> bool:
        """Whether a job has ended by itself, and was not stopped with a savepoint."""
        rest = self.engine.rest
        return rest.state(job) == FINISHED and stopped_with(rest, job) is None

    def _present(self, job: str) -> Layout:
        """Operator → device of each of its subtasks, in order."""
        rest = self.engine.rest
        return layout_of(rest, job, rest.running_job(job))


def _named(proposal: Proposal) -> Candidate | None:
    """Layout to try next, with a number behind its name if another one of that name was tried."""
    target = proposal.target
    if target is None:
        return None
    number = 1 + sum(trial.name.split(" #")[0] == target.name for trial in proposal.trials)
    return target if number == 1 else replace(target, name=f"{target.name} #{number}")
