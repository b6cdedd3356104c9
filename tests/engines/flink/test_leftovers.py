"""What moves leave, and commands that are killed: listed and removed, and no second job starts."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_flink import FakeFlink, failure
from flink_documents import config
from flink_proxy import faulty_proxy
from move_trials import Trial, nth
from moving_cases import cluster_jar
from submitted_jobs import mover, submitted

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster
from streamplace.engines.flink.move.check_saving import check_saving
from streamplace.engines.flink.move.folder import SavepointFolder, savepoint_folder
from streamplace.engines.flink.move.outcomes import leaving_untouched
from streamplace.engines.flink.move.state import checkpoint_counts
from streamplace.engines.flink.move.stopping import Saving
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest

pytestmark = pytest.mark.xdist_group("flink")
DEFAULT = "Cluster level default restart strategy"


@pytest.fixture
def trial(
    rest: Rest, cluster: LocalCluster, flink: Flink, jobs: Path, tmp_path: Path
) -> Iterator[Trial]:
    """A job on the shared cluster, and a proxy for the commands."""
    with faulty_proxy(rest.url) as proxy:
        made = Trial(cluster, flink, jobs, tmp_path / "trial", proxy)
        yield made
        made.end()


def listed(trial: Trial, *options: str) -> dict[str, list[object]]:
    """What the command says is left, as one document."""
    place = ("--rest", trial.proxy.url, "--flink-home", str(trial.flink.home))
    command = ("flink", "savepoints", *place, "--savepoints", trial.saved, "--json", *options)
    assert trial.type(*command) == 0, trial.words[-1]
    lines = trial.words[-1]
    document: dict[str, list[object]] = json.loads(lines[lines.index("{") :])
    return document


def test_what_a_killed_command_leaves_is_listed_and_removed(trial: Trial) -> None:
    """The lock stays until the move is finished, and its savepoint starts no second copy."""
    trial.proxy.disturb(nth("stop"), "lost")
    trial.proxy.after = trial.kill
    assert trial.move() < 0
    trial.proxy.disturb(-1, "")
    trial.wait(trial.job, ["FINISHED"])
    left = listed(trial)
    assert len(left["jars"]) == 3
    assert any(trial.job in str(lock) and "finish it with" in str(lock) for lock in left["locks"])
    outcome_words = trial.type(*trial.resuming()), trial.words[-1]
    assert outcome_words[0] == 0, outcome_words[1]
    (new,) = trial.live()
    trial.rest.wait_running(new)
    (saved,) = [*(trial.folder / "saved").glob("savepoint-*")]
    assert trial.apply(str(saved)) == 2
    assert f"job {new} (RUNNING) continues from" in trial.words[-1]
    assert trial.live() == [new]
    trial.tells_more()
    left = listed(trial, "--remove-all")
    assert (left["locks"], left["jars"], left["savepoints"]) == ([], [], [])
    assert [*(trial.folder / "saved").iterdir()] == []
    assert trial.count() == (0, 0)


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_touches_no_job(trial: Trial) -> None:
    """That is told, and no empty lock stays."""
    (trial.folder / "file").write_text("")
    status = trial.move("--savepoints", (trial.folder / "file" / "saved").as_uri())
    assert status == 2
    assert "the JobManager cannot use the folder" in trial.words[-1]
    assert "The job was not touched" in trial.words[-1]
    assert trial.live() == [trial.job]


@pytest.mark.slow
def test_a_savepoint_on_trial_is_removed_before_the_job_is_stopped(trial: Trial) -> None:
    """The only one that stays is the one that the job goes on from."""
    assert trial.move("--trial-savepoint") == 0, trial.words[-1]
    words = trial.words[-1]
    assert words.index(f"saving job {trial.job} on trial") < words.index("stopping job")
    names = [path.name for path in (trial.folder / "saved").iterdir()]
    assert sorted(name.partition("-")[0] for name in names) == ["savepoint", "streamplace"]
    assert trial.followed(0).copies == 1
    assert trial.count() == (0, 0)


class NarrowFolder(SavepointFolder):
    """A folder on a file system with 1,000 bytes left."""

    def _ask(self, *arguments: str) -> str:
        return "1000" if arguments[0] == "room" else ""


def test_a_folder_must_have_room_for_what_the_last_checkpoint_took() -> None:
    rest = FakeFlink().rest
    folder = NarrowFolder(rest, "file:///s", cluster_jar(rest, "files.jar"))
    folder.check_room(1000)
    with pytest.raises(FlinkError, match=r"has 1 kB free, and the last checkpoint of the job took"):
        folder.check_room(1001)


@pytest.mark.parametrize(
    ("strategy", "settings", "is_noted"),
    [
        ("Restart deactivated.", {}, True),
        ("Restart with fixed delay (PT1S). #3 restart attempts.", {}, False),
        (DEFAULT, {"restart-strategy.type": "none"}, True),
        (DEFAULT, {"restart-strategy": "Off"}, True),
        (DEFAULT, {"restart-strategy.type": "fixed-delay"}, False),
        (DEFAULT, {}, False),
    ],
)
def test_that_a_failure_to_save_would_end_a_job_is_noted(
    strategy: str, settings: dict[str, str], is_noted: bool
) -> None:
    """A job that does not name a strategy has that of the cluster."""
    policy = {"externalization": {"enabled": False, "delete_on_cancellation": True}}
    answers = {
        "GET /jobs/job/config": {"execution-config": {"restart-strategy": strategy}},
        "GET /jobs/job/checkpoints/config": policy,
        "GET /jobmanager/config": config(settings),
    }
    rest, told = FakeFlink(answers).rest, list[str]()
    folder = NarrowFolder(rest, "file:///s", cluster_jar(rest, "files.jar"))
    check_saving(rest, folder, "job", Saving(), told.append)
    assert ["give --trial-savepoint" in line for line in told] == [True] * is_noted


def test_a_folder_that_the_job_manager_cannot_use_is_told() -> None:
    rest = FakeFlink({"POST /jars/files.jar/run": failure("java.io.IOException: no disk")}).rest
    folder = SavepointFolder(rest, "file:///s", cluster_jar(rest, "files.jar"))
    told = r"cannot use the folder file:///s: .*: no disk\. The job was not touched$"
    with pytest.raises(FlinkError, match=told), leaving_untouched():
        folder.check_room(0)


def test_a_journal_of_many_subtasks_is_read_whole(rest: Rest, flink: Flink, tmp_path: Path) -> None:
    """Cut off, it would be no journal, and the move that it records could not be finished."""
    text = ",".join(f'"taskmanager-{i}"' for i in range(100_000))
    assert len(text) > 2**20
    with savepoint_folder(rest, flink, tmp_path.as_uri()) as folder:
        assert folder.create("long.json", text)
        assert folder.read("long.json") == text


def test_only_the_user_of_the_job_manager_can_read_a_journal(
    rest: Rest, flink: Flink, tmp_path: Path
) -> None:
    """It contains the arguments of the job."""
    with savepoint_folder(rest, flink, tmp_path.as_uri()) as folder:
        folder.create("journal.json", "one")
        folder.write("written.json", "one")
        (tmp_path / "written.json").chmod(0o644)
        folder.write("written.json", "two")
    assert (tmp_path / "written.json").read_text() == "two"
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("*.json")} == {0o600}


@pytest.mark.slow
def test_a_savepoint_stays_until_its_job_has_a_checkpoint(
    run: Callable, rest: Rest, flink: Flink, jobs: Path, tmp_path: Path
) -> None:
    """Then it is removed on request; what no move has left is never removed."""
    settings = {"execution.checkpointing.interval": "20 s"}
    job = submitted(rest, jobs, "MixedJob", "200", settings=settings)
    program = Program(jobs, "MixedJob", ("200",), settings=settings)
    move = mover(rest, flink, program, tmp_path)
    apart = {name: ["dev-1", "dev-2"] for name in ("count", "total", "nowhere")}
    moved = move.run(move.plan(job, {"numbers": ["dev-0"]} | apart))
    command = ("flink", "savepoints", "--rest", rest.url, "--flink-home", str(flink.home))
    saved = (tmp_path / "saved").as_uri()
    command = (*command, "--savepoints", saved)
    answer = run(*command, "--json")
    (left,) = json.loads(answer.out)["savepoints"]
    assert (left["path"], left["job"]) == (moved.savepoint, job)
    if not checkpoint_counts(rest, moved.job).completed:
        answer = run(*command, "--remove", moved.savepoint)
        assert answer.status == 2
        assert "has completed no checkpoint since" in answer.err
    deadline = time.monotonic() + 90
    while not checkpoint_counts(rest, moved.job).completed:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    answer = run(*command, "--remove", f"{saved}/savepoint-else")
    assert answer.status == 2
    assert "is not a savepoint that a move left" in answer.err
    answer = run(*command, "--remove-all")
    assert answer.status == 0, answer.err
    assert moved.savepoint in answer.err
    assert not Path(moved.savepoint.removeprefix("file:")).exists()
    assert json.loads(run(*command, "--json").out)["savepoints"] == []
    assert rest.live_jobs() == [moved.job]
