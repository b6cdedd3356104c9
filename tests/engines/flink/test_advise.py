"""Advice on jobs whose truth is known, with a cluster that answers as lazily as Flink does."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_flink import ANSWERS, answering, server
from lazy_flink import Clock, LazyRest, Vertex, rates

from streamplace.engines.flink import cluster as clusters
from streamplace.engines.flink.advice import Advice
from streamplace.engines.flink.advise import AdviceSettings, advise
from streamplace.engines.flink.rest import FlinkError
from streamplace.engines.flink.sending_cost import SendingCost
from streamplace.engines.flink.stack_samples import StackCounts
from streamplace.engines.flink.steady import (
    GARBAGE_TIME,
    UnsteadyJob,
    agree,
    seconds_running,
)
from streamplace.errors import SettingError, StreamplaceError
from streamplace.model import Cluster
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer

CPU = {"v0": 0.01, "v1": 0.2, "v2": 0.05}
OFFERS = Catalogue.of([Offer("small", 0.1), Offer("large", 0.25, cores=2)], overhead=1e-6)
SETTINGS = AdviceSettings(budget=Budget(None, 20_000))
OLD = 10 * 60_000


@dataclass
class ShopRest(LazyRest):
    """A stock job of three operators, whose rates may bend.

    Attributes
    ----------
    groups
        Ids of the slot sharing groups of the vertices; none where Flink does not tell.
    pinnable
        Whether the TaskManagers are configured for placements.
    garbage
        TaskManager → share of its time that garbage collection takes.
    facts
        What else the job's document says.
    bend
        Second from which sources emit twice as much.
    """

    url = "http://flink:8081"
    groups: tuple[str, ...] = ()
    pinnable: bool = True
    garbage: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    bend: float = 1e9
    reads: int = 0

    def _answer(self, path: str) -> Any:
        if path.endswith("/checkpoints"):
            latest = {"completed": {"end_to_end_duration": 2000}}
            return {"counts": {"completed": 1}, "latest": latest}
        if path == "/jobmanager/config":
            return [{"key": "jobmanager.scheduler", "value": "adaptive"}]
        answer = super()._answer(path)
        if path == "/taskmanagers" and not self.pinnable:
            for manager in answer["taskmanagers"]:
                manager["totalResource"] = {"managedMemory": 100}
        return answer | self.facts if path == "/jobs/job" else answer

    def _vertex(self, v: str) -> dict[str, Any]:
        group = dict(zip(self.vertices, self.groups, strict=False)).get(v)
        told = {} if group is None else {"slotSharingGroupId": group}
        return super()._vertex(v) | {"maxParallelism": 128} | told

    def _of_process(self, device: str, wanted: str) -> list[dict[str, Any]]:
        if not wanted:
            return [{"id": "Status.JVM.CPU.Time"}, {"id": GARBAGE_TIME}]
        milliseconds = self.garbage.get(device, 0.0) * self.clock.now * 1000
        spent = round(self.process_cpu[device] * self.clock.now * 1e9)
        return [
            {"id": "Status.JVM.CPU.Time", "value": str(spent)},
            {"id": GARBAGE_TIME, "value": str(round(milliseconds))},
        ]

    def _metrics(self, v: str, wanted: str) -> list[dict[str, Any]]:
        at = self.fetched.get(v, 0.0)
        rows = super()._metrics(v, wanted)
        for row in rows:
            if row["id"].endswith(".numRecordsOut") and "sum" in row:
                row["sum"] += 100 * max(0.0, at - self.bend)
        return rows


@pytest.fixture
def shop(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ShopRest]:
    """A job of a source, a splitter and a sink on three TaskManagers of two cores each."""
    monkeypatch.setattr(clusters, "processes_of", lambda rest: {})

    def make(blocked: float = 0.0, pending: float | None = None, **facts: Any) -> ShopRest:
        source = rates(0, 100, 0, 100 * 400, busy=CPU["v0"], blocked=blocked)
        waiting = {} if pending is None else {"Source__src.pendingRecords": pending}
        split = rates(100, 250, 100 * 400, 250 * 40, busy=CPU["v1"])
        vertices = {
            "v0": Vertex("Source: src", source | {"Source__src.numRecordsOut": 100} | waiting),
            "v1": Vertex("split", split, [("v0", "HASH")]),
            "v2": Vertex("out", rates(250, 0, 250 * 40, 0, busy=CPU["v2"]), [("v1", "REBALANCE")]),
        }
        devices = ("dev-0", "dev-1", "dev-2")
        usual: dict[str, Any] = {
            "devices": devices,
            "duration": OLD,
            "process_cpu": dict.fromkeys(devices, sum(CPU.values())),
            "facts": {"schedulerType": "Default"},
        }
        return ShopRest(clock, vertices, **(usual | facts))

    return make


def advised(rest: ShopRest, rate: str = "2x", machines: Any = OFFERS) -> Advice:
    """Advice on the job of a cluster."""
    return advise(rest, "job", rate, machines, SETTINGS)


def test_advice_is_the_truth(shop: Callable[..., ShopRest]) -> None:
    """Rate, CPU, key groups, today's cost, the plan's and its bound, and what changing takes."""
    advice = advised(shop())
    assert advice.observed == pytest.approx(100)
    assert advice.offered == pytest.approx(100)
    assert advice.rate == pytest.approx(200)
    cpu = {operator.name: operator.cpu for operator in advice.operators}
    assert cpu == pytest.approx({"src": 0.01 / 100, "split": 0.2 / 100, "out": 0.05 / 250})
    assert {operator.source for operator in advice.operators} == {"CPU time of TaskManagers"}
    assert {operator.max_parallelism for operator in advice.operators} == {128}
    assert advice.plan.graph.operators.max_parallelism.tolist() == [128] * 3
    assert advice.current.counts == {"large": 3}
    assert advice.current.cost == 0.75
    assert advice.plan.machines == {"small": 1}
    assert float(advice.plan.bound) == advice.plan.cost == 0.1
    assert advice.gain == pytest.approx(0.65)
    assert advice.outage == 3.0
    assert advice.catch_up == pytest.approx(3 * 200 / (advice.plan.carries - 200))


def test_a_live_job_shares_slots_within_its_groups(shop: Callable[..., ShopRest]) -> None:
    """Whatever the offers say; TaskManagers need the slots of the plan's fullest machine."""
    offers = Catalogue.of([Offer("small", 0.1, slots=1)])
    alone = advised(shop(), machines=offers)
    assert alone.plan.machines == {"small": 1}
    assert (alone.plan.slots.separate, alone.plan.slots.shared) == (3, 1)
    assert "# taskmanager.numberOfTaskSlots: at least 1 on small" in alone.commands
    apart = advised(shop(groups=("a", "a", "b"), pinnable=False), machines=offers)
    assert apart.plan.slots.shared == 2
    assert apart.plan.machines == {"small": 2}
    assert apart.plan.graph.operators.slot_sharing_group == ("group-0", "group-0", "group-1")
    assert advised(shop(groups=("a", "a", "b")), machines=offers).plan.slots.shared == 1


