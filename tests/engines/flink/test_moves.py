"""Running jobs moved with their state, on a real cluster: whatever happens, everything adds up."""

import copy
import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from moved_jobs import check_windows, lines, settings, tells_more_windows
from submitted_jobs import mover, submitted

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.stopping import stop
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.identity import operators_of
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.answer_shapes import Job
from streamplace.engines.flink.rest.client import ENDED, Rest
from streamplace.engines.flink.rest.tasks import read_vertices

pytestmark = pytest.mark.xdist_group("flink")
RATE = "500"
FILES, LINES = 8, 150
DEVICES = [f"dev-{i}" for i in range(5)]
Settings = dict[str, str]

SPREAD: dict[str, list[str]] = {
    "numbers": ["dev-0"],
    "Map": ["dev-1"],
    "KeyedProcess": ["dev-2", "dev-3"],
    "Process": ["dev-2", "dev-3"],
    "Writer": ["dev-2", "dev-3"],
    "TumblingEventTimeWindows": ["dev-4", "dev-4"],
    "Process (2)": ["dev-4", "dev-4"],
    "Writer (2)": ["dev-0", "dev-0"],
}
ELSEWHERE = SPREAD | {"Map": ["dev-0"], "Process": ["dev-0"] * 2, "Process (2)": ["dev-1"] * 2}


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """Folder of what the job tells."""
    folder = tmp_path / "told"
    folder.mkdir()
    return folder


@pytest.fixture
def started(rest: Rest, jobs: Path, told: Path) -> Callable[[Settings], str]:
    """Submit the job as others do, and wait until it tells something."""

    def start(given: Settings) -> str:
        job = submitted(rest, jobs, "TallyJob", str(told), RATE, settings=given)
        tells_more(told)
        return job

    return start


def tells_more(told: Path) -> None:
    """Wait until the job has told some windows more."""
    tells_more_windows(told, 3)


def check_sums(told: Path) -> None:
    """Every key was seen as often as it must have been, and every window has all of its tuples."""
    assert all(seen == due for seen, due in lines(told, "counts"))
    check_windows(told)


def assert_ids_tell_namesakes_apart(document: Job) -> None:
    """As well as what the pinned job shows of them."""
    vertices, plan = document["vertices"], document["plan"]
    assert plan is not None
    bare = copy.deepcopy(plan["nodes"])
    for node in bare:
        node["description"] = node["description"].replace(" [namesake 2]", "")
    assert bare != plan["nodes"]
    assert operators_of(vertices, bare) == operators_of(vertices, plan["nodes"])
    assert not any(task.unsure for task in operators_of(vertices, bare))


@pytest.mark.parametrize(
    ("before", "after", "backend"),
    [
        ("true", "false", "hashmap"),
        pytest.param("false", "true", "rocksdb", marks=pytest.mark.slow),
    ],
)
def test_no_tuple_and_no_state_is_lost_or_doubled_by_moving(
    before: str,
    after: str,
    backend: str,
    rest: Rest,
    flink: Flink,
    jobs: Path,
    started: Callable[[Settings], str],
    told: Path,
    tmp_path: Path,
) -> None:
    """Twice, with other chains and another parallelism; no operator has a uid, hardly any a name.

    State of keys, of windows and of the source; the job's own classes come from another jar.
    """
    job = started(settings(before, backend))
    empty = tmp_path / "empty.jar"
    zipfile.ZipFile(empty, "w").close()
    classes: dict[str, Any] = (
        {"libraries": [jobs]} if before == "true" else {"classpaths": [jobs.as_uri()]}
    )
    given = settings(after, backend)
    program = Program(empty, "TallyJob", (str(told), RATE), settings=given, **classes)
    steps: list[str] = []
    move = mover(rest, flink, program, tmp_path, steps.append)
    for wanted in (SPREAD, ELSEWHERE):
        moved = move.run(move.plan(job, wanted))
        job, path = moved.job, moved.savepoint
        tells_more(told)
        restored = rest.get(f"/jobs/{job}/checkpoints")["latest"]["restored"]
        assert restored["external_path"] == path
        assert verify(rest, job, wanted).fine
    document = rest.job(job)
    assert (len(document["vertices"]) == len(SPREAD)) == (after == "false")
    if after == "false":
        assert_ids_tell_namesakes_apart(document)
    stop(rest, job, tmp_path.as_uri())
    check_sums(told)
    assert [step.split()[0] for step in steps[-5:]] == [
        *("checking", "stopping", "its", "starting", "job")
    ]


