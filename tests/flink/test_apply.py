"""Applying and verifying, with a Flink that answers what it is told to; no class is compiled."""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from fake_flink import (
    ANSWERS,
    JOB,
    UNKNOWN,
    FakeFlink,
    InTurn,
    config,
    failed_by,
    failure,
    healthy,
    job,
    jobs,
    task_manager,
    write_program,
)

from streamplace.errors import PlacementError, StreamplaceError
from streamplace.flink import FlinkEngine
from streamplace.flink.layout import Layout
from streamplace.flink.move.savepoints import CopyRuns
from streamplace.flink.pin import apply as applying
from streamplace.flink.pin.apply import apply, check, verify
from streamplace.flink.pin.free_resources import managers_without
from streamplace.flink.program import submission
from streamplace.flink.program.program import Program, Savepoint
from streamplace.flink.rest.client import FlinkError, NoAnswer

VECTORS = {"map": ["dev-0"]}
FITS = failure("java.lang.Error: streamplace: the job fits its placement")
BUSY = failure("a.B: busy", status=503)
Apply = Callable[..., FakeFlink]


def ids(flink):
    """Ids of the jobs that were asked for."""
    return [document["jobId"] for _, document in flink.asked if document]


@pytest.fixture
def jar(tmp_path):
    """A jar that names its main class, beside the libraries of a Flink."""
    write_program(tmp_path)
    return tmp_path / "job.jar"


@pytest.fixture
def call(jar, monkeypatch):
    """Apply a placement on a cluster of these answers; returns what it was asked.

    The id of the job is "new", and "next" if that is spent.
    """
    monkeypatch.setattr(applying, "placed_jar", lambda *_: nullcontext(jar))
    monkeypatch.setattr(applying.secrets, "token_hex", lambda _: "new")
    monkeypatch.setattr(applying, "free_ids", lambda *_: iter(("new", "next")))

    def run(answers, vectors=VECTORS, refused=None, match="", more=None, **options):
        program = Program(jar, **(more or {}))
        flink = FakeFlink(answers)
        with nullcontext() if refused is None else pytest.raises(refused, match=match):
            found = apply(flink.rest, program, Layout.from_json(vectors), **options)
            assert found == ids(flink)[-1]
        return flink

    return run


def test_an_uploaded_jar_is_removed_whether_the_job_is_submitted_or_refused(call):
    assert call(healthy("dev-0")).requests("DELETE") == ["/jars/jar-1"]
    broken = {"POST /jars/jar-1/run": failure("java.lang.Error: no"), "GET /jobs/new": UNKNOWN}
    flink = call(healthy("dev-0") | broken, refused=FlinkError, match="no")
    assert flink.requests("DELETE") == ["/jars/jar-1"]


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("jobmanager.scheduler", "Adaptive", "jobmanager.scheduler"),
        ("scheduler-mode", "reactive", "jobmanager.scheduler"),
        ("web.submit.enable", "false", r"web.submit.enable: false"),
        ("execution.target", "embedded", "application mode"),
    ],
)
def test_a_cluster_that_cannot_take_the_job_is_refused_before_anything_is_sent(
    call, key, value, place
):
    answers = healthy("dev-0") | {"GET /jobmanager/config": config({key: value})}
    assert call(answers, refused=FlinkError, match=place).requests("POST") == []


BATCH = {"schedulerType": "AdaptiveBatch"}
CAUSE = failed_by("a.B: first\nCaused by: c.D: the reason")


@pytest.mark.parametrize(
    ("state", "task", "more", "causes", "seconds", "message"),
    [
        ("RUNNING", "RUNNING", BATCH, {}, 60.0, "AdaptiveBatch"),
        ("RESTARTING", "SCHEDULED", {}, CAUSE, 600.0, "job new is RESTARTING: c.D: the reason"),
        ("FAILED", "SCHEDULED", {}, CAUSE, 600.0, "job new is FAILED: c.D: the reason"),
        ("FAILING", "FAILED", {}, InTurn({}, CAUSE), 60.0, "job new is FAILING: c.D: the reason"),
        ("RUNNING", "SCHEDULED", {}, {}, 0.0, "'map' is SCHEDULED"),
        ("INITIALIZING", "", {}, {}, 0.0, "job new"),
        ("RUNNING", "INITIALIZING", {}, {}, 0.0, "job new .*'map' is INITIALIZING"),
    ],
)
def test_a_job_that_does_not_start_is_told_by_its_reason_and_cancelled(
    call, state, task, more, causes, seconds, message
):
    """At once, unless it may still start; one that still restores its state is not cancelled."""
    document = job("new", state, {"map": task} if task else {}) | more
    looks = 3 if isinstance(causes, InTurn) else 2
    answers = healthy("dev-0") | {
        "GET /jobs/new": InTurn(*[document] * looks, job("new", "CANCELED", {})),
        "GET /jobs/new/exceptions": causes,
        "PATCH /jobs/new": {},
    }
    flink = call(answers, refused=FlinkError, match=message, seconds=seconds)
    is_left = state == "FAILED" or task == "INITIALIZING"
    assert flink.requests("PATCH") == ([] if is_left else ["/jobs/new"])


