"""Settings of the commands on a running Flink, and the objects that they configure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from streamplace.errors import SettingError
from streamplace.model.defaults import (
    PATIENCE_SECONDS,
    SAVEPOINT_SECONDS,
    SPEED,
    START_SECONDS,
    TRIES,
)
from streamplace.settings.base import VerbSettings
from streamplace.settings.convert import (
    BUDGET,
    CLUSTER,
    COUNT,
    FLAG,
    PATH,
    QUANTITY,
    RATE,
    TEXT,
    TEXTS,
    TIME,
    Budget,
    Cluster,
    FieldKind,
    names,
    share,
    text,
    texts,
    whole,
)
from streamplace.settings.option import HOW_LONG, OUTPUT, WHERE
from streamplace.settings.plan import Offered

if TYPE_CHECKING:
    from streamplace.engines.flink.engine import FlinkEngine
    from streamplace.engines.flink.move.settings import MoveSettings
    from streamplace.engines.flink.program.program import Program
    from streamplace.engines.flink.rest.client import Rest
    from streamplace.engines.flink.watch.deciding import Guards, RateJudge
    from streamplace.planning.problem import PlannerSettings

Tell = Callable[[str], None]


def _time(low: float, high: float = inf) -> FieldKind:
    """Times from a shortest to a longest one."""

    def convert(value: Any) -> float:
        from streamplace.model.units import seconds

        if low <= (found := seconds(value)) <= high:
            return found
        longest = "" if high == inf else f" and at most {high:g} s"
        raise ValueError(f"a time of at least {low:g} s{longest}")

    return FieldKind(convert, "TIME")


def _port(value: Any) -> int:
    if (port := COUNT.convert(value)) <= 65_535:
        return int(port)
    raise ValueError("a port, at most 65535")


def _paths(value: Any) -> tuple[Path, ...]:
    return tuple(map(Path, TEXTS.convert(value)))


def _cards(value: Any) -> dict[str, str]:
    from streamplace.engines.flink.measure.cluster import parse_cards

    return parse_cards(TEXTS.convert(value))


def _policies() -> Iterable[str]:
    from streamplace.control.policy import POLICIES

    return POLICIES


Window = Annotated[float, _time(2, 3600).key()]  # length of a window of measurement
Patience = Annotated[float, _time(0, 86_400).key()]  # longest time until a job counts as steady
# Time in which every subtask must run, its state restored.
Timeout = Annotated[float, _time(1).key()]
Speed = Annotated[str, QUANTITY.key()]  # speed of a core of the TaskManagers
# Drop state of the savepoint that belongs to no operator of the job.
NonRestored = Annotated[bool, FLAG.key()]
Placed = Annotated[
    Path | None,
    PATH.option("--placement", "Placement of the job's operators or subtasks (JSON)."),
]


class OfFlink(VerbSettings):
    """Flink's REST interface, and access to it."""

    rest: Annotated[
        str, text("URL").option("--rest", "Address of Flink's REST interface.", WHERE)
    ] = "http://localhost:8081"
    authorization: Annotated[
        Path | None,
        PATH.option(
            "--authorization",
            "File with 'Bearer TOKEN' or 'NAME:PASSWORD', in place of "
            "$STREAMPLACE_FLINK_AUTHORIZATION.",
            WHERE,
        ),
    ] = None
    # Certificates that the server's is checked against (PEM).
    cacert: Annotated[Path | None, PATH.key()] = None
    cert: Annotated[Path | None, PATH.key()] = None  # certificate of the client (PEM)
    # Key of the certificate (PEM), if that is another file.
    key: Annotated[Path | None, PATH.key()] = None

    def client(self) -> "Rest":
        """REST interface of the cluster."""
        from streamplace.engines.flink.rest.access import Access, read_authorization
        from streamplace.engines.flink.rest.client import Rest

        text, file = read_authorization(self.authorization), self.authorization
        return Rest(self.rest, access=Access(self.cacert, self.cert, self.key, text, file))


class OfJob(OfFlink):
    """A job of the cluster."""

    job: Annotated[str | None, text("ID").option("--job", "Id of the job, where several run.")] = (
        None
    )


