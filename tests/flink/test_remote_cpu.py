"""CPU of TaskManagers elsewhere: by thread dumps, by the metric reporter, and without either."""

import math
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from fake_flink import CPU, MIPS, failure, made_threads, writing_shop
from flink_clusters import measured_at_once, submitted
from flink_jars import build_jar
from hypothesis import example, given
from hypothesis import strategies as st

from streamplace.flink.cpu.charging import (
    DumpCounts,
    RunningSubtask,
    ThreadLoad,
    charged,
    estimated_loads,
)
from streamplace.flink.cpu.reporter import Reporters, jar_path, parse_report
from streamplace.flink.cpu.thread_dumps import MAX_FAILURES, is_on_core
from streamplace.flink.local.session import local_cluster
from streamplace.flink.measure import cluster as clusters
from streamplace.flink.measure import windows
from streamplace.flink.measure.cluster import measured_cluster
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.measure.profile import profile
from streamplace.flink.measure.windows import JobWindows
from streamplace.io.ledger import errors_for

NAMES = ("Source: src", "split", "out: Writer")


def elsewhere(clock, parts, cores=0.5):
    """A job on a TaskManager elsewhere, each of whose subtasks is on a core for a part of time."""
    flink = writing_shop(clock)
    flink.devices, flink.process_cpu = ("far",), {"far": cores}
    flink.on_core = {
        "far": {f"{name} ({i}/2)#0": part for name, part in parts.items() for i in (1, 2)}
    }
    return flink


def cores_of(measured):
    return [measured.cpu[v].cores for v in CPU]


def test_the_cpu_of_a_process_is_divided_by_its_dumps(clock):
    """Flink calls the splitter twenty times as busy as the source, which takes more."""
    flink = elsewhere(clock, dict(zip(NAMES, (0.5, 0.1, 0.05), strict=True)), 1.3)
    measured = profile(flink.rest, "job", 60)
    assert sum(cores_of(measured)) == pytest.approx(1.24, abs=0.04)  # and Java itself
    assert cores_of(measured) == pytest.approx([0.95, 0.19, 0.1], rel=0.3)
    number = flink.dumped["far"]
    assert number >= 60
    graph = measured_graph(measured, MIPS)
    text = f"{number} thread dumps of each TaskManager; off by up to ±"
    assert str(graph.attributes["cpu per operator"]).startswith(text)
    assert not [name for name in graph.attributes if name.startswith("cpu of")]
    assert not [doubt for doubt in measured.doubts if "ipt of" in doubt or "dumps" in doubt]


def test_waiting_operators_and_legacy_sources_have_their_own_cpu(clock):
    """Flink reports no busy time of the source, and calls what waits busy all the time."""
    flink = elsewhere(clock, dict(zip(NAMES, (0.3, 0.02, 0.3), strict=True)), 1.24)
    del flink.on_core["far"]["Source: src (1/2)#0"], flink.on_core["far"]["Source: src (2/2)#0"]
    for i in (1, 2):
        flink.on_core["far"][f"Source: src ({i}/2)#0"] = 0.0
        flink.on_core["far"][f"Legacy Source Thread - Source: src ({i}/2)#0"] = 0.3
    flink.vertices["v0"].rates = {**flink.vertices["v0"].rates, "accumulateBusyTimeMs": "NaN"}
    flink.vertices["v1"].rates = {**flink.vertices["v1"].rates, "accumulateBusyTimeMs": 2000.0}
    flink.otherwise_of = lambda vertex, i: (
        {"metrics": {"accumulated-busy-time": "NaN"}} if vertex.name == "Source: src" else {}
    )
    measured = profile(flink.rest, "job", 60)
    assert cores_of(measured) == pytest.approx([0.55, 0.04, 0.55], rel=0.1, abs=0.02)
    assert measured.waiting["v1"].rate == pytest.approx(100 / 2, rel=0.1)
    assert [*measured.waiting] == ["v1"]


def test_cpu_of_native_threads_is_charged_and_widens_intervals(clock):
    """Java's threads were on a core for 0.4 s per second, and the process took twice that."""
    parts = dict(zip(NAMES, (0.05, 0.1, 0.05), strict=True))
    origins = []
    for cores in (0.4, 1.6):
        measured = profile(elsewhere(clock, parts, cores).rest, "job", 60)
        assert sum(cores_of(measured)) == pytest.approx(cores - 0.06, abs=0.03)
        origins.append(measured.origin.error)
        graph = measured_graph(measured, MIPS)
        errors, steady = (
            errors_for(graph),
            errors_for(replace(graph, attributes={"profile windows": 1})),
        )
        assert errors.high == pytest.approx(steady.high * (1 + measured.origin.error), rel=1e-3)
    assert origins[1] == pytest.approx(0.7, abs=0.1)
    assert origins[0] < origins[1]