@pytest.mark.parametrize(
    ("ran", "document", "message"),
    [
        (BUSY, job("new", "RUNNING", {"map": "RUNNING"}), ""),
        (BUSY, UNKNOWN, "job new"),
        (BUSY, BUSY, "job new"),
        ({"jobid": "new"}, BUSY, "job new"),
    ],
    ids=["it runs", "it is unknown", "no answer at all", "no answer later"],
)
def test_a_submission_without_an_answer_is_looked_up_and_told_with_the_id(
    call, monkeypatch, ran, document, message
):
    """It is not repeated: the job might run twice."""
    monkeypatch.setattr(submission, "EFFECT_SECONDS", 0.0)
    answers = healthy("dev-0") | {"POST /jars/jar-1/run": ran, "GET /jobs/new": document}
    flink = call(answers, refused=NoAnswer if message else None, match=message)
    assert flink.requests("POST").count("/jars/jar-1/run") == 1


def test_a_savepoint_may_be_used_again_long_after_its_job_has_ended(call, monkeypatch):
    """Flink does not list that job any more, and accepts its id no second time.

    One that another command is submitting appears a moment after its id is refused.
    """
    monkeypatch.setattr(submission, "RETRY_SECONDS", 0.0)
    saved = Savepoint("s3://b/sp-1")
    refused = failure("a.B: no\nCaused by: c.DuplicateJobSubmissionException: submitted already.")
    runs = job("next", "RUNNING", {"map": "RUNNING"})
    answers = healthy("dev-0") | {
        "POST /jars/jar-1/run": InTurn(refused, {"jobid": "next"}),
        "GET /jobs/new": UNKNOWN,
        "GET /jobs/next": runs,
    }
    assert ids(call(answers, savepoint=saved)) == ["new", "next"]
    monkeypatch.setattr(submission, "RETRY_SECONDS", 30.0)
    answers |= {"POST /jars/jar-1/run": refused, "GET /jobs/new": InTurn(UNKNOWN, runs)}
    call(answers, refused=CopyRuns, match="job new", savepoint=saved)


def test_what_the_job_is_submitted_with_reaches_flink(call):
    """Settings, classes, parallelism, arguments, and a savepoint with the leave to lose some."""

    def request(**options):
        asked = call(healthy("dev-0"), **options).asked
        (document,) = [document for _, document in asked if document]
        return document

    alone = {"entryClass": "Placed", "programArgsList": ["Job"], "jobId": "new"}
    assert request() == alone
    saved = {"savepointPath": "s3://b/sp-1", "allowNonRestoredState": True}
    lossy = Savepoint("s3://b/sp-1", allow_non_restored=True)
    assert request(savepoint=lossy) == alone | saved
    more: dict[str, Any] = {
        "entry_class": "Main",
        "arguments": ("--in", "a b"),
        "classpaths": ("file:///a.jar", "file:///b.jar"),
        "settings": {"pipeline.name": "x=y"},
        "parallelism": 3,
    }
    assert request(more=more) == alone | {
        "programArgsList": ["Main", "--in", "a b"],
        "flinkConfiguration": {
            "pipeline.name": "x=y",
            "pipeline.classpaths": "file:///a.jar;file:///b.jar",
        },
        "parallelism": 3,
    }


