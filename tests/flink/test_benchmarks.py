"""Benchmarks on Flink: resumption, arithmetic and pages, and devices with limits."""

import json
import math
import os
import subprocess
from contextlib import contextmanager
from types import SimpleNamespace

import against_cells
import against_flink
import limited
import planned_facts
import pytest
import watched_day

from streamplace import Operator, Stream, StreamGraph
from streamplace.flink.cpu.limits import cpu_pool
from streamplace.flink.measure.sampling import Activity
from streamplace.io.graphs import graph_to_dict

ARMS = ("NONE", "SLOTS", "TASKS", "SLOTS again", "flink move")
RATES = (50.0, 100.0, 80.0, 100.0, 150.0)


def runs(*rates, job="sales", kind="equal", boot="here"):
    """Lines of the file: a rate for each arm, in their order."""
    row = {"job": job, "kind": kind, "repeat": 0, "disturbed": False, "boot": boot}
    return [row | {"arm": arm, "rate": rate} for arm, rate in zip(ARMS, rates, strict=False)]


def changed(rows, arm, **facts):
    """The lines, with other facts of the run of an arm."""
    return [row | facts if row["arm"] == arm else row for row in rows]


@pytest.fixture
def pending(tmp_path):
    """Arms that a job still needs after some runs."""

    def call(rows):
        file = tmp_path / "runs"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        series = against_flink.Series(file, math.inf, boot="here")
        own = series.pending(against_cells.Cell("sales", "equal"))
        return sorted(arm for _, arms in own for arm in arms)

    return call


def test_every_job_meets_every_kind_once_and_skew_only_where_a_key_can_be_skewed():
    found = [(cell.job, cell.kind) for cell in against_cells.cells(1)]
    jobs, skewable = against_cells.JOBS, against_cells.SKEWABLE
    plain = {(job, kind) for job in jobs for kind in ("equal", "unequal", "scarce network")}
    plain |= {(job, "skewed") for job in skewable}
    kafka = [kind for kind in against_cells.KINDS if "Kafka" in kind]
    plain |= {(job, kind) for job in against_cells.KAFKA for kind in kafka}
    assert sorted(found) == sorted(plain)


def test_a_series_goes_on_with_missing_or_bad_runs(pending):
    assert pending([]) == sorted(ARMS)
    assert pending(runs(*RATES)[:3]) == ["SLOTS again", "flink move"]
    assert pending(changed(runs(*RATES), "TASKS", disturbed=True)) == ["TASKS"]


def test_a_cell_is_measured_on_one_computer(pending):
    """What was begun elsewhere is made again as a whole; what is complete is not."""
    begun = runs(*RATES[:4], boot="elsewhere")
    assert pending(begun) == sorted(ARMS)
    assert pending(runs(*RATES, boot="elsewhere")) == []
    rows = [*runs(50.0, 100.0, 80.0, 100.0, 99.0), *runs(*[200.0] * 4, boot="elsewhere")]
    assert [one.gain for one in against_flink.compared(rows)] == [0.99]


def test_ratios_are_to_the_best_of_flinks_own():
    trials = [{"measured": 50.0}, {"measured": 120.0}, {"measured": 155.0}]
    rows = changed(
        runs(*RATES, kind="unequal"),
        "flink move",
        answer={"decision": {"trials": trials, "measured": 155.0}},
    )
    rows += runs(50.0, 100.0, 200.0, 100.0, 150.0, job="alarms", kind="unequal")
    first, second = against_flink.compared(rows)
    assert (first.gain, first.first, second.gain) == (1.5, 1.2, 0.75)
    assert first.last == pytest.approx(155 / 150)
    text = against_flink.results(rows)
    assert "Losses beyond the noise: alarms on unequal (0.75)." in text


