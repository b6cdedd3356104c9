"""Running jobs moved with their state, on a real cluster: whatever happens, everything adds up."""

import json
import secrets
import urllib.request
import zipfile
from typing import Any

import pytest
from command_lines import settings_file
from fake_flink import FakeFlink
from fake_flink import job as fake_job
from flink_clusters import (
    FAST,
    SLOW,
    Tally,
    Watched,
    awaited,
    chained,
    mover,
    spread_job,
    submitted,
)

from streamplace.flink.layout import Layout
from streamplace.flink.move.move import FlinkMove
from streamplace.flink.move.running_settings import LATER, changed_settings, running_settings
from streamplace.flink.move.savepoints import checkpoint_totals
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.pin.apply import placed_upload, verify
from streamplace.flink.pin.pinning import Pinning
from streamplace.flink.program.program import Program
from streamplace.flink.program.submission import is_spent, withdraw
from streamplace.flink.rest.client import ENDED, Refusal
from streamplace.flink.rest.plan import layout_of

pytestmark = pytest.mark.xdist_group("flink")
FILES, LINES = 8, 150
DEVICES = [f"dev-{i}" for i in range(5)]

SPREAD: dict[str, list[str]] = {
    "numbers": ["dev-0"],
    "Map": ["dev-1"],
    "KeyedProcess": ["dev-2", "dev-3"],
    "Process": ["dev-2", "dev-3"],
    "Writer": ["dev-2", "dev-3"],
    "TumblingEventTimeWindows": ["dev-4", "dev-4"],
    "tell": ["dev-4", "dev-4"],
    "out": ["dev-0", "dev-0"],
}
ELSEWHERE = SPREAD | {"Map": ["dev-0"], "Process": ["dev-0"] * 2, "tell": ["dev-1"] * 2}


@pytest.fixture
def tally(rest, flink, jobs, tmp_path):
    """The job that checks itself, which has not been started yet."""
    return Tally(rest, flink, jobs, tmp_path)


@pytest.mark.parametrize(
    ("before", "after", "backend"),
    [
        ("true", "false", "hashmap"),
        pytest.param("false", "true", "rocksdb", marks=pytest.mark.slow),
    ],
)
def test_no_tuple_and_no_state_is_lost_or_doubled_by_moving(
    before, after, backend, tally, tmp_path
):
    """Twice, with other chains and another parallelism; no operator has a uid, and few have names.

    State of keys, of windows and of the source; the job's own classes come from another jar.
    """
    rest, job = tally.rest, tally.start(chained(before, backend))
    empty = tmp_path / "empty.jar"
    zipfile.ZipFile(empty, "w").close()
    classes: dict[str, Any] = (
        {"libraries": [tally.jar]} if before == "true" else {"classpaths": [tally.jar.as_uri()]}
    )
    program = tally.program(chained(after, backend), jar=empty, **classes)
    steps: list[str] = []
    move = mover(rest, program, tmp_path, steps.append)
    for wanted in (SPREAD, ELSEWHERE):
        moved = move.run(move.plan(job, Layout(wanted)))
        job, path = moved.job, moved.savepoint
        tally.tells_more()
        restored = rest.get(f"/jobs/{job}/checkpoints")["latest"]["restored"]
        assert restored["external_path"] == path
        assert verify(rest, job, Layout(wanted)).fine
    document = rest.job(job)
    assert (len(document["vertices"]) == len(SPREAD)) == (after == "false")
    tally.ends(job)
    assert [step.split()[0] for step in steps[-5:]] == [
        *("checking", "stopping", "its", "starting", "job")
    ]


@pytest.mark.slow
def test_a_job_placed_where_flink_has_put_it_is_pinned_there(tally, tmp_path):
    """Then it holds no whole TaskManager any more, and placing it there again changes nothing."""
    given, rest = chained("false", "hashmap"), tally.rest
    job = tally.start(given)
    here = layout_of(rest, job, rest.job(job))
    move = mover(rest, tally.program(given), tmp_path)
    plan = move.plan(job, here)
    assert not plan.moved
    assert plan.is_needed
    job = move.run(plan).job
    tally.tells_more()
    assert verify(rest, job, here).fine
    assert not move.plan(job, here).is_needed
    tally.ends(job)