def test_a_check_submits_nothing(call, jar):
    """The pinning class says that the job fits; what else it says is a fault, however long."""
    message = f"operators {', '.join(f'op{i}' for i in range(200))} are not placed"
    broken = failure("a.B: x", f"Caused by: a.C: streamplace: {message}")
    flink = FakeFlink(healthy("dev-0") | {"POST /jars/jar-1/run": InTurn(FITS, broken)})
    check(flink.rest, Program(jar), Layout(VECTORS), "none")
    with pytest.raises(FlinkError, match=f"^{message}$"):
        check(flink.rest, Program(jar), Layout(VECTORS), "none")
    requests = [document for _, document in flink.asked if document]
    assert len(requests) == 2
    assert all(one["flinkConfiguration"] == {"streamplace.check": "true"} for one in requests)


FEWER_BUFFERS = {"taskmanager.network.memory.floating-buffers-per-gate": "7"}


@pytest.mark.usefixtures("call")
@pytest.mark.parametrize(
    ("left", "settings", "version", "message"),
    [
        (219, {}, "2.3.0", "'dev-0' has 219 MiB .* 220.0 MiB"),
        (220, {}, "2.3.0", ""),
        (None, {}, "2.3.0", ""),
        (439, {"taskmanager.memory.segment-size": "64 kb"}, "2.3.0", "440.0 MiB"),
        (219, FEWER_BUFFERS, "1.20.5", ""),
        (219, FEWER_BUFFERS, "2.3.0", "220.0 MiB"),  # which ignores it
    ],
)
def test_network_memory_that_surely_does_not_suffice_is_told_before_a_move(
    jar, left, settings, version, message
):
    """Two buffers of 32 KiB per channel, and eight per input or output, for every slot."""
    answers = healthy("dev-0") | {"GET /jobmanager/config": config(settings)}
    answers["GET /config"] = {"flink-version": version}
    if left is not None:
        answers["GET /taskmanagers"]["taskmanagers"][0]["totalResource"]["networkMemory"] = left
    document = job("shop", "RUNNING", dict.fromkeys(("src", "sum"), "RUNNING"))
    for row in document["vertices"]:
        row["parallelism"] = 40
    nodes = [{"id": "src"}, {"id": "sum", "inputs": [{"id": "src", "ship_strategy": "HASH"}]}]
    answers |= {
        "GET /jobs/old": document | {"plan": {"nodes": nodes}},
        "POST /jars/jar-1/run": FITS,
    }
    rest = FakeFlink(answers).rest
    layout = Layout(dict.fromkeys(("src", "sum"), ["dev-0"] * 40))
    with pytest.raises(FlinkError, match=message) if message else nullcontext():
        check(rest, Program(jar), layout, "old")


@pytest.mark.parametrize("listed", [UNKNOWN, job("new", "FAILED", {})], ids=["not", "as failed"])
def test_state_that_cannot_be_mapped_is_told_with_what_can_be_done(call, listed):
    """Whether or not Flink lists a job that it has not started."""
    trace = "java.lang.IllegalStateException: x. Cannot map checkpoint/savepoint state for operator"
    answers = healthy("dev-0") | {"POST /jars/jar-1/run": failure(trace), "GET /jobs/new": listed}
    call(
        answers, refused=FlinkError, match="allow-non-restored", savepoint=Savepoint("s3://b/sp-1")
    )


TWO, THREE = ("dev-0", "dev-1"), ("dev-0", "dev-1", "dev-2")


@pytest.mark.parametrize(
    ("device", "knows", "refused", "message", "fine"),
    [
        ("dev-2", (), ["dev-0", "dev-2"], "'lim-0'", [TWO, ["dev-2"]]),
        ("dev-1", ["dev-1"], [*TWO, "dev-1"], "'lim-0-dev-0'", []),
        ("dev-2", THREE, TWO, "", [["dev-2"]]),
        ("dev-0", None, ["dev-0"], "'dev-0'", []),
    ],
    ids=["for no spreading", "for an older cluster", "without room for it", "not at all"],
)
def test_a_task_manager_that_is_not_prepared_for_a_placement_is_named(
    call, device, knows, refused, message, fine
):
    """Not a want of free group indexes; what is placed elsewhere needs nothing of it."""
    answers = healthy("dev-0", "dev-1")
    made = task_manager(device, [*(knows or ())])
    if knows is None:
        made["totalResource"] = {"managedMemory": 100}
    others = [row for row in answers["GET /taskmanagers"]["taskmanagers"] if row["id"] != device]
    answers["GET /taskmanagers"] = {"taskmanagers": [*others, made]}
    call(answers, {"map": [*refused]}, PlacementError, f"TaskManager '{device}' .*{message}")
    for devices in fine:
        call(answers, {"map": [*devices]})


