"""Options of ``streamplace flink watch``, and the objects that they configure."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamplace.cli._flink import check_nic
from streamplace.cli._output import print_line, say, say_written
from streamplace.cli._process import interruptible

if TYPE_CHECKING:
    from streamplace.engines.flink.engine import FlinkEngine
    from streamplace.engines.flink.pin.pinning import Vectors
    from streamplace.engines.flink.program.program import Program
    from streamplace.engines.flink.rest.client import Rest
    from streamplace.engines.flink.watch.acting import WatchMover
    from streamplace.engines.flink.watch.judging import Guards, RateJudge
    from streamplace.engines.flink.watch.log import WatchLog
    from streamplace.engines.flink.watch.placed_job import PlacedJob
    from streamplace.engines.flink.watch.rounds import JobRounds
    from streamplace.engines.flink.watch.watch import Watch
    from streamplace.io.watch_store import WatchRound

STOPPED = "stopped watching; the job keeps running"
INTERRUPTED = (
    "stopped while the job was being started elsewhere; give the same command again, which "
    "finishes this"
)


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Options of ``flink watch``, except those for Flink's address and for the submission."""

    job: str | None
    placement: Path | None
    spares: tuple[str, ...]
    acts: bool
    every: float
    policy: str
    move_price: str
    lag: str
    least_time: float
    not_between: tuple[str, ...]
    at_most: int | None
    seconds: float
    trust_profile: bool
    confidence: float | None
    mips: str
    nic: tuple[str, ...]
    cluster_file: Path | None
    folder: str | None
    native: bool
    patience: float
    timeout: float
    metrics: int | None
    output: Path | None

    def run(self, rest: "Rest", home: Path | None, given: "Program | None") -> None:
        """Watch the job until it ends; an error if it fails, or is stopped or moved by others."""
        from streamplace.engines.flink.watch.log import WatchLog
        from streamplace.engines.flink.watch.watch import (
            check_movable,
            check_watchable,
            first_job,
            settled,
        )
        from streamplace.io.store import Store

        check_nic(self.nic, {"--cluster": self.cluster_file})
        guards, judge = self._guards(), self._judge()
        with ExitStack() as stack:
            stack.enter_context(interruptible())
            store = Store.usual()
            job = first_job(rest, store, self.job)
            document = rest.job(job)
            check_watchable(rest, job, document)
            if self.acts:
                check_movable(rest, job)
            program = self._program(rest, job, given)
            name = str(document["name"])
            log = WatchLog.claimed(store, job, name, say)
            engine = self._engine(rest, home)
            rounds = self._rounds(engine, program, log, guards, judge)
            if self.metrics is not None:
                rounds.observe = stack.enter_context(_served(name, self.metrics))
            rounds.recall()
            watch = self._watch(engine, program, rounds)
            try:
                now = settled(watch, rounds.mover, log, job)
                watch.run(self._placed(rest, now, log, is_started=now != job))
            except KeyboardInterrupt:
                say(INTERRUPTED if log.is_starting else STOPPED)

    def _rounds(
        self,
        engine: "FlinkEngine",
        program: "Program | None",
        log: "WatchLog",
        guards: "Guards",
        judge: "RateJudge",
    ) -> "JobRounds":
        """Rounds that look at the rate, and move the job if that is wanted."""
        from streamplace.engines.flink.watch.modelling import JobModeller
        from streamplace.engines.flink.watch.rounds import JobRounds
        from streamplace.io.clusters import read_cluster
        from streamplace.model.intervals import USUAL_CONFIDENCE

        mover = None
        if self.acts and program is not None:
            mover = self._mover(engine, program, log)
        model_of = JobModeller(
            engine,
            say,
            self.seconds,
            self.at_most,
            self.trust_profile,
            self.confidence,
            cluster=None if self.cluster_file is None else read_cluster(self.cluster_file),
        )
        return JobRounds(
            engine.rest,
            log,
            judge,
            guards,
            model_of,
            mover,
            say,
            self.every,
            confidence=USUAL_CONFIDENCE if self.confidence is None else self.confidence,
        )

    def _mover(self, engine: "FlinkEngine", program: "Program", log: "WatchLog") -> "WatchMover":
        from streamplace.engines.flink.program.submitted import SubmittedProgram
        from streamplace.engines.flink.watch.acting import WatchMover
        from streamplace.engines.flink.watch.placed_job import move_without_lost

        without = partial(move_without_lost, engine.rest, self.spares)
        move = replace(engine.moving(program), without_lost=without)
        check = SubmittedProgram.of(program).check
        return WatchMover(move, log, say, self.confidence, check_program=check)

    def _watch(
        self, engine: "FlinkEngine", program: "Program | None", rounds: "JobRounds"
    ) -> "Watch":
        from streamplace.engines.flink.program.submitted import SubmittedProgram
        from streamplace.engines.flink.watch.replacing import Replacing
        from streamplace.engines.flink.watch.watch import Watch

        replacing = Replacing(
            engine.rest,
            engine.flink if program is not None else None,
            program,
            self.spares,
            say,
            self._moved,
            self.patience,
            self.timeout,
            self._placement_file(),
            rounds.log,
            takes_free=self.acts,
        )
        if program is not None:
            replacing = replace(replacing, check_program=SubmittedProgram.of(program).check)
        return Watch(replacing, rounds)

    @property
    def may_start(self) -> bool:
        """Whether the job may be started elsewhere, for its rate or for a lost TaskManager."""
        return self.acts or bool(self.spares)

    def _guards(self) -> "Guards":
        from streamplace.engines.flink.watch.judging import Guards, QuietHours

        return Guards(self.least_time, tuple(map(QuietHours.of, self.not_between)))

    def _judge(self) -> "RateJudge":
        from streamplace.control.day import MoveTerms
        from streamplace.control.policy import POLICIES
        from streamplace.engines.flink.watch.judging import RateJudge
        from streamplace.model.units import seconds

        terms = MoveTerms(price=seconds(self.move_price), lag=seconds(self.lag))
        return RateJudge(POLICIES[self.policy].make, self.every, terms)

    def _program(self, rest: "Rest", job: str, given: "Program | None") -> "Program | None":
        """Program that the job was submitted with; None if nothing is started."""
        from streamplace.engines.flink.program.submitted import known_program

        return (given or known_program(rest, job)) if self.may_start else None

    def _engine(self, rest: "Rest", home: Path | None) -> "FlinkEngine":
        """Engine that measures and moves the job."""
        from streamplace.engines.flink.engine import FlinkEngine
        from streamplace.engines.flink.measure.cards import parse_cards
        from streamplace.engines.flink.move.settings import MoveSettings

        moves = MoveSettings(
            self.folder,
            seconds=self.timeout,
            native=self.native,
            never_slower=True,
        )
        cards = parse_cards(self.nic)
        return FlinkEngine(rest, home, self.mips, moves=moves, tell=say, cards=cards)

    def _placed(self, rest: "Rest", job: str, log: "WatchLog", *, is_started: bool) -> "PlacedJob":
        """The job with the devices of the placement, or with those that it runs on.

        The placement is not that of a job which a watch has started elsewhere, now or earlier. Such
        a job may have lost a device meanwhile, so that Flink shows no layout of it.
        """
        from streamplace.engines.flink.pin.pinning import read_vectors
        from streamplace.engines.flink.rest.tasks import layout_of
        from streamplace.engines.flink.watch.look import running_layout
        from streamplace.engines.flink.watch.placed_job import PlacedJob

        if is_started or any(one.after == job != one.job for one in log.decisions.values()):
            vectors: Vectors = dict(running_layout(rest, job)) or log.placed(job)
            if vectors:
                return PlacedJob(job, vectors)
        elif self.placement is not None:
            return PlacedJob(job, read_vectors(self.placement))
        return PlacedJob(job, layout_of(rest, job, rest.running_job(job)))

    def _placement_file(self) -> str:
        """File of the present placement, for messages."""
        file = self.placement
        if self.output is not None and (file is None or self.output.exists()):
            file = self.output
        return "PLACEMENT" if file is None else str(file.resolve())

    def _moved(self, run: "PlacedJob") -> None:
        """Print the id of a job that was started, and write its placement.

        What fails is told: if the watch ended because of it, nobody would watch the job.
        """
        from streamplace.errors import StreamplaceError

        for step in (partial(print_line, run.job), partial(self._write_placement, run.vectors)):
            try:
                step()
            except StreamplaceError as error:
                say(f"warning: {error}")

    def _write_placement(self, vectors: "Vectors") -> None:
        """Write where a job was started, if that is wanted."""
        from streamplace.io.files import read_bytes, write_text
        from streamplace.io.placements import parse_document

        if self.output is None:
            return
        document: dict[str, Any] = {"assignment": _assignment(vectors)}
        if self.placement is not None:  # its prediction is of another placement
            given = parse_document(read_bytes(self.placement), str(self.placement))
            document = {key: given[key] for key in ("graph",) if key in given} | document
        write_text(self.output, json.dumps(document, indent=1) + "\n")
        say_written("placement", self.output)


@contextmanager
def _served(name: str, port: int) -> "Iterator[Callable[[WatchRound], None]]":
    """Serve metrics of a job while the block runs; yields what receives every round."""
    from streamplace.engines.flink.watch.metrics import WatchMetrics, served

    metrics = WatchMetrics(name)
    with served(metrics, port):
        yield metrics.add


def _assignment(vectors: "Vectors") -> dict[str, str]:
    """Operator, or subtask, → device."""
    assignment: dict[str, str] = {}
    for name, devices in vectors.items():
        if isinstance(devices, str):
            assignment[name] = devices
        elif len(devices) == 1:
            assignment[name] = devices[0]
        else:
            assignment |= {f"{name}#{i}": device for i, device in enumerate(devices)}
    return assignment
