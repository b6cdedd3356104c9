"""Options of ``streamplace flink watch``, and the objects that they configure."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamplace.cli._output import print_line, say, say_written

if TYPE_CHECKING:
    from streamplace.control.policy import MakePolicy
    from streamplace.engines.flink.engine import FlinkEngine
    from streamplace.engines.flink.pin.pinning import Vectors
    from streamplace.engines.flink.program.program import Program
    from streamplace.engines.flink.rest.client import Rest
    from streamplace.engines.flink.watch.judging import Guards
    from streamplace.engines.flink.watch.log import WatchLog
    from streamplace.engines.flink.watch.placed_job import PlacedJob

MEASURE_PATIENCE = 60.0
"""Seconds for which a round waits until the job is warm; losses are not noticed meanwhile."""


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Options of ``flink watch``, except those for Flink's address and for the submission."""

    job: str | None
    placement: Path | None
    spares: tuple[str, ...]
    acts: bool
    every: float
    policy: str
    least_time: float
    not_between: tuple[str, ...]
    at_most: int | None
    seconds: float
    trust_profile: bool
    confidence: float | None
    ledger: Path | None
    mips: str
    folder: str | None
    patience: float
    timeout: float
    output: Path | None

    def run(self, rest: "Rest", home: Path | None, given: "Program | None") -> None:
        """Watch the job until it ends.

        Raises
        ------
        StreamplaceError
            When it cannot be watched, fails, or is stopped or moved by others.
        """
        from streamplace.engines.flink.watch.log import WatchLog
        from streamplace.engines.flink.watch.starting import first_job
        from streamplace.io.watch_store import WatchStore, usual_store

        guards, make = self._guards(), self._policy()
        store = WatchStore(usual_store())
        try:
            job = first_job(rest, store, self.job)
            program = self._program(rest, job, given)
            log = WatchLog.claimed(store, job, str(rest.job(job)["name"]), say)
            try:
                self._watch(self._engine(rest, home), program, log, job, guards, make)
            finally:
                log.release()
        finally:
            store.close()

    def _watch(
        self,
        engine: "FlinkEngine",
        program: "Program | None",
        log: "WatchLog",
        job: str,
        guards: "Guards",
        make: "MakePolicy",
    ) -> None:
        from streamplace.engines.flink.watch.acting import WatchMover
        from streamplace.engines.flink.watch.judging import RateJudge
        from streamplace.engines.flink.watch.modelling import JobModeller
        from streamplace.engines.flink.watch.rounds import JobRounds
        from streamplace.engines.flink.watch.starting import settled
        from streamplace.engines.flink.watch.watch import Watch
        from streamplace.io.ledger import usual_ledger

        ledger = self.ledger or usual_ledger()
        mover = None
        if program is not None and self.acts:
            mover = WatchMover(engine.moving(program), log, say, ledger, self.confidence)
        model_of = JobModeller(
            engine,
            say,
            self.seconds,
            self.at_most,
            self.trust_profile,
            self.confidence,
            ledger,
        )
        judge = RateJudge(make, self.every)
        rounds = JobRounds(engine.rest, log, judge, guards, model_of, mover, say, self.every)
        rounds.recall()
        watch = Watch(
            engine.rest,
            engine.flink if self.may_start else None,
            program,
            self.spares,
            say,
            self._moved,
            self.patience,
            self.timeout,
            self._placement_file(),
            rounds,
            log,
            takes_free=self.acts,
        )
        now = settled(watch, mover, log, job)
        watch.run(self._placed(engine.rest, now, self.placement if now == job else None))

    @property
    def may_start(self) -> bool:
        """Whether the job may be started elsewhere, for its rate or for a lost TaskManager."""
        return self.acts or bool(self.spares)

    def _guards(self) -> "Guards":
        from streamplace.engines.flink.watch.judging import Guards, QuietHours

        return Guards(self.least_time, tuple(map(QuietHours.of, self.not_between)))

    def _policy(self) -> "MakePolicy":
        from streamplace.control.policy import POLICIES

        return POLICIES[self.policy].make

    def _program(self, rest: "Rest", job: str, given: "Program | None") -> "Program | None":
        """Program that the job was submitted with; None if nothing is started."""
        from streamplace.engines.flink.program.submitted import known_program

        return (given or known_program(rest, job)) if self.may_start else None

    def _engine(self, rest: "Rest", home: Path | None) -> "FlinkEngine":
        """Engine that measures and moves the job."""
        from streamplace.engines.flink.engine import FlinkEngine
        from streamplace.engines.flink.move.settling import Settling

        return FlinkEngine(
            rest,
            home,
            self.mips,
            savepoints=self.folder,
            seconds=self.timeout,
            settling=Settling(never_slower=True),
            tell=say,
            patience=MEASURE_PATIENCE,
        )

    def _placed(self, rest: "Rest", job: str, placement: Path | None) -> "PlacedJob":
        """The job with the devices of a placement, or with those that it runs on."""
        from streamplace.engines.flink.pin.pinning import read_vectors
        from streamplace.engines.flink.watch.look import layout_of
        from streamplace.engines.flink.watch.placed_job import PlacedJob

        if placement is not None:
            return PlacedJob(job, read_vectors(placement))
        return PlacedJob(job, dict(layout_of(rest, job, rest.running_job(job))))

    def _placement_file(self) -> str:
        """File of the present placement, for messages."""
        file = self.placement
        if self.output is not None and (file is None or self.output.exists()):
            file = self.output
        return "PLACEMENT" if file is None else str(file.resolve())

    def _moved(self, run: "PlacedJob") -> None:
        """Print the id of a job that was started, and write its placement."""
        from streamplace.io.files import write_text

        print_line(run.job)
        if self.output is None:
            return
        document: dict[str, Any] = {"assignment": _assignment(run.vectors)}
        if self.placement is not None:
            given = json.loads(self.placement.read_bytes())
            if run.stand_ins:
                names = given["assignment"].items()
                moved = {name: run.stand_ins.get(device, device) for name, device in names}
                document = {"assignment": moved}
            document = given | document
        write_text(self.output, json.dumps(document, indent=1) + "\n")
        say_written("placement", self.output)


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
