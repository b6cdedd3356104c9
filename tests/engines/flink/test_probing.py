"""A probe moves a job to an even spread and on, or back, whatever happens meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fake_flink import FakeFlink
from flink_documents import healthy, jobs

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.engines.flink.decide import probing
from streamplace.engines.flink.decide.candidates import Question, judged
from streamplace.engines.flink.decide.decision import Candidate, decide, interval
from streamplace.engines.flink.decide.improving import JobImprover
from streamplace.engines.flink.decide.layouts import Layout
from streamplace.engines.flink.decide.probing import (
    Prober,
    check_probes,
    fitted_together,
    left_probe,
    resumed,
)
from streamplace.engines.flink.decide.proposal import Proposal
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure.sending_cost import RemoteFlow
from streamplace.engines.flink.measure.steady import UnsteadyJob
from streamplace.engines.flink.move.folder import FileEntry
from streamplace.engines.flink.move.move import FlinkMove, MovePlan
from streamplace.engines.flink.move.outcomes import FlinkMoved, Undecided
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.move.settling import Settling, SourceFlow
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer
from streamplace.engines.flink.rest.job_ids import successor
from streamplace.engines.flink.rest.plan import Edge, FlinkTask
from streamplace.engines.live import Measurement
from streamplace.errors import ProblemError, SettingError
from streamplace.model.graph import CONSISTENCY_ERROR

TOGETHER = {"src": ["a", "a"], "map": ["a", "a"]}
EVEN = {"src": ["a", "b"], "map": ["a", "b"]}
FOUND = {"src": ["b", "b"], "map": ["b", "a"]}


def graph(ipt: float = 3e6, rate: float = 100.0) -> StreamGraph:
    """A source, and an operator of some cost."""
    operators = [
        Operator("src", rate=rate, parallelism=2),
        Operator("map", ipt=ipt, parallelism=2, constant=rate),
    ]
    return StreamGraph.of("job", operators, [Stream("src", "map", partitioning="hash")])


@dataclass
class World:
    """A job where it runs, and all that was done to it.

    Attributes
    ----------
    target
        Where it is decided that it should run; None for where it ran.
    interrupts
        What happens in each measurement and move, by its number.
    mips
        Speed of the TaskManagers; with the usual one, the even spread uses all of it.
    facts
        What the profile at the even spread says about itself.
    """

    job: str = "0" * 32
    layout: dict[str, list[str]] = field(default_factory=lambda: dict(TOGETHER))
    target: dict[str, list[str]] | None = None
    interrupts: dict[str, BaseException] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    broken: Callable[[], None] | None = None
    least_rates: list[float] = field(default_factory=list)
    decided_for: dict[str, list[str]] = field(default_factory=dict)
    mips: float = 300.0
    facts: dict[str, float] = field(default_factory=dict)

    def act(self, kind: str) -> None:
        """Measure or move, unless something happens."""
        self.done.append(kind)
        number = sum(one == kind for one in self.done)
        if (error := self.interrupts.get(f"{kind} {number}")) is not None:
            raise error

    def measure(self, job: str, seconds: float, cluster: object = None) -> Measurement:
        """At the even spread, tuples cost half as much."""
        self.act("measure")
        is_spread = self.layout != TOGETHER
        seen = graph(1e6 if is_spread else 3e6, 300.0 if is_spread else 100.0)
        seen = replace(seen, attributes=self.facts if is_spread else {})
        devices = Cluster.of([Device("a", mips=self.mips), Device("b", mips=self.mips)])
        return Measurement(seen, devices, is_limited=True, notes=(job,))


@dataclass(frozen=True)
class Moves:
    """What moves the job of a world."""

    world: World
    rest: Any
    settings: MoveSettings = field(default_factory=MoveSettings)
    tell: Callable[[str], None] = lambda _: None
    rate = FlinkMove.rate

    @contextmanager
    def folder(self) -> Iterator[Any]:
        """Files beside the savepoints."""
        files = self.world.files
        yield SimpleNamespace(
            write=files.__setitem__,
            read=files.__getitem__,
            delete=lambda name: files.pop(name, None),
            entries=lambda _: [FileEntry(name, 1.0) for name in files],
        )

    def plan(self, job: str, vectors: dict[str, list[str]]) -> MovePlan:
        """How it moves."""
        assert job == self.world.job
        return MovePlan(job, dict(self.world.layout), dict(vectors))

    def run(self, plan: MovePlan) -> FlinkMoved:
        """It moves, and has a new id."""
        self.world.act("move")
        self.world.least_rates.append(self.settings.settling.least_rate)
        self.world.layout, self.world.job = dict(plan.after), successor(plan.job)
        return FlinkMoved(self.world.job, 1.0, None)

    def unfinished_moves(self) -> list[Any]:
        """The one that was broken off."""
        return [] if self.world.broken is None else [SimpleNamespace(job=self.world.job)]

    def resume(self, job: str | None) -> FlinkMoved:
        """Bring it to its end."""
        assert self.world.broken is not None
        self.world.broken()
        return FlinkMoved(self.world.job, 1.0, None)

    def resume_line(self, job: str) -> str:
        """The command that does it."""
        return f"--resume --job {job}"


@pytest.fixture
def world() -> World:
    """A job on one TaskManager of two."""
    return World()


@pytest.fixture
def move(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlinkMove]:
    """What moves its job; every decision is the world's."""

    def decided(self: JobImprover, job: str, measured: Measurement, present: Layout) -> Proposal:
        world.decided_for = present
        now = Candidate("now", present, interval([100.0], 0.03))
        there = Candidate("there", world.target or {}, interval([200.0], 0.1), 1)
        decision = decide(now, [there] if world.target else [])
        target = world.target or present
        return Proposal(job, measured, decision, 2.0, self.move.plan(job, target))

    tasks = [FlinkTask(name, name, name, 2, (name,)) for name in TOGETHER]
    edges = [Edge("src", "map", "hash")]
    monkeypatch.setattr(probing, "read_plan", lambda *_: ("job", tasks, edges))
    monkeypatch.setattr(probing, "can_spread", lambda _: True)
    monkeypatch.setattr(probing, "flows_of_job", lambda *_: {"a": RemoteFlow(1e5, 1e6)})
    monkeypatch.setattr(probing, "processes_of", lambda _: {"a": 1, "b": 2})
    monkeypatch.setattr(JobImprover, "decided", decided)
    monkeypatch.setattr(JobImprover, "_present", lambda *_: dict(world.layout))
    monkeypatch.setattr(JobImprover, "_falls_short", lambda *_: False)
    for place in ("move.comparing", "move.move", "move.settling"):
        monkeypatch.setattr(f"streamplace.engines.flink.{place}.source_flow", lambda *_: None)
    answers = healthy("a", "b") | {"GET /jobs": lambda: jobs({world.job: "RUNNING"})}
    return cast("Any", Moves(world, FakeFlink(answers).rest))