def test_noise_of_dumps_is_no_constant_load(clock):
    """One subtask reads twice as much as the other, and is seen as often."""
    flink = elsewhere(clock, dict(zip(NAMES, (0.1, 0.3, 0.1), strict=True)), 1.0)
    flink.vertices["v1"].shares = (2 / 3, 1 / 3)
    measured = profile(flink.rest, "job", 60)
    assert len(measured.observations["v1"]) == 1
    assert measured.constant["v1"] < 0.1 * measured.cpu["v1"].cores


def test_native_threads_are_charged_to_the_task_that_started_them():
    """They inherit its name, where the kernel keeps all of it."""
    subtask = RunningSubtask("job", "v", 0, "dev", "mean (1/4)#0", 900.0)
    loads = [ThreadLoad(subtask.thread, 0.1, 0.02), ThreadLoad(subtask.thread, 0.03, 0.0)]
    (cpu,) = charged(loads, [subtask], ()).values()
    assert (cpu.cores, cpu.source) == (pytest.approx(0.13), "")
    assert cpu.thread == loads[0]


def test_threads_that_wait_for_a_core_have_no_more_cpu_than_the_process(clock):
    """All were runnable all the time on a machine that gave them a third of it."""
    measured = profile(elsewhere(clock, dict.fromkeys(NAMES, 1.0), 2.0).rest, "job", 60)
    assert cores_of(measured) == pytest.approx([0.63] * 3, rel=0.05)


@pytest.mark.parametrize(
    ("answer", "requests"),
    [
        (failure("forbidden", status=403), 1),
        (failure("a.B: busy", status=503), MAX_FAILURES),
        (failure("No TaskExecutor registered under far", status=404), 1),  # it was replaced
        ({"threadInfos": [{"threadName": 7}]}, 1),
    ],
)
def test_without_dumps_busy_time_divides_the_cpu(clock, answer, requests):
    """Nothing of it vanishes, and one line tells why; a TaskManager is not asked for ever."""
    flink = elsewhere(clock, dict.fromkeys(NAMES, 0.1), 0.9)
    flink.answers["GET /taskmanagers/far/thread-dump"] = answer
    measured = profile(flink.rest, "job", 10)
    assert sum(cores_of(measured)) == pytest.approx(0.9)
    assert cores_of(measured)[1] == pytest.approx(20 * cores_of(measured)[0])
    assert len([1 for path in flink.requests("GET") if "thread-dump" in path]) == requests
    assert (
        len([doubt for doubt in measured.doubts if "dumps of far cannot be taken (" in doubt]) == 1
    )
    assert str(measured.origin).startswith(
        "CPU of whole TaskManagers, divided by busy time; off by"
    )


def test_a_slow_task_manager_gives_few_dumps(clock, monkeypatch):
    """It stands still for each, so they may take a tenth of the time."""
    flink = elsewhere(clock, dict.fromkeys(NAMES, 0.1))
    usual = flink._dump

    def slow(device):
        clock.now += 0.5
        return usual(device)

    monkeypatch.setattr(flink, "_dump", slow)
    measured = profile(flink.rest, "job", 60)
    assert 10 <= flink.dumped["far"] <= 15
    assert (
        measured.origin.error > 2 * profile(elsewhere(clock, {}).rest, "job", 10).origin.error / 3
    )