class OfProgram(OfFlink):
    """What a job is submitted with, but for its jar and its arguments."""

    entry_class: Annotated[
        str | None,
        text("NAME").option("--entry-class", "Main class of the job.  [default: the jar's own]"),
    ] = None
    classpaths: Annotated[
        tuple[str, ...],
        texts("URL").option(
            "-C/--classpath", "Classes that all machines can read. May be repeated."
        ),
    ] = ()
    libraries: Annotated[
        tuple[Path, ...],
        FieldKind(_paths, "FILE", "several").option(
            "--library", "Further jar that the job needs. May be repeated."
        ),
    ] = ()
    settings: Annotated[
        tuple[str, ...],
        texts("KEY=VALUE").option("-D", "Flink's setting for this job. May be repeated."),
    ] = ()
    parallelism: Annotated[
        int | None, COUNT.option("-p/--parallelism", "Parallelism of operators that have none.")
    ] = None
    # Most managed memory that the job takes of a TaskManager.
    managed_memory: Annotated[str | None, QUANTITY.key()] = None
    # Folder of a Flink, by default $FLINK_HOME or the fetched one.
    flink_home: Annotated[Path | None, PATH.key()] = None

    def program(self, jar: Path | None, arguments: tuple[str, ...]) -> "Program | None":
        """Program that a job is submitted with; None without a jar."""
        from streamplace.engines.flink.program.program import Program, parse_settings
        from streamplace.model.units import size_bytes

        own = [name for name in vars(OfProgram)["__annotations__"] if name != "flink_home"]
        if jar is None:
            if arguments or any(name in self.given for name in own):
                raise SettingError(
                    "what a job is submitted with is given together with its jar; name JAR, too, "
                    "or drop the other options of the submission"
                )
            return None
        memory = self.managed_memory
        program = Program(
            jar,
            self.entry_class,
            arguments,
            self.libraries,
            self.classpaths,
            parse_settings(self.settings),
            self.parallelism,
            None if memory is None else int(size_bytes(memory) // 2**20),
        )
        program.check()
        return program


class OfMachines(OfFlink):
    """What Flink does not measure of its TaskManagers."""

    mips: Speed = SPEED
    bandwidth: Annotated[str | None, QUANTITY.key()] = None  # bandwidth between two TaskManagers
    # Speeds of network cards, as in ['1 Gbps', 'dev-0=100 Mbps'].
    nic: Annotated[Mapping[str, str], FieldKind(_cards).key()] = Field(default_factory=dict)

    def engine(self, tell: Tell = lambda _: None) -> "FlinkEngine":
        """Engine that measures and moves jobs."""
        from streamplace.engines.flink.engine import FlinkEngine

        return FlinkEngine(
            self.client(), mips=self.mips, bandwidth=self.bandwidth, tell=tell, cards=self.nic
        )


class OfMoves(OfProgram, OfMachines):
    """Where a job may run, and how it is saved and started again."""

    placement: Placed = None
    cluster: Annotated[
        Cluster | None,
        CLUSTER.option(
            "--cluster", "Cluster file of the devices (TOML).  [default: measure them]", WHERE
        ),
    ] = None
    savepoints: Annotated[
        str | None,
        text("FOLDER").option(
            "--savepoints",
            "Folder (path or URI) that the JobManager can write to.  [default: the cluster's]",
            WHERE,
        ),
    ] = None
    # Save in the format of the state backend, which is faster.
    native: Annotated[bool, FLAG.key()] = False
    seconds: Window = 5.0
    timeout: Timeout = START_SECONDS

    def check(self) -> None:
        """Refuse network cards of machines that are described."""
        super().check()
        self.exclude("nic", "cluster")

    def moves(self) -> "MoveSettings":
        """How the job is moved."""
        from streamplace.engines.flink.move.settings import MoveSettings

        return MoveSettings(self.savepoints, seconds=self.timeout, native=self.native)

    def engine(self, tell: Tell = lambda _: None) -> "FlinkEngine":
        """Engine that measures and moves the job."""
        return replace(super().engine(tell), home=self.flink_home, moves=self.moves())


class FlinkMoveSettings(OfMoves, OfJob):
    """How a job is measured, tried elsewhere and moved."""

    rate: Annotated[
        float | None,
        RATE.option(
            "--rate",
            "Rate that all sources are offered together, as in '10 k/s'.  [default: their rate, or "
            "as much as possible where they are held back]",
        ),
    ] = None
    tries: Annotated[
        int,
        whole().option("--tries", "Most layouts that are tried. Each stops the job for seconds."),
    ] = TRIES
    max_interruption: Annotated[
        float,
        TIME.option(
            "--max-interruption",
            "Time for which all trials may stop the job, going back included.  [default: no limit]",
            HOW_LONG,
        ),
    ] = inf
    yes: Annotated[bool, FLAG.option("--yes", "Try layouts without asking on a terminal.")] = False
    dry_run: Annotated[
        bool, FLAG.option("--dry-run", "Print what would be moved, and move nothing.")
    ] = False
    resume: Annotated[bool, FLAG.option("--resume", "Finish the move that was interrupted.")] = (
        False
    )
    patience: Patience = PATIENCE_SECONDS
    # Time in which the savepoint must be complete.
    savepoint_timeout: Annotated[float, _time(1).key()] = SAVEPOINT_SECONDS
    # Time for which the moved job is watched, and moved back.
    settle: Annotated[float, _time(0).key()] = 30.0
    allow_non_restored: NonRestored = False

    def check(self) -> None:
        """Refuse what does not go together; a resumed move may keep the rest of its command."""
        super().check()
        if self.resume:
            return self.exclude("resume", "dry_run")
        if self.placement is not None:
            for name in ("cluster", "rate", "tries", "max_interruption"):
                self.refuse(
                    name, f"is for a job that is measured; drop it or {self.name('placement')}"
                )
        return None

    def moves(self) -> "MoveSettings":
        """How the job is moved."""
        return replace(
            super().moves(),
            allow_non_restored=self.allow_non_restored,
            savepoint_seconds=self.savepoint_timeout,
            settle=self.settle,
        )

    def engine(self, tell: Tell = lambda _: None) -> "FlinkEngine":
        """Engine that measures and moves the job."""
        return replace(super().engine(tell), patience=self.patience)


class FlinkWatchSettings(OfMoves, OfJob):
    """How a job is kept on TaskManagers that carry its rate."""

    apply: Annotated[
        bool,
        FLAG.option(
            "--apply", "Move the job when that pays, and replace lost TaskManagers by free ones."
        ),
    ] = False
    policy: Annotated[
        str,
        text(names(_policies)).option("--policy", "Rule that chooses the number of TaskManagers."),
    ] = "work-function"
    spare: Annotated[
        tuple[str, ...],
        texts("DEVICE").option(
            "--spare", "TaskManager to replace a lost one. May be repeated.", WHERE
        ),
    ] = ()
    every: Annotated[
        float, _time(10, 86_400).option("--every", "Time from one round to the next.", HOW_LONG)
    ] = 60.0
    at_most: Annotated[
        int | None, COUNT.option("--at-most", "Most TaskManagers of the job.  [default: all]")
    ] = None
    not_between: Annotated[
        tuple[str, ...],
        texts("HH:MM-HH:MM").option(
            "--not-between",
            "Hours, by this clock, without moves for the rate. May be repeated.",
            HOW_LONG,
        ),
    ] = ()
    metrics: Annotated[
        int | None,
        FieldKind(_port, "PORT").option(
            "--metrics", "Serve metrics for Prometheus here, on loopback.", OUTPUT
        ),
    ] = None
    # Time to wait for a lost TaskManager before it is replaced.
    patience: Annotated[float, _time(0).key()] = 30.0
    # Least time from one move to the next.
    least_time: Annotated[float, _time(0, 604_800).key()] = 300.0
    # Price of a move, as time of running the mean of both layouts.
    move_price: Annotated[float, TIME.key()] = 1800.0
    lag: Annotated[float, TIME.key()] = 60.0  # time by which tuples may be late

    def check(self) -> None:
        """Refuse settings of moves for a watch that moves nothing."""
        super().check()
        self.need("apply", "not_between", "least_time", "savepoints", "native")

    def moves(self) -> "MoveSettings":
        """How the job is moved: a try may carry less, and then the job returns."""
        return replace(super().moves(), least_rate=0.0)

    def guards(self) -> "Guards":
        """When nothing is moved."""
        from streamplace.engines.flink.watch.deciding import Guards, QuietHours

        return Guards(self.least_time, tuple(map(QuietHours.of, self.not_between)))

    def judge(self) -> "RateJudge":
        """What decides on the number of TaskManagers."""
        from streamplace.control.policy import POLICIES
        from streamplace.control.problem import MoveTerms
        from streamplace.engines.flink.watch.deciding import RateJudge

        terms = MoveTerms(price=self.move_price, lag=self.lag)
        return RateJudge(POLICIES[self.policy], self.every, terms)


class FlinkAdviseSettings(OfProgram, OfMachines, OfJob):
    """How a job is measured, and which machines are planned for it."""

    rate: Annotated[
        str | None,
        QUANTITY.option(
            "--rate",
            "Total rate of the sources in tuples/s, such as 50000 or '50 k/s', or a multiple of "
            "what they are offered now, such as 2x.",
        ),
    ] = None
    offers: Offered = None
    cluster: Annotated[
        Cluster | None,
        CLUSTER.option(
            "--cluster",
            "TOML file of the machines that there are, of which the plan uses as few as possible.  "
            "[default without --offers: the TaskManagers]",
            WHERE,
        ),
    ] = None
    headroom: Annotated[
        float,
        share(zero=True, one=False).option(
            "--headroom",
            "With --offers, share h of CPU and network cards that stays free: the plan is for 1 / "
            "(1 − h) times the rate.",
        ),
    ] = 0.03
    budget: Annotated[
        Budget | None,
        BUDGET.option("--budget", "Time for the plan, as in '1 min'.  [default: 10 s]", HOW_LONG),
    ] = None
    seed: Annotated[
        int, whole().option("--seed", "The same seed gives the same result.", HOW_LONG)
    ] = 0
    seconds: Window = 10.0
    patience: Patience = PATIENCE_SECONDS

    def check(self) -> None:
        """Refuse what does not go together."""
        from streamplace.engines.flink.measure.source_lag import asked_rate

        super().check()
        self.exclude("offers", "cluster")
        self.need("offers", "headroom")
        if self.rate is None:
            raise SettingError(f"{self.name('rate')} is missing; give it, as in --rate 2x")
        asked_rate(self.rate)

    def of_plan(self) -> "PlannerSettings":
        """How machines are planned."""
        from streamplace.planning.problem import PLAN_BUDGET, PlannerSettings

        return PlannerSettings(self.headroom, seed=self.seed, budget=self.budget or PLAN_BUDGET)

    def engine(self, tell: Tell = lambda _: None) -> "FlinkEngine":
        """Engine that measures the job."""
        return replace(super().engine(tell), patience=self.patience)


class AsPlaced(OfFlink):
    """A placement, which is needed."""

    placement: Placed = None

    def placed(self) -> Path:
        """File of the placement."""
        if self.placement is None:
            raise SettingError(f"{self.name('placement')} is missing; give the file of a placement")
        return self.placement


class FlinkApplySettings(AsPlaced, OfProgram):
    """How a job is submitted with a placement."""

    savepoint: Annotated[
        str | None, TEXT.option("--savepoint", "Savepoint (path or URI) that the job starts from.")
    ] = None
    allow_non_restored: NonRestored = False
    timeout: Timeout = START_SECONDS

    def check(self) -> None:
        """Refuse a setting without effect."""
        super().check()
        self.need("savepoint", "allow_non_restored")


class FlinkVerifySettings(AsPlaced, OfJob):
    """A job, and where it should run."""


class FlinkCancelSettings(OfJob):
    """How a job is ended."""

    savepoint: Annotated[
        str | None,
        text("FOLDER").option(
            "--savepoint", "Folder (path or URI) in which to save the job's state."
        ),
    ] = None
    drop_state: Annotated[
        bool, FLAG.option("--drop-state", "End the job even though its state is lost.")
    ] = False


class FlinkClusterSettings(OfMachines, OfJob):
    """How TaskManagers are measured."""

    beside: Annotated[
        tuple[str, ...],
        texts("JOB").option(
            "--beside",
            "Id of a job that stays where it runs. The CPU that its tasks take is reserved. May be "
            "repeated.",
            WHERE,
        ),
    ] = ()
    seconds: Window = 10.0


class FlinkProfileSettings(OfJob):
    """How a job is measured."""

    seconds: Window = 5.0
    patience: Patience = PATIENCE_SECONDS
    mips: Speed = SPEED
