"""Advice on jobs whose truth is known, and ``streamplace flink advise``.

The cluster answers as lazily as Flink does.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_lines import settings_file
from fake_flink import (
    ANSWERS,
    CPU,
    OFFERS,
    FakeFlink,
    Vertex,
    advised,
    config,
    failure,
    jobs,
    rates,
    source,
)

from streamplace.errors import SettingError, StreamplaceError
from streamplace.flink.advise import advise as advising
from streamplace.flink.advise.fixed_parallelism import PlannedProgram
from streamplace.flink.ledger import append_entries
from streamplace.flink.measure.profile import JobProfile, steady_profile
from streamplace.flink.measure.streams import SendingCost
from streamplace.flink.program.program import Program, known_program, remember
from streamplace.flink.rest.client import FlinkError
from streamplace.io.ledger import LedgerEntry
from streamplace.model import Cluster
from streamplace.planning.offers import Catalogue, Offer


def test_advice_is_the_truth_and_changes_nothing(shop):
    """Rate, CPU, key groups, today's cost, the plan's and its bound, and what changing takes."""
    flink = shop()
    advice = advised(flink)
    assert advice.flow.rate == pytest.approx(100)
    assert advice.flow.offered == pytest.approx(100)
    assert advice.rate == pytest.approx(200)
    operators = advice.plan.graph.operators
    cpu = operators.ipt / (1e6 * float(advice.plan.graph.attributes["mips"]))
    assert dict(zip(operators.name, cpu, strict=True)) == pytest.approx(
        {"src": 0.01 / 100, "split": 0.2 / 100, "out": 0.05 / 250}
    )
    assert operators.max_parallelism.tolist() == [128] * 3
    assert advice.current.counts == {"large": 3}
    assert advice.current.cost == 0.75
    assert advice.plan.machines == {"small": 1}
    assert float(advice.plan.bound) == advice.plan.cost == 0.1
    assert advice.gain == pytest.approx(0.65)
    assert advice.interruption == pytest.approx((5.1, 6.8, 14.0))
    assert advice.catch_up == pytest.approx(
        advice.interruption.value * 200 / (advice.plan.at_least - 200)
    )
    assert all(request.startswith("GET ") for request, _ in flink.asked)
    for path, most in {"/jobs/job/checkpoints": 1, "/taskmanagers": 3}.items():
        assert flink.requests("GET").count(path) <= most


def test_a_live_job_shares_slots_within_its_groups(shop):
    """Whatever the offers say; TaskManagers need the slots of the plan's fullest machine."""
    offers = Catalogue.of([Offer("small", 0.1, slots=1)])
    alone = advised(shop(), machines=offers)
    assert alone.plan.machines == {"small": 1}
    assert (alone.plan.slots.separate, alone.plan.slots.shared) == (3, 1)
    assert "# taskmanager.numberOfTaskSlots: at least 1 on small" in alone.commands
    flink = shop()
    for vertex, group in zip(flink.vertices.values(), "aab", strict=True):
        vertex.group = group
    assert advised(flink, machines=offers).plan.slots.shared == 1
    flink.pins = False
    apart = advised(flink, machines=offers)
    assert apart.plan.slots.shared == 2
    assert apart.plan.machines == {"small": 2}
    assert apart.plan.graph.operators.slot_sharing_group == ("group-0", "group-0", "group-1")


def test_receivers_of_a_broadcast_keep_their_parallelism(shop):
    """Each subtask gets a copy of every tuple, so fewer subtasks would get fewer tuples."""
    flink = shop()
    flink.vertices["v1"].rates = rates(100, 250, 100 * 400, 500 * 40, busy=CPU["v1"])
    read = rates(500, 0, 500 * 40, 0, busy=CPU["v2"])
    flink.vertices["v2"] = Vertex("out", read, [("v1", "BROADCAST")])
    advice = advised(flink)
    assert advice.plan.parallelism == {"src": 1, "split": 1, "out": 2}
    assert any(note.endswith("so the plan keeps the parallelism of 'out'") for note in advice.notes)


