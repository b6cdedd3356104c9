"""Jobs that the adaptive scheduler runs are rescaled once, and back if that is not better."""

import json
from pathlib import Path
from typing import Any

import pytest
from fake_flink import FakeFlink, InTurn, failure
from flink_documents import KEPT, config
from hypothesis import given
from hypothesis import strategies as st
from lazy_flink import Clock
from watched_jobs import OLD, Killed, outcome

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.engines.flink.decide.candidates import Question
from streamplace.engines.flink.move.settling import SourceFlow
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer
from streamplace.engines.flink.rest.scheduler import is_adaptive
from streamplace.engines.flink.watch import acting, replacing, rescaling
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.past_moves import PastMoves
from streamplace.engines.flink.watch.plans import JobModel, NewDevices, WatchPlan
from streamplace.engines.flink.watch.rescaled_plans import Scaling, rescaled_model, with_subtasks
from streamplace.engines.flink.watch.rescaling import Rescaler, scaling_of
from streamplace.engines.flink.watch.watch import check_rescalable
from streamplace.engines.live import Measurement
from streamplace.io.ledger import read_ledger
from streamplace.io.watch_store import WatchStore
from streamplace.model.expansion import expand
from streamplace.model.intervals import RateInterval

CARRIES = RateInterval(90.0, 100.0, 110.0)
NOW = WatchPlan(2, {"src": ["a"], "map": ["a", "a", "b", "b"]}, CARRIES)
FEWER = WatchPlan(1, {"src": ["a"], "map": ["a", "a"]}, CARRIES)
MODEL = JobModel(OLD, "shop", (FEWER, NOW), 1, NOW, "", pins=False)
REQUIREMENTS = f"/jobs/{OLD}/resource-requirements"
IDS = {"src": "v0", "map": "v1"}


