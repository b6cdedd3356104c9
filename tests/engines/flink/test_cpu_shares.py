"""TaskManagers that share the CPU of a machine, or of one cgroup, in the model and in its check."""

from collections.abc import Callable, Mapping

import pytest
from lazy_flink import MIPS, Clock, LazyFlink, Vertex, rates

from streamplace.engines.flink.cpu import limits, task_cpu
from streamplace.engines.flink.cpu.limits import CpuPool
from streamplace.engines.flink.cpu.threads import JavaThread
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure import cluster, job_watch
from streamplace.engines.flink.measure import profile as profiling
from streamplace.engines.live import Measurement
from streamplace.model.trust import trust_of

Measure = Callable[..., Measurement]
BOX = CpuPool("box", 4.0)


@pytest.fixture
def measure(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Measure a job of operators with one subtask on the first TaskManager, or one on each."""

    def run(
        pool: CpuPool,
        number: int,
        cores: Mapping[str, float],
        *,
        spread: bool = False,
        blocked: float = 0.0,
    ) -> Measurement:
        devices = [f"dev-{i}" for i in range(number)]
        parts = number if spread else 1
        names = [*cores]
        vertices = {}
        for i, (name, used) in enumerate(cores.items()):
            seen = rates(100 * (i > 0), 100, 0, 100, busy=used, blocked=0.0 if i else blocked)
            if i == 0:
                seen["Source__src.numRecordsOut"] = 100.0
            inputs = [(names[i - 1], "FORWARD")] if i else []
            title = name if i else "Source: src"
            vertices[name] = Vertex(title, seen, inputs, parts)
        processes = {device: i for i, device in enumerate(devices)}

        def threads(process: int) -> list[JavaThread]:
            own = [
                (f"{vertices[name].name} ({process + 1}/{parts})#0", used / parts)
                for name, used in cores.items()
                if process < parts
            ]
            return [
                JavaThread(n, name, used * clock.now, clock.now)
                for n, (name, used) in enumerate(own, 1)
            ]

        for module in (job_watch, cluster):
            monkeypatch.setattr(module, "processes_of", lambda rest: processes)
        monkeypatch.setattr(profiling, "python_workers", lambda processes: 0)
        monkeypatch.setattr(task_cpu, "java_threads", threads)
        monkeypatch.setattr(task_cpu, "received_tasks", lambda process: [])
        monkeypatch.setattr(limits, "cpu_pool", lambda process: pool)
        flink = LazyFlink(clock, vertices, devices=devices)
        return FlinkEngine(flink.rest, mips=str(MIPS)).measure("job", 10.0)

    return run


def test_a_quota_around_several_task_managers_is_divided(measure: Measure) -> None:
    """Four share four cores, and each works at its full one: the job carries what it did."""
    seen = measure(BOX, 4, {"src": 1.96, "out": 1.96}, spread=True, blocked=4.0)
    trust = trust_of(seen.graph)
    assert trust is not None
    assert abs(trust.error) < 0.05
    assert seen.cluster.devices.cores.tolist() == [1] * 4