def test_advice_reads_and_changes_nothing(shop: Callable[..., ShopRest]) -> None:
    """Everything that is asked is asked by GET, and what does not change only once or twice."""
    rest = shop()
    advised(rest)
    assert rest.asked.count("/jobs/job/plan") == 1
    assert rest.asked.count("/jobs/job/checkpoints") == 1
    assert rest.asked.count("/taskmanagers") <= 2


def test_the_report_says_it_in_words(shop: Callable[..., ShopRest]) -> None:
    """Cost, rate in both windows, what limits, gain, outage and the commands."""
    text = " ".join(str(advised(shop())).split())
    for words in (
        "Today: 3 machines that cost 0.75 per hour.",
        "large (by size)",
        "Source src emits 100 tuples/s (100 and 100 in two windows); it is offered 100.",
        "200 tuples/s cost 0.1 per hour on ",
        "No plan costs less.",
        "What limits is ",
        "Today's machines cost 0.75 per hour; the plan saves 0.65 per hour.",
        "Changing stops the job once, for about 3 s, which is made up for in ",
        "# first start 1 × small # taskmanager.numberOfTaskSlots: at least 1 on small",
        "at least 1 on small flink stop -m flink:8081 --savepointPath SAVEPOINTS job",
        "flink run -d -m flink:8081 -c ENTRY_CLASS -s SAVEPOINT -p 1 JAR ARGUMENTS",
        "ARGUMENTS # then stop 3 × large",
        "--placement plan/placement.json",
        "note: ipt of split: from the CPU of whole TaskManagers",
    ):
        assert words in text


