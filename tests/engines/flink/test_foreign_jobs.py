"""Jobs that others write, on a real cluster: state in RocksDB, SQL, open parallelism, namesakes."""

import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from streamplace.engines.flink.apply import apply
from streamplace.engines.flink.dist import Flink, find_java
from streamplace.engines.flink.jars import build_jar, compile_java, placed_java
from streamplace.engines.flink.local import LocalCluster
from streamplace.engines.flink.pinning import pinning
from streamplace.engines.flink.rest import FlinkError, Rest
from streamplace.engines.flink.state import Savepoint, left_behind, stop
from streamplace.engines.flink.verify import verify

pytestmark = pytest.mark.xdist_group("flink")
Start = Callable[..., str]

SQL = {
    "bids[1]": ["dev-1"],
    "Calc[2]": ["dev-1"],
    "WindowAggregate[4]": ["dev-3", "dev-4"],
    "Calc[5]": ["dev-3", "dev-4"],
    "totals[6]": ["dev-3", "dev-4"],
}


def placed(triple: str, count: str) -> dict[str, list[str]]:
    """Operators of the job with state; two subtasks of each that leaves their number open."""
    return {
        "numbers": ["dev-0"],
        "triple": [triple] * 2,
        "count": [count] * 2,
        "nowhere": [count] * 2,
    }


@pytest.fixture(scope="module")
def jobs(flink: Flink, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A jar of the jobs of these tests."""
    jar = tmp_path_factory.mktemp("jar") / "jobs.jar"
    build_jar(flink, sorted((Path(__file__).parent / "java").glob("*.java")), jar)
    return jar


@pytest.fixture
def start(rest: Rest, flink: Flink, jobs: Path) -> Start:
    """Apply a placement to the job with state."""

    def call(vectors: dict[str, list[str]], *names: str, savepoint: str | None = None) -> str:
        restored = None if savepoint is None else Savepoint(savepoint)
        options = {"entry_class": "StateJob", "arguments": names, "savepoint": restored}
        return apply(rest, flink, jobs, vectors, **options)  # type: ignore[arg-type]

    return call


def free_memory(rest: Rest) -> dict[str, int]:
    """Managed memory that no slot has taken, by TaskManager, in MB."""
    return {row["id"]: row["freeResource"]["managedMemory"] for row in rest.task_managers()}


def test_a_job_gets_its_parallelism_its_memory_and_its_state_wherever_it_is_placed(
    rest: Rest, start: Start, tmp_path: Path
) -> None:
    """The slots of the operator with state share what their TaskManager has."""
    before, vectors, names = free_memory(rest), placed("dev-1", "dev-2"), ("triple", "count", "c-1")
    job = start(vectors, *names)
    assert verify(rest, job, vectors).fine
    assert before["dev-2"] >= 64
    assert free_memory(rest) == before | {"dev-2": 0}

    savepoint = stop(rest, job, tmp_path.as_uri())
    left = left_behind(rest, vectors)
    assert left is not None
    assert left.last == savepoint
    elsewhere = placed("dev-0", "dev-3")
    job = start(elsewhere, *names, savepoint=savepoint)
    assert verify(rest, job, elsewhere).fine
    assert rest.get(f"/jobs/{job}/checkpoints")["latest"]["restored"]["external_path"] == savepoint


def test_state_without_uids_is_not_lost_in_silence_when_chains_change(
    rest: Rest, start: Start, tmp_path: Path
) -> None:
    """Flink refuses it, and what is to be done is told."""
    savepoint = stop(rest, start(placed("dev-1", "dev-2"), "triple", "count"), tmp_path.as_uri())
    apart = placed("dev-1", "dev-2") | {"nowhere": ["dev-3", "dev-3"]}
    with pytest.raises(FlinkError, match="give those with state a uid"):
        start(apart, "triple", "count", savepoint=savepoint)
    assert rest.live_jobs() == []


def test_operators_of_one_name_are_refused_before_they_run(rest: Rest, start: Start) -> None:
    """By their name."""
    vectors = {"numbers": ["dev-0"], "Map": ["dev-1"], "Map (2)": ["dev-2"], "nowhere": ["dev-2"]}
    with pytest.raises(FlinkError, match=r"^2 operators are called 'Map'"):
        start(vectors, "Map", "Map")
    assert rest.live_jobs() == []


def test_sql_is_refused_through_rest_and_runs_where_it_was_placed_by_flink_run(
    rest: Rest, flink: Flink, jobs: Path, cluster: LocalCluster, tmp_path: Path
) -> None:
    """With the exported class compiled into the jar; in a process of its own numbers begin with 1.

    Its windows need managed memory, too.
    """
    later = {name.replace("[", "[100"): devices for name, devices in SQL.items()}
    with pytest.raises(FlinkError, match="flink run -c Placed"):
        apply(rest, flink, jobs, later, entry_class="SqlJob")

    (tmp_path / "Placed.java").write_text(placed_java(pinning(SQL, cluster.devices)))
    compile_java(flink, [tmp_path / "Placed.java"], tmp_path)
    jar = shutil.copyfile(jobs, tmp_path / "jobs.jar")
    with zipfile.ZipFile(jar, "a") as opened:
        for path in tmp_path.glob("*.class"):
            opened.write(path, path.name)
    (tmp_path / "config.yaml").write_text("rest.address: 127.0.0.1\n")
    java = [find_java(), *flink.java_options(), "-cp", ":".join(map(str, flink.jars))]
    address = cluster.url.removeprefix("http://")
    run = ["run", "-d", "-m", address, "-c", "Placed", str(jar), "SqlJob"]
    done = subprocess.run(
        [*java, "org.apache.flink.client.cli.CliFrontend", *run],
        env={**os.environ, "FLINK_CONF_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    (job,) = rest.live_jobs()
    rest.wait_running(job)
    found = verify(rest, job, SQL)
    assert found.fine, found