def test_the_report_says_it_in_words(shop):
    """On 24 lines of 80; what is not known is in notes."""
    usual = advised(shop())
    text = " ".join(str(usual).split())
    assert not any("alone" in note for note in usual.notes)
    for words in (
        "Source src: 100 tuples/s emitted, 100 offered.",
        "Today: 3 machines that cost 0.75 per hour; it carries 970 tuples/s there (",
        "Today's machines cost 0.75 per hour; the plan saves 0.65 per hour.",
        "Changing stops the job once, for 7 s (5 to 14 s); the backlog is drained in ",
    ):
        assert words in text
    assert usual.commands == (
        "# first start 1 × small",
        "# taskmanager.numberOfTaskSlots: at least 1 on small",
        "# parallelism: src 1, split 1, out 1",
        "streamplace flink config --cluster plan/cluster.toml --subtasks -o config/",
        "streamplace flink move JAR --rest http://flink:8081 --job job --placement "
        "plan/placement.json --savepoints SAVEPOINTS -- ARGUMENTS",
        "# then stop 3 × large",
    )
    lines = str(usual).splitlines()
    assert len(lines) - lines.count("") <= 24
    assert max(map(len, lines)) <= 80
    assert any("the plan may change" in note for note in usual.notes)


def test_costs_count_as_much_more_as_a_held_back_job_carries_less(shop):
    """The model says 970 tuples/s for a device; further off, something else limits the job.

    It does not matter whether the source tells what waits for it.
    """

    def planned_at(share, blocked=1.0, pending=None):
        flink = shop(blocked=blocked, pending=pending)
        busy = CPU["v1"] * 9.7 / share
        flink.vertices["v1"].rates = rates(100, 250, 100 * 400, 250 * 40, busy=busy)
        return advised(flink, "300")

    for other in (planned_at(1.2), planned_at(1.2, pending=50.0)):
        (note,) = corrections(other)
        assert "so all costs are multiplied by 1.2" in note
    for other in (planned_at(1.5), planned_at(1.2, blocked=0.0)):
        assert not corrections(other)
    assert any("outside of its interval" in one for one in planned_at(1.5).notes)


def test_a_plan_counts_what_each_of_its_subtasks_takes_at_any_rate(shop, monkeypatch):
    """Two subtasks take a tenth of a core whatever they get, and one takes half of it."""
    fixed = {"v0": 0.0, "v1": 0.1, "v2": 0.0}
    monkeypatch.setattr(JobProfile, "constant", property(lambda _: fixed))
    split = advised(shop()).plan.graph.operators["split"]
    assert split.parallelism == 1
    assert split.constant == pytest.approx(0.05 * 2500)
    assert split.ipt == pytest.approx((0.2 - 0.1) / 100 * 2.5e9, rel=0.01)


def test_popular_keys_fill_one_subtask(shop):
    """Today's machines carry less for it, and a note says that no machines help."""

    def advice(*shares, rate="6x"):
        flink = shop()
        flink.vertices["v1"].shares = shares
        return advised(flink, rate)

    even, uneven = advice(0.5, 0.5), advice(0.9, 0.1)
    assert uneven.carried.value == pytest.approx(even.carried.value * 0.5 / 0.9)
    (note,) = (one for one in uneven.notes if "one subtask of 'split' gets 90% of its" in one)
    full = float(note.partition(" plan at ")[2].partition(" ")[0])
    assert 0.97 * full == pytest.approx(uneven.carried.value, rel=0.01)
    for other in (even, advice(0.9, 0.1, rate="1x")):
        assert not any("one subtask of" in one for one in other.notes)


def test_task_managers_are_matched_by_name_first(shop):
    """The longest name of an offer counts, then cores, speed and memory; the rest is named."""
    offers = Catalogue.of([Offer("dev", 1.0, cores=8), Offer("big", 2.0, cores=4)], OFFERS.overhead)
    advice = advised(shop(), machines=offers)
    assert advice.current.counts == {"dev": 3}
    none = advised(shop(), machines=Catalogue.of([Offer("box", 1.0, cores=4)]))
    assert [machine.name for machine in none.current.unmatched] == ["dev-0", "dev-1", "dev-2"]
    text = " ".join(str(none).split())
    assert "Today: 3 machines that run the job; " in text
    assert "No offer has the cores, speed and memory of dev-0, dev-1, dev-2" in text
    assert any("the cost of sending a tuple to another TaskManager" in one for one in none.notes)