def prober(world: World, move: FlinkMove) -> Prober:
    """What probes the job of a world."""
    engine = cast("FlinkEngine", SimpleNamespace(rest=move.rest, measure=world.measure))
    return Prober(engine, move)


def probe(world: World, move: FlinkMove) -> FlinkMoved | None:
    """Probe the job, and finish that."""
    probed = prober(world, move).probe(world.job)
    return None if probed is None else prober(world, move).finish(probed)


def test_a_probed_job_goes_on_to_where_it_should_run(world: World, move: FlinkMove) -> None:
    """It may be slower at the even spread, but not where it goes on to."""
    world.target = FOUND
    moved = probe(world, move)
    assert moved is not None
    assert moved.job == world.job
    assert world.layout == FOUND
    assert world.done == ["measure", "move", "measure", "move"]
    assert world.least_rates == [0.0, Settling().least_rate]
    assert world.decided_for == TOGETHER
    assert world.files == {}


def test_a_probed_job_goes_back_where_nothing_is_better(world: World, move: FlinkMove) -> None:
    """Or stays, where the even spread is."""
    probe(world, move)
    assert (world.layout, world.files) == (TOGETHER, {})
    world.target = EVEN
    probe(world, move)
    assert world.layout == EVEN
    assert world.done.count("move") == 3


