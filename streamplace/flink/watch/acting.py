"""Carry out the decisions of a watch, each at most once, even if the watch is killed.

A decision is written before it is carried out, by the transaction of a move. On start, a decision
without an outcome is looked up in the journal of moves, then among the jobs that Flink knows.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from streamplace.errors import StreamplaceError
from streamplace.flink.constants import CHECK_SECONDS, RESUME_PAUSE_SECONDS
from streamplace.flink.layout import Layout
from streamplace.flink.ledger import note_in_ledger
from streamplace.flink.move.decision_table import Copy
from streamplace.flink.move.journal import Journal, MoveUnderWay
from streamplace.flink.move.move import FlinkMove
from streamplace.flink.move.transaction import (
    FlinkMoved,
    NotSaved,
    StoppedByOthers,
    Undecided,
)
from streamplace.flink.pin.free_resources import managers_without, occupied_devices
from streamplace.flink.program.submission import live_states
from streamplace.flink.rest.client import NoAnswer, Rest, successor
from streamplace.flink.store import utc_now
from streamplace.flink.watch.deciding import LayoutOption, WatchChoice
from streamplace.flink.watch.log import WatchLog
from streamplace.flink.watches import FAILED, MOVED, RETURNED, UNBEGUN, UNSAVED, WatchDecision
from streamplace.io.placements import Prediction

BY = "flink watch"


class Notices:
    """Messages; equal consecutive ones are printed once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell, self._last = tell, ""

    def __call__(self, words: str) -> None:
        """Print a message, unless it is empty or the same as the last one."""
        if words and words != self._last:
            self._tell(words)
        self._last = words


@dataclass(frozen=True, slots=True)
class Spares:
    """TaskManagers that replace lost ones."""

    rest: Rest
    names: list[str]  # spares of the user in order, then lost TaskManagers, which may come back
    # Whether the job may also use TaskManagers that no other job occupies, and if these are too
    # few, only the TaskManagers that it still has.
    takes_free: bool = False

    def without_lost(self, job: str, layout: Layout) -> Layout | None:
        """Layout on present TaskManagers; None if they are too few."""
        offered = self.rest.offered()
        lost = sorted(layout.devices.difference(offered))
        usable, names = offered.keys() - layout.devices, self.names
        if self.takes_free:
            usable -= occupied_devices(managers_without(self.rest, job))
            names = [*names, *sorted(offered)]
        spares = [device for device in dict.fromkeys(names) if device in usable]
        present = layout.with_spares(dict(zip(lost, spares, strict=False)))
        if not (missing := lost[len(spares) :]):
            return present
        has_rest = self.takes_free and present.devices.difference(missing)
        return present.without(missing) if has_rest else None

    def of_move(self, journal: Journal) -> tuple[Layout, Layout]:
        """Layouts after and before a move, on present TaskManagers if these suffice."""
        after, before = journal.after, journal.before
        return (
            self.without_lost(journal.job, after) or after,
            self.without_lost(journal.job, before) or before,
        )


def decision_of(
    choice: WatchChoice, here: LayoutOption, job: str, transaction: str
) -> WatchDecision:
    """Record of a choice, before it is carried out."""
    target = choice.target
    assert target is not None
    return WatchDecision(
        utc_now(),
        WatchDecision.RETURN if choice.returns else WatchDecision.MOVE,
        job,
        transaction,
        target.layout.to_json(),
        (here.machines, target.machines),
        choice.words,
        None if target.measured is not None else target.carries,
        kept=target.kept,
        spread=target.spread,
    )


def without_advice(error: StreamplaceError) -> str:
    """Message of an error, without the command by which a user would finish the move."""
    return error.clause if isinstance(error, Undecided) else str(error)


