"""Real jobs: profiles against their truth and their history, advice, and killed watches."""

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
from command_lines import settings_file
from deployment_table import check_row
from flink_clusters import await_flow, awaited, pipeline, submitted
from flink_jars import build_jar
from prometheus_server import prometheus, require_prometheus

from streamplace.flink.cpu.charging import SAMPLED
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.layout import Layout
from streamplace.flink.local.session import free_port, local_cluster
from streamplace.flink.measure import windows
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.measure.profile import profile, steady_profile
from streamplace.flink.move.interruption import LAUNCH_SECONDS, expected_interruptions
from streamplace.flink.pin.apply import apply
from streamplace.flink.program.program import Program
from streamplace.flink.prometheus.client import Prometheus, PrometheusAddress, TimeRange
from streamplace.flink.prometheus.reading import filtered, jobs_in, read_history, read_metrics
from streamplace.flink.rest.client import FlinkError, Rest, successor
from streamplace.flink.store import Store
from streamplace.flink.watches import read_watches
from streamplace.model.defaults import FLINK_HEADROOM
from streamplace.model.expansion import expand
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.problem import PlannerSettings

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
ROOT = Path(__file__).parents[2]
TRIES, SECONDS, ALIKE = 6, 15.0, 0.1
CHAINED = "pipeline.operator-chaining.enabled"


def looked_at(rest, job, offered):
    """A profile of a time in which the machine let the sources send what they offer.

    Where it does not come the last one counts, whatever it says.
    """
    for _ in range(TRIES):
        graph = measured_graph(profile(rest, job, SECONDS), 1000.0)
        rates = dict(zip(graph.operators.name, graph.operators.rate, strict=True))
        if all(rates[name] == pytest.approx(rate, rel=ALIKE) for name, rate in offered.items()):
            break
    return graph


SATURATED = {
    "name": "saturated",
    "operators": [
        {"name": "src", "rate": 1_000_000, "payload": 2000},
        {"name": "slow", "rounds": 20_000_000},
    ],
    "streams": [{"from": "src", "to": "slow"}],
}


def test_full_queues_prolong_the_expected_interruption(rest, submit):
    """Hundreds of tuples wait, each of which takes some ten milliseconds."""
    job = submit(SATURATED, {"src": ["dev-0"], "slow": ["dev-1"]})
    await_flow(rest, job)
    awaited(lambda: expected_interruptions(rest, job).on([1.0]).low >= 2 * LAUNCH_SECONDS, 60)


FUSED: dict[str, Any] = {
    "name": "fused",
    "chain": True,
    "operators": [
        {"name": "src", "rate": 500, "payload": 100},
        {"name": "other, too", "rate": 100, "payload": 1500},
        {"name": "keep(a -> b)"},
        {"name": "small", "payload": 40},
        {"name": "big", "payload": 4000},
        {"name": "x"},
        {"name": "j"},
    ],
    "streams": [
        {"from": "src", "to": "keep(a -> b)"},
        {"from": "keep(a -> b)", "to": "small", "selectivity": 0.2},
        {"from": "keep(a -> b)", "to": "big", "selectivity": 0.4},
        {"from": "small", "to": "x", "partitioning": "rebalance"},
        {"from": "big", "to": "j", "partitioning": "rebalance"},
        {"from": "other, too", "to": "j", "partitioning": "rebalance"},
    ],
}


def test_fused_operators_are_measured_at_both_ends(rest, submit):
    """What enters them, and what each of their streams carries, into a mixed input too."""
    names = [operator["name"] for operator in FUSED["operators"]]
    devices = ["dev-0", "dev-1", *["dev-0"] * 3, "dev-2", "dev-3"]
    job = submit(FUSED, {name: [device] for name, device in zip(names, devices, strict=True)})
    fused = "src -> keep(a -> b) -> small -> big"
    graph = looked_at(rest, job, {fused: 500, "other, too": 100})
    rates = dict(zip(graph.operators.name, graph.operators.rate, strict=True))
    assert rates == pytest.approx({fused: 500, "other, too": 100, "x": 0, "j": 0}, rel=0.1)
    usual = dict(zip(graph.operators.name, graph.operators.payload, strict=True))
    found = {
        (stream.source, stream.target): (stream.selectivity, stream.payload or usual[stream.source])
        for stream in graph.streams
    }
    assert {pair: selectivity for pair, (selectivity, _) in found.items()} == pytest.approx(
        {(fused, "x"): 0.2, (fused, "j"): 0.4, ("other, too", "j"): 1}, rel=0.15
    )
    assert {pair: payload for pair, (_, payload) in found.items()} == pytest.approx(
        {(fused, "x"): 57, (fused, "j"): 4017, ("other, too", "j"): 1517}, rel=0.3
    )


