"""Two JobManagers, application mode, and Flink 1.20, each on a cluster of its own."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flink_clusters import (
    FAST,
    SLOW,
    TALLY,
    Tally,
    Watched,
    WatchThread,
    available_cluster,
    faulty_proxy,
    mover,
    pipeline,
    spread_job,
)

from streamplace.engines.deployment import Deployment
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink, find_java
from streamplace.engines.flink.local.session import (
    _COMMON,
    JOB_MANAGER,
    LocalCluster,
    free_port,
    local_cluster,
)
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.move.move import FlinkMove
from streamplace.engines.flink.move.settling import MoveSettings
from streamplace.engines.flink.pin.apply import check
from streamplace.engines.flink.pin.pinning import as_yaml
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink_kubernetes import as_flink_kubernetes
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Run:
    """The job on a cluster of two JobManagers; the REST interface is that of the one in reserve."""

    cluster: LocalCluster
    rest: Rest
    program: Program
    job: str


@pytest.fixture
def running(flink: Flink, jobs: Path, tmp_path: Path) -> Iterator[Run]:
    """The job, which has saved its state."""
    with available_cluster(flink, ["dev-0", "dev-1", "dev-2"]) as (cluster, url):
        rest = Rest(url)
        tally = Tally(rest, flink, jobs, tmp_path, "300")
        program = tally.retained()
        yield Run(cluster, rest, program, tally.place(program, TALLY))


def test_a_watch_goes_on_when_another_job_manager_takes_over(
    running: Run, flink: Flink, tmp_path: Path
) -> None:
    """The job is recovered where it was, and a spare stands in for what is lost after that."""
    cluster, rest, job = running.cluster, running.rest, running.job
    move = mover(rest, flink, running.program, tmp_path)
    watch = WatchThread(move, job, TALLY, patience=20)
    cluster.kill(JOB_MANAGER)
    while not any("trying again" in step for step in watch.steps):
        watch.goes_on()
    rest = rest.patient(60.0, watch.steps.append)  # the new leader begins to answer by and by
    while rest.state(job) is None:  # and recovers its jobs after that
        watch.goes_on()
    rest.wait_running(job, 120)
    assert watch.runs == []
    assert verify(rest, job, TALLY).fine
    cluster.kill("dev-1")
    now, layout = watch.started()
    assert not TALLY.with_spares({"dev-1": "dev-2"}).moved_from(layout)
    assert verify(rest, now, layout).fine
    rest.cancel(now)
    watch.ends()


@pytest.mark.parametrize("request_", ["/stop", "_placed-jobs.jar/run"])
def test_one_copy_runs_when_another_job_manager_takes_over_during_a_move(
    running: Run, flink: Flink, tmp_path: Path, request_: str
) -> None:
    """The one that leads ends just before it would stop the job, or start it again."""
    settings = MoveSettings((tmp_path / "saved").as_uri(), settle=0.0)
    with faulty_proxy(running.rest.url) as proxy:
        move = FlinkMove(Rest(proxy.url), flink, running.program, lambda _: None, settings)
        plan = move.plan(running.job, Layout.from_json({**TALLY, "Map": ["dev-2"]}))
        proxy.disturb(request_, "none")
        proxy.before = lambda: running.cluster.kill(JOB_MANAGER)
        try:
            move.run(plan)
        except FlinkError as error:
            if "--resume" in str(error):
                move.resume()
    (copy,) = running.rest.live_jobs()
    running.rest.wait_running(copy, 120)


DEVICES = ("box one", "box two")
PLACED = {"op0": "box one", "op1#0": "box two", "op1#1": "box one", "op1#2": "box two"}
LOOKUP = """\
#!/bin/sh
[ "$1" = taskmanager ] || exit 1
shift
exec {java} org.apache.flink.runtime.taskexecutor.TaskManagerRunner --configDir {conf} "$@"
"""


def unpacked(folder: Path) -> dict[str, Any]:
    """Specification of the FlinkDeployment; what its pods read lies in the folder."""
    operators = [Operator("op0", rate=100.0), Operator("op1", parallelism=3)]
    graph = StreamGraph.of("pipeline", operators, [Stream("op0", "op1")])
    problem = Problem(graph, Cluster.of([Device(name) for name in DEVICES]))
    yaml = pytest.importorskip("yaml")
    text = as_flink_kubernetes(Deployment.of(problem, PLACED))["application.yaml"]
    *maps, deployment = yaml.safe_load_all(text)
    for document in maps:
        target = folder / document["metadata"]["name"].removeprefix("streamplace-")
        target.mkdir()
        for name, content in document["data"].items():
            (target / name).write_text(content.replace("/streamplace", str(folder)))
    (folder / "nodes").mkdir()
    for number, path in enumerate(sorted((folder / "devices").iterdir())):
        (folder / "nodes" / f"node-{number}").write_text(path.name)
    spec: dict[str, Any] = deployment["spec"]
    return spec


@contextmanager
def pods(
    commands: list[tuple[list[str], dict[str, str]]], log: Path
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that run while the block does."""
    with log.open("wb") as out:
        running = [
            subprocess.Popen(
                command,
                env={**os.environ, **env},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            for command, env in commands
        ]
        try:
            yield running
        finally:
            for process in running:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def test_the_manifest_runs_the_job_where_it_is_placed(
    run: Callable, flink: Flink, graph_jar: Path, tmp_path: Path
) -> None:
    """In application mode, each TaskManager being what its node is."""
    spec = unpacked(tmp_path)
    (tmp_path / "c.toml").write_text(
        "bandwidth = '1 Gbps'\n" + "".join(f"[[devices]]\nname = '{d}'\n" for d in DEVICES)
    )
    (tmp_path / "p.json").write_text(json.dumps({"assignment": PLACED}))
    given = ("--entry-class", "GraphJob", "--placement", "p.json", "--cluster", "c.toml")
    home = ("--flink-home", str(flink.home))
    (tmp_path / "usrlib").mkdir()
    made = ("-o", "usrlib/placed.jar")
    assert run("flink", "jar", str(graph_jar), *given, *home, *made).status == 0
    port = free_port()
    local = {"rest.port": port, "jobmanager.rpc.port": free_port()}
    checkpoints = {"execution.checkpointing.dir": tmp_path.as_uri()}
    savepoints = {"execution.checkpointing.savepoint-dir": tmp_path.as_uri()}
    settings = {**spec["flinkConfiguration"], **_COMMON, **local, **checkpoints, **savepoints}
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "config.yaml").write_text(as_yaml(settings))
    java = [find_java(), "-Xmx256m", "-XX:+UseSerialGC", *flink.java_options()]
    java += ["-cp", ":".join(map(str, flink.jars))]
    (tmp_path / "start.sh").write_text(LOOKUP.format(java=" ".join(java), conf=conf))
    (tmp_path / "start.sh").chmod(0o755)
    entry = tmp_path / "entry" / "entry.sh"
    entry.write_text(entry.read_text().replace("/docker-entrypoint.sh", str(tmp_path / "start.sh")))
    job = spec["job"]
    main = "org.apache.flink.container.entrypoint.StandaloneApplicationClusterEntryPoint"
    words = ["--job-classname", job["entryClass"]]
    arguments = ["GraphJob", json.dumps(pipeline(1, 3))]
    control = [*java, main, "--configDir", str(conf), *words, *arguments]
    image = {"FLINK_HOME": str(tmp_path)}
    nodes = [(["sh", str(entry), "taskmanager"], image | {"NODE": f"node-{i}"}) for i in range(2)]
    with pods([(control, image), *nodes], tmp_path / "log") as processes:
        rest, deadline = Rest(f"http://127.0.0.1:{port}"), time.monotonic() + 240
        while True:
            with suppress(FlinkError):
                if any(state == "RUNNING" for state in rest.jobs().values()):
                    break
            assert all(p.poll() is None for p in processes), (tmp_path / "log").read_text()[-3000:]
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()[-3000:]
            time.sleep(0.5)
        (one,) = rest.live_jobs()
        rest.wait_running(one, 120)
        vectors = {"op0": ["box one"], "op1": ["box two", "box one", "box two"]}
        found = verify(rest, one, Layout(vectors))
        measured = profile(rest, one, 2.0)
        with pytest.raises(FlinkError, match="runs in application mode and accepts no job but its"):
            check(rest, flink, Program(graph_jar, "GraphJob"), Layout(vectors), one)
    assert found.fine, found
    assert {task.name for task in measured.tasks} == {"op0", "op1"}


def test_flink_1_20_moves_alike(
    fetched: Callable[[str], Flink], run: Callable, tmp_path: Path
) -> None:
    """A query of Nexmark, twice, to the results of one that was not moved.

    So the internal classes that pinning changes are there, and do the same.
    """
    with local_cluster(fetched("1.20.5"), ["dev-0", "dev-1", "dev-2"]) as old:
        jar = tmp_path / "jobs.jar"
        build_jar(old.flink, sorted(HERE.glob("java/*.java")), jar)
        rest, given = Rest(old.url), {"pipeline.operator-chaining.enabled": "true"}
        alone = Watched(rest, jar, tmp_path / "alone", "NexmarkJob", ["8"], given)
        told = alone.finished(alone.start(FAST))
        job = Watched(rest, jar, tmp_path / "moved", "NexmarkJob", ["8"], given)
        running = job.start(SLOW)
        for step in range(2):
            job.tells_more()
            placement = spread_job(tmp_path / "p.json", rest, running, old.devices, step)
            running = job.move(run, old.flink.home, "--placement", placement, settings=given)
        assert job.resumed(running) == told