@dataclass(frozen=True, slots=True)
class WatchMover:
    """Moves a watched job, and starts it without lost TaskManagers."""

    move: FlinkMove  # carries out moves as transactions
    spares: Spares
    log: WatchLog
    # Raises SettingError if the program has changed since the watch began.
    check_program: Callable[[], None] = lambda: None

    def carry_out(self, job: str, here: LayoutOption, choice: WatchChoice) -> str:
        """Move a job to the chosen layout; return the id of the job that runs afterwards.

        The next round measures its rate there; the move does not depend on it. Raises
        MoveUnderWay when another command moves it. Raises StoreError when the decision cannot be
        written; nothing was done. Raises StreamplaceError when the program does not fit, or has
        changed; nothing was done.
        """
        assert choice.target is not None
        self.check_program()
        plan = self.move.plan(job, choice.target.layout)
        if not plan.is_needed:
            return job
        decision = decision_of(choice, here, job, successor(job))
        return self._act(decision, lambda: self.move.run(plan))

    def start_again(self, job: str, before: Layout, after: Layout) -> str:
        """Start a job that has lost TaskManagers on others; return the id of the job that runs.

        Raises the errors of `carry_out`.
        """
        lost = sorted(before.devices - after.devices)
        words = f"lost TaskManagers: {', '.join(lost)}" if lost else "a lost TaskManager is back"
        machines = len(before.devices), len(after.devices)
        kind, new = WatchDecision.REPLACE, successor(job)
        decision = WatchDecision(utc_now(), kind, job, new, after.to_json(), machines, words)
        return self._act(decision, lambda: self.move.restart(job, before))

    def note_rate(self, decision: WatchDecision, rate: float, is_limited: bool) -> None:
        """Write the measured rate after a move, beside the predicted one."""
        name = str(self.move.rest.job(decision.after)["name"])
        self.log.note_rate(decision, rate)
        if (carries := decision.carries) is not None:
            kept, spread = decision.kept, decision.spread
            predicted = Prediction(name, carries, None, kept=kept, spread=spread)
            note_in_ledger(BY, predicted, rate, is_limited, self.log.tell)

    def _act(self, decision: WatchDecision, act: Callable[[], FlinkMoved]) -> str:
        number = self.log.begin(decision)
        try:
            return self._carried_out(number, act)
        except MoveUnderWay as error:
            self.log.end(number, UNBEGUN, str(error), decision.job)
            raise
        except StreamplaceError as error:
            self.log.tell(without_advice(error))
            return self.finish(number, str(error)) or decision.job

    def _carried_out(self, number: int, act: Callable[[], FlinkMoved]) -> str:
        """Move the job, or resume its move, and note the outcome; return the job that runs."""
        decision = self.log.decisions[number]
        try:
            moved = act()
        except (NotSaved, StoppedByOthers) as error:  # the job still runs, or others ended it
            self.log.tell(str(error))
            state = UNSAVED if isinstance(error, NotSaved) else UNBEGUN
            self.log.end(number, state, str(error), decision.job)
            return decision.job
        if moved.job != decision.transaction:
            return self._outcome(number, "the job was moved back") or moved.job
        seconds = moved.interruption
        stopped = "" if seconds is None else f"interrupted for {seconds:.1f} s"
        self.log.end(number, MOVED, stopped, moved.job)
        self.log.tell(f"job {moved.job} runs on its new devices{stopped and ', '}{stopped}")
        return moved.job

    def finish(self, number: int, why: str = "the watch ended meanwhile") -> str | None:
        """Finish a move, or look up its outcome; return the job that runs, if one does.

        Retries until the outcome is known: while Flink does not answer, the store cannot be read,
        or no job of the move runs although the move can still be finished. Raises MoveUnderWay when
        the command that moves the job still runs.
        """
        notices, pause = Notices(self.log.tell), CHECK_SECONDS
        while True:
            try:
                return self._finished(number, why)
            except MoveUnderWay:
                raise
            except StreamplaceError as error:
                notices(f"{without_advice(error)}; trying again")
            time.sleep(pause)
            pause = min(2 * pause, RESUME_PAUSE_SECONDS)

    def _finished(self, number: int, why: str) -> str | None:
        """Try once to finish a move, or to look up its outcome."""
        job = self.log.decisions[number].job
        # The job's own move, or the move that started it. A move that returned it to here belongs
        # to another command, which finishes it.
        if any(job in (move.job, move.successor) for move in self.move.unfinished_moves()):
            try:
                return self._carried_out(number, lambda: self.move.resume(job))
            except (MoveUnderWay, Undecided, NoAnswer):
                raise
            except StreamplaceError as error:
                if not live_states(self.move.rest, job) and self.move.unfinished_moves():
                    raise
                self.log.tell(str(error))
        return self._outcome(number, why)

    def _outcome(self, number: int, why: str) -> str | None:
        """Note the outcome of a move by its job that runs, and return that; None if none runs."""
        job = self.log.decisions[number].job
        live = [*live_states(self.move.rest, job)]
        if not live:
            self.log.end(number, FAILED, f"{why}; no job of the move runs", "")
            return None
        states = {Copy.MOVED: UNBEGUN, Copy.SUCCESSOR: MOVED, Copy.RETURNED: RETURNED}
        self.log.end(number, states[Copy.of(live[-1], job)], why, live[-1])
        return live[-1]