@pytest.mark.parametrize(
    ("state", "frames", "is_on"),
    [
        ("RUNNABLE", ["A.work(A.java:1)"], True),
        ("RUNNABLE (in native)", ["org.rocksdb.RocksDB.get(Native Method)"], True),
        ("RUNNABLE", ["java.base@17.0.1/java.util.ArrayDeque.poll(ArrayDeque.java:5)"], True),
        ("RUNNABLE", ["a.netty4.io.netty.channel.epoll.Native.epollWait0(Native Method)"], False),
        ("RUNNABLE", ["java.base@11/sun.nio.ch.EPoll.wait(Native Method)"], False),
        ("RUNNABLE", ["java.net.SocketInputStream.socketRead0(Native Method)"], False),
        ("RUNNABLE", ["sun.management.ThreadImpl.dumpThreads0(Native Method)"], False),
        ("RUNNABLE", ["org.rocksdb.RocksDB.flush(Native Method)"], False),
        ("RUNNABLE", ["sun.nio.ch.SocketDispatcher.read0(Native Method)", "a.B.c(B.java)"], True),
        (
            "RUNNABLE",
            [
                "sun.nio.ch.SocketDispatcher.read0(Native Method)",
                "sun.nio.ch.NioSocketImpl.tryRead(N.java:2)",
            ],
            False,
        ),
        ("RUNNABLE", [], False),
        ("TIMED_WAITING on java.lang.Object@1", ["java.lang.Object.wait(Native Method)"], False),
        ("BLOCKED on java.lang.Object@1", ["A.work(A.java:1)"], False),
    ],
)
def test_runnable_threads_are_on_a_core_unless_they_wait_in_native_code(state, frames, *, is_on):
    name = 'odd "name" Id=3 RUNNABLE\n'
    text = f'"{name}" Id=17 {state}\n' + "".join(f"\tat {frame}\n" for frame in frames) + "\n"
    assert is_on_core(text, name) is is_on


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=5),
    st.lists(st.one_of(st.floats(0, 1e5), st.just(math.nan)), min_size=5, max_size=5),
    st.integers(0, 40),
    st.floats(0.001, 64),
)
@example([3], [1.0, 2.0, 3.0, 4.0, 5.0], 7, 0.030985)  # less than Java is assumed to use
def test_all_cpu_of_a_process_is_charged(hits, busy, number, cores):
    """By dumps or busy time, whatever these say."""
    subtasks = [
        RunningSubtask("job", "v", i, "far", f"map ({i + 1}/{len(hits)})#0", busy[i])
        for i in range(len(hits))
    ]
    counted = {(one.thread, i): min(hits[i], number) for i, one in enumerate(subtasks)}
    loads = estimated_loads(DumpCounts(number, counted if number else {}, 30.0), subtasks, cores)
    if number or any(one.busy > 0 for one in subtasks):
        assert sum(load.cores for load in loads) == pytest.approx(cores)
    assert all(load.cores >= 0 for load in loads)


LIMITS = "boot 8 0-3 1.5 2500000000 /pod"


