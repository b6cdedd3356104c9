"""Improve a running job: measure it, decide on a layout, move it, and measure it again."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import hypot
from pathlib import Path

from streamplace.engines.flink.decide.candidates import (
    Question,
    can_spread,
    check_model,
    configured_mode,
    decision,
    is_placed,
    known_modes,
    occupied_devices,
    slots_for,
)
from streamplace.engines.flink.decide.decision import MEASURED, PREDICTED
from streamplace.engines.flink.decide.layouts import Layout
from streamplace.engines.flink.decide.proposal import Proposal
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure.cluster import unpinnable
from streamplace.engines.flink.move.comparing import flow_there, note
from streamplace.engines.flink.move.move import FlinkMove
from streamplace.engines.flink.move.outcomes import FlinkMoved, Undecided
from streamplace.engines.flink.move.pause import expected_pause
from streamplace.engines.flink.move.settling import SourceFlow, seconds_for
from streamplace.engines.flink.pin.fitting import left_without
from streamplace.engines.flink.pin.pinning import by_operator
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.rest.tasks import layout_of
from streamplace.errors import StreamplaceError
from streamplace.io.ledger import errors_for
from streamplace.io.placements import Prediction
from streamplace.model.cluster import Cluster
from streamplace.model.messages import listed
from streamplace.model.trust import profile_drift, profile_spread
from streamplace.model.units import digits

BY = "flink move"


@dataclass(frozen=True, slots=True)
class JobImprover:
    """Measures a job, decides on its layout and moves it."""

    engine: FlinkEngine
    # Carries out moves; a job with back-pressured sources is moved back if it becomes slower. None
    # if the program is unknown, so that only a proposal can be made.
    move: FlinkMove | None
    seconds: float = 10.0  # duration of the measurement
    # Tuples/s that all sources are offered together; None for the emitted rate, or for the maximum
    # if the sources are back-pressured.
    rate: float | None = None
    cluster: Cluster | None = None  # the devices, if known; otherwise they are measured
    # Whether to decide by a profile whose model contradicts the measured rate.
    trusts_profile: bool = False
    tell: Callable[[str], None] = field(default=lambda _: None)
    # Probability with which rates should be in their intervals; 0 ignores errors of prediction.
    confidence: float | None = None
    # File to which predicted and measured rates are appended; None writes none.
    ledger: Path | None = None

    def propose(self, job: str, believed: float = 1.0) -> Proposal:
        """Measure a running job, and decide where it should run; nothing is stopped.

        Gains count as ``believed`` times what is predicted. A model that contradicts the
        measurement raises ProblemError, unless the profile is trusted.
        """
        rest = self.engine.rest
        measured = self.engine.measure(job, self.seconds, cluster=self.cluster)
        errors = errors_for(measured.graph, self.confidence, self.ledger)
        question = Question(
            measured,
            self._present(job),
            slots_for(rest, job),
            can_spread(rest),
            self.rate,
            occupied_devices(rest, job),
            known_modes(rest),
            configured_mode(rest),
            0.0 if self.confidence == 0 else hypot(PREDICTED, measured.drift),
            left_without(rest, job),
            is_placed(rest, job),
        )
        left_out = [device for device in unpinnable(rest) if device in question.occupied]
        if left_out:
            self.tell(
                f"note: nothing can be pinned to {listed(left_out)}, so nothing is placed there; "
                "to use it, add the output of 'streamplace flink config' to its config.yaml and "
                "restart it"
            )
        warning = check_model(question, trusts=self.trusts_profile)
        if warning is not None:
            self.tell(f"warning: {warning}")
        answer = decision(question).damped(believed)
        pause = expected_pause(rest, job)
        return Proposal(job, measured, answer, pause, errors=errors, asked=self.rate)

    def planned(self, proposal: Proposal) -> Proposal:
        """Check the program with the new layout, so that errors are found while the job runs.

        A job that stays is checked with its present layout, if TaskManagers are configured for
        that.
        """
        if self.move is None:
            return proposal
        target = proposal.decision.chosen.layout if proposal.moves else self._present(proposal.job)
        is_whole = all(len(set(devices)) == 1 for devices in target.values())
        rest = self.engine.rest
        if not proposal.moves and (unpinnable(rest) or not (is_whole or can_spread(rest))):
            return proposal
        return replace(proposal, plan=self.move.plan(proposal.job, by_operator(target)))

    def run(self, proposal: Proposal) -> FlinkMoved:
        """Move a job and measure it there; correct the move once if the rate is too low."""
        moved = self._moved(proposal)
        flow = self._compared(proposal, moved)
        if flow is None or not self._falls_short(proposal, flow):
            return moved
        self.tell("that is less than was predicted; measuring it there to correct the placement")
        try:
            again = self.propose(moved.job, proposal.share_of_gain(flow.rate))
        except StreamplaceError as error:
            self.tell(f"the placement is not corrected: {error}")
            return moved
        for sentence in again.sentences():
            self.tell(sentence)
        return self._corrected(moved, again) if again.moves else moved

    def _corrected(self, moved: FlinkMoved, again: Proposal) -> FlinkMoved:
        """Move a job once more, for a correction; it may have returned to its first target."""
        try:
            corrected = self._moved(self.planned(again))
        except StreamplaceError as error:
            states = chain_states(self.engine.rest, moved.job)
            running = [job for job, state in states.items() if state == "RUNNING"]
            if isinstance(error, Undecided) or len(running) != 1:
                raise
            self.tell(f"the placement is not corrected: {error}")
            return replace(moved, job=running[0])
        self._compared(again, corrected)
        return corrected

    def _present(self, job: str) -> Layout:
        """Operator → device of each of its subtasks, in order."""
        rest = self.engine.rest
        return layout_of(rest, job, rest.running_job(job))

    def _moved(self, proposal: Proposal) -> FlinkMoved:
        if proposal.plan is None or self.move is None:
            raise ValueError("nothing was planned")
        return self.move.run(replace(proposal.plan, varies=proposal.measured.varies))

    def _compared(self, proposal: Proposal, moved: FlinkMoved) -> SourceFlow | None:
        """Measure the rate of a moved job, and report and record it with its prediction."""
        seconds = seconds_for(varies=proposal.measured.varies)
        flow = flow_there(self.engine.rest, moved.job, self.tell, seconds)
        if flow is None:
            return None
        self.tell(
            f"there: {digits(flow.rate)} tuples/s (measured), predicted were {proposal.interval}"
        )
        if self.ledger is not None:
            graph, errors = proposal.measured.graph, proposal.errors
            predicted = Prediction(
                graph.name,
                proposal.modelled,
                None if errors is None else errors.supported,
                profile_drift(graph),
                proposal.decision.chosen.kept,
                profile_spread(graph),
            )
            note(self.ledger, BY, predicted, flow, self.tell)
        return flow

    def _falls_short(self, proposal: Proposal, flow: SourceFlow) -> bool:
        """Whether the job is back-pressured at a rate below its prediction.

        The interval for comparisons of layouts is used, and what may change of a cold job. Sources
        that keep up may send as much less as runs of one placement differ.
        """
        chosen = proposal.decision.chosen
        drift = profile_drift(proposal.measured.graph)
        least = (chosen.carries.low - MEASURED * chosen.kept) / (1 + drift)
        return flow.is_limited and flow.rate + flow.error < least