def test_back_pressure_hides_the_rate_that_is_multiplied(shop: Callable[..., ShopRest]) -> None:
    """A multiple is refused; a rate is planned for, and the unknown is named."""
    with pytest.raises(SettingError, match=r"holds 'src' back.*give --rate in tuples/s"):
        advised(shop(blocked=1.0))
    advice = advised(shop(blocked=1.0), "200")
    assert advice.offered is None
    text = " ".join(str(advice).split())
    assert "back-pressured 50.0 % of the time, so it is offered more than that" in text


def test_pending_records_that_grow_are_offered_too(shop: Callable[..., ShopRest]) -> None:
    """What waits for the source grows by what it does not read of what arrives."""
    advice = advised(shop(blocked=1.0, pending=50.0))
    assert advice.offered == pytest.approx(150)
    assert advice.rate == pytest.approx(300)
    assert "records are pending and grow by 50 per second" in " ".join(str(advice).split())


def test_a_young_job_is_not_measured(shop: Callable[..., ShopRest]) -> None:
    """It says how long to wait, before it has watched anything."""
    rest = shop(duration=20_000)
    with pytest.raises(UnsteadyJob, match=r"has run for 20 s, .*wait 40 s, or lower --warm-up"):
        advised(rest)
    assert rest.asked == ["/jobs/job"]


def test_a_restarted_job_is_as_old_as_its_restart() -> None:
    """The job's duration counts from its first start."""
    document: Any = {"duration": 900_000, "now": 50_000, "timestamps": {"RUNNING": 20_000.0}}
    assert seconds_running(document) == 30.0
    assert seconds_running(document | {"timestamps": {"RUNNING": 0.0}}) == 900.0


def test_windows_that_differ_are_refused(shop: Callable[..., ShopRest]) -> None:
    """A source that begins to emit twice as much in the second window."""
    with pytest.raises(UnsteadyJob, match=r"source 'src' sent 1\d\d tuples/s and then"):
        advised(shop(bend=172.0))  # in the last of the windows


@pytest.mark.parametrize("late", [0.25, 1.0, 30.0])
def test_windows_may_differ_by_when_they_were_counted_but_not_by_more(late: float) -> None:
    """A constant source seemed to send 4351 and 3722 tuples/s in windows of 8 s."""
    assert agree(4351.0, 3722.0, 8.0, late)
    assert not agree(4351.0, 3722.0, 8.0, 0.0)
    assert not agree(4351.0, 3000.0, 8.0, late)


def test_commands_name_the_folder_that_the_plan_is_written_to(
    folder: Path, run: Callable[..., Any], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "processes_of", lambda rest: {})
    with server(answering(ANSWERS)) as url:
        asked = ("flink", "advise", "--rest", url, "--offers", "offers.toml", "--warm-up", "0")
        printed = run(*asked, "--rate", "1e5", "-o", "my plans/one")
    assert "with the files that -o my plans/one/ writes" in " ".join(printed.out.split())
    assert "--cluster 'my plans/one/cluster.toml'" in printed.out
    assert "--placement 'my plans/one/placement.json'" in printed.out
    assert (folder / "my plans/one/cluster.toml").exists()


def test_counters_that_stand_still_are_no_two_windows(
    shop: Callable[..., ShopRest], clock: Clock
) -> None:
    """Two windows need three moments."""
    rest = shop()
    rest.vertices["v0"].rates = {name: 0.0 for name in rest.vertices["v0"].rates}  # type: ignore[misc]
    with pytest.raises(UnsteadyJob, match="watch for longer with --seconds"):
        advised(rest)


def test_garbage_collection_that_dominates_is_refused(shop: Callable[..., ShopRest]) -> None:
    """One TaskManager of the job is enough."""
    assert advised(shop(garbage={"dev-1": 0.1})).plan.machines
    with pytest.raises(UnsteadyJob, match=r"garbage collection took 50% of the time .* 'dev-1'"):
        advised(shop(garbage={"dev-1": 0.5}))


