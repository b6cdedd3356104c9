"""Carry out the decisions of a watch, each at most once, whenever the watch is killed.

A decision is written before it acts, with what identifies its start at the engine. A watch that
begins with a decision without an outcome looks for it there: first the journal of the move, then
the jobs that Flink knows.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from streamplace.engines.flink.measure.sources import source_flow
from streamplace.engines.flink.move.journal import MoveUnderWay
from streamplace.engines.flink.move.move import FlinkMove
from streamplace.engines.flink.move.outcomes import (
    FlinkMoved,
    NotSaved,
    StoppedByOthers,
    Undecided,
)
from streamplace.engines.flink.move.settling import note
from streamplace.engines.flink.pin.pinning import by_operator
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.rest.client import ENDED, FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.job_ids import chain_of, successor
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.plans import JobModel, WatchPlan
from streamplace.engines.flink.watch.replacing import Notices
from streamplace.errors import StreamplaceError
from streamplace.io.placements import Prediction
from streamplace.io.watch_store import (
    FAILED,
    MOVED,
    RETURNED,
    UNBEGUN,
    UNSAVED,
    WatchDecision,
    utc_now,
)
from streamplace.model.messages import listed
from streamplace.model.units import digits

BY = "flink watch"
AGAIN_SECONDS = 10.0
"""Seconds between two tries to finish a move while Flink does not answer, or lacks devices."""
GIVE_UP_SECONDS = 3600.0
"""Seconds for which a move is tried again that Flink answers and cannot finish."""


def without_advice(error: StreamplaceError) -> str:
    """What is the case, without the command by which a user would finish the move."""
    return error.clause if isinstance(error, Undecided) else str(error)


@dataclass(frozen=True, slots=True)
class WatchMover:
    """Moves a watched job."""

    move: FlinkMove  # carries out moves as transactions
    log: WatchLog
    tell: Callable[[str], None]
    confidence: float | None = None  # confidence of the predictions; None if unknown
    # Raises SettingError if the program is not the one any more with which the watch began.
    check_program: Callable[[], None] = lambda: None

    @property
    def rest(self) -> Rest:
        """REST interface of the cluster."""
        return self.move.rest

    def carry_out(self, model: JobModel, target: WatchPlan, reason: str) -> str:
        """Move a job to a plan; return the id of the job that runs afterwards.

        Raises MoveUnderWay when another command moves it. Raises StoreError when the decision
        cannot be written; nothing was done. Raises StreamplaceError when the program does not fit,
        or has changed; nothing was done.
        """
        self.check_program()
        layout = by_operator(target.layout)
        plan = self.move.plan(model.job, layout)
        if not plan.is_needed:
            return model.job
        decision = WatchDecision(
            utc_now(),
            "move",
            model.job,
            successor(model.job),
            layout,
            (model.present.machines, len(target.devices)),
            reason,
            *target.carries,
            kept=model.kept,
            spread=model.spread,
        )
        number = self.log.begin(decision)
        try:
            moved = self.move.run(replace(plan, varies=model.varies))
        except MoveUnderWay as error:
            self.log.end(number, decision, UNBEGUN, str(error), model.job)
            raise
        except NotSaved as error:
            return self._not_saved(number, decision, error)
        except StoppedByOthers as error:
            return self._stopped(number, decision, error)
        except StreamplaceError as error:
            self.tell(without_advice(error))
            return self.finish(number, decision, model.name, str(error)) or model.job
        job = self._moved(number, decision, moved, model.name)
        if job == decision.transaction:
            self._tell_freed({*model.present.devices} - {*target.devices})
        return job

    def settle(self, number: int, decision: WatchDecision, name: str, why: str) -> str | None:
        """Find out what became of a move, and finish it; return the job that runs, if one does.

        Raises MoveUnderWay when the command that moves it still runs. Raises Undecided when Flink
        does not answer, or no job of the move runs and it can still be finished.
        """
        try:
            journals = self.move.unfinished_moves()
        except NoAnswer:
            raise
        except StreamplaceError as error:  # the folder cannot be read
            raise Undecided(str(error)) from None
        if any(decision.job in (one.job, one.successor) for one in journals):
            self.tell(f"a move of job {decision.job} was interrupted; it is finished first")
            try:
                moved = self.move.resume(decision.job)
            except StoppedByOthers as error:
                return self._stopped(number, decision, error)
            except (MoveUnderWay, Undecided):
                raise
            except NotSaved as error:
                return self._not_saved(number, decision, error)
            except StreamplaceError as error:
                if not self._alive(decision) and self.move.unfinished_moves():
                    raise Undecided(str(error)) from None
                self.tell(str(error))
            else:
                return self._moved(number, decision, moved, name)
        return self._looked_up(number, decision, why)

    def finish(
        self,
        number: int,
        decision: WatchDecision,
        name: str,
        why: str = "the watch was ended meanwhile",
    ) -> str | None:
        """Settle a move, for as long as it takes Flink to answer; every reason is told once."""
        breakdowns, began = Notices(self.tell), time.monotonic()
        while True:
            try:
                return self.settle(number, decision, name, why)
            except (Undecided, NoAnswer) as error:
                is_late = time.monotonic() - began > GIVE_UP_SECONDS
                if is_late and isinstance(error, Undecided):
                    return self._looked_up(number, decision, str(error))
                breakdowns(f"{without_advice(error)}; trying again")
            time.sleep(AGAIN_SECONDS)

    def _tell_freed(self, devices: Iterable[str]) -> None:
        """Tell the TaskManagers among these on which no job has a slot any more."""
        with suppress(FlinkError):  # one may have ended already
            if freed := [device for device in sorted(devices) if not self.rest.holders(device)]:
                self.tell(f"no job has a slot on {listed(freed)} any more")

    def _moved(self, number: int, decision: WatchDecision, moved: FlinkMoved, name: str) -> str:
        """Note a job that was moved, and measure it on its new devices."""
        if moved.job != decision.transaction:
            return self._looked_up(number, decision, "the job was moved back") or moved.job
        outage = "" if moved.outage is None else f"interrupted for {moved.outage:.1f} s"
        ended = self.log.end(number, decision, MOVED, outage, moved.job)
        self.tell(f"job {moved.job} runs on its new devices{outage and ', '}{outage}")
        self._note_rate(number, ended, name)
        return moved.job

    def _note_rate(self, number: int, decision: WatchDecision, name: str) -> None:
        """Measure a job after a decision was carried out, beside what was predicted."""
        try:
            flow = source_flow(self.rest, decision.after)
        except FlinkError:  # the next round measures it
            return
        if flow is None or decision.value is None:
            return
        self.log.amend(number, replace(decision, measured=flow.rate))
        between = " to ".join(digits(x) for x in (decision.low, decision.high) if x is not None)
        self.tell(
            f"the job emits {digits(flow.rate)} tuples/s now (measured); it should carry "
            f"{digits(decision.value)} ({between})"
        )
        if decision.model is not None:
            predicted = Prediction(
                name, decision.model, self.confidence, kept=decision.kept, spread=decision.spread
            )
            note(BY, predicted, flow, self.tell)

    def _not_saved(self, number: int, decision: WatchDecision, error: NotSaved) -> str:
        """Note a job that could not be saved when it was asked to stop, and runs on."""
        self.tell(str(error))
        self.log.end(number, decision, UNSAVED, str(error), decision.job)
        return decision.job

    def _stopped(self, number: int, decision: WatchDecision, error: StoppedByOthers) -> str:
        """Note a job that another user has stopped, which is not started again."""
        self.tell(str(error))
        self.log.end(number, decision, UNBEGUN, str(error), decision.job)
        return decision.job

    def _looked_up(self, number: int, decision: WatchDecision, why: str) -> str | None:
        """Find the job of a move that runs, and note the outcome; None if none runs."""
        alive = self._alive(decision)
        if not alive:
            self.log.end(number, decision, FAILED, f"{why}; no job of the move runs", "")
            return None
        place = chain_of(decision.job).index(alive[-1])
        state = UNBEGUN if place == 0 else MOVED if place == 1 else RETURNED
        self.log.end(number, decision, state, why, alive[-1])
        return alive[-1]

    def _alive(self, decision: WatchDecision) -> list[str]:
        """Jobs before and after a move that have not ended, in order."""
        states = chain_states(self.rest, decision.job)
        chain = chain_of(decision.job)
        return [job for job in chain if states.get(job, "FINISHED") not in ENDED]