SPLIT = StreamGraph.of(
    "split",
    [
        Operator("source", ipt=2e5, payload=100, rate=500),
        Operator("words", ipt=1e5),
        Operator("sink"),
    ],
    [Stream("source", "words", partitioning="hash"), Stream("words", "sink", 10)],
)
PROFILE = {
    "kind": "profile",
    "job": "split",
    "graph": graph_to_dict(SPLIT),
    "rates": {
        "source": {"in": 0.0, "out": 500.0},
        "words": {"in": 500.0, "out": 5000.0},
        "sink": {"in": 5000.0, "out": 0.0},
    },
    "java": 0.01,
    "per_tuple": 0.0,
    "per_byte": 0.0,
}


def rates(source, words, sink):
    return {
        "source": {"in": 0.0, "out": source},
        "words": {"in": words, "out": 10 * words},
        "sink": {"in": sink, "out": 0.0},
    }


def test_least_received_share_is_that_of_the_source_or_of_a_reader():
    """Cores per tuple and throughput are in tuples of the source."""
    facts = planned_facts.JobFacts.of(PROFILE)
    assert facts.received(rates(1_000, 1_000, 10_000), 1_000) == pytest.approx(1.0)
    assert facts.received(rates(900, 900, 9_000), 1_000) == pytest.approx(0.9)
    assert facts.received(rates(1_000, 800, 8_000), 1_000) == pytest.approx(0.8)
    assert facts.received(rates(1_000, 1_000, 7_000), 1_000) == pytest.approx(0.7)
    assert facts.cost == pytest.approx((2e5 + 1e5) / 1e9)
    assert facts.throughput(rates(900, 850, 8_000)) == pytest.approx(800)


def test_an_operator_receives_all_of_the_only_stream_of_another():
    """In the profile, a reader seemed to read 3 % more than was written, as it was counted later.

    Of two streams, one with some of the tuples keeps its part, and one with about all has all.
    """
    streams = [Stream("source", "words", 1.03), Stream("words", "sink", 10.3)]
    streams += [Stream("words", "rare", 2.0), Stream("rare", "end", 1.02)]
    operators = [*SPLIT.operators, Operator("rare"), Operator("end")]
    graph = StreamGraph.of("split", operators, streams)
    more = {name: {"in": 1_000.0, "out": 1_000.0} for name in ("rare", "end")}
    profile = {**PROFILE, "graph": graph_to_dict(graph), "rates": {**PROFILE["rates"], **more}}
    found = planned_facts.JobFacts.of(profile).ratios
    assert found == {
        ("source", "words"): 1,
        ("words", "sink"): 1,
        ("words", "rare"): pytest.approx(0.2),
        ("rare", "end"): 1,
    }


def test_rates_are_between_the_same_two_updates():
    def readings(first, last, late):
        return tuple(
            (i + late, {"numRecordsIn": 100.0 * i, "numRecordsOut": 50.0 * i})
            for i in range(first, last)
        )

    own = {
        "a": Activity({}, 4, {}, readings(0, 5, 0.0)),
        "b": Activity({}, 4, {}, readings(1, 7, 0.2)),
    }
    found = planned_facts.rates_together(own)
    assert found["a"] == found["b"] == {"in": 100.0, "out": 50.0}


DAY = watched_day.Phases(watched_day.DAY, 60.0, 100.0)


def moments(seconds, waits=0.0, machines=2):
    """The job every two seconds, always alike."""
    return [watched_day.Moment(2.0 * i, 0.0, waits, machines) for i in range(int(seconds / 2))]


def test_tuples_that_wait_too_long_are_not_in_time():
    """At 70 tuples/s, 500 wait for 7 s, and at 10 for 50 s."""
    results = DAY.results(moments(480, 500.0), [])
    in_time = {phase.name: phase.in_time for phase in results}
    assert (in_time["doubled"], in_time["night"]) == (1.0, 0.0)


def test_a_job_that_does_not_run_or_moves_twice_is_not_settled():
    gone = DAY.results(moments(480, machines=0), [])
    assert not any(phase.is_settled for phase in gone)
    outages = {61.0: 1.0, 90.0: 3.0, 130.0: None}
    moves = [watched_day.Move(at, "move", outage) for at, outage in outages.items()]
    results = DAY.results(moments(480), moves)
    settled = [(phase.moves, phase.is_settled) for phase in results[:3]]
    assert settled == [(0, True), (2, False), (1, True)]
    assert watched_day.outage_quantile(moves, 0.5) == 2.0
    assert watched_day.outage_quantile(moves[2:]) is None


