"""Carry out the decisions of a watch, each at most once, whenever the watch is killed.

A decision is written before it acts, with what identifies its start at the engine. A watch that
begins with a decision without an outcome looks for it there: first the journal of the move, then
the jobs that Flink knows.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.engines.flink.move.journal import MoveUnderWay
from streamplace.engines.flink.move.move import FlinkMove
from streamplace.engines.flink.move.outcomes import (
    FlinkMoved,
    NotSaved,
    StoppedByOthers,
    Undecided,
)
from streamplace.engines.flink.move.settling import note
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.rest.client import ENDED, FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.job_ids import chain_of, successor
from streamplace.engines.flink.watch.deciding import LayoutOption, WatchChoice
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.replacing import Notices
from streamplace.errors import StreamplaceError
from streamplace.io.placements import Prediction
from streamplace.io.watches import (
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
    # Raises SettingError if the program is not the one any more with which the watch began.
    check_program: Callable[[], None] = lambda: None

    @property
    def rest(self) -> Rest:
        """REST interface of the cluster."""
        return self.move.rest

    def carry_out(self, job: str, here: LayoutOption, choice: WatchChoice) -> str:
        """Move a job where it should run; return the id of the job that runs afterwards.

        Its rate there is no condition of the move: the next round measures it. Raises MoveUnderWay
        when another command moves it. Raises StoreError when the decision cannot be written;
        nothing was done. Raises StreamplaceError when the program does not fit, or has changed;
        nothing was done.
        """
        target = choice.target or here
        self.check_program()
        layout = target.layout.by_operator()
        plan = self.move.plan(job, layout)
        if not plan.is_needed:
            return job
        low, value, high = (None,) * 3 if target.measured is not None else target.carries
        decision = WatchDecision(
            utc_now(),
            "return" if choice.returns else "move",
            job,
            successor(job),
            layout.to_json(),
            (here.machines, target.machines),
            choice.words,
            low,
            value,
            high,
            kept=target.kept,
            spread=target.spread,
        )
        number = self.log.begin(decision)
        try:
            moved = self.move.run(plan)
        except MoveUnderWay as error:
            self.log.end(number, decision, UNBEGUN, str(error), job)
            raise
        except (NotSaved, StoppedByOthers) as error:
            return self._left(number, decision, error)
        except StreamplaceError as error:
            self.tell(without_advice(error))
            return self.finish(number, decision, str(error)) or job
        after = self._moved(number, decision, moved)
        if after == decision.transaction:
            self._tell_freed({*here.devices} - {*target.devices})
        return after

    def settle(self, number: int, decision: WatchDecision, why: str) -> str | None:
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
            except (NotSaved, StoppedByOthers) as error:
                return self._left(number, decision, error)
            except (MoveUnderWay, Undecided):
                raise
            except StreamplaceError as error:
                if not self._alive(decision) and self.move.unfinished_moves():
                    raise Undecided(str(error)) from None
                self.tell(str(error))
            else:
                return self._moved(number, decision, moved)
        return self._looked_up(number, decision, why)

    def finish(
        self, number: int, decision: WatchDecision, why: str = "the watch was ended meanwhile"
    ) -> str | None:
        """Settle a move, for as long as it takes Flink to answer; every reason is told once."""
        breakdowns, began = Notices(self.tell), time.monotonic()
        while True:
            try:
                return self.settle(number, decision, why)
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

    def note_rate(self, number: int, decision: WatchDecision, flow: SourceFlow) -> None:
        """Write what was measured after a move, beside what was predicted."""
        self.log.amend(number, replace(decision, measured=flow.rate))
        if (carries := decision.model) is None:
            return
        self.tell(f"{digits(flow.rate)} tuples/s were measured there, {carries} were predicted")
        name = str(self.rest.job(decision.after)["name"])
        kept, spread = decision.kept, decision.spread
        predicted = Prediction(name, carries, None, kept=kept, spread=spread)
        note(BY, predicted, flow, self.tell)

    def _moved(self, number: int, decision: WatchDecision, moved: FlinkMoved) -> str:
        """Note a job that was moved."""
        if moved.job != decision.transaction:
            return self._looked_up(number, decision, "the job was moved back") or moved.job
        outage = "" if moved.outage is None else f"interrupted for {moved.outage:.1f} s"
        self.log.end(number, decision, MOVED, outage, moved.job)
        self.tell(f"job {moved.job} runs on its new devices{outage and ', '}{outage}")
        return moved.job

    def _left(self, number: int, decision: WatchDecision, error: NotSaved | StoppedByOthers) -> str:
        """Note a job that could not be saved and runs on, or that another user has stopped."""
        self.tell(str(error))
        state = UNSAVED if isinstance(error, NotSaved) else UNBEGUN
        self.log.end(number, decision, state, str(error), decision.job)
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
