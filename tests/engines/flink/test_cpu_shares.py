"""TaskManagers that share CPU with one another and with other jobs, in the model and its check."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from fake_flink import failure, job, jobs
from lazy_flink import MIPS, OLD, Clock, LazyFlink, ShopFlink, Vertex, advised, rates, with_threads
from moving_cases import UNKNOWN

from streamplace.engines.flink.cpu import limits
from streamplace.engines.flink.cpu.limits import CpuPool
from streamplace.engines.flink.cpu.threads import JavaThread
from streamplace.engines.flink.decide.rates import JobRates
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure import profile as profiling
from streamplace.engines.flink.measure.cluster import Measurement, cores_taken
from streamplace.engines.flink.rest.client import NoAnswer
from streamplace.errors import SettingError
from streamplace.model.trust import trust_of

Sharing = Callable[..., ShopFlink]
Measure = Callable[..., Measurement]
BOX = CpuPool("box", 4.0)


def read_threads(
    monkeypatch: pytest.MonkeyPatch,
    flink: LazyFlink,
    cores: Callable[[int], Mapping[str, float]],
    pool: Callable[[int], CpuPool],
) -> None:
    """Let TaskManager i be process i of this machine, whose threads take so many cores each."""

    def threads(process: int) -> list[JavaThread]:
        now, used = flink.clock.now, enumerate(cores(process).items(), 1)
        return [JavaThread(n, name, own * now, now) for n, (name, own) in used]

    processes = {device: i for i, device in enumerate(flink.devices)}
    with_threads(monkeypatch, threads, processes)
    monkeypatch.setattr(limits, "cpu_pool", pool)


@pytest.fixture
def sharing(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Sharing:
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

        def cores(process: int) -> dict[str, float]:
            own = {
                f"{task} ({process + 1}/{len(each)})#0": each[process]
                for task, each in tasks.items()
                if process < len(each)
            }
            return own | {"others": (beside or {}).get(f"dev-{process}", 0.0)}

        devices = [f"dev-{i}" for i in range(number)]
        cpu = dict.fromkeys(devices, 0.0)
        flink = ShopFlink(clock, vertices, devices=devices, duration=OLD, process_cpu=cpu)
        monkeypatch.setattr(profiling, "cores_beside", lambda *_: dict(beside or {}))
        read_threads(monkeypatch, flink, cores, lambda process: pool)
        return flink

    return run


@pytest.fixture
def measure(sharing: Sharing) -> Measure:
    """Measure such a job."""

    def run(*given: Any, **more: Any) -> Measurement:
        return FlinkEngine(sharing(*given, **more).rest, mips=str(MIPS)).measure("job", 10.0)

    return run


@pytest.mark.parametrize(
    ("pool", "number", "src", "out", "facts", "is_limited"),
    [
        # four TaskManagers share four cores, and each works at its full one
        (BOX, 4, [0.49] * 4, [0.49] * 4, {"blocked": 4.0}, True),
        # of two cores one uses 1.25 and the other 0.7: no layout carries much more
        (CpuPool("", 2.0), 2, [0.55], [0.7, 0.7], {"blocked": 1.0}, True),
        (CpuPool("", 2.0), 2, [0.5], [0.5, 0.5], {}, False),
        # the source uses a quarter of its part, but others leave it no more
        (CpuPool("", 2.0), 2, [0.2], [0.1], {"beside": {"dev-1": 1.65}}, True),
        (CpuPool("", 2.0), 2, [0.2], [0.1], {"beside": {"dev-1": 0.9}}, False),
    ],
)
def test_a_machine_that_is_full_limits_all_task_managers_on_it(
    measure: Measure,
    pool: CpuPool,
    number: int,
    src: list[float],
    out: list[float],
    facts: dict[str, Any],
    *,
    is_limited: bool,
) -> None:
    """Their parts have no more CPU together than there is, so a job carries what it did."""
    seen = measure(pool, number, src, out, **facts)
    assert seen.is_limited is is_limited
    if "blocked" in facts:
        trust, devices = trust_of(seen.graph), seen.cluster.devices
        assert trust is not None
        assert abs(trust.error) < 0.05
        assert (devices.speed * devices.cores).sum() <= pool.cores * MIPS


@pytest.mark.parametrize("used", [0.6, 0.8])
def test_more_than_an_equal_part_of_an_idle_machine_fills_nothing(
    measure: Measure, used: float
) -> None:
    """Of five TaskManagers on eight cores, one uses cores that the others leave idle."""
    seen = measure(CpuPool("", 8.0), 5, [used], [used])
    assert seen.cluster.devices.cores.tolist() == [2, 1, 1, 1, 1]
    assert not seen.is_limited
    assert trust_of(seen.graph) is None
    assert "not saturated" in str(seen.graph.attributes["consistency"])
    one = Layout({"src": ["dev-0"], "out": ["dev-0"]})
    assert JobRates(seen, one).factors[0] == 1.0


def test_today_s_machines_carry_what_they_do_in_advice_too(sharing: Sharing) -> None:
    """Of two TaskManagers on three cores, one uses more than its equal part."""
    advice = advised(sharing(CpuPool("", 3.0), 2, [0.75], [0.75]), "1x")
    assert advice.carried is not None
    assert advice.carried.value >= advice.flow.rate
    assert [machine.size for machine in advice.current.machines] == ["1 core of 2500 MIPS"] * 2


def test_another_job_may_use_more_than_an_equal_part(measure: Measure) -> None:
    """Something is left to this one, whatever that is."""
    for taken in (1.5, 5.0):
        seen = measure(CpuPool("", 2.0), 2, [0.2], [0.1], beside={"dev-1": taken})
        assert (seen.cluster.devices.speed > 0).all()


def beside(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> LazyFlink:
    """A job that takes 0.3 cores, and what is asked of another one, "other", has the same answer.

    The other one has an iteration.
    """
    source = rates(0, 100, 0, 4000, busy=0.1) | {"Source__src.numRecordsOut": 100}
    vertices = {
        "v0": Vertex("Source: src", source),
        "v1": Vertex("out", rates(100, 0, 4000, 0, busy=0.2), [("v0", "HASH")]),
    }
    flink = LazyFlink(clock, vertices, duration=60_000, process_cpu={"dev-0": 0.9})
    flink.answers["GET /jobs"] = jobs({"job": "RUNNING", "other": "RUNNING"})
    usual = flink._answer

    def answer(path: str) -> Any:
        document = usual(path.replace("/jobs/other", "/jobs/job"))
        if path == "/jobs/other":
            document["vertices"][0]["name"] = "Source: other"
            document["vertices"][1]["name"] = "IterationSink-3"
        return document

    monkeypatch.setattr(flink, "_answer", answer)
    return flink


def test_a_job_with_an_iteration_takes_cpu_like_others(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be placed, but it need not be."""
    flink = beside(clock, monkeypatch)
    assert cores_taken(flink.rest, ["other", "other"], 10) == pytest.approx({"dev-0": 0.3})
    with pytest.raises(SettingError, match="its own CPU would be reserved"):
        FlinkEngine(flink.rest).cluster("job", beside=["job"])
    (told,) = [x for x in FlinkEngine(flink.rest).measure("job", 5.0).notes if "job other" in x]
    assert told.startswith("CPU of job other beside this one: counted as 0")


