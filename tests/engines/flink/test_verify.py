"""Verifying, with a cluster that answers what it is told to."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_flink import ANSWERS, JOB, FakeFlink, healthy, job, jobs

from streamplace.engines.flink import FlinkEngine
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.pin.verify import Verification, verify
from streamplace.errors import PlacementError


def running(**devices: list[str]) -> dict[str, Any]:
    """Answers of a cluster on which "new" runs, its tasks' subtasks on these devices."""
    names = {f"v{i}": name for i, name in enumerate(devices)}
    document = job("new", "RUNNING", dict.fromkeys(names, "RUNNING"))
    for row in document["vertices"]:
        row["name"] = names[row["id"]]
        row["parallelism"] = len(devices[names[row["id"]]])
    answers = healthy("dev-0") | {"GET /jobs/new": document}
    answers["GET /jobs"] = jobs({"new": "RUNNING"})
    for vertex, name in names.items():
        subtasks = [{"taskmanager-id": device} for device in devices[name]]
        answers[f"GET /jobs/new/vertices/{vertex}"] = {"subtasks": subtasks}
    return answers


def verified(answers: dict[str, Any], vectors: dict[str, Any]) -> Verification:
    """What verify says of the job."""
    return verify(FakeFlink(answers).rest, "new", Layout.from_json(vectors))


@pytest.mark.parametrize(
    ("devices", "placed", "fine", "uncounted"),
    [
        (["dev-0", "dev-1", "dev-0"], ["dev-1", "dev-0", "dev-0"], True, ()),
        (["dev-0"], ["dev-0"] * 4, False, ()),
        (["dev-0"] * 4, ["dev-0"], False, ()),
        (["dev-0", "dev-0"], "dev-0", True, ("map",)),  # however many there are
        (["dev-0", "dev-1"], "dev-0", False, ("map",)),
    ],
)
def test_subtasks_are_counted_by_device(
    devices: list[str], placed: list[str] | str, *, fine: bool, uncounted: tuple[str, ...]
) -> None:
    """Unless the placement leaves their number open."""
    found = verified(running(map=devices), {"map": placed})
    assert (found.fine, found.uncounted) == (fine, uncounted)
    assert found.checks[0].actual == Counter(devices)


def test_whatever_differs_is_found() -> None:
    """Another device, other counts, no placement, no operator; an ended job has no placement."""
    answers = running(op0=["dev-0"], op1=["dev-1", "dev-2"], op2=["dev-3"])
    placed = {"op0": ["dev-1"], "op1": ["dev-1", "dev-1"], "opX": ["dev-3"]}
    found = {check.operator: check.fine for check in verified(answers, placed).checks}
    assert found == dict.fromkeys(("op0", "op1", "op2", "opX"), False)
    answers["GET /jobs/new"]["state"] = "CANCELED"
    assert verified(answers, placed).problems == (
        "the job is CANCELED; only a running job has a placement",
    )


def test_tasks_are_placed_by_the_names_that_they_have_in_graphs() -> None:
    """From Python, whether a device or a list of them is given; a list must not be empty."""
    engine = FlinkEngine(FakeFlink(ANSWERS).rest)
    for devices in ("dev-0", ["dev-0"]):
        assert engine.verify(JOB, {"src": "dev-0", "a -> b": devices, "c": "dev-0"}).fine
    with pytest.raises(PlacementError, match="operator 'c' has no devices"):
        engine.verify(JOB, {"src": "dev-0", "a -> b": "dev-0", "c": []})


DIFFERS = "map dev-0 × 4 dev-0 differs 1 of 1 operators differ."


@pytest.mark.parametrize(
    ("state", "more", "status", "told"),
    [
        ("RUNNING", {"parallelism": {"map": 4}}, 1, DIFFERS),
        ("RUNNING", {}, 0, "does not say how many subtasks"),
        ("RESTARTING", {}, 1, "the job is RESTARTING; only a running job has a placement"),
    ],
    ids=["another parallelism", "no parallelism", "a job that restarts"],
)
def test_the_command_tells_what_differs_and_what_it_has_not_counted(
    run: Callable, tmp_path: Path, state: str, more: dict[str, Any], status: int, told: str
) -> None:
    """With its exit code, and without being given the id of the job."""
    document = {"assignment": {"map": "dev-0"}} | more
    (tmp_path / "p.json").write_text(json.dumps(document))
    answers = running(map=["dev-0"]) | {"GET /jobs": jobs({"new": state})}
    answers["GET /jobs/new"]["state"] = state
    with FakeFlink(answers).served() as flink:
        answer = run("flink", "verify", "--rest", flink.url, "--placement", "p.json")
    assert answer.status == status
    assert told in " ".join(answer.out.split())