def test_a_rate_that_swings_brings_as_much_as_its_mean():
    day = watched_day.Phases([watched_day.Phase("a sine", 0.5, swing=0.5)], 60.0, 100.0)
    assert day.arrived(60.0) == pytest.approx(3000)
    assert day.rate(15.0) == pytest.approx(75, abs=1)
    assert day.rate(45.0) == pytest.approx(25, abs=1)


@pytest.fixture
def row():
    """A day of one phase, with one move."""
    return {
        "arm": "watch",
        "seconds": 60.0,
        "capacity": 100.0,
        "phases": [{"name": "noon", "rate": 0.5}],
        "moments": [[*one] for one in moments(60)],
        "moves": [[1.0, "move", 1.5]],
        "arrived": 3000,
        "read": 3000.0,
        "counted": 2990.0,
    }


def test_what_some_subtasks_have_read_is_not_what_the_job_has_read(row):
    """After a start Flink tells some of them alone, and what was read before was read."""
    row["moments"] = [[0.0, 900.0, 100.0, 2], [2.0, 300.0, 800.0, 2], [4.0, 1150.0, 50.0, 2]]
    read = [(moment.read, moment.waits) for moment in watched_day.moments_of(row)]
    assert read == [(900, 100), (900, 200), (1150, 50)]


DEVICES = ("dev-0", "dev-1")
MARK = f"sp{os.getpid()}"


def told(command):
    """What a command prints."""
    return subprocess.run(command.split(), capture_output=True, text=True, check=True).stdout


def left():
    """What this process has made, of interfaces, namespaces and cgroups."""
    network = told("ip -brief link") + told("ip netns")
    words = [word for word in network.split() if word.startswith(MARK)]
    return words + [path.name for path in groups().glob(f"{MARK}*")]


def groups():
    """Folder of the cgroups that limit the CPU."""
    return limited.cgroups()


def quota(group):
    """Cores that a cgroup may take, by either version's files."""
    if (group / "cpu.max").exists():
        most, period = (group / "cpu.max").read_text().split()
    else:
        most, period = ((group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
    return int(most) / int(period)


@contextmanager
def sleepers(flink, devices, *, settings, hosts):
    """A cluster of processes that do nothing."""
    made = {d: subprocess.Popen([*hosts[d].entry, "sleep", "60"]) for d in devices}
    try:
        yield SimpleNamespace(processes=made, hosts=hosts)
    finally:
        for process in made.values():
            process.kill()
            process.wait()


@pytest.fixture
def no_flink(monkeypatch):
    """Limited devices on which nothing runs."""
    if reason := limited.why_unlimited():
        pytest.skip(reason)
    monkeypatch.setattr(limited, "local_cluster", sleepers)


@pytest.mark.usefixtures("no_flink")
def test_devices_are_limited_and_nothing_is_left_of_them():
    """CPU and both directions of the network; Ctrl-C ends it like anything else."""

    def interrupted():
        with limited.limited_cluster(None, DEVICES, cores=0.25, bandwidth_bps=4e7) as cluster:
            process, host = cluster.processes["dev-1"], cluster.hosts["dev-1"]
            inside = f"nsenter {host.entry[1]}"
            assert host.address in told(f"{inside} ip -brief address show eth0")
            assert "rate 40Mbit" in told(f"{inside} tc qdisc show dev eth0")
            assert "rate 40Mbit" in told(f"tc qdisc show dev {MARK}v1")
            group = groups() / f"{MARK}c1"
            assert group.joinpath("cgroup.procs").read_text().split() == [str(process.pid)]
            assert quota(group) == 0.25
            assert cpu_pool(process.pid).cores == 0.25
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert left() == []