@pytest.mark.slow
def test_files_that_nobody_has_read_yet_are_read_once(tally, tmp_path):
    """The source's coordinator knows them, and Flink restores it by the operator's own id alone."""
    rest, told = tally.rest, tally.told
    (told / "slow").touch()
    (tmp_path / "files").mkdir()
    for i in range(FILES):
        text = "".join(f"{i * LINES + k}\n" for k in range(LINES))
        (tmp_path / "files" / str(i)).write_text(text)
    program = Program(tally.jar, "FilesJob", (str(tmp_path / "files"), str(told)))
    job = submitted(rest, tally.jar, "FilesJob", *program.arguments)
    awaited(lambda: tally.lines("lines"))
    move = mover(rest, program, tmp_path)
    vectors = {"files": ["dev-0"], "Map": ["dev-1"], "Process": ["dev-2"], "Writer": ["dev-2"]}
    job = move.run(move.plan(job, Layout(vectors))).job
    before = len(tally.lines("lines"))
    (told / "slow").unlink()
    assert rest.wait(job, ENDED, 120) == "FINISHED"
    assert before < FILES * LINES
    assert sorted(line[0] for line in tally.lines("lines")) == list(range(FILES * LINES))


def test_a_job_that_fails_where_it_is_moved_runs_again_where_it_ran(run, tally, tmp_path):
    """From the same savepoint; told beforehand is what would be moved."""
    rest, job = tally.rest, tally.start({})
    where = [vertex["name"] for vertex in rest.job(job)["vertices"]]
    (here,) = layout_of(rest, job, rest.job(job)).devices
    there = next(device for device in DEVICES if device != here)
    assignment = dict.fromkeys(SPREAD, here) | {"Map": there}
    (tmp_path / "p.json").write_text(json.dumps({"assignment": assignment}))
    given = settings_file(tmp_path, settle=0, seconds=2, patience=0)
    saved = ("--rest", rest.url, "--savepoints", (tmp_path / "saved").as_uri(), *given)
    command = ("flink", "move", str(tally.jar), "--entry-class", "TallyJob", *saved)
    command = (*command, "--placement", "p.json", "--json")
    answer = run(*command, "--dry-run", "--", *tally.program().arguments)
    assert answer.status == 0, answer.err
    document = json.loads(answer.out)
    assert (document["job"], document["before"], document["savepoint"]) == (job, job, None)
    assert document["moved"] == {"Map": {"from": {here: 1}, "to": {there: 1}}}
    assert rest.live_jobs() == [job]

    (tally.told / "broken").touch()
    answer = run(*command, "--", *tally.program().arguments)
    assert answer.status == 2
    assert "broken once; the job runs on its previous devices again" in answer.err
    (again,) = rest.live_jobs()
    assert again != job
    assert sorted(vertex["name"] for vertex in rest.job(again)["vertices"]) == sorted(where)
    tally.tells_more()
    tally.ends(again)