def test_a_job_that_cannot_be_measured_at_the_spread_goes_back(
    world: World, move: FlinkMove
) -> None:
    """As one does that never becomes warm; and one that is not moved there leaves nothing."""
    world.interrupts = {"measure 2": UnsteadyJob("not warm")}
    with pytest.raises(UnsteadyJob):
        probe(world, move)
    assert (world.layout, world.files) == (TOGETHER, {})
    world.interrupts = {"move 3": FlinkError("no slots")}
    with pytest.raises(FlinkError, match="no slots"):
        probe(world, move)
    assert (world.layout, world.files) == (TOGETHER, {})


def test_what_is_measured_at_the_spread_is_checked_with_its_network(
    world: World, move: FlinkMove
) -> None:
    """The profile checks CPU alone, which is off where something else limits the job."""
    world.facts = {CONSISTENCY_ERROR: 0.9}
    probe(world, move)
    assert world.done == ["measure", "move", "measure", "move"]
    world.mips = 3000.0
    with pytest.raises(ProblemError, match="so nothing that it predicts means much"):
        probe(world, move)
    assert (world.layout, world.files) == (TOGETHER, {})


def test_a_job_that_returns_to_the_spread_goes_back_from_there(
    world: World, move: FlinkMove
) -> None:
    """The move to where it should run has failed."""
    world.target, world.interrupts = FOUND, {"move 2": FlinkError("no slots")}
    probe(world, move)
    assert (world.layout, world.files) == (TOGETHER, {})


@pytest.mark.parametrize("target", [EVEN, FOUND])
def test_a_job_that_is_slower_than_before_the_probe_goes_back(
    world: World, move: FlinkMove, monkeypatch: pytest.MonkeyPatch, target: dict[str, list[str]]
) -> None:
    """Although it is no slower than at the even spread."""
    read = {"aa": 100.0, "ab": 60.0, "ba": 80.0}

    def flow(*_: object) -> SourceFlow:
        return SourceFlow(read["".join(world.layout["map"])], is_limited=True)

    for place in ("move.move", "move.settling"):
        monkeypatch.setattr(f"streamplace.engines.flink.{place}.source_flow", flow)
    world.target = target
    never_slower = MoveSettings(settling=Settling(never_slower=True))
    watchful = replace(cast("Any", move), settings=never_slower)
    probe(world, watchful)
    assert (world.layout, world.files) == (TOGETHER, {})
    read |= {"ab": 110.0, "ba": 120.0}
    probe(world, watchful)
    assert world.layout == target