def test_machines_that_are_the_plan_stay(shop):
    """Where today's machines carry the rate and cost no more, there is nothing to do."""
    flink = shop(devices=("dev-0",))
    advice = advised(flink, "1x", Catalogue.of([Offer("large", 0.25, cores=2)], 1e-6))
    assert advice.commands == ()
    assert "change nothing." in " ".join(str(advice).split())


@pytest.mark.parametrize(
    ("scheduler", "shows", "is_rescaled"),
    [("Adaptive", True, True), (None, True, True), ("Adaptive", False, True), (None, False, False)],
)
def test_with_the_adaptive_scheduler_the_advice_is_a_parallelism_of_every_operator(
    shop, scheduler, shows, is_rescaled
):
    """Before version 2, only settings name the scheduler, which gateways may hide."""
    flink = shop(facts={"schedulerType": scheduler})
    if not shows:
        flink.answers["GET /jobmanager/config"] = failure("forbidden", status=403)
    *_, before, change, last = advised(flink).commands
    assert last.startswith("# then stop ")
    assert change.startswith("streamplace flink move") is not is_rescaled
    if is_rescaled:
        assert before == "# parallelism: src 1, split 1, out 1"
        assert change.startswith(
            "# Flink's autoscaler changes it, or a request to http://flink:8081/jobs"
        )


def test_given_machines_are_counted(shop):
    """Without offers the plan takes as few TaskManagers as possible."""
    for machines in (None, Cluster.uniform(3)):
        advice = advised(shop(), machines=machines)
        assert advice.current.cost == 2
        assert advice.plan.cost == 1
        assert not advice.current.is_priced
        assert "Today: 2 machines that run the job; " in str(advice)


def test_other_jobs_are_named(shop):
    """The plan leaves them out."""
    flink = shop()
    flink.answers["GET /jobs"] = jobs({"job": "RUNNING", "b": "RUNNING"})
    told = "the plan is for this job alone, and the jobs 'b' share its machines"
    assert told in advised(flink).notes


def test_java_takes_its_part_of_every_offer(shop, monkeypatch):
    """An offer that Java itself fills is refused."""
    monkeypatch.setattr(JobProfile, "java", 0.6)
    monkeypatch.setattr(JobProfile, "sending", SendingCost(1e-6, 0.0))
    assert set(advised(shop()).plan.cluster.devices.speed.tolist()) == {1000.0}
    with pytest.raises(FlinkError, match=r"Java itself takes 1500 MIPS .* offer 'tiny'"):
        advised(shop(), machines=Catalogue.of([Offer("tiny", 0.1, mips=1000)]))


def test_the_plan_keeps_what_the_program_fixes(shop, monkeypatch):
    """Else it would take one subtask of each operator; another program is refused."""

    def sets(number):
        plan = PlannedProgram({"v1": "split"}, {"v1": number})
        monkeypatch.setattr(advising, "planned_twice", lambda *_: plan)

    sets(2)
    program = Program(Path("shop.jar"))
    assert advised(shop()).plan.parallelism == {"src": 1, "split": 1, "out": 1}
    advice = advised(shop(), program=program)
    assert advice.plan.parallelism == {"src": 1, "split": 2, "out": 1}
    told = "the program of the job sets the parallelism of 'split', so the plan keeps it"
    assert told in advice.notes
    sets(3)
    with pytest.raises(FlinkError, match="give the jar and the arguments"):
        advised(shop(), program=program)


def test_advice_is_the_same_on_every_computer(shop, tmp_path):
    """Also where the job was submitted, and its predictions were far off."""
    before = advised(shop())
    jar = tmp_path / "shop.jar"
    jar.write_bytes(b"jar")
    remember("job", Program(jar))
    append_entries([LedgerEntry(before.name, 100.0, 20.0) for _ in range(20)])
    assert known_program("job").jar == jar
    after = advised(shop())
    assert after.to_json() == before.to_json()
    assert str(after) == str(before)
    assert before.plan.errors.origin in " ".join(str(before.summary()).split())