ROUNDS = ("1000", "400000", "40000")
"""Of the three maps with work; each is followed by one without."""


def profiled(rest, jar, is_chained="true"):
    """A profile of a job, every subtask of which shares a TaskManager with others."""
    job = submitted(rest, jar, "MapsJob", "150", *ROUNDS, settings={CHAINED: is_chained})
    return profile(rest, job, 6.0)


def worked(measured):
    """Core seconds per second of the tasks with work, in their order."""
    maps = [task for task in measured.tasks if task.thread_name.startswith("Map")]
    return [measured.cpu[task.id].cores for task in maps[:: len(maps) // len(ROUNDS)]]


def test_every_command_looks_at_a_session_cluster_first(rest, submit, run, tmp_path):
    """A dry run plans the move as far as the program of the job allows."""
    job = submit(pipeline(1, 2), {"op0": ["dev-0"], "op1": ["dev-1", "dev-2"]})
    name = "session cluster, TaskManagers configured"
    line = check_row(run, name, rest.url, job, tmp_path)
    assert line == (
        "deployment: Flink 2.3.0, session cluster, default scheduler, 5 TaskManagers, no folder "
        "for savepoints"
    )


@pytest.mark.parametrize("is_chained", ["false", "true"])
def test_the_cpu_is_where_the_work_is(rest, jobs, is_chained):
    measured = profiled(rest, jobs, is_chained)
    assert not any(one.source for one in measured.cpu.values())
    light, heavy, middle = worked(measured)
    assert heavy > 3 * middle > 3 * light


def test_the_cpu_of_task_managers_on_other_machines_is_divided_by_dumps(rest, jobs, monkeypatch):
    """REST tells what whole TaskManagers took, and which threads were on a core."""
    monkeypatch.setattr(windows, "processes_of", lambda rest: {})
    job = submitted(rest, jobs, "MapsJob", "150", *ROUNDS, settings={CHAINED: "true"})
    measured = profile(rest, job, 20.0)
    assert {one.source for one in measured.cpu.values()} == {SAMPLED}
    light, heavy, middle = worked(measured)
    assert heavy > 2 * max(
        middle, light
    )  # these take hundredths of a core, of which few dumps tell


@pytest.fixture(scope="module")
def keyed_jobs(flink, tmp_path_factory):
    """A jar of the jobs of the benchmarks and of the applications."""
    folders = (ROOT / name for name in ("benchmarks/jobs", "datasets/applications/jobs"))
    jar = tmp_path_factory.mktemp("jar") / "keyed-jobs.jar"
    build_jar(flink, [file for folder in folders for file in sorted(folder.glob("*.java"))], jar)
    return jar


def read_counts(rest, job, task):
    """Tuples that each of the subtasks of a task has read so far."""
    vertex = next(v for v in rest.job(job)["vertices"] if v["name"] == task)
    names = [f"{i}.numRecordsIn" for i in range(vertex["parallelism"])]
    path = f"/jobs/{job}/vertices/{vertex['id']}/metrics?get={','.join(names)}"
    with urlopen(rest.url + path) as answer:
        counts = {row["id"]: int(row["value"]) for row in json.load(answer)}
    return [counts.get(name, 0) for name in names]


def test_subtasks_read_what_their_key_groups_bring(rest, keyed_jobs):
    """Of readings of 10,000 meters, which four subtasks average in six key groups.

    These have two groups, one, two and one; the keys of a group are many, so shares are close.
    """
    groups, tuples = 6, 50_000
    settings = {"pipeline.max-parallelism": str(groups)}
    job = submitted(rest, keyed_jobs, "Readings", "5000", settings=settings)
    awaited(lambda: sum(read_counts(rest, job, "mean")) >= tuples, 120)
    counts = read_counts(rest, job, "mean")
    graph = measured_graph(profile(rest, job, 3.0), 1000.0)
    assert graph.operators["mean"].max_parallelism == groups
    expansion = expand(graph)
    subtasks = expansion.graph.operators.rows(expansion.subtasks("mean"))
    rates = expansion.graph.input_rate[subtasks]
    assert (rates / rates.sum()).tolist() == pytest.approx([2 / 6, 1 / 6, 2 / 6, 1 / 6])
    shares = [count / sum(counts) for count in counts]
    assert shares == pytest.approx((rates / rates.sum()).tolist(), rel=0.1)


def test_popular_keys_are_counted_by_subtask(rest, keyed_jobs):
    """Half of all readings are of one machine; its subtask reads those and a part of the rest."""
    settings = {"parallelism.default": "2"}
    measured = profile(
        rest, submitted(rest, keyed_jobs, "Alarms", "5000", "0.5", settings=settings), 15
    )
    largest = [(max(own), len(own)) for own in measured.shares.values()]
    assert largest
    for share, number in largest:
        assert share == pytest.approx(0.5 + 0.5 / number, abs=0.05)


@pytest.mark.parametrize("rate", ["120", "1000"])
def test_the_limit_of_an_operator_that_blocks_is_measured(rest, jobs, rate):
    """Two subtasks sleep 5 ms per tuple: no more than 200/s each, also where they are offered less.

    What waits for a core, on a busy machine, is no part of the limit.
    """
    job = submitted(rest, jobs, "BlockingJob", rate, "5", "2")
    graph = measured_graph(profile(rest, job, SECONDS), 1000.0)
    assert graph.operators["look up"].max_rate == pytest.approx(200, rel=0.2)
    assert [row.name for row in graph.operators if row.max_rate] == ["look up"]
    assert "max_rate of look up: it waits" in str(graph.attributes["unmeasured"])


STOCK = {
    "name": "stock",
    "operators": [
        {"name": "src", "rate": 200, "payload": 200},
        {"name": "work", "rounds": 100_000, "parallelism": 2},
        {"name": "out"},
    ],
    "streams": [
        {"from": "src", "to": "work", "partitioning": "hash"},
        {"from": "work", "to": "out", "partitioning": "rebalance"},
    ],
}
OFFERS = Catalogue.of([Offer("box", 0.1), Offer("dev", 0.3)])


def advised(rest, job):
    """Advice once the job is steady."""
    settings = PlannerSettings(FLINK_HEADROOM, budget=Budget(None, 20_000))
    for _ in range(TRIES):
        try:
            return FlinkEngine(rest).advise(job, "2x", OFFERS, settings, seconds=6)
        except FlinkError:
            continue
    raise AssertionError("the job is never steady")


@pytest.fixture(scope="module", params=[("1.20.5", "default"), ("2.3.0", "adaptive")], ids=str)
def other(request, fetched):
    """A cluster of an older Flink, and one whose scheduler is the adaptive one."""
    version, scheduler = request.param
    settings = {"jobmanager.scheduler": scheduler}
    with local_cluster(fetched(version), ["dev-0", "dev-1"], settings=settings) as running:
        yield running


def test_a_stock_job_is_advised(other, run, tmp_path):
    """Rate, key groups and machines are Flink's; the job runs on, as it did.

    Commands are those that its scheduler takes.
    """
    rest, jar = Rest(other.url), tmp_path / "jobs.jar"
    examples = Path(__file__).parents[2] / "examples" / "flink"
    build_jar(other.flink, [examples / "GraphJob.java"], jar)
    job = submitted(rest, jar, "GraphJob", json.dumps(STOCK))
    before = rest.job(job)
    advice = advised(rest, job)
    after = rest.job(job)
    if after.get("schedulerType") == "Adaptive":
        check_row(run, "adaptive scheduler", rest.url, job, tmp_path)
    rest.cancel(job)
    assert advice.flow.offered == pytest.approx(200, rel=0.2)
    assert advice.rate == pytest.approx(2 * advice.flow.offered)
    assert advice.current.counts == {"dev": 2}
    assert 0 < float(advice.plan.bound) <= advice.plan.cost <= advice.current.cost
    assert advice.carried is not None
    operators = advice.plan.graph.operators
    groups = dict(zip(operators.name, operators.max_parallelism.tolist(), strict=True))
    assert groups == dict.fromkeys(("src", "work", "out"), 128)
    assert (operators.ipt > 0).all()
    assert after["state"] == "RUNNING"
    assert [v["parallelism"] for v in after["vertices"]] == [
        v["parallelism"] for v in before["vertices"]
    ]
    adaptive = rest.settings().get("jobmanager.scheduler") == "adaptive"
    log = "resource-requirements" if adaptive else "--placement plan/placement.json"
    assert any(log in line for line in advice.commands)


SPREAD = {"src": ["dev-0"], "work": ["dev-0", "dev-1", "dev-2"]}
GRAPH = {
    "name": "watched",
    "operators": [
        {"name": "src", "rate": 100, "payload": 100},
        {"name": "work", "rounds": 20_000, "parallelism": 3},  # 20 microseconds per tuple
    ],
    "streams": [{"from": "src", "to": "work", "partitioning": "rebalance"}],
}
COLD = """
import dataclasses
from streamplace.flink.settings import FlinkWatchSettings
usual = FlinkWatchSettings.engine
FlinkWatchSettings.engine = lambda *given: dataclasses.replace(
    usual(*given), patience=30.0
)
from streamplace.__main__ import main
main()
"""
"""The command line, without the minutes until a job is warm."""


@contextmanager
def watching(line, log):
    """Run a watch while the block does; what it tells goes to a file."""
    with log.open("wb") as file:
        process = subprocess.Popen(line, stderr=file, stdout=file)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_a_watch_that_is_killed_in_a_move_finishes_it_once(rest, graph_jar, tmp_path):
    """A job that needs one TaskManager leaves the others; the next watch finds the journal."""
    program = Program(graph_jar, "GraphJob", [json.dumps(GRAPH)])
    job = apply(rest, program, Layout(SPREAD))
    line = [
        *(sys.executable, "-c", COLD, "flink", "watch", "--rest", rest.url, "--apply"),
        *("--policy", "ds2", "--every", "10", "--savepoints", (tmp_path / "saved").as_uri()),
        *settings_file(tmp_path, seconds=2, least_time=0),
    ]
    first, second = tmp_path / "first", tmp_path / "second"
    with watching(line, first):
        awaited(lambda: "stopping job" in first.read_text(), 240)
    with watching(line, second) as process:
        awaited(lambda: "keeps up, stays" in second.read_text(), 240)
        assert f"a move of job {job} was interrupted; it is finished first" in second.read_text()
        refused = subprocess.run(line, capture_output=True, text=True)
        assert refused.returncode == 2
        assert f"has been watched by process {process.pid} since" in refused.stderr
        assert rest.live_jobs() == [successor(job)]
        rest.cancel(successor(job))
        assert process.wait(60) == 0
    assert second.read_text().endswith(f"job {successor(job)} is CANCELED\n")
    (record,) = read_watches(Store.usual())
    assert [(one.state, one.after) for one in record.decisions] == [("moved", successor(job))]


MIPS = 1000.0
RATES = (25, 50, 100)


def job_of(rate):
    """Job with an operator of much work, and one of less."""
    operators = [
        {"name": "src", "rate": rate, "payload": 100},
        {"name": "much", "rounds": 1_000_000},
        {"name": "less", "rounds": 300_000},
    ]
    streams = [{"from": "src", "to": "much"}, {"from": "much", "to": "less", "selectivity": 0.5}]
    return json.dumps({"name": "shop: all of it", "operators": operators, "streams": streams})


@pytest.fixture
def observed(flink, tmp_path, monkeypatch):
    """A cluster of one TaskManager, and its Prometheus."""
    require_prometheus()
    monkeypatch.setenv("FLINK_PLUGINS_DIR", str(flink.home / "plugins"))
    first = free_port()
    settings = {
        "metrics.reporters": "prom",
        "metrics.reporter.prom.factory.class": (
            "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"
        ),
        "metrics.reporter.prom.port": f"{first}-{first + 9}",
    }
    ports = range(first, first + 10)
    with (
        local_cluster(flink, ["dev-0"], settings=settings) as cluster,
        prometheus(tmp_path, scraped=ports) as url,
    ):
        yield cluster, url


def ipt_of(graph):
    """Instructions per tuple of each operator."""
    return dict(zip(graph.operators.name, graph.operators.ipt.tolist(), strict=True))


def test_history_costs_what_a_profile_says(observed, graph_jar):
    """At three rates, each of a job of its own under one name."""
    cluster, url = observed
    rest, began = cluster.rest, time.time()
    for rate in RATES:
        for old in rest.live_jobs():
            rest.cancel(old)
        job = submitted(rest, graph_jar, "GraphJob", job_of(rate))
        time.sleep(40.0)
    server = Prometheus(PrometheusAddress.of(f"prometheus:{url}"))
    span = TimeRange(began, time.time())
    history = read_history(server, rest, job, span)
    ((_, name),) = jobs_in(server, span)
    alone = read_metrics(server, name, span)
    assert np.nanmax(alone.used) == pytest.approx(np.nanmax(history.used))
    assert {*alone.busy} == {filtered(task.thread_name) for task in history.tasks}
    assert len(alone.managers) == 1
    profiled = measured_graph(steady_profile(rest, job, 5.0, 30.0), MIPS)
    remembered = measured_graph(history.profile(), MIPS)
    assert history.peak == pytest.approx(RATES[-1], rel=0.1)
    carried = {stream.source: stream.selectivity for stream in remembered.streams}
    assert carried == pytest.approx({"src": 1.0, "much": 0.5}, rel=0.1)
    costs = [ipt_of(graph) for graph in (remembered, profiled)]
    totals = [own["src"] + own["much"] + 0.5 * own["less"] for own in costs]
    assert totals[0] == pytest.approx(totals[1], rel=0.15)
    # busy time divides it, and that is waiting, too, where the machine has other work
    assert costs[0]["much"] == pytest.approx(costs[1]["much"], rel=0.25)
    offers = Catalogue.of([Offer("small", 0.1, cores=1)])
    advice = FlinkEngine(rest).advise(job, "1x", offers, history=history)
    assert advice.rate == pytest.approx(history.peak)
    assert [row.time for row in advice.costs][3] == "peak"