class AdaptiveFlink(FakeFlink):
    """A job of a source and an operator that the adaptive scheduler runs."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers, self.required = {"src": 1, "map": 4}, {"src": 1, "map": 4}
        self.least, self.is_obeyed, self.restarts, self.starting = 1, True, 0, 0
        self.looks = 4  # that it takes until all of the job runs again
        self.answers = {
            f"GET /jobs/{OLD}": self._job,
            f"GET /jobs/{OLD}/plan": self._plan,
            f"GET /jobs/{OLD}/checkpoints/config": KEPT | {"interval": 1000},
            f"GET {REQUIREMENTS}": self._requirements,
            f"PUT {REQUIREMENTS}": self._require,
            "GET /taskmanagers/a": {"allocatedSlots": [{"jobId": OLD}]},
            "GET /taskmanagers/b": {"allocatedSlots": []},
            "GET /jobmanager/config": config({"jobmanager.scheduler": "adaptive"}),
        }

    def _job(self) -> dict[str, Any]:
        if self.numbers != self.required and self.is_obeyed:
            self.numbers, self.starting = dict(self.required), self.looks
            self.restarts += 1
        self.starting = max(0, self.starting - 1)
        status = "CREATED" if self.starting else "RUNNING"
        rows = [
            {"id": IDS[name], "name": name, "parallelism": number, "status": status}
            for name, number in self.numbers.items()
        ]
        return {"name": "shop", "state": "RUNNING", "vertices": rows}

    def _plan(self) -> dict[str, Any]:
        read = [{"id": "v0", "ship_strategy": "HASH"}]
        nodes = [{"id": "v0", "description": "src"}]
        return {"plan": {"nodes": [*nodes, {"id": "v1", "description": "map", "inputs": read}]}}

    def _requirements(self) -> dict[str, Any]:
        return {
            IDS[name]: {
                "parallelism": {"lowerBound": min(self.least, number), "upperBound": number}
            }
            for name, number in self.required.items()
        }

    def _require(self) -> dict[str, Any]:
        wanted = self.asked[-1][1]
        self.required = {name: wanted[v]["parallelism"]["upperBound"] for name, v in IDS.items()}
        return {}

    @property
    def was_required(self) -> list[dict[str, Any]]:
        """Bounds of every request."""
        documents = [document for request, document in self.asked if request.startswith("PUT")]
        return [
            {name: tuple(document[v]["parallelism"].values()) for name, v in IDS.items()}
            for document in documents
        ]


class Rescaling:
    """A watched job that is rescaled, and what the watch told and left."""

    def __init__(self, flink: AdaptiveFlink, log: WatchLog, ledger: Path) -> None:
        self.flink, self.log, self.ledger = flink, log, ledger
        self.told, self.left = list[str](), list[tuple[str, Any]]()

    @property
    def rescaler(self) -> Rescaler:
        """What a new process of the watch rescales the job with."""
        left = lambda job, devices: self.left.append((job, devices))  # noqa: E731
        return Rescaler(self.flink.rest, self.log, self.told.append, ledger=self.ledger, left=left)

    @property
    def outcome(self) -> tuple[str, str]:
        """State of the only decision, and the id of the job that it left."""
        return outcome(self.log.store)


@pytest.fixture
def flink(monkeypatch: pytest.MonkeyPatch) -> AdaptiveFlink:
    """The job emits 50 tuples/s, and the clock passes only where it is waited."""
    monkeypatch.setattr(rescaling, "time", Clock())
    flow = SourceFlow(50.0, 0.1, False, True, True, False, False, {}, 5.0)
    for module in (rescaling, acting):
        monkeypatch.setattr(module, "source_flow", lambda *_: flow)
    monkeypatch.setattr(rescaling, "check_rate", lambda *_: None)
    return AdaptiveFlink()


@pytest.fixture
def case(flink: AdaptiveFlink, store: WatchStore, tmp_path: Path) -> Rescaling:
    """The job, which nobody has rescaled yet."""
    log = WatchLog.claimed(store, OLD, "shop", lambda _: None)
    return Rescaling(flink, log, tmp_path / "ledger.jsonl")


def test_a_job_gets_the_subtasks_of_a_plan_and_leaves_taskmanagers(case: Rescaling) -> None:
    case.flink.least = 2
    assert case.rescaler.carry_out(MODEL, FEWER, "it is cheaper") == OLD
    assert case.flink.was_required == [{"src": (1, 1), "map": (2, 2)}]
    assert (case.flink.numbers, case.flink.restarts) == ({"src": 1, "map": 2}, 1)
    first, second, *_ = case.told
    assert first == f"job {OLD} runs with the subtasks 1 × 'src', 2 × 'map', interrupted for 0.4 s"
    assert second.startswith("the job emits 50 tuples/s now (measured); it should carry 100")
    assert case.left == [(OLD, ["b"])]
    assert case.outcome == ("moved", OLD)
    (entry,) = read_ledger(case.ledger).entries
    assert (entry.job, entry.predicted, entry.measured) == ("shop", 100.0, 50.0)


def test_what_a_job_leaves_is_told_once_flink_has_released_its_idle_slots(case: Rescaling) -> None:
    """The adaptive scheduler keeps a slot without subtasks for a minute or so."""
    held, free = {"allocatedSlots": [{"jobId": OLD}]}, {"allocatedSlots": []}
    case.flink.answers |= {
        "GET /taskmanagers/b": InTurn(*[held] * 9, free),
        f"GET /jobs/{OLD}/vertices/v0": {"subtasks": [{"taskmanager-id": "a"}]},
        f"GET /jobs/{OLD}/vertices/v1": {"subtasks": [{"taskmanager-id": "a"}] * 2},
    }
    case.rescaler.carry_out(MODEL, FEWER, "it is cheaper")
    assert case.left == [(OLD, ["b"])]


@pytest.mark.parametrize("is_slower", [False, True])
def test_a_job_that_is_not_rescaled_or_is_slower_gets_its_subtasks_back(
    case: Rescaling, monkeypatch: pytest.MonkeyPatch, is_slower: bool
) -> None:
    def slower(*_: Any) -> None:
        raise FlinkError("it reads 20 tuples/s, 40% of before")

    if is_slower:
        monkeypatch.setattr(rescaling, "check_rate", slower)
    case.flink.is_obeyed, before = is_slower, {"src": 1, "map": 4}
    assert case.rescaler.carry_out(MODEL, FEWER, "") == OLD
    fewer, again = {"src": (1, 1), "map": (1, 2)}, {"src": (1, 1), "map": (1, 4)}
    assert case.flink.was_required == [fewer, again]
    assert case.flink.required == case.flink.numbers == before
    assert case.outcome == ("returned" if is_slower else "not begun", OLD)
    assert case.told[-1].endswith(f"job {OLD} gets its earlier subtasks: 1 × 'src', 4 × 'map'")


def test_a_job_that_was_interrupted_in_vain_is_not_rescaled_again_at_once(case: Rescaling) -> None:
    """As one that restores much state: each try would interrupt it anew."""
    case.flink.looks = 10_000
    assert case.rescaler.carry_out(MODEL, FEWER, "") == OLD
    assert case.flink.required == {"src": 1, "map": 4}
    assert case.outcome == ("returned", OLD)
    assert case.told[0].startswith("the job did not run with these subtasks within 120 s")
    moves = PastMoves(case.log, lambda: 0.0)
    assert moves.note(0.0)
    assert moves.came_back(FEWER.machines) == (
        "a move to 1 TaskManager failed, and is tried again in 30 min"
    )


def test_a_flink_that_falls_silent_while_a_job_gets_its_subtasks_back_is_waited_for(
    case: Rescaling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job was interrupted in vain, so it is not rescaled again at once."""
    wait, is_silent = Rescaler._wait, iter([False, True, False])

    def silent(*given: Any) -> Any:
        if next(is_silent):
            raise NoAnswer("no Flink answers")
        return wait(*given)

    def slower(*_: Any) -> None:
        raise FlinkError("it reads 20 tuples/s, 40% of before")

    monkeypatch.setattr(Rescaler, "_wait", silent)
    monkeypatch.setattr(rescaling, "check_rate", slower)
    monkeypatch.setattr(replacing, "LOOK_SECONDS", 0.01)
    assert case.rescaler.carry_out(MODEL, FEWER, "") == OLD
    assert case.told[-1] == "no Flink answers; trying again"
    assert case.outcome == ("returned", OLD)
    assert case.flink.numbers == {"src": 1, "map": 4}


