"""Options of ``streamplace flink move``, and the objects that they configure."""

import sys
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamplace.cli._flink import check_nic
from streamplace.cli._options import refuse_given
from streamplace.cli._output import say
from streamplace.errors import SettingError

if TYPE_CHECKING:
    from streamplace.engines.flink.decide.improving import JobImprover
    from streamplace.engines.flink.engine import FlinkEngine
    from streamplace.engines.flink.move.move import FlinkMove
    from streamplace.engines.flink.move.outcomes import FlinkMoved
    from streamplace.engines.flink.program.program import Program
    from streamplace.engines.flink.rest.client import Rest

MEASURING = (
    "rate",
    "cluster_file",
    "seconds",
    "patience",
    "mips",
    "tries",
    "most_interruption",
)
"""Options for a job that is measured and placed."""


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """Options of ``flink move``, except those for Flink's address and for the submission."""

    job: str | None
    placement: Path | None
    cluster_file: Path | None
    rate: str | None
    seconds: float
    patience: float
    mips: str
    nic: tuple[str, ...]
    folder: str | None
    savepoint_timeout: float
    native: bool
    allow_non_restored: bool
    timeout: float
    settle: float
    tries: int
    most_interruption: float | None
    yes: bool
    resume: bool
    dry_run: bool
    as_json: bool

    def check(self) -> None:
        """Raise SettingError for options that exclude each other."""
        if self.resume:  # the rest of the interrupted command may stay
            if self.dry_run:
                raise SettingError("--resume finishes a move; drop --dry-run or --resume")
            return
        if self.placement is not None:
            refuse_given(MEASURING, "is for a job that is measured; drop it or --placement")
        check_nic(self.nic, {"--placement": self.placement, "--cluster": self.cluster_file})

    def engine(self, rest: "Rest", home: Path | None) -> "FlinkEngine":
        """Engine that measures and moves the job."""
        from streamplace.engines.flink.engine import FlinkEngine
        from streamplace.engines.flink.measure.cards import parse_cards
        from streamplace.engines.flink.move.settings import MoveSettings

        return FlinkEngine(
            rest,
            home,
            self.mips,
            moves=MoveSettings(
                self.folder,
                self.allow_non_restored,
                self.timeout,
                self.savepoint_timeout,
                self.native,
                self.settle,
            ),
            tell=say,
            cards=parse_cards(self.nic),
            patience=self.patience,
        )

    def program(self, engine: "FlinkEngine", given: "Program | None") -> "Program | None":
        """Program that the job was submitted with; None if a trial does without it."""
        from streamplace.engines.flink.program.submitted import known_program

        if given is not None:
            return given
        if self.resume and self.job is None:
            raise SettingError("--resume without JAR needs --job; name the job that was moved")
        try:
            program = known_program(engine.rest, engine.job(self.job))
        except SettingError as error:
            if not self.dry_run or self.placement is not None:
                raise
            say(f"note: {error}")
            return None
        say(f"the job was submitted with {program.jar}; its options and arguments are used again")
        return program

    def improver(self, engine: "FlinkEngine", move: "FlinkMove | None") -> "JobImprover":
        """Improver that decides where the job should run."""
        from streamplace.engines.flink.decide.improving import JobImprover
        from streamplace.io.clusters import read_cluster
        from streamplace.model.units import tuple_rate

        cluster = None if self.cluster_file is None else read_cluster(self.cluster_file)
        offered = None if self.rate is None else tuple_rate(self.rate)
        return JobImprover(
            engine,
            move,
            seconds=self.seconds,
            rate=offered,
            cluster=cluster,
            tell=say,
            tries=self.tries,
            most_interruption=inf if self.most_interruption is None else self.most_interruption,
            agrees=self._agrees,
        )

    def _agrees(self, question: str) -> bool:
        """Ask on a terminal whether a layout is tried, unless --yes says so."""
        if self.yes or not sys.stdin.isatty():
            say(question)
            return True
        try:
            return click.confirm(question, default=True, err=True)
        except click.Abort:  # Ctrl-C, after which the job goes back
            raise KeyboardInterrupt from None

    def follow(self, move: "FlinkMove", moved: "FlinkMoved") -> None:
        """Compare what a moved job emits with what its placement was predicted to carry."""
        from streamplace.engines.flink.move.settling import compare
        from streamplace.io.placements import read_prediction

        assert self.placement is not None
        predicted = read_prediction(self.placement)
        if predicted is not None:
            compare(move.rest, moved.job, predicted, say)
