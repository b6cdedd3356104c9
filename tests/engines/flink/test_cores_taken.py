"""CPU of the jobs beside the one that is measured, whatever state they are in."""

from typing import Any

import pytest
from flink_documents import failed_by, jobs
from lazy_flink import Clock, LazyFlink, Vertex, rates

from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.measure.cores_taken import cores_taken
from streamplace.engines.flink.rest.client import FlinkError


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
    assert cores_taken(flink.rest, ["other"], 10) == pytest.approx({"dev-0": 0.3})
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
