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
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from statistics import mean
from types import MappingProxyType
from typing import Any

from streamplace.engines.flink.decide.candidates import (
    Question,
    can_spread,
    configured_mode,
    contradiction,
    decision,
    is_placed,
    known_modes,
    names_of,
    occupied_devices,
    slots_for,
)
from streamplace.engines.flink.decide.decision import PREDICTED, Candidate, Decision
from streamplace.engines.flink.decide.layouts import Layout
from streamplace.engines.flink.decide.proposal import HEAD, Proposal, Trial
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure.cluster import unpinnable
from streamplace.engines.flink.measure.fit import Observed
from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.engines.flink.move.comparing import flow_there, note
from streamplace.engines.flink.move.journal import MoveUnderWay
from streamplace.engines.flink.move.move import FlinkMove, moves_between
from streamplace.engines.flink.move.outcomes import FlinkMoved, Undecided
from streamplace.engines.flink.move.pause import expected_pause
from streamplace.engines.flink.move.settling import seconds_for
from streamplace.engines.flink.pin.fitting import left_without
from streamplace.engines.flink.pin.pinning import by_operator
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.rest.client import FINISHED, FlinkError
from streamplace.engines.flink.rest.tasks import layout_of
from streamplace.errors import StreamplaceError
from streamplace.io.ledger import errors_for
from streamplace.io.placements import Prediction
from streamplace.model.cluster import Cluster
from streamplace.model.defaults import TRIES
from streamplace.model.messages import listed
from streamplace.model.report import Report, Sheet, duration
from streamplace.model.trust import profile_drift, profile_spread
from streamplace.model.units import digits

LOG = logging.getLogger(__name__)
BY, BEFORE = "flink move", "layout before"