def test_a_job_placed_where_flink_has_put_it_is_pinned_there(
    rest: Rest,
    flink: Flink,
    jobs: Path,
    started: Callable[[Settings], str],
    told: Path,
    tmp_path: Path,
) -> None:
    """Then it holds no whole TaskManager any more, and placing it there again changes nothing."""
    given = settings("false", "hashmap")
    job = started(given)
    here = {
        operator: [device for device, n in vertex.devices.items() for _ in range(n)]
        for vertex in read_vertices(rest, job, rest.job(job))
        for operator in vertex.operators
    }
    program = Program(jobs, "TallyJob", (str(told), RATE), settings=given)
    move = mover(rest, flink, program, tmp_path)
    plan = move.plan(job, here)
    assert not plan.moved
    assert plan.is_needed
    job = move.run(plan).job
    tells_more(told)
    assert verify(rest, job, here).fine
    assert not move.plan(job, here).is_needed
    stop(rest, job, tmp_path.as_uri())
    check_sums(told)


@pytest.mark.slow
def test_files_that_nobody_has_read_yet_are_read_once(
    rest: Rest, flink: Flink, jobs: Path, told: Path, tmp_path: Path
) -> None:
    """The source's coordinator knows them, and Flink restores it by the operator's own id alone."""
    (told / "slow").touch()
    (tmp_path / "files").mkdir()
    for i in range(FILES):
        text = "".join(f"{i * LINES + k}\n" for k in range(LINES))
        (tmp_path / "files" / str(i)).write_text(text)
    program = Program(jobs, "FilesJob", (str(tmp_path / "files"), str(told)))
    job = submitted(rest, jobs, "FilesJob", *program.arguments)
    deadline = time.monotonic() + 60
    while not lines(told, "lines"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    move = mover(rest, flink, program, tmp_path)
    vectors = {"files": ["dev-0"], "Map": ["dev-1"], "Process": ["dev-2"], "Writer": ["dev-2"]}
    job = move.run(move.plan(job, vectors)).job
    before = len(lines(told, "lines"))
    (told / "slow").unlink()
    assert rest.wait(job, ENDED, 120) == "FINISHED"
    assert before < FILES * LINES
    assert sorted(line[0] for line in lines(told, "lines")) == list(range(FILES * LINES))


def test_a_job_that_fails_where_it_is_moved_runs_again_where_it_ran(
    run: Callable,
    rest: Rest,
    flink: Flink,
    jobs: Path,
    started: Callable[[Settings], str],
    told: Path,
    tmp_path: Path,
) -> None:
    """From the same savepoint; told beforehand is what would be moved."""
    job = started({})
    where = [vertex["name"] for vertex in rest.job(job)["vertices"]]
    (here,) = {d for vertex in read_vertices(rest, job, rest.job(job)) for d in vertex.devices}
    there = next(device for device in DEVICES if device != here)
    assignment = dict.fromkeys(SPREAD, here) | {"Map": there}
    (tmp_path / "p.json").write_text(json.dumps({"assignment": assignment}))
    options = ("--placement", "p.json", "--savepoints", (tmp_path / "saved").as_uri())
    command = ("flink", "move", str(jobs), "--entry-class", "TallyJob", "--rest", rest.url)
    command = (*command, "--flink-home", str(flink.home), *options, "--settle", "0", "--json")
    answer = run(*command, "--dry-run", "--", str(told), RATE)
    assert answer.status == 0, answer.err
    document = json.loads(answer.out)
    assert (document["job"], document["before"], document["savepoint"]) == (job, job, None)
    assert document["moved"] == {"Map": {"from": {here: 1}, "to": {there: 1}}}
    assert rest.live_jobs() == [job]

    (told / "broken").touch()
    answer = run(*command, "--", str(told), RATE)
    assert answer.status == 2
    assert "broken once; the job runs on its previous devices again" in answer.err
    (again,) = rest.live_jobs()
    assert again != job
    assert sorted(vertex["name"] for vertex in rest.job(again)["vertices"]) == sorted(where)
    tells_more(told)
    stop(rest, again, tmp_path.as_uri())
    check_sums(told)


@pytest.mark.slow
def test_a_job_is_measured_placed_and_moved_by_one_command(
    run: Callable,
    rest: Rest,
    flink: Flink,
    jobs: Path,
    started: Callable[[Settings], str],
    told: Path,
    tmp_path: Path,
) -> None:
    """What does not fit is told while it runs."""
    job = started(settings("false", "hashmap"))
    command = ("flink", "move", str(jobs), "--rest", rest.url, "--flink-home", str(flink.home))
    command = (*command, "--savepoints", (tmp_path / "saved").as_uri(), "--seconds", "2")
    command = (*command, "--settle", "0", "--patience", "0")
    command = (*command, "--accept-cold", "--trust-profile")
    answer = run(*command, "--entry-class", "StateJob", "--", "a", "b")
    assert answer.status == 2
    assert "are not placed" in answer.err
    assert rest.live_jobs() == [job]
    answer = run(*command, "--entry-class", "TallyJob", "--", str(told), RATE)
    assert answer.status == 0, answer.err
    assert rest.live_jobs() == [answer.out.strip()]
    stop(rest, answer.out.strip(), tmp_path.as_uri())
    check_sums(told)