def test_task_managers_are_matched_by_name_first(shop: Callable[..., ShopRest]) -> None:
    """The longest name of an offer counts, then cores, speed and memory; the rest is named."""
    offers = Catalogue.of([Offer("dev", 1.0, cores=8), Offer("big", 2.0, cores=4)], OFFERS.overhead)
    advice = advised(shop(), machines=offers)
    assert advice.current.counts == {"dev": 3}
    none = advised(shop(), machines=Catalogue.of([Offer("box", 1.0, cores=4)]))
    assert [machine.name for machine in none.current.unmatched] == ["dev-0", "dev-1", "dev-2"]
    text = " ".join(str(none).split())
    assert "Today: 0 machines that cost 0 per hour." in text
    assert "No offer has the cores, speed and memory of 'dev-0', 'dev-1', 'dev-2'" in text
    assert "what sending a tuple to another TaskManager costs is not measured" in text


def test_a_plan_can_catch_up_after_the_restart(
    shop: Callable[..., ShopRest],
) -> None:
    """An outage of 3 s that is made up for in 3 s takes machines for twice the rate."""
    settings = AdviceSettings(catch_up=3.0, headroom=0.0, budget=Budget(None, 20_000))
    advice = advise(shop(), "job", "2x", OFFERS, settings)
    assert advice.plan.headroom == pytest.approx(0.5)
    assert advice.plan.carries >= 400
    assert advice.catch_up is not None
    assert advice.catch_up <= 3.0


def test_task_managers_without_subtasks_are_named(shop: Callable[..., ShopRest]) -> None:
    """They cost as much as the others."""
    advice = advised(shop())
    assert advice.current.idle == ["dev-2"]
    assert "Without subtasks of this job: 'dev-2'." in str(advice)


def test_machines_that_are_the_plan_stay(shop: Callable[..., ShopRest]) -> None:
    """Where today's machines carry the rate and cost no more, there is nothing to do."""
    rest = shop(devices=("dev-0",), process_cpu={"dev-0": sum(CPU.values())})
    advice = advised(rest, "1x", Catalogue.of([Offer("large", 0.25, cores=2)], 1e-6))
    assert advice.commands == ()
    assert "change nothing." in " ".join(str(advice).split())


@pytest.mark.parametrize("facts", [{"schedulerType": "Adaptive"}, {"schedulerType": None}])
def test_the_adaptive_scheduler_is_told_parallelisms(
    shop: Callable[..., ShopRest], facts: dict[str, Any]
) -> None:
    """By vertex; versions before 2 do not name the scheduler, but their configuration does."""
    advice = advised(shop(facts=facts))
    command, last = advice.commands[-2:]
    assert last.startswith("# then stop ")
    assert command.startswith("curl -X PUT http://flink:8081/jobs/job/resource-requirements")
    wanted = json.loads(command.split("'")[-2])
    planned = {vertex: row["parallelism"]["upperBound"] for vertex, row in wanted.items()}
    assert [*planned] == ["v0", "v1", "v2"]
    assert [*planned.values()] == [operator.planned for operator in advice.operators]


def test_the_default_scheduler_needs_a_restart(shop: Callable[..., ShopRest]) -> None:
    """Where all operators run equally often, Flink's own client will do."""
    advice = advised(shop(facts={"schedulerType": "Default"}))
    assert any(line.endswith("-s SAVEPOINT -p 1 JAR ARGUMENTS") for line in advice.commands)
    assert advice.commands[-2].startswith("streamplace flink move JAR --rest http://flink:8081")


def test_given_machines_are_counted(shop: Callable[..., ShopRest]) -> None:
    """Without offers the plan takes as few TaskManagers as possible."""
    for machines in (None, Cluster.uniform(3)):
        advice = advised(shop(), machines=machines)
        assert advice.current.cost == 2
        assert advice.plan.cost == 1
        assert not advice.current.is_priced
        assert "Today: 2 machines that run the job." in str(advice)