def test_a_probed_job_stays_where_flink_does_not_tell_its_rate(
    world: World, move: FlinkMove, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request without an answer does not mean that it is slower."""

    def silent(*_: object) -> None:
        raise NoAnswer("no Flink answers")

    monkeypatch.setattr(probing, "check_rate", silent)
    world.target = FOUND
    probe(world, move)
    assert world.layout == FOUND


@pytest.mark.parametrize("where", ["measure 2", "move 2"])
def test_an_interrupted_probe_is_resumed(world: World, move: FlinkMove, where: str) -> None:
    """Whoever asks for the next move is told; the job goes back."""
    world.target, world.interrupts = FOUND, {where: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        probe(world, move)
    assert world.layout == EVEN
    with pytest.raises(SettingError, match=f"a probe of job {world.job} was interrupted.*--resume"):
        check_probes(move, world.job)
    assert resumed(move, world.job).job == world.job
    assert world.layout == TOGETHER
    assert left_probe(move, None) is None


@pytest.mark.parametrize("arrives", [EVEN, TOGETHER, FOUND])
def test_a_move_of_a_probe_that_was_broken_off_is_finished_first(
    world: World, move: FlinkMove, arrives: dict[str, list[str]]
) -> None:
    """Only from the even spread the job goes back."""
    world.interrupts = {"move 1": Undecided("Flink does not answer")}
    with pytest.raises(Undecided):
        probe(world, move)

    def conclude() -> None:
        world.layout, world.job = dict(arrives), successor(world.job)

    world.broken = conclude
    assert resumed(move, None).job == world.job
    assert world.layout == (FOUND if arrives == FOUND else TOGETHER)
    assert world.done.count("move") == (2 if arrives == EVEN else 1)
    assert world.files == {}


def test_a_job_that_crosses_already_is_not_probed(world: World, move: FlinkMove) -> None:
    world.layout = dict(EVEN)
    assert prober(world, move).probe(world.job) is None
    assert world.done == []


def test_a_job_of_which_hardly_any_tuple_crosses_is_probed(
    world: World, move: FlinkMove, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What crossing costs is not measured then; nor is it where the job is spread evenly."""
    monkeypatch.setattr(probing, "flows_of_job", lambda *_: {})
    world.layout = {**TOGETHER, "map": ["a", "b"]}
    probe(world, move)
    assert world.done == ["measure", "move", "measure", "move"]
    world.layout = dict(EVEN)
    with pytest.raises(SettingError, match="too few tuples cross there"):
        probe(world, move)
    assert world.done.count("move") == 2


def test_a_probed_job_that_restarts_is_moved_back_when_it_runs(
    world: World, move: FlinkMove
) -> None:
    """Its record stays until then."""
    world.interrupts = {"measure 2": KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        probe(world, move)
    usual = move.rest.jobs
    move.rest.jobs = lambda: {world.job: "RESTARTING"}  # type: ignore[method-assign]
    with pytest.raises(SettingError, match=r"is RESTARTING, .* once it runs; wait, .* --resume"):
        resumed(move, world.job)
    move.rest.jobs = usual  # type: ignore[method-assign]
    resumed(move, world.job)
    assert (world.layout, world.files) == (TOGETHER, {})


def test_a_probe_that_would_tell_nothing_is_refused(world: World, move: FlinkMove) -> None:
    """There is one TaskManager, or one on another machine."""
    move.rest.task_managers = lambda: [{"id": "a"}]
    with pytest.raises(SettingError, match="no tuple would cross at an even spread either"):
        probe(world, move)
    move.rest.task_managers = lambda: [{"id": "a"}, {"id": "b"}, {"id": "far"}]
    with pytest.raises(SettingError, match="do not all run on this machine"):
        probe(world, move)
    assert "move" not in world.done


def test_costs_are_those_of_both_measurements() -> None:
    """100 tuples/s of 3e6 instructions and 300 of 1e6; rates are those of the first."""
    first = Measurement(graph(3e6, 100.0), Cluster.uniform(2), True, ("one",))
    second = Measurement(graph(1e6, 300.0), Cluster.uniform(3), True, ("two",))
    both = fitted_together(first, second)
    assert both.graph.operators.ipt.tolist() == pytest.approx([0, 1.5e6])
    assert both.graph.operators.constant.tolist() == pytest.approx([0, 200])
    assert both.graph.source_rate == pytest.approx(100)
    assert both.cluster is second.cluster
    assert both.notes == ("two",)
    assert fitted_together(first, first).graph == first.graph


def test_a_probe_finds_no_cpu_that_the_machine_lacks() -> None:
    """Two TaskManagers share two cores, of which the first layout uses all on one of them."""
    dear = graph(1e9 / 100 * 2.5, 200.0)
    used = Cluster.of([Device("a", mips=2500, cores=2), Device("b", mips=25)])
    shared = Cluster.of([Device("a"), Device("b")], overhead=1e-3)
    first = Measurement(dear, used, True)
    both = fitted_together(first, replace(first, cluster=shared))
    assert both.cluster.overhead_s == 1e-3
    answer = judged(Question(both, TOGETHER, {}, spreads=True), EVEN)
    assert answer.present.carries.value == pytest.approx(200.0)
    assert answer.stays
