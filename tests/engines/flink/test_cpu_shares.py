"""TaskManagers that share the CPU of a machine, or of one cgroup, in the model and in its check."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from lazy_flink import MIPS, Clock, Vertex, rates
from shop_flink import OLD, ShopFlink, advised

from streamplace.engines.flink import engine
from streamplace.engines.flink.cpu import limits, task_cpu
from streamplace.engines.flink.cpu.limits import CpuPool
from streamplace.engines.flink.cpu.threads import JavaThread
from streamplace.engines.flink.decide.candidates import Judge, Question
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure import cluster, job_watch
from streamplace.engines.flink.measure import profile as profiling
from streamplace.engines.live import Measurement
from streamplace.model.trust import trust_of

Job = Callable[..., ShopFlink]
Measure = Callable[..., Measurement]
BOX = CpuPool("box", 4.0)


@pytest.fixture
def job(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job of a source and an operator, by the cores that each subtask uses.

    Subtask i runs on TaskManager i.
    """

    def run(
        pool: CpuPool,
        number: int,
        src: Sequence[float],
        out: Sequence[float],
        blocked: float = 0.0,
        beside: Mapping[str, float] | None = None,
    ) -> ShopFlink:
        emitted = rates(0, 100, 0, 400, busy=0.1, blocked=blocked)
        emitted["Source__src.numRecordsOut"] = 100.0
        read = rates(100, 0, 400, 0, busy=0.1)
        vertices = {
            "v0": Vertex("Source: src", emitted, (), len(src)),
            "v1": Vertex("out", read, [("v0", "REBALANCE")], len(out)),
        }
        tasks = {"Source: src": src, "out": out}

        def threads(process: int) -> list[JavaThread]:
            own = {
                f"{task} ({process + 1}/{len(cores)})#0": cores[process]
                for task, cores in tasks.items()
                if process < len(cores)
            }
            own["others"] = (beside or {}).get(f"dev-{process}", 0.0)
            seen = enumerate(own.items(), 1)
            return [JavaThread(n, name, used * clock.now, clock.now) for n, (name, used) in seen]

        devices = [f"dev-{i}" for i in range(number)]
        cpu = dict.fromkeys(devices, 0.0)
        flink = ShopFlink(clock, vertices, devices=devices, duration=OLD, process_cpu=cpu)
        processes = {device: i for i, device in enumerate(flink.devices)}
        for module in (job_watch, cluster):
            monkeypatch.setattr(module, "processes_of", lambda rest: processes)
        monkeypatch.setattr(engine, "cores_of_others", lambda *_: dict(beside or {}))
        monkeypatch.setattr(profiling, "python_workers", lambda processes: 0)
        monkeypatch.setattr(task_cpu, "java_threads", threads)
        monkeypatch.setattr(task_cpu, "received_tasks", lambda process: [])
        monkeypatch.setattr(limits, "cpu_pool", lambda process: pool)
        return flink

    return run


@pytest.fixture
def measure(job: Job) -> Measure:
    """Measure such a job."""

    def run(*given: Any, **more: Any) -> Measurement:
        return FlinkEngine(job(*given, **more).rest, mips=str(MIPS)).measure("job", 10.0)

    return run


def error_of(seen: Measurement) -> float:
    """Error of the model for the measured placement."""
    trust = trust_of(seen.graph)
    assert trust is not None
    return trust.error


def scale_of(seen: Measurement) -> float:
    """Factor by which predictions for a job are scaled that runs on the first TaskManager."""
    return Judge(Question(seen, {"src": ["dev-0"], "out": ["dev-0"]}, {}, spreads=True)).scale


def test_a_quota_around_several_task_managers_is_divided(measure: Measure) -> None:
    """Four share four cores, and each works at its full one: the job carries what it did."""
    seen = measure(BOX, 4, [0.49] * 4, [0.49] * 4, blocked=4.0)
    assert abs(error_of(seen)) < 0.05
    assert seen.cluster.devices.cores.tolist() == [1] * 4


def test_more_than_an_equal_part_of_an_idle_machine_fills_nothing(measure: Measure) -> None:
    """Of five TaskManagers on eight cores, one uses cores that the others leave idle."""
    for used in (0.6, 0.8):
        seen = measure(CpuPool("", 8.0), 5, [used], [used])
        assert seen.cluster.devices.cores.tolist() == [2, 1, 1, 1, 1]
        assert not seen.is_limited
        assert trust_of(seen.graph) is None
        assert "not saturated" in str(seen.graph.attributes["consistency"])
        assert scale_of(seen) == 1.0


def test_today_s_machines_carry_what_they_do_in_advice_too(job: Job) -> None:
    """Of two TaskManagers on three cores, one uses more than its equal part."""
    advice = advised(job(CpuPool("", 3.0), 2, [0.75], [0.75]), "1x")
    assert advice.carried is not None
    assert advice.carried >= advice.observed
    assert [machine.size for machine in advice.current.machines] == ["1 core of 2500 MIPS"] * 2


def test_a_full_machine_is_not_full_of_cpu_elsewhere(measure: Measure) -> None:
    """Of two cores one TaskManager uses 1.25 and the other 0.7: no layout carries much more."""
    seen = measure(CpuPool("", 2.0), 2, [0.55], [0.7, 0.7], blocked=1.0)
    assert seen.is_limited
    assert abs(error_of(seen)) < 0.05
    devices = seen.cluster.devices
    assert (devices.mips * devices.cores).sum() <= 2 * MIPS
    assert not measure(CpuPool("", 2.0), 2, [0.5], [0.5, 0.5]).is_limited


def test_a_machine_that_is_full_limits_all_task_managers_on_it(measure: Measure) -> None:
    """The source uses a quarter of its part, but others leave it no more."""
    assert measure(CpuPool("", 2.0), 2, [0.2], [0.1], beside={"dev-1": 1.65}).is_limited
    assert not measure(CpuPool("", 2.0), 2, [0.2], [0.1], beside={"dev-1": 0.9}).is_limited


def test_another_job_may_use_more_than_an_equal_part(measure: Measure) -> None:
    """Something is left to this one, whatever that is."""
    for taken in (1.5, 5.0):
        seen = measure(CpuPool("", 2.0), 2, [0.2], [0.1], beside={"dev-1": taken})
        assert (seen.cluster.devices.mips > 0).all()
    (note,) = (note for note in seen.notes if "reserved" in note)
    assert note.startswith("what is reserved on 'dev-1' is nearly all CPU that the model gives it")


def test_much_cpu_of_threads_that_name_no_task_is_told(measure: Measure) -> None:
    """It is the operators', and how it is divided among them may be wrong."""
    pools = {"dev-0": 0.5, "dev-1": 0.5}
    seen = measure(CpuPool("", 8.0), 2, [0.1] * 2, [0.1] * 2, beside=pools)
    assert any("69% of the CPU is of threads that name no task" in note for note in seen.notes)
    assert seen.graph.charged_ipt @ seen.graph.input_rate == pytest.approx(1.3 * 1e6 * MIPS)
    even = measure(CpuPool("", 8.0), 2, [0.1] * 2, [0.1] * 2)
    assert not any("threads that name no task" in note for note in even.notes)