@pytest.mark.parametrize("mips", [2500, 5000])
def test_remote_tuples_take_as_long_as_the_cores_on_offer_need(shop, monkeypatch, mips):
    """Half of a core, as TaskManagers have now, needs twice the time of a whole one."""
    monkeypatch.setattr(JobProfile, "java", 0.0)
    monkeypatch.setattr(JobProfile, "sending", SendingCost(1e-6, 2e-9))
    flink = shop()
    flink.answers["GET /jobmanager/config"] = config({"kubernetes.taskmanager.cpu.amount": "0.5"})
    advice = advised(flink, machines=Catalogue.of([Offer("small", 0.1, mips=mips)]))
    assert advice.plan.cluster.overhead_s == pytest.approx(1e-6 * 2500 / mips)
    assert advice.plan.cluster.overhead_s_per_byte == pytest.approx(2e-9 * 2500 / mips)


@pytest.mark.parametrize("status", ["RUNNING", "FINISHED"])
def test_a_source_that_sends_nothing_is_planned_beside_one_that_does(shop, monkeypatch, status):
    """An empty topic, or a file that was read at the start, on a TaskManager that has left."""
    flink = shop()
    silent = source("more", 0, busy=0.1)
    flink.vertices = {"v3": silent, **flink.vertices}
    flink.vertices["v1"].inputs = [("v0", "HASH"), ("v3", "HASH")]
    usual = flink._vertex
    more = {"v3": {"status": status}}
    monkeypatch.setattr(flink, "_vertex", lambda v: usual(v) | more.get(v, {}))
    gone = {"taskmanager-id": "gone", "status": status} if status == "FINISHED" else {}
    monkeypatch.setattr(flink, "otherwise_of", lambda vertex, _: gone if vertex is silent else {})
    advice = advised(flink)
    assert advice.carried.value > 100
    assert advice.rate == pytest.approx(200)
    assert advice.plan.machines == {"small": 1}
    assert any("more" in note for note in advice.notes)
    # What it takes per second is not what a tuple takes.
    assert advice.plan.graph.operators["more"].ipt == 0


def corrections(advice):
    """Notes that all costs were scaled, because the job carries another rate than predicted."""
    return [note for note in advice.notes if "all costs are multiplied" in note]


def test_costs_are_not_scaled_for_what_is_offered_to_one_of_two_sources(shop):
    """Two full subtasks hold one source back at what the model says; half as much again arrives."""
    flink = shop()
    flink.vertices["v3"] = source("more", 100, 400, 50.0, busy=0.01, blocked=1.0)
    heavy = rates(100, 0, 100 * 400, busy=1.94)
    flink.vertices["v4"] = Vertex("heavy", heavy, [("v3", "HASH")])
    advice = advised(flink, "400")
    assert advice.flow.offered == pytest.approx(250)
    assert not corrections(advice)


@pytest.mark.parametrize("beside", [0.0, 0.35])
def test_costs_are_not_scaled_for_the_cpu_of_other_jobs(shop, monkeypatch, beside):
    """They take it where the job runs now, and not where it is planned."""

    def profiled(*given, **more):
        seen = steady_profile(*given, **more)
        taken = dict.fromkeys(("dev-0", "dev-1"), beside) if beside else {}
        return replace(seen, present=seen.present._replace(beside=taken))

    monkeypatch.setattr("streamplace.flink.engine.steady_profile", profiled)
    flink = shop(blocked=1.0)
    flink.vertices["v1"].rates = rates(100, 250, 100 * 400, 250 * 40, busy=1.6)
    assert bool(corrections(advised(flink, "300"))) is not bool(beside)