def test_an_id_that_is_used_up_starts_no_job_any_more(rest, jobs):
    """So a submission that is still under way comes to nothing; again, there is nothing to do."""
    job, program = secrets.token_hex(16), Program(jobs, "MixedJob", ("200",))
    before = rest.live_jobs()
    with placed_upload(rest, program, Pinning({}, {}, {}, {})) as jar:
        for _ in range(2):
            withdraw(rest, lambda: jar, job)
            assert rest.state(job) in ENDED
        with pytest.raises(Refusal) as refused:
            jar.run({"entryClass": "MixedJob", "programArgsList": ["200"], "jobId": job})
    assert is_spent(refused.value)
    assert rest.live_jobs() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "query", "chaining", "then", "backend"),
    [
        ("EventsJob", "", "true", "false", "rocksdb"),
        ("TipsJob", "", "true", "true", "hashmap"),
        ("FaresJob", "", "false", "true", "rocksdb"),
        ("NexmarkJob", "5", "false", "false", "hashmap"),
        ("NexmarkJob", "8", "true", "true", "hashmap"),
    ],
)
def test_jobs_tell_what_they_would_have_told_unmoved(
    entry, query, chaining, then, backend, run, rest, flink, jobs, cluster, tmp_path
):
    """Keyed state, windows, a join and sinks with transactions; two subtasks, no uids.

    A query is first measured and placed by the command that moves it. In the end the job goes on as
    it was first started, by Flink alone.
    """
    given = chained(chaining, backend)
    before = [query] if query else []
    alone = Watched(rest, jobs, tmp_path / f"alone-{entry}", entry, before, given)
    told = alone.finished(alone.start(FAST))
    assert len(told) > 20
    job = Watched(rest, jobs, tmp_path / "moved", entry, before, given)
    running = job.start(SLOW)
    for step, now in enumerate((then, chaining)):
        job.tells_more()
        placement = spread_job(tmp_path / "p.json", rest, running, cluster.devices, step)
        options = ("--yes",) if query and not step else ("--placement", placement)
        running = job.move(run, *options, settings=chained(now, backend))
    job.tells_more()
    assert job.resumed(running) == told


APART = {
    "numbers": ["dev-0"],
    "count": ["dev-1", "dev-2"],
    "total": ["dev-2", "dev-3"],
    "nowhere": ["dev-2", "dev-3"],
}
TOGETHER = APART | {name: ["dev-1", "dev-2"] for name in ("count", "total", "nowhere")}


def asked(rest, path):
    """What Flink answers, whole."""
    with urllib.request.urlopen(f"{rest.url}{path}", timeout=30) as answer:
        return json.load(answer)


@pytest.mark.slow
def test_settings_and_maximum_parallelisms_are_kept(rest, jobs, tmp_path):
    """RocksDB stays RocksDB; in a chain the head's maximum holds for all, and is kept apart."""
    settings = {
        "state.backend.type": "rocksdb",
        "execution.checkpointing.interval": "2 s",
        "execution.checkpointing.timeout": "1 min",
        "execution.checkpointing.dir": (tmp_path / "checkpoints").as_uri(),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.tolerable-failed-checkpoints": "3",
        "restart-strategy.type": "failure-rate",
        "restart-strategy.failure-rate.delay": "2 s",
        "restart-strategy.failure-rate.max-failures-per-interval": "4",
    }
    job = submitted(rest, jobs, "MixedJob", "200", settings=settings)
    before = [asked(rest, f"/jobs/{job}/{path}") for path in ("config", "checkpoints/config")]
    assert [v["maxParallelism"] for v in asked(rest, f"/jobs/{job}")["vertices"]] == [128, 12]
    program = Program(jobs, "MixedJob", ("200",))
    awaited(lambda: checkpoint_totals(rest, job).completed)
    steps: list[str] = []
    saved = (tmp_path / "saved").as_uri()
    move = FlinkMove(rest, program, steps.append, MoveSettings(saved, settle=5.0, least_rate=0.0))
    for places in (APART, TOGETHER):
        job = move.run(move.plan(job, Layout(places))).job
        after = [asked(rest, f"/jobs/{job}/{path}") for path in ("config", "checkpoints/config")]
        for document in (before[0], after[0]):
            document.pop("jid", None)
        assert after == before
        most = {
            vertex["name"].partition(" -> ")[0]: vertex["maxParallelism"]
            for vertex in asked(rest, f"/jobs/{job}")["vertices"]
        }
        assert most["count"] == 12
        assert most.get("total", 12) == 12
    assert "  state.backend.type: rocksdb, as in the running job" in steps