def report(flink, at, *, process=1.0, parts=1):
    """Texts of gauges in which the threads of a job have what they use, and Java itself 0.02."""
    threads = made_threads(flink.vertices, CPU, at)
    rows = [f"{t.native} {round(1e9 * t.cpu)} 0 {round(at)} {t.name}" for t in threads]
    rows.append(f"99 {round(0.02e9 * at)} 0 0 flink-metrics-1")
    cpu = round(1e9 * process * (sum(CPU.values()) + 0.02) * at)
    rows.insert(0, f"process {cpu} {round(1e9 * at + 5e15)} {LIMITS}")
    size = -(-len(rows) // parts)
    texts = ["".join(f"{row}\n" for row in rows[i * size : i * size + size]) for i in range(parts)]
    return [f"streamplace 1 {round(at)} {i} {parts}\n{text}" for i, text in enumerate(texts)] + [
        f"streamplace 1 {round(at)} 15 {parts}\n"
    ]


def reporting(clock, **options):
    flink = writing_shop(clock)
    flink.devices, flink.process_cpu = ("far",), {"far": 9.0}
    flink.gauges = {"far": lambda at: report(flink, at, **options)}
    return flink


@pytest.mark.parametrize("parts", [1, 3])
def test_a_reporter_replaces_threads_of_this_machine(clock, parts):
    """Also on a clock of its own, with metrics that are fetched every ten seconds."""
    flink = reporting(clock, parts=parts)
    seen = profile(flink.rest, "job", 10)
    assert [seen.cpu[v].cores for v in CPU] == pytest.approx([*CPU.values()], rel=1e-3)
    assert seen.java == pytest.approx(0.02)
    assert not [doubt for doubt in seen.doubts if "CPU" in doubt or "ipt" in doubt]
    graph = measured_graph(seen, MIPS)
    assert str(graph.attributes["cpu per operator"]).startswith("reporter in each TaskManager")
    assert "not saturated" in str(graph.attributes["consistency"])
    assert not [path for path in flink.requests("GET") if "thread-dump" in path]
    (device,) = measured_cluster(flink.rest, "1000", None).devices
    assert (device.cores, device.mips, device.is_cpu_assumed) == (2, "750 MIPS", False)


def test_one_failed_listing_is_not_a_missing_reporter(clock, monkeypatch):
    flink, failures = reporting(clock), ["once"]
    listing = Reporters._rows

    def failing(self, device, query):
        return None if not query and failures and failures.pop() else listing(self, device, query)

    monkeypatch.setattr(Reporters, "_rows", failing)
    reporters = Reporters(flink.rest)
    assert (reporters.read(["far"]), [*reporters.read(["far"])]) == ({}, ["far"])


def test_threads_that_contradict_their_process_have_a_doubt(clock):
    """Three per cent may be of threads that have ended."""
    for process, is_told in ((1.02, False), (1.1, True)):
        doubts = profile(reporting(clock, process=process).rest, "job", 10).doubts
        assert any("reporter of far shows used another CPU" in doubt for doubt in doubts) is is_told


@pytest.mark.parametrize(
    ("spoiled", "told"),
    [
        (lambda texts: [texts[0].replace("streamplace 1", "streamplace 2")], "has version 2"),
        (lambda texts: [texts[0], texts[2]], "2 of 3 parts"),
        # more than its gauges hold
        (lambda texts: [text.replace(" 3\n", " 17\n", 1) for text in texts], "of 17 parts"),
        (lambda texts: [texts[0], texts[1].replace("1 1 3", "2 1 3", 1)], "parts"),
        (lambda texts: ["streamplace 1 7 0 1\nfault java.io.IOException: no\n"], "IOException: no"),
        (lambda texts: ["streamplace 1 7 0 1\nsomething else\n"], "it is not a table"),
        (lambda texts: ["", ""], "it is not a table"),
    ],
)
def test_without_a_report_dumps_take_its_place(clock, spoiled, told):
    """One line says why: another version, a part that is missing, /proc that cannot be read."""
    flink = reporting(clock, parts=3)
    flink.gauges = {"far": lambda at: spoiled(report(flink, at, parts=3))}
    flink.on_core = {"far": {"split (1/2)#0": 0.5, "split (2/2)#0": 0.5}}
    seen = profile(flink.rest, "job", 30)
    (doubt,) = [doubt for doubt in seen.doubts if "the report of far is not used" in doubt]
    assert told in doubt
    assert "thread dumps" in str(seen.origin)


def test_names_may_contain_any_characters():
    """Lines and backslashes are escaped."""
    head = f"streamplace 1 1 0 1\nprocess 5 7 {LIMITS}\n"
    found = parse_report([head + "12 1000000000 2000000000 3 a\\nb\\\\n c\n"])
    (thread,) = found.threads
    assert (thread.native, thread.name) == (12, "a\nb\\n c")
    assert (thread.cpu, thread.delay, thread.wakes) == (1.0, 2.0, 3)
    assert (found.pool.cores, found.throttled) == (1.5, 2.5)


@pytest.fixture(params=["2.3.0", "1.20.5"])
def reported(request, fetched, tmp_path, monkeypatch):
    """A Flink whose TaskManagers have the reporter, twice."""
    for name in ("streamplace", "again"):
        (tmp_path / "plugins" / name).mkdir(parents=True)
        shutil.copy(jar_path(), tmp_path / "plugins" / name)
    monkeypatch.setenv("FLINK_PLUGINS_DIR", str(tmp_path / "plugins"))
    settings = {
        "taskmanager.numberOfTaskSlots": 4,
        "metrics.reporters": "streamplace,again",
        "metrics.reporter.streamplace.factory.class": "CpuReporter",
        "metrics.reporter.again.factory.class": "CpuReporter",
    }
    with local_cluster(fetched(request.param), ["dev-0", "dev-1"], settings=settings) as running:
        yield running


@pytest.mark.slow
@pytest.mark.xdist_group("flink")
def test_the_reporter_agrees_with_this_machine(reported, tmp_path, monkeypatch):
    """All threads of a job with their full names, in both ways at once; two reporters are one."""
    jar = tmp_path / "jobs.jar"
    build_jar(reported.flink, [Path(__file__).parents[2] / "examples/flink/LogJob.java"], jar)
    rest = reported.rest
    job = submitted(rest, jar, "LogJob", "1000", settings={"parallelism.default": "1"})
    time.sleep(15)  # threads of compilers that end are in the CPU of the process alone
    near = JobWindows(rest, job)
    for module in (windows, clusters):
        monkeypatch.setattr(module, "processes_of", lambda rest: {})
    far = JobWindows(rest, job)
    here, there = measured_at_once(near, far, 15.0)
    assert not far.reporters.doubts
    assert not there.inconsistent
    for task in near.tasks:
        one, other = (sum(cpu.cores for _, cpu in seen.subtasks[task.id]) for seen in (here, there))
        assert not any(cpu.source for seen in (here, there) for _, cpu in seen.subtasks[task.id])
        assert other == pytest.approx(one, rel=0.15, abs=2e-3)
    assert far.devices
    for device in far.devices:  # those that run the job
        kinds = [sum(found.cluster.kinds[device].values()) for found in (here, there)]
        assert kinds[1] == pytest.approx(kinds[0], rel=0.1)
    assert Reporters(rest).pools(["dev-0", "dev-1"]).keys() == {"dev-0", "dev-1"}