def test_a_source_that_reads_a_backlog_to_which_nothing_is_added_is_offered_nothing(shop):
    """All of what is offered twice is that of the other source."""
    flink = shop()
    flink.vertices["v3"] = source("more", 100, 400, -101.0, busy=0.01)
    flink.counted["v3"] = {"Source__more.pendingRecords": 1e6}
    flink.vertices["v4"] = Vertex("load", rates(100, 0, 100 * 400, busy=0.05), [("v3", "HASH")])
    advice = advised(flink, "2x")
    assert advice.rate == pytest.approx(200)
    assert advice.plan.graph.operators["src"].rate == pytest.approx(200)


def test_a_job_of_which_some_cpu_is_unknown_is_refused(shop):
    """A SourceFunction, of which Flink does not tell the busy time, would count as nothing."""
    flink = shop()
    source = rates() | {"Source__src.numRecordsOut": 100.0, "accumulateBusyTimeMs": "NaN"}
    flink.vertices = {"v0": Vertex("Source: src -> out: Writer", source)}
    with pytest.raises(FlinkError, match="the CPU of 'src -> out' is not known"):
        advised(flink)


@pytest.fixture
def asked(run, clock, tmp_path):
    """Words of the command, for a job on a cluster that is served."""
    Path("offers.toml").write_text(
        '[[offers]]\nname = "dev"\nprice = 0.1\nmips = 2500\ncores = 2\n'
    )
    with FakeFlink(ANSWERS).served() as flink:
        given = ("--offers", "offers.toml", *settings_file(tmp_path, seconds=2))
        yield ("flink", "advise", "--rest", flink.url, *given)


@pytest.mark.slow
def test_the_command_prints_advice_and_writes_the_plan(run, asked):
    """One JSON document; the placement is one for the planned cluster, and commands name both."""
    document = json.loads(run(*asked, "--rate", "2x", "-o", "plan", "--json").out)
    printed = run(*asked, "--rate", "5e3", "--budget", "1", "-o", "my plans/one")
    assert document["rate"] == pytest.approx(2 * document["offered"])
    assert document["current"]["machines"] == {"dev": 1}
    assert document["plan"] == json.loads(Path("plan/plan.json").read_text())
    simulated = ("plan/graph.json", "plan/placement.json", "--cluster", "plan/cluster.toml")
    carried = json.loads(run("simulate", *simulated, "--json").out)
    assert carried["relative_throughput"] == pytest.approx(1.0)
    assert "Today: 1 machine that cost 0.1 per hour; " in printed.out
    assert "notes on missing measurements and costs" in printed.err
    assert "with the files that -o my plans/one/ writes" in " ".join(printed.out.split())
    assert "--cluster 'my plans/one/cluster.toml'" in printed.out
    assert "--placement 'my plans/one/placement.json'" in printed.out
    assert Path("my plans/one/cluster.toml").exists()


def test_back_pressure_hides_the_rate_that_is_multiplied(shop):
    """A multiple is refused; a rate is planned for, and the unknown is named."""
    with pytest.raises(SettingError, match=r"'src' may be offered more.*give --rate in tuples/s"):
        advised(shop(blocked=1.0))
    advice = advised(shop(blocked=1.0), "200")
    assert advice.flow.offered is None
    text = " ".join(str(advice).split())
    assert "an unknown rate offered (it is back-pressured 50 % of the time)" in text


@pytest.mark.parametrize(
    ("rate", "facts"),
    [
        *((rate, {}) for rate in ("0", "-1", "2xx", "x", "1e99x", "nan")),
        ("2x", {"mips": "fast"}),
        ("2x", {"bandwidth": "1 Gbit per second"}),
    ],
)
def test_rates_and_speeds_that_are_none_are_refused_before_anything_is_asked(shop, rate, facts):
    """Not after the minutes for which the job is watched."""
    flink = shop()
    with pytest.raises(StreamplaceError):
        advised(flink, rate, None, **facts)
    assert flink.asked == []


def test_a_rate_that_nothing_carries_is_refused(shop):
    """The message names the largest rate."""
    offers = Catalogue.of([Offer("small", 0.1, at_most=1)])
    with pytest.raises(StreamplaceError, match="a plan was found for up to"):
        advised(shop(), "100x", offers)