@pytest.mark.slow
def test_a_job_that_was_submitted_without_chains_is_moved_without_chains(rest, jobs, tmp_path):
    """To one device, where its operators would be chained otherwise; its name stays, too."""
    settings = {"pipeline.operator-chaining.enabled": "false", "pipeline.name": "shop"}
    job = submitted(rest, jobs, "MixedJob", "200", settings=settings)
    before = rest.job(job)
    move = mover(rest, Program(jobs, "MixedJob", ("200",)), tmp_path, print)
    after = rest.job(move.run(move.plan(job, Layout(TOGETHER))).job)
    assert (after["name"], len(after["vertices"])) == (before["name"], len(before["vertices"]))


@pytest.mark.slow
def test_what_is_asked_for_counts_more_than_what_was(rest, jobs, tmp_path):
    """And is named before the job is stopped."""
    settings = {"state.backend.type": "rocksdb"}
    job = submitted(rest, jobs, "MixedJob", "200", settings=settings)
    program = Program(jobs, "MixedJob", ("200",), settings={"state.backend.type": "hashmap"})
    steps: list[str] = []
    plan = mover(rest, program, tmp_path, steps.append).plan(job, Layout(APART))
    assert "state.backend.type" not in plan.settings
    assert "note: state.backend.type is rocksdb and becomes hashmap, as -D says" in steps


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["none", "fixed-delay", "failure-rate", "exponential-delay"])
def test_every_restart_strategy_is_read(rest, jobs, kind):
    """As what it was submitted with."""
    settings = {"restart-strategy.type": kind}
    job = submitted(rest, jobs, "MixedJob", "200", settings=settings)
    assert running_settings(rest, job)["restart-strategy.type"] == kind
    rest.cancel(job)


EXPONENTIAL = (
    "Restart with exponential delay: starting at PT1S, increasing by 1.500000, with maximum PT1M. "
    "Delay resets after PT1H with jitter 0.100000"
)
FAILURE_RATE = (
    "Failure rate restart with maximum of 4 failures within interval PT1M and fixed delay PT2S."
)


@pytest.mark.parametrize(
    ("text", "kind", "more"),
    [
        ("Restart deactivated.", "none", {}),
        (
            "Restart with fixed delay (PT2S). #4 restart attempts.",
            "fixed-delay",
            {"delay": "2000 ms", "attempts": "4"},
        ),
        (
            FAILURE_RATE,
            "failure-rate",
            {
                "max-failures-per-interval": "4",
                "failure-rate-interval": "60000 ms",
                "delay": "2000 ms",
            },
        ),
        (
            EXPONENTIAL,
            "exponential-delay",
            {
                "initial-backoff": "1000 ms",
                "backoff-multiplier": "1.5",
                "max-backoff": "60000 ms",
                "reset-backoff-threshold": "3600000 ms",
                "jitter-factor": "0.1",
            },
        ),
    ],
)
def test_a_restart_strategy_is_read_from_what_flink_says_of_it(text, kind, more):
    answers = {"GET /jobs/job/config": {"execution-config": {"restart-strategy": text}}}
    flink = FakeFlink(
        answers | {"GET /jobs/job": fake_job("shop", "RUNNING", {"a -> b": "RUNNING"})}
    )
    expected = {f"restart-strategy.{kind}.{key}": value for key, value in more.items()}
    expected |= {"restart-strategy.type": kind, "pipeline.object-reuse": "false"}
    expected |= {"pipeline.name": "shop"}
    assert running_settings(flink.rest, "job") == expected


def test_settings_that_flink_would_take_anyway_are_not_lost():
    """A checkpoint folder that it does not tell is missed only where none is given."""
    running = {"execution.checkpointing.mode": "exactly_once", "state.backend.type": "rocksdb"}
    assert changed_settings(running, {}) == {"state.backend.type": ("rocksdb", "hashmap")}
    assert changed_settings(running, {"state.backend.type": "rocksdb"}) == {}
    key = "execution.checkpointing.dir"
    assert changed_settings({key: LATER}, {}) == {key: (LATER, "")}
    assert changed_settings({key: LATER}, {key: "s3://b"}) == {}