def test_other_jobs_are_named(
    shop: Callable[..., ShopRest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan leaves them out."""
    assert not any("alone" in note for note in advised(shop()).notes)
    monkeypatch.setattr("streamplace.engines.flink.advise.other_jobs", lambda rest, job: ["b"])
    assert (
        "the plan is for this job alone, and the jobs 'b' share its machines"
        in advised(shop()).notes
    )


def test_the_cost_of_local_tuples_is_named_where_it_is_assumed(
    shop: Callable[..., ShopRest],
) -> None:
    """No stacks are sampled on other machines."""
    assert any(
        note.startswith("what a tuple costs between two threads of a TaskManager is assumed")
        for note in advised(shop()).notes
    )


def test_what_chains_would_save_is_named_where_it_is_measured(
    shop: Callable[..., ShopRest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream to the sink is a forward one, and takes a half of the CPU of the sink."""
    monkeypatch.setattr(
        "streamplace.engines.flink.job_watch.stacks_by_task",
        lambda *_: {task: StackCounts(100, written=50, read=50) for task in CPU},
    )
    rest = shop()
    rest.vertices["v2"].inputs = [("v1", "FORWARD")]
    notes = [note for note in advised(rest).notes if note.startswith("if Flink chained")]
    assert len(notes) == 1
    assert "split→out" in notes[0]
    assert "of the CPU of the operators would be saved" in notes[0]


@pytest.mark.parametrize("rate", ["0x", "0", "-1", "fast", "2xx", "x", "1e99x", "nan"])
def test_rates_that_are_none_are_refused(shop: Callable[..., ShopRest], rate: str) -> None:
    """Before anything is asked."""
    rest = shop()
    with pytest.raises(StreamplaceError):
        advised(rest, rate)
    assert rest.asked == []


def test_a_rate_that_nothing_carries_is_refused(shop: Callable[..., ShopRest]) -> None:
    """The message names the largest rate."""
    offers = Catalogue.of([Offer("small", 0.1, at_most=1)])
    with pytest.raises(StreamplaceError, match="the largest rate with a plan is"):
        advised(shop(), "100x", offers)


def test_java_takes_its_part_of_every_offer(
    shop: Callable[..., ShopRest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An offer that Java itself fills is refused."""
    from streamplace.engines.flink.profile import JobProfile

    monkeypatch.setattr(
        JobProfile, "background", lambda self, managers: (0.6, SendingCost(1e-6, 0.0))
    )
    assert set(advised(shop()).plan.cluster.devices.mips.tolist()) == {1000.0}
    with pytest.raises(FlinkError, match=r"Java itself takes 1500 MIPS .* offer 'tiny'"):
        advised(shop(), machines=Catalogue.of([Offer("tiny", 0.1, mips=1000)]))


OFFERS_TOML = '[[offers]]\nname = "dev"\nprice = 0.1\nmips = 2500\ncores = 2\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with offers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "offers.toml").write_text(OFFERS_TOML)
    return tmp_path


def test_the_command_prints_advice_and_writes_the_plan(
    folder: Path, run: Callable[..., Any], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One JSON document; the placement is one for the planned cluster."""
    monkeypatch.setattr(clusters, "processes_of", lambda rest: {})
    with server(answering(ANSWERS)) as url:
        asked = ("flink", "advise", "--rest", url, "--offers", "offers.toml", "--warm-up", "0")
        document = json.loads(run(*asked, "--rate", "2x", "-o", "plan", "--json").out)
        printed = run(*asked, "--rate", "1000")
    assert document["rate"] == pytest.approx(2 * document["offered"])
    assert document["current"]["machines"] == {"dev": 1}
    assert document["plan"] == json.loads((folder / "plan/plan.json").read_text())
    simulated = ("plan/graph.json", "plan/placement.json", "--cluster", "plan/cluster.toml")
    carried = json.loads(run("simulate", *simulated, "--json").out)
    assert carried["relative_throughput"] == pytest.approx(1.0)
    assert "Today: 1 machine that cost 0.1 per hour." in printed.out
    assert "note: " in printed.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rate", "0x", "--offers", "offers.toml"), "the factor must be above 0"),
        (("--rate", "fast", "--offers", "offers.toml"), "rate 'fast'"),
        (("--rate", "2x", "--offers", "offers.toml", "--cluster", "offers.toml"), "exclude"),
        (("--rate", "2x", "--offers", "no.toml"), "no.toml"),
        (("--rate", "2x", "--rest", "http://127.0.0.1:1"), "no Flink answers"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path, run: Callable[..., Any], options: tuple[str, ...], message: str
) -> None:
    """And exit code 2."""
    outcome = run("flink", "advise", *options)
    assert outcome.status == 2
    assert message in outcome.err