def test_another_job_that_has_ended_or_waits_is_no_error(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was still in the list of jobs when it was forgotten, or has no parallelism yet."""
    flink = beside(clock, monkeypatch)
    batch = job("batch", "RUNNING", {"v0": "RUNNING", "v1": "CREATED"})
    batch["vertices"][1]["parallelism"] = -1
    for answer in (UNKNOWN, batch):
        flink.answers["GET /jobs/other"] = answer
        assert FlinkEngine(flink.rest).measure("job", 5.0).graph.source_rate == pytest.approx(100)
    flink.answers["GET /jobs/other"] = failure("a.B: busy", status=503)
    with pytest.raises(NoAnswer):
        FlinkEngine(flink.rest).measure("job", 5.0)


@pytest.fixture
def together(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> LazyFlink:
    """Two jobs on two TaskManagers of two cores each, the first of which is full.

    There, this job takes 0.4 cores and the other one 1.6, of a hot key; on the second one, 0.4 and
    0.1.
    """
    flink = beside(clock, monkeypatch)
    flink.devices = ("dev-0", "dev-1")

    def cores(process: int) -> dict[str, float]:
        number = f"({process + 1}/2)#0"
        return {
            f"Source: src {number}": 0.2,
            f"out {number}": 0.2,
            f"Source: other {number}": 0.1 if process else 1.6,
            f"IterationSink-3 {number}": 0.0,
        }

    read_threads(monkeypatch, flink, cores, lambda process: CpuPool(f"box {process}", 2.0))
    return flink


def test_what_another_job_takes_is_counted_where_it_takes_it(together: LazyFlink) -> None:
    """One of its two subtasks has a hot key: what it takes is no CPU that this job could use."""
    taken = cores_taken(together.rest, ["other"], 10)
    assert taken == pytest.approx({"dev-0": 1.6, "dev-1": 0.1})
    trust = trust_of(FlinkEngine(together.rest).measure("job", 5.0).graph)
    assert trust is not None
    assert abs(trust.error) < 0.2
