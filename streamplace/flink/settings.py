"""Settings of the commands for a running Flink, and the objects that they configure."""

from collections.abc import Callable
from dataclasses import replace
from inspect import get_annotations
from math import inf
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any, Self

from annotated_types import Interval
from pydantic import BeforeValidator

from streamplace.errors import SettingError
from streamplace.model.defaults import (
    FLINK_HEADROOM,
    PATIENCE_SECONDS,
    SAVEPOINT_SECONDS,
    SPEED,
    START_SECONDS,
    TRIES,
)
from streamplace.model.message_text import quoted, shown, suggestion
from streamplace.settings.base import VerbSettings
from streamplace.settings.convert import (
    ClusterFile,
    Count,
    QuantityText,
    Rate,
    SearchBudget,
    Seconds,
    Texts,
    Whole,
    in_tuple,
)
from streamplace.settings.option import HOW_LONG, OUTPUT, WHERE, file_key, names_in, option
from streamplace.settings.plan import OFFERS, OWN_MACHINES, Headroom, OffersFile, headroom_option

if TYPE_CHECKING:
    from streamplace.flink.engine import FlinkEngine
    from streamplace.flink.move.settling import MoveSettings
    from streamplace.flink.program.program import Program
    from streamplace.flink.prometheus.client import Prometheus, PrometheusAddress, TimeRange
    from streamplace.flink.prometheus.job_history import JobHistory
    from streamplace.flink.rest.client import JobResource, Rest
    from streamplace.flink.watch.deciding import Guards, RateJudge
    from streamplace.planning.problem import PlannerSettings

Tell = Callable[[str], None]
LIMITS = (*("lag", "at_most", "not_between", "least_time", "move_price", "headroom"),)
"""Fields of ``watch`` and ``advise`` that annotations of a resource may set."""


def _cards(value: Any) -> Any:
    from streamplace.flink.measure.cluster import parse_cards

    texts = in_tuple(value)
    return parse_cards(texts) if all(isinstance(text, str) for text in texts) else texts


Window = Annotated[Seconds, Interval(ge=2, le=3600)]
Patience = Annotated[Seconds, Interval(ge=0, le=86_400)]
StartTime = Annotated[Seconds, Interval(ge=1)]
Room = Annotated[Whole, Interval(le=1000)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(in_tuple)]
NON_RESTORED: bool = file_key(
    "", "Drop state of the savepoint that belongs to no operator of the job."
)
TIMEOUT: float = file_key(
    "TIME", "Time in which every subtask must run, its state restored.", default=START_SECONDS
)
PATIENCE: float = file_key(
    "TIME", "Longest time until the job counts as steady.", default=PATIENCE_SECONDS
)


class FlinkSettings(VerbSettings):
    """Address of Flink's REST interface, and access to it."""

    rest: str = option(
        "--rest URL",
        "Address of Flink's REST interface, or kubernetes:NAMESPACE/NAME of a resource of Flink's "
        "operator.",
        WHERE,
        default="http://localhost:8081",
    )
    authorization: Path | None = option(
        "--authorization FILE",
        "File with 'Bearer TOKEN' or 'NAME:PASSWORD', in place of "
        "$STREAMPLACE_FLINK_AUTHORIZATION.",
        WHERE,
    )
    cacert: Path | None = file_key("FILE", "Certificates of the authorities of the server (PEM).")
    cert: Path | None = file_key("FILE", "Certificate of the client (PEM).")
    key: Path | None = file_key("FILE", "Key of the certificate (PEM), if in another file.")

    def annotated(self, resource: "JobResource | None") -> Self:
        """These settings, with missing limits from the annotations of a resource."""
        from streamplace.flink.operator.resource import PREFIX, FlinkResource

        if not isinstance(resource, FlinkResource):
            return self
        keys = {name.replace("_", "-"): name for name in LIMITS}
        stored: dict[str, Any] = {}
        names: dict[str, str] = {}
        for key, value in resource.annotations.items():
            title = f"annotation {shown(PREFIX + key)} of {resource.title}"
            if (name := keys.get(key)) is None:
                hint = suggestion(key, keys) or f"; known are {', '.join(keys)}"
                raise SettingError(f"{title} is not known{hint}")
            if name in type(self).model_fields:  # others are for other commands
                many = self.options()[name].is_repeatable
                stored[name] = [part.strip() for part in value.split(",")] if many else value
                names[name] = title
        return self.completed(stored, names)

    def client(self) -> "Rest":
        """REST interface of the cluster."""
        from streamplace.flink.operator.resource import named, rest_of
        from streamplace.flink.rest.client import Access, Rest, read_authorization

        if resource := named(self.rest):
            return rest_of(*resource)
        text, file = read_authorization(self.authorization), self.authorization
        return Rest(self.rest, access=Access(self.cacert, self.cert, self.key, text, file))