def test_an_unknown_device_is_told(call):
    call(healthy("dev-0"), {"map": ["dev-9"]}, PlacementError, "'map' .*'dev-9', .*'dev-0'")


@pytest.mark.parametrize(
    ("left", "refused", "message", "fine"),
    [
        # one group has its index, the only one; whole operators need none
        ({"lim-0": 5e5}, [*TWO], "'dev-0', 'dev-1': .*indexes", ["dev-0"]),
        # each slot asks for a megabyte of heap
        ({"taskHeapMemory": 3}, ["dev-0"] * 5, "'dev-0' .*3 slots", ["dev-0"] * 3),
        # not a want of group indexes, which that job takes with all the rest
        ({"dev-0": 0.0}, ["dev-0"], "'dev-0' .*'j-1'", ["dev-1"]),
    ],
    ids=["group indexes", "heap", "a job without a placement"],
)
def test_what_other_jobs_have_taken_is_told(call, left, refused, message, fine):
    answers = healthy("dev-0", "dev-1")
    for manager in answers["GET /taskmanagers"]["taskmanagers"]:
        external = manager["totalResource"]["extendedResources"]
        free = manager["totalResource"] | {"extendedResources": external | left} | left
        manager["freeResource"] = free
    answers["GET /taskmanagers/dev-0"] = {"allocatedSlots": [{"jobId": "j-1"}]}
    call(answers, {"map": refused}, StreamplaceError, message)
    call(answers, {"map": fine})


def test_a_task_manager_that_leaves_while_it_is_looked_at_offers_nothing():
    answers = healthy("dev-0", "dev-1")
    (first, _) = answers["GET /taskmanagers"]["taskmanagers"]
    first["freeResource"] = first["totalResource"] | {"managedMemory": 1}
    del answers["GET /taskmanagers/dev-0"]
    assert [row["id"] for row in managers_without(FakeFlink(answers).rest, "job")] == ["dev-1"]


def running(**devices):
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


def verified(answers, vectors):
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
def test_subtasks_are_counted_by_device(devices, placed, *, fine, uncounted):
    """Unless the placement leaves their number open."""
    found = verified(running(map=devices), {"map": placed})
    assert (found.fine, found.uncounted) == (fine, uncounted)
    assert found.checks[0].actual == Counter(devices)


def test_whatever_differs_is_found():
    """Another device, other counts, no placement, no operator; an ended job without pins."""
    answers = running(op0=["dev-0"], op1=["dev-1", "dev-2"], op2=["dev-3"])
    placed = {"op0": ["dev-1"], "op1": ["dev-1", "dev-1"], "opX": ["dev-3"]}
    found = {check.operator: check.fine for check in verified(answers, placed).checks}
    assert found == dict.fromkeys(("op0", "op1", "op2", "opX"), False)
    answers["GET /jobs/new"] |= {"state": "CANCELED", "schedulerType": "Adaptive"}
    ended, ignores_pins = verified(answers, placed).problems
    assert "CANCELED" in ended
    assert "the scheduler is Adaptive" in ignores_pins


def test_tasks_are_placed_by_the_names_that_they_have_in_graphs():
    """From Python, whether a device or a list of them is given; a list must not be empty."""
    engine = FlinkEngine(FakeFlink(ANSWERS).rest)
    for devices in ("dev-0", ["dev-0"]):
        assert engine.verify(JOB, {"src": "dev-0", "a -> b": devices, "c": "dev-0"}).fine
    with pytest.raises(PlacementError, match="operator 'c'"):
        engine.verify(JOB, {"src": "dev-0", "a -> b": "dev-0", "c": []})


DIFFERS = "map dev-0 × 4 dev-0 differs 1 of 1 operators differ."


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [({"parallelism": {"map": 4}}, 1, DIFFERS), ({}, 0, "does not say how many subtasks")],
)
def test_the_command_tells_what_differs_and_what_it_has_not_counted(
    run, tmp_path, more, status, message
):
    """With its exit code, and without being given the id of the job."""
    (tmp_path / "p.json").write_text(json.dumps({"assignment": {"map": "dev-0"}} | more))
    with FakeFlink(running(map=["dev-0"])).served() as flink:
        answer = run("flink", "verify", "--rest", flink.url, "--placement", "p.json")
    assert answer.status == status
    assert message in " ".join(answer.out.split())