def test_the_least_numbers_of_subtasks_are_required_again_where_more_run(case: Rescaling) -> None:
    """Flink would else go on with fewer than its user allows after a loss."""
    case.flink.least = 3
    case.rescaler.carry_out(MODEL, FEWER, "")
    case.rescaler.carry_out(MODEL, NOW, "")
    assert [one["map"] for one in case.flink.was_required] == [(2, 2), (3, 4)]


def test_requirements_that_flink_refuses_are_not_begun(case: Rescaling) -> None:
    case.flink.answers[f"PUT {REQUIREMENTS}"] = failure("a.B: no such vertex")
    with pytest.raises(FlinkError, match="no such vertex"):
        case.rescaler.carry_out(MODEL, FEWER, "")
    assert case.outcome == ("not begun", OLD)


@pytest.mark.parametrize("has_arrived", [False, True])
def test_a_watch_that_was_killed_finds_out_what_it_has_begun(
    case: Rescaling, monkeypatch: pytest.MonkeyPatch, has_arrived: bool
) -> None:
    """Nothing is required a second time, and the numbers of before stay known."""

    def killed(*given: Any) -> None:
        if has_arrived:
            usual(*given)
        raise Killed

    usual = rescaling.require
    monkeypatch.setattr(rescaling, "require", killed)
    with pytest.raises(Killed):
        case.rescaler.carry_out(MODEL, FEWER, "")
    ((number, decision),) = case.log.decisions.items()
    assert case.rescaler.finish(number, decision, "shop") == OLD
    assert case.outcome == ("moved" if has_arrived else "not begun", OLD)
    assert len(case.flink.was_required) == has_arrived
    assert scaling_of(case.flink.rest, case.log, OLD).base == {"src": 1, "map": 4}


def test_a_job_without_checkpoints_in_reactive_mode_or_of_an_old_flink_is_not_rescaled(
    flink: AdaptiveFlink,
) -> None:
    assert is_adaptive(flink.rest, flink.rest.job(OLD))
    check_rescalable(flink.rest, OLD)
    flink.answers[f"GET /jobs/{OLD}/checkpoints/config"] = KEPT | {"interval": 2**63 - 1}
    with pytest.raises(FlinkError, match=r"takes no checkpoints, so it would start from its begin"):
        check_rescalable(flink.rest, OLD)
    flink.answers[f"GET {REQUIREMENTS}"] = failure("Not found: /", status=404)
    with pytest.raises(FlinkError, match=r"Flink takes numbers of subtasks since 1\.18"):
        check_rescalable(flink.rest, OLD)
    flink.answers["GET /jobmanager/config"] = config({"scheduler-mode": "reactive"})
    with pytest.raises(FlinkError, match="the cluster runs in reactive mode"):
        check_rescalable(flink.rest, OLD)