class JobSettings(FlinkSettings):
    """A job of the cluster."""

    job: str | None = option("--job ID", "Id of the job, if several run.")


class HistorySettings(JobSettings):
    """Where the history of a job is, if the job is not measured."""

    history: str | None = option(
        "--from URL",
        "Read the job's history instead of measuring it, as in "
        "prometheus:http://HOST:9090?namespace=shop.",
        WHERE,
        key="from",
    )
    since: str = option(
        "--since TIME",
        "Length of the history until now, or its ends, as in 2026-03-01T07:00..2026-03-02.",
        HOW_LONG,
        default="7d",
    )

    def check(self) -> None:
        """Refuse a malformed or too long history."""
        super().check()
        self.need("history", "since")
        for name in ("seconds", "patience"):
            self.exclude("history", name)
        self._source()

    def _source(self) -> "tuple[PrometheusAddress, TimeRange] | None":
        from streamplace.flink.prometheus.client import PrometheusAddress, time_range
        from streamplace.planning.result import HOUR
        from streamplace.planning.traces import MAX_HOURS

        if self.history is None:
            return None
        span = time_range(self.since, time())
        if span.end - span.start > HOUR * MAX_HOURS:
            raise SettingError(
                f"{self.name('since')} is {quoted(self.since)}; it may be {MAX_HOURS} hours at most"
            )
        return PrometheusAddress.of(self.history), span

    def read_history(self, rest: "Rest", job: str) -> "JobHistory | None":
        """History of the job; None if the job is to be measured."""
        from streamplace.flink.prometheus.reading import read_history

        source = self.prometheus()
        return None if source is None else read_history(source[0], rest, job, source[1])

    def prometheus(self, namespace: str = "") -> "tuple[Prometheus, TimeRange] | None":
        """Prometheus, limited to a namespace if given, and the range of time."""
        from streamplace.flink.prometheus.client import Prometheus
        from streamplace.flink.rest.client import Access

        if (source := self._source()) is None:
            return None
        address, span = source
        if namespace:
            address = replace(address, labels=(*address.labels, ("namespace", namespace)))
        return Prometheus(address, Access(self.cacert, self.cert, self.key)), span


class PlacementSettings(VerbSettings):
    """A placement of the job."""

    placement: Path | None = option(
        "--placement FILE", "Placement of the job's operators or subtasks (JSON)."
    )