@dataclass(frozen=True, slots=True)
class Improved:
    """A job after its trials."""

    job: str  # id of the job that runs now
    trials: Sequence[Trial]  # layouts that were measured or did not run, the first one first
    best: Trial  # the layout in which it runs, or ran best if it has finished
    proposal: Proposal  # predictions after the last trial
    savepoint: str | None = None  # that the running job was started from; None if it never moved

    @property
    def outage(self) -> float | None:
        """Seconds for which the job was stopped in all; None if it was not moved, or unknown."""
        known = [trial.outage for trial in self.trials if trial.outage is not None]
        return sum(known) if known else None

    @property
    def moved(self) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
        """Operators that moved, with the numbers of their subtasks by device before and now."""
        return moves_between(self.trials[0].layout, self.best.layout)

    def to_json(self) -> dict[str, Any]:
        """Return the trials and the predictions as a JSON document."""
        return {
            **self.proposal.to_json(),
            "trials": [trial.to_json() for trial in self.trials],
            "runs": self.best.name,
            "measured": self.best.rate,
            "configuration": self.best.line or None,
        }

    def report(self) -> Report:
        """The table of layouts, with what was measured and what was only predicted."""
        first, *others = self.trials
        before = replace(first, name=BEFORE)
        tried = [before.row(is_best=first is self.best)]
        tried += [trial.row(is_best=trial is self.best) for trial in others]
        untried = [
            self.proposal.row(one)
            for one in self.proposal.decision.candidates
            if not any(trial.is_at(one.layout) for trial in self.trials)
        ]
        return Report((Sheet(HEAD, (*tried, *untried)), *self._last_words()))

    def _last_words(self) -> list[str]:
        """How to make the layout last, if Flink produces it by itself."""
        line = self.best.line
        if not line:
            return []
        return [f"Flink's own setting gives this layout without pins: {line}"]


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
    # Probability with which rates should be in their intervals; 0 ignores errors of prediction.
    confidence: float | None = None
    tries: int = TRIES  # most layouts that are tried
    most_interruption: float = inf  # most seconds for which the job may be stopped in all
    agrees: Callable[[str], bool] = field(default=lambda _: True)  # asked before every trial
    decides: Callable[[Question], Decision] = decision  # finds layouts, and predicts them

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
        errors = errors_for(measured.graph, self.confidence)
        question = Question(
            measured,
            self._present(job),
            slots_for(rest, job),
            can_spread(rest),
            self.rate,
            occupied_devices(rest, job),
            known_modes(rest),
            configured_mode(rest),
            0.0 if self.confidence == 0 else PREDICTED,
            left_without(rest, job),
            is_placed(rest, job),
        )
        left_out = [device for device in unpinnable(rest) if device in question.occupied]
        if left_out and not trials:
            self.tell(
                f"note: nothing can be pinned to {listed(left_out)}, so nothing is placed there; "
                "to use it, add the output of 'streamplace flink config' to its config.yaml and "
                "restart it"
            )
        against = contradiction(question)
        if against is not None and not trials:
            self.tell(f"note: {against}; layouts are tried all the same, and measured")
        return Proposal(
            job,
            measured,
            self.decides(question),
            self._pause(job, trials),
            errors=errors,
            asked=self.rate,
            is_contradicted=against is not None,
            trials=(*trials, Trial.present(names_of(measured.graph, question.present), measured)),
        )

    def _pause(self, job: str, trials: Sequence[Trial]) -> float:
        """Seconds for which a move is expected to stop a job: as its moves so far, if any."""
        known = [trial.outage for trial in trials if trial.outage is not None]
        return mean(known) if known else expected_pause(self.engine.rest, job)

    def planned(self, proposal: Proposal) -> Proposal:
        """Check the program with the next layout, so that errors are found while the job runs.

        A job that stays is checked with its present layout, if TaskManagers are configured for
        that.
        """
        if self.move is None:
            return proposal
        target = proposal.target
        layout = self._present(proposal.job) if target is None else target.layout
        is_whole = all(len(set(devices)) == 1 for devices in layout.values())
        rest = self.engine.rest
        if target is None and (unpinnable(rest) or not (is_whole or can_spread(rest))):
            return proposal
        return replace(proposal, plan=self.move.plan(proposal.job, by_operator(layout)))

    def run(self, proposal: Proposal) -> Improved:
        """Try layouts, measure them, and end on the best one that was measured."""
        savepoint: str | None = None
        for _ in range(self.tries):
            target = _named(proposal)
            if target is None or not self._may_try(target, proposal):
                break
            try:
                moved = self._moved(proposal, target.layout)
            except (Undecided, MoveUnderWay):
                raise
            except StreamplaceError as error:
                self.tell(f"{target.name} does not run: {error}")
                job = self._running(proposal.job, error)
                proposal = proposal.after(job, Trial.failed(target, str(error)))
                continue
            savepoint = moved.savepoint
            try:
                proposal = self._measured(proposal, target, moved)
            except KeyboardInterrupt:
                self.tell(f"interrupted; the job goes back to {proposal.best.name}")
                self._moved(replace(proposal, job=moved.job), proposal.best.layout)
                raise
            if not proposal.where.runs:  # it could not be measured, or the job has finished
                break
        best, trials, job = proposal.best, proposal.trials, proposal.job
        if best is proposal.where:
            return Improved(job, trials, best, proposal, savepoint)
        if self.engine.rest.state(job) == FINISHED:
            self.tell("the job has finished")
        else:
            moved = self._moved(proposal, best.layout)
            self.tell(f"back in {best.name}, the best layout that was measured")
            back = replace(best, outage=(best.outage or 0.0) + (moved.outage or 0.0))
            trials = tuple(back if one is best else one for one in trials)
            job, savepoint, best = moved.job, moved.savepoint, back
        return Improved(job, trials, best, proposal, savepoint)

    def _may_try(self, target: Candidate, proposal: Proposal) -> bool:
        """Whether the user pays for one more trial."""
        spent = sum(trial.outage or 0.0 for trial in proposal.trials)
        if spent + proposal.outage > self.most_interruption:
            self.tell(
                f"no further layout is tried: moving there stops the job for about "
                f"{duration(proposal.outage)}, and {duration(self.most_interruption)} are allowed "
                f"in all, of which {duration(spent)} are used"
            )
            return False
        carries = proposal.capacity_of(target)
        return self.agrees(
            f"try {target.name}: {carries}; moving there stops the job for about "
            f"{duration(proposal.outage)}"
        )

    def _moved(self, proposal: Proposal, layout: Layout) -> FlinkMoved:
        """Move a job to a layout; its rate is not a condition, because it is measured there."""
        assert self.move is not None
        move, job, plan = self.move.for_trials(), proposal.job, proposal.plan
        if plan is None or plan.job != job or moves_between(plan.after, layout):
            plan = move.plan(job, by_operator(layout))
        return move.run(replace(plan, varies=proposal.measured.varies))

    def _measured(self, proposal: Proposal, target: Candidate, moved: FlinkMoved) -> Proposal:
        """Measure a job in a new layout, and fit the model again if that is possible."""
        rest = self.engine.rest
        unmeasured = Trial(target.name, target.layout, 0.0, outage=moved.outage, line=target.line)
        try:
            now = self.propose(moved.job, proposal.measured.observed, proposal.trials)
        except FlinkError as error:
            if rest.state(moved.job) == FINISHED:
                return proposal.after(moved.job, unmeasured)
            self.tell(f"{target.name} is not measured well: {error}")
            seconds = seconds_for(varies=proposal.measured.varies)
            flow = flow_there(rest, moved.job, self.tell, seconds)
            trial = unmeasured if flow is None else unmeasured.measured(flow)
            return proposal.after(moved.job, trial)
        there = now.where
        flow = SourceFlow(there.rate, is_limited=there.is_limited)
        stopped = "" if moved.outage is None else f", stopped for {duration(moved.outage)}"
        self.tell(f"  {digits(flow.rate)} tuples/s were measured there{stopped}")
        self._record(proposal, target, flow)
        trial = replace(unmeasured.measured(flow), layout=there.layout)
        return replace(now, trials=(*proposal.trials, trial))

    def _record(self, proposal: Proposal, target: Candidate, flow: SourceFlow) -> None:
        """Append to the ledger what a layout was predicted to carry and what it carries."""
        graph, errors = proposal.measured.graph, proposal.errors
        predicted = Prediction(
            graph.name,
            proposal.capacity_of(target),
            None if errors is None else errors.supported,
            profile_drift(graph),
            target.kept,
            profile_spread(graph),
        )
        note(BY, predicted, flow, self.tell)

    def _running(self, job: str, error: StreamplaceError) -> str:
        """Id of the job after a trial that failed; raise the error if no single copy runs."""
        states = chain_states(self.engine.rest, job)
        running = [one for one, state in states.items() if state == "RUNNING"]
        if len(running) != 1:
            raise error
        return running[0]

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
