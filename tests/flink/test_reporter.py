"""CPU of TaskManagers by the metric reporter, in Python and in real Flinks."""

import shutil
import time
from pathlib import Path

import pytest
from fake_flink import CPU, MIPS, made_threads, writing_shop
from flink_clusters import measured_at_once, submitted
from flink_jars import build_jar

from streamplace.flink.cpu.remote import Reporters, jar_path, parse_report
from streamplace.flink.local.session import local_cluster
from streamplace.flink.measure import cluster as clusters
from streamplace.flink.measure import windows
from streamplace.flink.measure.cluster import measured_cluster
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.measure.profile import profile
from streamplace.flink.measure.windows import JobWindows

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