class ProgramSettings(FlinkSettings):
    """Options of a submission besides the jar and its arguments."""

    entry_class: str | None = option(
        "--entry-class NAME", "Main class of the job.  [default: the jar's own]"
    )
    classpaths: Texts = option(
        "-C, --classpath URL…", "Classes that all machines can read. May be repeated."
    )
    libraries: Paths = option("--library FILE…", "Further jar that the job needs. May be repeated.")
    settings: Texts = option("-D KEY=VALUE…", "Flink's setting for this job. May be repeated.")
    parallelism: Count | None = option(
        "-p, --parallelism N", "Parallelism of operators that have none."
    )
    managed_memory: QuantityText | None = file_key(
        "QUANTITY", "Maximum managed memory of the job on a TaskManager."
    )

    def program(self, jar: Path | None, arguments: tuple[str, ...]) -> "Program | None":
        """Program of a submission; None without a jar."""
        from streamplace.flink.program.program import Program, parse_settings
        from streamplace.model.units import size_bytes

        if jar is None:
            if arguments or get_annotations(ProgramSettings).keys() & self.inputs.keys():
                raise SettingError(
                    "the arguments and options are for a submission, which needs a jar; name JAR, "
                    "too, or drop them"
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


class MachineSettings(FlinkSettings):
    """Properties of TaskManagers that Flink does not measure."""

    mips: QuantityText = file_key("SPEED", "Speed of a core of the TaskManagers.", default=SPEED)
    bandwidth: QuantityText | None = file_key("SPEED", "Bandwidth between two TaskManagers.")
    nic: Annotated[dict[str, str], BeforeValidator(_cards)] = file_key(
        "SPEED", "Speeds of network cards, as in ['1 Gbps', 'dev-0=100 Mbps'].", default={}
    )

    def engine(self, tell: Tell = lambda _: None) -> "FlinkEngine":
        """Engine that measures and moves jobs."""
        from streamplace.flink.engine import FlinkEngine

        return FlinkEngine(
            self.client(), mips=self.mips, bandwidth=self.bandwidth, tell=tell, cards=self.nic
        )


class JobMoveSettings(PlacementSettings, ProgramSettings, MachineSettings):
    """Where a job may run, and how it is saved and started again."""

    cluster: ClusterFile = option(
        "--cluster FILE", "Cluster file of the devices (TOML).  [default: measure them]", WHERE
    )
    savepoints: str | None = option(
        "--savepoints FOLDER",
        "Folder (path or URI) that the JobManager can write to.  [default: the cluster's]",
        WHERE,
    )
    native: bool = file_key("", "Save in the format of the state backend, which is faster.")
    seconds: Window = file_key("TIME", "Length of a window of measurement.", default=5.0)
    timeout: StartTime = TIMEOUT

    def check(self) -> None:
        """Refuse speeds of network cards beside a cluster file."""
        super().check()
        self.exclude("nic", "cluster")

    def moves(self) -> "MoveSettings":
        """How the job is moved."""
        from streamplace.flink.move.settling import MoveSettings

        return MoveSettings(self.savepoints, seconds=self.timeout, native=self.native)

    def engine(self, tell: Tell = lambda _: None) -> "FlinkEngine":
        """Engine that measures and moves the job."""
        return replace(super().engine(tell), moves=self.moves())


class FlinkMoveSettings(JobMoveSettings, JobSettings):
    """How a job is measured, tried elsewhere and moved."""

    rate: Rate | None = option(
        "--rate RATE",
        "Total rate that the sources are offered, as in '10 k/s'.  [default: their rate, or as "
        "much as possible if they are held back]",
    )
    tries: Whole = option(
        "--tries N", "Maximum number of tries. Each stops the job for seconds.", default=TRIES
    )
    max_interruption: Seconds = option(
        "--max-interruption TIME",
        "Time for which all tries and returns may stop the job.  [default: no limit]",
        HOW_LONG,
        default=inf,
    )
    yes: bool = option("--yes", "Agree to all tries, which stop the job, without being asked.")
    dry_run: bool = option("--dry-run", "Print the move, and move nothing.")
    resume: bool = option("--resume", "Finish an interrupted move.")
    patience: Patience = PATIENCE
    savepoint_timeout: StartTime = file_key(
        "TIME", "Time in which the savepoint must be complete.", default=SAVEPOINT_SECONDS
    )
    settle: Seconds = file_key(
        "TIME",
        "Time for which the moved job is watched. If it fails or is too slow, it is moved back.",
        default=30.0,
    )
    allow_non_restored: bool = NON_RESTORED

    def check(self) -> None:
        """Refuse contradictions; a resumed move may keep the rest of its command."""
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


class FlinkWatchSettings(JobMoveSettings, JobSettings):
    """How a watch keeps a job on TaskManagers that carry its rate."""

    apply: bool = option(
        "--apply", "Move the job when that pays, and replace lost TaskManagers by free ones."
    )
    policy: str = option(
        "--policy NAME",
        "Rule that chooses the number of TaskManagers.",
        default="work-function",
        choices=names_in("streamplace.control.policy:POLICIES"),
    )
    spare: Texts = option(
        "--spare DEVICE…", "TaskManager to replace a lost one. May be repeated.", WHERE
    )
    every: Annotated[Seconds, Interval(ge=10, le=86_400)] = option(
        "--every TIME", "Time from one round to the next.", HOW_LONG, default=60.0
    )
    at_most: Count | None = option(
        "--at-most N", "Maximum number of TaskManagers of the job.  [default: all]"
    )
    not_between: Texts = option(
        "--not-between HH:MM-HH:MM…",
        "Hours, by the clock of this machine, without moves for the rate. May be repeated.",
        HOW_LONG,
    )
    metrics: Annotated[Count, Interval(le=65_535)] | None = option(
        "--metrics PORT", "Serve metrics for Prometheus on this port of loopback.", OUTPUT
    )
    patience: Seconds = file_key(
        "TIME", "Time to wait for a lost TaskManager before it is replaced.", default=30.0
    )
    least_time: Annotated[Seconds, Interval(le=604_800)] = file_key(
        "TIME", "Minimum time from one move to the next.", default=300.0
    )
    move_price: Seconds = file_key(
        "TIME", "Price of a move, as time of running the mean of both layouts.", default=1800.0
    )
    lag: Seconds = file_key("TIME", "Time by which tuples may be late.", default=60.0)

    def check(self) -> None:
        """Refuse settings of moves for a watch that moves nothing."""
        super().check()
        self.need("apply", "not_between", "least_time", "savepoints", "native")

    def moves(self) -> "MoveSettings":
        """How the job is moved: a try may carry less, and then the job returns."""
        return replace(super().moves(), least_rate=0.0)

    def guards(self) -> "Guards":
        """Times without moves."""
        from streamplace.flink.watch.deciding import Guards, QuietHours

        name = self.name("not_between")
        hours = tuple(QuietHours.of(text, name) for text in self.not_between)
        return Guards(self.least_time, hours)

    def judge(self) -> "RateJudge":
        """Judge that decides on the number of TaskManagers."""
        from streamplace.control.policy import POLICIES
        from streamplace.control.problem import MoveTerms
        from streamplace.flink.watch.deciding import RateJudge

        terms = MoveTerms(price=self.move_price, lag=self.lag)
        return RateJudge(POLICIES[self.policy], self.every, terms)


class FlinkAdviseSettings(ProgramSettings, MachineSettings, HistorySettings):
    """How a job is measured, and how machines are planned for it."""

    rate: QuantityText | None = option(
        "--rate QUANTITY",
        "Total rate of the sources in tuples/s, such as 50000 or '50 k/s', or a multiple of their "
        "offered rate, such as 2x; with --from a multiple of the peak, or a percentile, such as "
        "95%.  [default with --from: the peak]",
    )
    offers: OffersFile | None = OFFERS
    cluster: ClusterFile = OWN_MACHINES
    headroom: Headroom = headroom_option(FLINK_HEADROOM)
    budget: SearchBudget = option(
        "--budget TIME", "Time for the plan, as in '1 min'.  [default: 10 s]", HOW_LONG
    )
    seconds: Window = file_key("TIME", "Length of a window of measurement.", default=10.0)
    patience: Patience = PATIENCE

    def check(self) -> None:
        """Refuse contradictions."""
        from streamplace.flink.measure.source_lag import requested_rate

        super().check()
        self.exclude("offers", "cluster")
        self.need("offers", "headroom")
        if self.history is None and self.namespace is None:
            self.check_set("rate")
        if self.history is None and self.rate is not None:
            requested_rate(self.rate)
        elif self.rate is not None:
            from streamplace.flink.prometheus.job_history import percentile

            percentile(self.rate)
        if self.namespace is not None:
            self._check_several()

    def _check_several(self) -> None:
        """Refuse settings for one job."""
        for name in ("job", "cluster"):
            self.refuse(name, "is for one job; drop {}, or name the job's Flink by --rest")
        if self.rate is not None and not self.rate.strip().endswith(("x", "×", "%")):
            name = self.name("rate")
            raise SettingError(
                f"{name} is {quoted(self.rate)}; for all jobs, give a multiple, such as 1.2x"
            )

    @property
    def namespace(self) -> str | None:
        """Namespace of the jobs, "" for all jobs of Prometheus; None for one job."""
        from streamplace.flink.operator.resource import namespace_in

        if self.history is not None and self.inputs.keys().isdisjoint(("rest", "job")):
            return ""
        return namespace_in(self.rest)

    def of_job(self, name: str) -> "FlinkAdviseSettings":
        """Return the settings for a resource of the namespace."""
        return self.model_copy(update={"rest": f"{self.rest}/{name}"})

    def of_plan(self) -> "PlannerSettings":
        """Settings of the planner."""
        from streamplace.planning.problem import PLAN_BUDGET, PlannerSettings

        return PlannerSettings(self.headroom, budget=self.budget or PLAN_BUDGET)

    def engine(self, tell: Tell = lambda _: None) -> "FlinkEngine":
        """Engine that measures the job."""
        return replace(super().engine(tell), patience=self.patience)


class PlacedSettings(PlacementSettings):
    """A placement that must be given."""

    def placed(self) -> Path:
        """File of the placement."""
        self.check_set("placement")
        assert self.placement is not None
        return self.placement


class FlinkApplySettings(PlacedSettings, ProgramSettings):
    """How a job is submitted with a placement."""

    savepoint: str | None = option(
        "--savepoint TEXT", "Savepoint (path or URI) from which the job starts."
    )
    allow_non_restored: bool = NON_RESTORED
    timeout: StartTime = TIMEOUT

    def check(self) -> None:
        """Refuse a setting without effect."""
        super().check()
        self.need("savepoint", "allow_non_restored")


class FlinkVerifySettings(PlacedSettings, JobSettings):
    """A job, and where it should run."""


class FlinkCancelSettings(JobSettings):
    """How a job is cancelled."""

    savepoint: str | None = option(
        "--savepoint FOLDER", "Folder (path or URI) for a savepoint of the job's state."
    )
    drop_state: bool = option("--drop-state", "End the job even though its state is lost.")


class FlinkClusterSettings(MachineSettings, JobSettings):
    """How TaskManagers are measured."""

    beside: Texts = option(
        "--beside JOB…",
        "Id of a job that stays on its TaskManagers. The CPU of its tasks is reserved. May be "
        "repeated.",
        WHERE,
    )
    seconds: Window = file_key("TIME", "Length of a window of measurement.", default=10.0)


class FlinkProfileSettings(HistorySettings):
    """How a job is measured."""

    seconds: Window = file_key("TIME", "Length of a window of measurement.", default=5.0)
    patience: Patience = PATIENCE
    mips: QuantityText = file_key("SPEED", "Speed of a core of the TaskManagers.", default=SPEED)
