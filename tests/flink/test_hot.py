"""Why a TaskManager is hot: each cause, its boundary, and a real job that has exactly it."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import limited
import pytest
from fake_flink import MIPS
from flink_clusters import await_flow, submitted

from streamplace.flink.cpu import limits
from streamplace.flink.cpu.limits import CpuPool
from streamplace.flink.decide.hot import (
    HOT,
    MAX_LINES,
    NOT_HOT,
    HotJob,
    ManagerTime,
    SubtaskTime,
    hot_causes,
    hot_lines,
    why_hot,
)
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.local.session import local_cluster
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.measure.profile import profile
from streamplace.model.prediction_intervals import RateInterval

IDLE, HALF = ManagerTime(0.05, 1.0), ManagerTime(0.5, 1.0)
FULL = ManagerTime(1.0, 1.0, is_full=True)
MOVE = RateInterval(90.0, 150.0, 200.0)


def job(own=HALF, **facts):
    """A job of a source and of two subtasks that read it, of which the first is hot."""
    hot: dict[str, Any] = {"busy": 0.95, "cpu": 0.5} | facts.pop("hot", {})
    subtasks = [
        SubtaskTime("src", 0, "b", busy=0.2, blocked=facts.pop("blocked", 0.7)),
        SubtaskTime("sum", 0, "a", **hot),
        SubtaskTime("sum", 1, "b", busy=facts.pop("other", 0.3)),
    ]
    managers = {"a": own, "b": facts.pop("beside", IDLE)}
    usual = {"readers": {"src": ["sum"]}, "sources": frozenset({"src"}), "shares": {}, "waits": {}}
    return HotJob(subtasks, managers, 100.0, **(usual | facts))


@pytest.mark.parametrize(
    ("hot", "cause", "number"),
    [
        (job(HALF._replace(garbage=0.1)), "garbage", "takes 0.1 cores, and 0.5 of 1 cores"),
        (job(HALF._replace(garbage=0.09)), "work", "busy 95% of the time, 50% on a core"),
        (job(waits={"sum": 200.0}), "look-ups", "reads at most 200 tuples/s"),
        (job(FULL, waits={"sum": 200.0}), "work", "busy 95%"),  # what it waits for may be CPU
        (job(HALF._replace(throttled=0.2), waits={"sum": 200.0}), "quota", "stops it 20%"),
        (job(shares={"sum": (0.6, 0.4)}), "skewed keys", "reads 60% of its tuples, 50% are even"),
        (job(shares={"sum": (0.59, 0.41)}), "work", "busy 95%"),
        (job(shares={"sum": (0.4, 0.6)}), "work", "busy 95%"),  # the other reads more
        (job(shares={"sum": (0.7, 0.3)}, sources=frozenset({"sum"})), "skewed splits", "70%"),
        (job(FULL._replace(beside=0.2)), "another job", "jobs use 0.2 cores, and 1 of 1 c"),
        (job(FULL._replace(beside=0.19)), "work", "busy 95%"),
        (job(HALF._replace(beside=0.4)), "work", "busy 95%"),  # there is CPU enough for both
        (job(FULL, gain=MOVE), "placement", "1 of 1 cores are used, and hardly any on b"),
        (job(FULL, gain=RateInterval(90, 121, 200)), "work", "busy 95%"),  # no clear gain
        (job(FULL, gain=MOVE, beside=ManagerTime(0.7, 1.0)), "work", "busy 95%"),  # all are used
        (job(HALF._replace(throttled=0.2)), "quota", "of 1 cores stops it 20% of the time"),
        (job(HALF._replace(throttled=0.19)), "work", "busy 95%"),
        (job(hot={"delay": 0.2}), "neighbours", "waits 20% of the time for cores that others have"),
        (job(hot={"delay": 0.19}), "work", "busy 95%"),
        (job(HALF._replace(throttled=0.3), hot={"delay": 0.4}), "quota", "stops it 30%"),
        (job(FULL, hot={"delay": 0.4}), "work", "busy 95%"),  # those others are its own
        (job(hot={"busy": 0.3}), "network", "it cannot send 70% of the time, and no reader is"),
    ],
)
def test_each_cause_is_told_by_its_number(hot, cause, number):
    """Just above its boundary, and just below it another one, or none."""
    ((where, why),) = hot_causes(hot).items()
    assert (why.split(":")[0], number in why) == (cause, True), why
    assert not why.endswith(": ")
    assert where == (f"{HOT}src on b" if cause == "network" else f"{HOT}sum on a")


@pytest.mark.parametrize(
    "clean",
    [
        job(is_limited=False, blocked=0.0, hot={"busy": 0.9}),
        job(is_limited=False, waits={"sum": 200.0}, hot={"busy": 0.9}),
        job(is_limited=False, blocked=0.3, hot={"busy": 0.1}),
        HotJob([], {}, 0.0, {}, {}),
    ],
)
def test_a_job_without_a_cause_says_so(clean):
    assert hot_causes(clean) == {}
    assert hot_lines({}) == [NOT_HOT]


@pytest.mark.parametrize(("blocked", "hot"), [(2.0, ["src", "src"]), (0.0, [])])
def test_a_profile_says_which_operators_are_hot(shop, blocked, hot):
    """Its source cannot send though nobody is busy, or can."""
    flink = shop(blocked=blocked)
    found = profile(flink.rest, "job", 10)
    facts = why_hot(FlinkEngine(flink.rest), "job", found, measured_graph(found, MIPS))
    assert [name.split(" ")[1] for name in facts] == hot
    assert not any("the gain of a move" in doubt for doubt in found.doubts)


def test_a_job_that_ends_after_its_profile_is_still_explained(shop):
    """Only the gain of a move is not known."""
    flink = shop(blocked=2.0)
    found = profile(flink.rest, "job", 10)
    graph = measured_graph(found, MIPS)
    flink.answers["GET /jobs/job"] = {**flink.rest.get("/jobs/job"), "state": "CANCELED"}
    assert why_hot(FlinkEngine(flink.rest), "job", found, graph)
    assert any("the gain of a move" in doubt for doubt in found.doubts)


@pytest.mark.parametrize(
    ("stat", "seconds"),
    [
        ("nr_throttled 7\nthrottled_usec 1500000\n", 1.5),
        ("nr_throttled 7\nthrottled_time 1500000000\n", 1.5),  # of version 1
        ("nr_throttled 7\n", 0.0),
        (None, 0.0),
    ],
)
def test_the_time_for_which_a_quota_stops_a_process_is_read_from_its_group(
    stat, seconds, tmp_path, monkeypatch
):
    if stat is not None:
        (tmp_path / "cpu.stat").write_text(stat)
    monkeypatch.setattr(limits, "cpu_pool", lambda _: CpuPool(str(tmp_path), 0.5))
    assert limits.throttled_seconds(7) == seconds


def test_of_a_job_that_is_held_back_at_least_the_busiest_operator_is_told():
    ((where, why),) = hot_causes(job(blocked=0.1, hot={"busy": 0.6})).items()
    assert (where, why.split(":")[0]) == (f"{HOT}sum on a", "work")


def test_causes_fit_on_one_screen():
    ((where, why),) = hot_causes(job()).items()
    lines = hot_lines({f"{where}-{i}": why for i in range(40)})
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "and 28 other places (--json has all)"
    assert lines[0] == (
        "hot: sum on a-0: work: it is busy 95% of the time, 50% on a core; what would help: more "
        "subtasks, or more CPU (flink advise)"
    )


@dataclass(frozen=True)
class Real:
    """A job, and the cluster on which it has one cause to be slow."""

    cause: str
    arguments: str
    cores: float = 0.5
    devices: int = 2
    mode: str = "SLOTS"
    bandwidth_bps: float = 1e9
    beside: str = ""  # arguments of another job


HEAVY = "1000000 rounds=40000"
REAL = (
    Real("", "2 100 rounds=1000"),
    Real("garbage", "1 1000000 rounds=100 garbage=20000", devices=1),
    Real("look-ups", "2 1000 sleep=10"),
    Real("skewed keys", f"4 {HEAVY} skew=70", devices=1, cores=1.0),
    Real("skewed splits", "4 4000 rounds=400000 split=91", devices=1, cores=1.0),
    Real("another job", f"1 {HEAVY}", devices=1, beside=f"1 {HEAVY}"),
    Real("placement", f"2 {HEAVY}", mode="NONE"),
    Real("quota", f"2 {HEAVY}", cores=0.3),
    Real("network", "2 1000000 payload=20000", bandwidth_bps=5e6),
)


def hot_in(answer):
    """Operators that limit a profiled job, and why, which the command says in both ways."""
    print(answer.err)
    facts = json.loads(answer.out)["attributes"]
    hot = {name: fact for name, fact in facts.items() if name.startswith(HOT)}
    assert all(f"{name}: {fact}" in answer.err for name, fact in hot.items())
    return {(one[len(HOT) :].split(" on ")[0], why.split(":")[0]) for one, why in hot.items()}


@pytest.mark.slow
@pytest.mark.xdist_group("flink")
@pytest.mark.parametrize("real", REAL, ids=[one.cause or "none" for one in REAL])
def test_a_real_job_has_exactly_its_cause(real, flink, jobs, run):
    """The verdict of the command, on TaskManagers with quotas; the operator is the one that works.

    Of a network, the source is told, which cannot send.
    """
    if reason := limited.why_unlimited():
        pytest.skip(reason)
    names = [f"q-{i}" for i in range(real.devices)]
    settings = {"taskmanager.numberOfTaskSlots": 8, "taskmanager.load-balance.mode": real.mode}
    with limited.limited_cluster(
        flink, names, cores=real.cores, bandwidth_bps=real.bandwidth_bps, settings=settings
    ) as cluster:
        job, *_ = [
            submitted(cluster.rest, jobs, "HotJob", *words.split())
            for words in (real.arguments, real.beside)
            if words
        ]
        await_flow(cluster.rest, job)
        answer = run("flink", "profile", "--rest", cluster.url, "--job", job, "--json")
    found, operator = hot_in(answer), "numbers" if real.cause == "network" else "work"
    assert {why for _, why in found} == ({real.cause} if real.cause else set()), answer
    assert {where for where, _ in found} <= {operator}
    assert NOT_HOT in answer.err or real.cause


@pytest.mark.slow
@pytest.mark.xdist_group("flink")
def test_a_neighbour_on_the_host_is_told(flink, jobs, run):
    """Processes that are none of the cluster have the cores for most of the time."""
    with ExitStack() as stack:
        cluster = stack.enter_context(local_cluster(flink, ["dev-0"]))
        job = submitted(cluster.rest, jobs, "HotJob", *f"1 {HEAVY}".split())
        await_flow(cluster.rest, job)
        for _ in range(3 * (os.cpu_count() or 1)):
            burning = subprocess.Popen(
                [sys.executable, "-c", "while True: pass"],
                start_new_session=True,  # else the kernel shares cores by sessions
            )
            stack.callback(burning.kill)
        answer = run("flink", "profile", "--rest", cluster.url, "--json")
    assert hot_in(answer) == {("work", "neighbours")}, answer