@given(
    base=st.lists(st.integers(1, 12), min_size=3, max_size=3),
    groups=st.lists(st.sampled_from(["", "other"]), min_size=3, max_size=3),
    slots=st.integers(2, 60),
)
def test_plans_have_subtasks_in_proportion_for_no_more_slots_than_there_are(
    base: list[int], groups: list[str], slots: int
) -> None:
    names = ("a", "b", "c")
    operators = [
        Operator(name, rate=float(name == "a"), parallelism=number, slot_sharing_group=group)
        for name, number, group in zip(names, base, groups, strict=True)
    ]
    streams = [Stream("a", "b", partitioning="rebalance"), Stream("b", "c")]
    graph = StreamGraph.of("job", operators, streams)
    scaling = Scaling(dict(zip(names, base, strict=True)), {"a": 128, "b": 128, "c": 5})

    def needed(numbers: dict[str, int]) -> int:
        size: dict[str, int] = {}
        for name, group in zip(names, groups, strict=True):
            size[group] = max(size.get(group, 0), numbers[name])
        return sum(size.values())

    numbers = scaling.to_slots(graph, slots)
    assert needed(numbers) <= slots
    assert numbers["c"] <= 5
    if max(base) > 1:
        assert all(numbers[n] == 1 for n, b in zip(names, base, strict=True) if b == 1)
    own = needed(scaling.base)
    at_base = scaling.to_slots(graph, own)
    assert at_base == {**scaling.base, "c": min(5, scaling.base["c"])}
    scaled = with_subtasks(graph, numbers)
    assert json.dumps(scaled.operators.parallelism.tolist()) == json.dumps([*numbers.values()])


def test_a_forwarded_stream_joins_neighbours_where_numbers_become_unequal() -> None:
    """The scheduler keeps which streams join all subtasks; others are forwarded again later."""
    operators = [Operator(name, rate=float(name == "a"), parallelism=2) for name in "abc"]
    streams = [Stream("a", "b", partitioning="forward"), Stream("b", "c", partitioning="rebalance")]
    graph = StreamGraph.of("job", operators, streams)
    scaled = with_subtasks(graph, {"a": 2, "b": 4, "c": 2})
    assert scaled.streams.partitioning == ("rescale", "rebalance")
    joined = expand(scaled).graph.streams
    pairs = [(one.source, one.target) for one in joined if one.source.startswith("a")]
    assert pairs == [("a#0", "b#0"), ("a#0", "b#1"), ("a#1", "b#2"), ("a#1", "b#3")]
    again = expand(with_subtasks(scaled, {"a": 2, "b": 2, "c": 2})).graph.streams
    pairs = [(one.source, one.target) for one in again if one.source.startswith("a")]
    assert pairs == [("a#0", "b#0"), ("a#1", "b#1")]


def on_two(there: str, packs: bool) -> JobModel:
    """Plans of a job on two of three TaskManagers with two slots, of which some are there."""
    operators = [Operator("src", rate=100.0), Operator("map", ipt=1e6, parallelism=4)]
    graph = StreamGraph.of("job", operators, [Stream("src", "map", partitioning="hash")])
    cluster = Cluster.of([Device(name, mips=100) for name in "abc"])
    present = {"src": ["a"], "map": ["a", "a", "b", "b"]}
    measured = Measurement(graph, cluster, is_limited=False)
    question = Question(measured, present, dict.fromkeys(there, 2), spreads=False)
    scaling = Scaling({"src": 1, "map": 4}, {"src": 1, "map": 128}, packs)
    return rescaled_model("id", question, scaling, None, None, NewDevices())


@pytest.mark.parametrize(("packs", "subtasks"), [(True, [2, 6]), (False, [1, 6])])
def test_a_plan_for_fewer_taskmanagers_never_needs_more(packs: bool, subtasks: list[int]) -> None:
    """Of three TaskManagers with two slots, the job uses two; a third lets it carry more.

    In a session, subtasks for two slots may be spread over two TaskManagers.
    """
    model = on_two(there="abc", packs=packs)
    fewer, now, more = model.plans
    assert (fewer.machines, now, more.machines) == (1, model.present, 3)
    assert [len(plan.layout["map"]) for plan in (fewer, more)] == subtasks
    assert len(fewer.devices) == 1
    assert [plan.carries.value for plan in model.plans] == pytest.approx([100.0, 200.0, 300.0])
    assert model.where(fewer) == "1 TaskManager"


def test_a_task_manager_that_goes_while_the_job_is_measured_is_in_no_plan() -> None:
    """The devices are known from a file; the watch goes on."""
    model = on_two(there="ab", packs=True)
    assert [plan.machines for plan in model.plans] == [1, 2]
    assert model.plans[0].devices == ["b"]
