"""``flink watch --machines`` as a command."""

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_flink import FakeFlink, InTurn
from flink_documents import healthy, job
from watch_site import CALLS, FIRST
from watched_jobs import plan

from streamplace.engines.flink.move.state import CheckpointTotals
from streamplace.engines.flink.watch import modelling
from streamplace.engines.flink.watch import rounds as passing
from streamplace.engines.flink.watch import watch as watching
from streamplace.engines.flink.watch.acting import WatchMover
from streamplace.engines.flink.watch.look import JobLook
from streamplace.engines.flink.watch.plans import JobModel, NewDevices, WatchPlan
from streamplace.io.watch_store import read_records, usual_store


@pytest.fixture
def flink(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeFlink]:
    """A job on the only TaskManager that may not carry its rate, and is cancelled then."""
    here, more = plan("dev-0"), plan("dev-0", "dev-0 (new)")
    new = NewDevices("dev-0", ("dev-0 (new)",))
    model = JobModel(FIRST, "shop", (here, more), 0, here, "the CPU", new)
    seen = JobLook(
        FIRST, 104.0, False, None, here.layout, {}, CheckpointTotals(1, 0), frozenset(["dev-0"])
    )
    monkeypatch.setattr(passing, "look_at", lambda *_: seen)
    less = JobModel(FIRST, "shop", (here,), 0, here, "the CPU")
    monkeypatch.setattr(
        modelling.JobModeller, "__call__", lambda own, _: model if own.may_start else less
    )
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.01)
    running = job("shop", "RUNNING", {"map": "RUNNING"})
    answers: dict[str, Any] = healthy("dev-0") | {
        f"GET /jobs/{FIRST}": InTurn(*[running] * 4, job("shop", "CANCELED", {})),
        f"GET /jobs/{FIRST}/vertices/map": {"subtasks": [{"taskmanager-id": "dev-0"}]},
        "GET /jobs": {"jobs": [{"id": FIRST, "status": "RUNNING"}]},
    }
    with FakeFlink(answers).served() as answering:
        yield answering


def acting_options(flink: FakeFlink, folder: Path) -> list[str]:
    """Options of a watch that may move the job, and has a command with arguments."""
    script = folder / "two words"
    script.write_text(f"#!/bin/sh\n{CALLS}")
    script.chmod(0o755)
    with zipfile.ZipFile(folder / "job.jar", "w") as made:
        made.writestr("META-INF/MANIFEST.MF", "Main-Class: Job\n")
    (folder / "lib").mkdir()
    (folder / "lib" / "flink-dist-2.3.0.jar").touch()
    command = ["--machines", f"'{script}' --zone 'north east'", "--at-most", "2"]
    where = ["--rest", flink.url, "--savepoints", folder.as_uri(), "--flink-home", str(folder)]
    return ["--apply", "--policy", "ds2", *command, *where, str(folder / "job.jar")]


def test_the_option_is_a_command_with_its_own_arguments(
    run: Callable, flink: FakeFlink, tmp_path: Path
) -> None:
    answer = run("flink", "watch", *acting_options(flink, tmp_path))
    assert answer.status == 0, answer.err
    assert "1 TaskManager like dev-0 is started" in answer.err
    calls = (tmp_path / "two words.calls").read_text()
    assert calls == "--zone north east start dev-0\n"
    (record,) = read_records(usual_store(), 9)
    assert [(one.kind, one.state) for one in record.decisions] == [("start", "begun")]
    shown = run("flink", "history")
    assert "start, 1 → 2" in shown.out


def test_the_command_stops_what_is_no_spare(
    run: Callable, flink: FakeFlink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job leaves two TaskManagers, of which one is named as a spare."""

    def carry_out(mover: WatchMover, model: JobModel, *_: Any) -> str:
        mover.left(model.job, ["dev-1", "dev-2"])
        return model.job

    flink.answers |= healthy("dev-0", "dev-1", "dev-2") | {"GET /jobs": flink.answers["GET /jobs"]}
    monkeypatch.setattr(WatchMover, "carry_out", carry_out)
    more = WatchPlan(2, {"map": ["dev-0", "dev-1"]}, plan("dev-0", "dev-1").carries)
    model = JobModel(FIRST, "shop", (plan("dev-0"), more), 0, plan("dev-0"), "the CPU")
    monkeypatch.setattr(modelling.JobModeller, "__call__", lambda *_: model)
    answer = run("flink", "watch", "--spare", "dev-2", *acting_options(flink, tmp_path))
    assert answer.status == 0, answer.err
    assert (tmp_path / "two words.calls").read_text() == "--zone north east stop dev-1\n"


def test_options_that_cannot_be_meant_are_refused(run: Callable, flink: FakeFlink) -> None:
    for options, told in {
        ("--machines", "true"): "give --apply, too",
        ("--apply", "--machines", "no-such-program x"): "'no-such-program' is no program that can",
        ("--apply", "--machines", "'true"): "not a command: No closing quotation",
        ("--apply", "--machines", " "): "is no program that can be run",
    }.items():
        answer = run("flink", "watch", "--rest", flink.url, *options)
        assert answer.status == 2, options
        assert told in answer.err
        assert len(answer.err.splitlines()) == 1
