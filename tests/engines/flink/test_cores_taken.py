"""CPU of the jobs beside the one that is measured, whatever state they are in."""

from typing import Any

import pytest
from fake_flink import failure
from flink_documents import failed_by, job, jobs
from lazy_flink import Clock, LazyFlink, Vertex, rates
from moving_cases import UNKNOWN

from streamplace.engines.flink.cpu import limits, task_cpu
from streamplace.engines.flink.cpu.limits import CpuPool
from streamplace.engines.flink.cpu.threads import JavaThread
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure import cluster, job_watch, profile
from streamplace.engines.flink.measure.background import cores_taken
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer
from streamplace.errors import SettingError
from streamplace.model.trust import trust_of


def beside(clock: Clock, monkeypatch: pytest.MonkeyPatch, state: str = "RUNNING") -> LazyFlink:
    """A job that takes 0.3 cores, and what is asked of another one, "other", has the same answer.

    The other one has an iteration, and is in some state.
    """
    source = rates(0, 100, 0, 4000, busy=0.1) | {"Source__src.numRecordsOut": 100}
    vertices = {
        "v0": Vertex("Source: src", source),
        "v1": Vertex("out", rates(100, 0, 4000, 0, busy=0.2), [("v0", "HASH")]),
    }
    flink = LazyFlink(clock, vertices, duration=60_000, process_cpu={"dev-0": 0.9})
    flink.answers["GET /jobs"] = jobs({"job": "RUNNING", "other": state})
    flink.answers["GET /jobs/other/exceptions"] = failed_by("a.B: no slot")
    usual = flink._answer

    def answer(path: str) -> Any:
        document = usual(path.replace("/jobs/other", "/jobs/job"))
        if path == "/jobs/other":
            document |= {"state": state}
            document["vertices"][1] |= {"name": "IterationSink-3"}
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
    seen = FlinkEngine(flink.rest).measure("job", 5.0)
    assert not any("job other" in doubt for doubt in seen.notes)
    left = FlinkEngine(beside(clock, monkeypatch, "FAILED").rest).measure("job", 5.0)
    with_it, without = ((one.cluster.devices.mips * 2).sum() for one in (seen, left))
    assert without - with_it == pytest.approx(0.3 * 2500, rel=0.05)


def test_a_job_that_cannot_be_measured_is_left_out_with_a_note(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another user's job does is no reason not to move this one."""
    flink = beside(clock, monkeypatch, "RESTARTING")
    seen = FlinkEngine(flink.rest).measure("job", 5.0)
    (told,) = [doubt for doubt in seen.notes if "job other" in doubt]
    assert told.startswith("CPU of job other beside this one: counted as 0, because job other is")
    with pytest.raises(FlinkError, match="other is RESTARTING"):
        cores_taken(flink.rest, ["other"], 10)


def test_a_job_that_has_just_ended_is_left_out_with_a_note(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was still in the list of jobs when it was forgotten."""
    flink = beside(clock, monkeypatch)
    flink.answers["GET /jobs/other"] = UNKNOWN
    seen = FlinkEngine(flink.rest).measure("job", 5.0)
    assert seen.graph.source_rate == pytest.approx(100)
    assert any("job other could not be read, so CPU of it may" in doubt for doubt in seen.notes)
    flink.answers["GET /jobs/other"] = failure("a.B: busy", status=503)
    with pytest.raises(NoAnswer):
        FlinkEngine(flink.rest).measure("job", 5.0)


def test_a_batch_job_whose_parallelism_flink_has_not_chosen_is_no_error(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    flink = beside(clock, monkeypatch)
    batch = job("batch", "RUNNING", {"v0": "RUNNING", "v1": "CREATED"})
    batch["vertices"][1]["parallelism"] = -1
    flink.answers["GET /jobs/other"] = batch
    seen = FlinkEngine(flink.rest).measure("job", 5.0)
    assert seen.graph.source_rate == pytest.approx(100)
    assert not any("could not be read" in doubt for doubt in seen.notes)
    assert any("job other beside this one: counted as 0" in doubt for doubt in seen.notes)


@pytest.fixture
def together(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> LazyFlink:
    """Two jobs on two TaskManagers of two cores each, the first of which is full.

    There, this job takes 0.4 cores and the other one 1.6, of a hot key; on the second one, 0.4 and
    0.1.
    """
    flink = beside(clock, monkeypatch)
    flink.devices = ("dev-0", "dev-1")
    usual = flink._answer

    def answer(path: str) -> Any:
        document = usual(path)
        if path == "/jobs/other":
            document["vertices"][0] |= {"name": "Source: other"}
        return document

    def threads(process: int) -> list[JavaThread]:
        number = f"({process + 1}/2)#0"
        cores = {
            f"Source: src {number}": 0.2,
            f"out {number}": 0.2,
            f"Source: other {number}": 0.1 if process else 1.6,
            f"IterationSink-3 {number}": 0.0,
        }
        used = enumerate(cores.items(), 1)
        return [JavaThread(n, name, own * clock.now, clock.now) for n, (name, own) in used]

    monkeypatch.setattr(flink, "_answer", answer)
    for module in (job_watch, cluster):
        monkeypatch.setattr(module, "processes_of", lambda rest: {"dev-0": 0, "dev-1": 1})
    monkeypatch.setattr(profile, "python_workers", lambda processes: 0)
    monkeypatch.setattr(task_cpu, "java_threads", threads)
    monkeypatch.setattr(task_cpu, "received_tasks", lambda process: [])
    monkeypatch.setattr(limits, "cpu_pool", lambda process: CpuPool(f"box {process}", 2.0))
    return flink


def test_what_another_job_takes_is_counted_where_it_takes_it(together: LazyFlink) -> None:
    """One of its two subtasks has a hot key."""
    taken = cores_taken(together.rest, ["other"], 10)
    assert taken == pytest.approx({"dev-0": 1.6, "dev-1": 0.1})


def test_a_profile_is_not_contradicted_by_the_cpu_of_other_jobs(together: LazyFlink) -> None:
    """The model allowed this job five times what it carries, because it gave it all of dev-0."""
    trust = trust_of(FlinkEngine(together.rest).measure("job", 5.0).graph)
    assert trust is not None
    assert abs(trust.error) < 0.2
