"""Clusters of their own: JobManagers, versions, and TaskManagers and jobs that come and go."""

import json
import math
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_lines import settings_file
from deployment_table import check_row
from flink_clusters import (
    FAST,
    SLOW,
    TALLY,
    Tally,
    Watched,
    awaited,
    come_back,
    faulty_proxy,
    flink_run,
    mover,
    pipeline,
    spread_job,
)
from flink_jars import build_jar

from streamplace.engines.deployment import Deployment
from streamplace.flink.deployment import deployment_of
from streamplace.flink.engines.flink_kubernetes import as_flink_kubernetes
from streamplace.flink.layout import Layout
from streamplace.flink.local.session import (
    JOB_MANAGER,
    JOIN_SECONDS,
    find_java,
    free_port,
    local_cluster,
    usual_settings,
)
from streamplace.flink.measure.profile import profile
from streamplace.flink.move.move import FlinkMove
from streamplace.flink.move.savepoints import stop
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.pin.apply import apply, verify
from streamplace.flink.pin.pinning import as_yaml
from streamplace.flink.program.program import Program, remember
from streamplace.flink.rest.client import ENDED, FlinkError, Rest
from streamplace.flink.store import Store
from streamplace.flink.watch.acting import Spares, WatchMover
from streamplace.flink.watch.log import WatchLog
from streamplace.flink.watch.watch import Watch
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
HERE = Path(__file__).parent
_ZOOKEEPER = "org.apache.flink.shaded.zookeeper3.org.apache.zookeeper.server.ZooKeeperServerMain"


@contextmanager
def available_cluster(flink, devices):
    """Run a cluster of two JobManagers, which ZooKeeper from Flink's own jars elects one of.

    Yields it with the address of the one that stands by; it passes on what it is asked.
    """
    with tempfile.TemporaryDirectory() as name, _zookeeper(flink, Path(name)) as quorum:
        settings = {
            "high-availability.type": "zookeeper",
            "high-availability.zookeeper.quorum": quorum,
            "high-availability.storageDir": Path(name, "shared").as_uri(),
            "high-availability.zookeeper.client.session-timeout": 4_000,
            "high-availability.zookeeper.client.connection-timeout": 4_000,
        }
        with local_cluster(flink, devices, settings=settings) as cluster:
            port = free_port()
            folder = cluster.folder / "standby"
            folder.mkdir()
            (folder / "config.yaml").write_text(
                as_yaml({**usual_settings(), **settings, "rest.port": port})
            )
            leader = cluster.processes[JOB_MANAGER].args
            with (folder / "log").open("ab") as log:
                cluster.processes["standby"] = subprocess.Popen(
                    [*leader[:-1], str(folder)], stdout=log, stderr=subprocess.STDOUT
                )
            rest = Rest(f"http://127.0.0.1:{port}")

            def is_complete():
                with suppress(FlinkError):
                    return set(rest.offered()) == set(devices)
                return False

            awaited(is_complete, JOIN_SECONDS)
            yield cluster, rest.url


@contextmanager
def _zookeeper(flink, folder):
    """Address of a ZooKeeper that runs while the block does."""
    port = free_port()
    (folder / "zoo.cfg").write_text(
        f"dataDir={folder / 'zookeeper'}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        "tickTime=500\nadmin.enableServer=false\n"
    )
    classes = ["-Xmx64m", "-cp", ":".join(map(str, flink.jars)), _ZOOKEEPER]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [find_java(), *classes, str(folder / "zoo.cfg")], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        while True:
            assert process.poll() is None, (folder / "log").read_text()
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


class WatchThread:
    """A watch of a placed job in a thread, to which dev-2 is a spare.

    Attributes
    ----------
    steps
        What it told.
    runs
        Jobs that it has started in place of the first one, and where.
    ended
        Error with which it ended, if any.
    """

    def __init__(self, move, job, layout, patience=0.5):
        self.steps, self.ended = list[str](), list[str]()
        self.runs: list[tuple[str, Layout]] = []
        spares = Spares(move.rest, ["dev-2"])
        log = WatchLog.claimed(Store.usual(), job, "watched", self.steps.append)
        mover = WatchMover(replace(move, without_lost=spares.of_move), spares, log)
        moved = lambda name, where: self.runs.append((name, where))  # noqa: E731
        rounds: Any = SimpleNamespace(is_due=False)
        rest = move.rest.patient(math.inf, self.steps.append)
        self._watch = Watch(rest, log, mover, rounds, moved, patience)
        self._thread = threading.Thread(target=self._run, args=(job, layout), daemon=True)
        self._thread.start()

    def _run(self, job, layout):
        try:
            self._watch.run(job, layout)
        except FlinkError as error:
            self.ended.append(str(error))

    def goes_on(self):
        """Wait a moment, in which the watch must not end."""
        assert self._thread.is_alive(), (self.steps, self.ended)
        self._thread.join(0.1)

    def started(self, number=1):
        """Wait until it has started the job again so often; returns its id, and where it runs."""
        while len(self.runs) < number:
            self.goes_on()
        return self.runs[-1]

    def ends(self):
        """Wait for its end."""
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.fixture
def running(flink, jobs, tmp_path):
    """The job, which has saved its state; the REST interface is that of a JobManager in reserve."""
    with available_cluster(flink, ["dev-0", "dev-1", "dev-2"]) as (cluster, url):
        rest = Rest(url)
        tally = Tally(rest, flink, jobs, tmp_path, "300")
        program = tally.retained()
        job = tally.place(program, TALLY)
        yield SimpleNamespace(cluster=cluster, rest=rest, program=program, job=job)


def test_a_watch_goes_on_when_another_job_manager_takes_over(running, run, tmp_path):
    """The job is recovered where it was, and a spare stands in for what is lost after that.

    Its deployment is what it was.
    """
    cluster, rest, job = running.cluster, running.rest, running.job
    line = check_row(run, "high availability", rest.url, job, tmp_path)
    remember(job, running.program)
    move = mover(rest, running.program, tmp_path)
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
    assert str(deployment_of(rest, job)) in line
    cluster.kill("dev-1")
    now, layout = watch.started()
    assert not TALLY.with_spares({"dev-1": "dev-2"}).moved_from(layout)
    assert verify(rest, now, layout).fine
    rest.cancel(now)
    watch.ends()


@pytest.mark.parametrize("request_", ["/stop", "_placed-jobs.jar/run"])
def test_one_copy_runs_when_another_job_manager_takes_over_during_a_move(
    running, tmp_path, request_
):
    """The one that leads ends just before it would stop the job, or start it again."""
    settings = MoveSettings((tmp_path / "saved").as_uri(), settle=0.0)
    with faulty_proxy(running.rest.url) as proxy:
        move = FlinkMove(Rest(proxy.url), running.program, lambda _: None, settings)
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


BOXES = ("box-1", "box-2")
PLACED = {"op0": "box-1", "op1#0": "box-2", "op1#1": "box-1", "op1#2": "box-2"}
LOOKUP = """\
#!/bin/sh
[ "$1" = taskmanager ] || exit 1
shift
exec {java} org.apache.flink.runtime.taskexecutor.TaskManagerRunner --configDir {conf} "$@"
"""


def unpacked(folder):
    """Specification of the FlinkDeployment; what its pods read lies in the folder."""
    operators = [Operator("op0", rate=100.0), Operator("op1", parallelism=3)]
    graph = StreamGraph.of("pipeline", operators, [Stream("op0", "op1")])
    problem = Problem(graph, Cluster.of([Device(name) for name in BOXES]))
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
def pods(commands, log):
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


def test_the_manifest_runs_the_job_where_it_is_placed(run, flink, graph_jar, tmp_path):
    """In application mode, each TaskManager being what its node is."""
    spec = unpacked(tmp_path)
    (tmp_path / "c.toml").write_text(
        "bandwidth = '1 Gbps'\n" + "".join(f"[[devices]]\nname = '{d}'\n" for d in BOXES)
    )
    (tmp_path / "p.json").write_text(json.dumps({"assignment": PLACED}))
    given = ("--entry-class", "GraphJob", "--placement", "p.json", "--cluster", "c.toml")
    (tmp_path / "usrlib").mkdir()
    made = ("-o", "usrlib/placed.jar")
    assert run("flink", "jar", str(graph_jar), *given, *made).status == 0
    port = free_port()
    # The job is there before the TaskManagers are.
    patient = {"resourcemanager.standalone.start-up-time": 120_000}
    local = {"rest.port": port, "jobmanager.rpc.port": free_port(), **patient}
    checkpoints = {"execution.checkpointing.dir": tmp_path.as_uri()}
    savepoints = {"execution.checkpointing.savepoint-dir": tmp_path.as_uri()}
    settings = {
        **spec["flinkConfiguration"],
        **usual_settings(),
        **local,
        **checkpoints,
        **savepoints,
    }
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
        vectors = {"op0": ["box-1"], "op1": ["box-2", "box-1", "box-2"]}
        found = verify(rest, one, Layout(vectors))
        measured = profile(rest, one, 2.0)
        check_row(run, "application mode", rest.url, one, tmp_path)
    assert found.fine, found
    assert {task.name for task in measured.tasks} == {"op0", "op1"}


def test_flink_1_20_moves_alike(fetched, run, tmp_path):
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
            running = job.move(run, "--placement", placement, settings=given)
        assert job.resumed(running) == told


DEVICES = ["dev-0", "dev-1", "dev-2"]
UNEVEN: dict[str, list[str]] = {"op0": ["dev-0"], "op1": ["dev-0", "dev-1", "dev-1"]}


@pytest.fixture(scope="module")
def roomy(flink):
    """A cluster of three devices with room for another; it takes no jar but by REST."""
    with local_cluster(flink, DEVICES, layers=2, future=1) as running:
        yield running


@pytest.fixture
def rest(roomy):
    """REST of the cluster; what a test has lost is there again, and what it has added is not."""
    answer = Rest(roomy.url)
    for device in DEVICES:
        if roomy.processes[device].poll() is not None:
            come_back(answer, roomy, device)
    yield answer
    for job in answer.jobs():
        answer.cancel(job)
    if "new-1" in roomy.processes and roomy.processes["new-1"].poll() is None:
        roomy.kill("new-1")
        while "new-1" in answer.offered():
            time.sleep(0.1)


def job_of(graph, jar):
    """The job that runs a graph."""
    return Program(jar, "GraphJob", [json.dumps(graph)])


def test_a_task_manager_is_added_while_the_others_run(rest, roomy, graph_jar):
    """A job that restarts does not flow over to it, and a new one is spread over it."""
    program = job_of({**pipeline(1, 3), "restart": True}, graph_jar)
    before = {device: roomy.processes[device].pid for device in DEVICES}
    job = apply(rest, program, Layout(UNEVEN))
    roomy.start("new-1")
    while "new-1" not in rest.offered():
        assert roomy.processes["new-1"].poll() is None
    roomy.kill("dev-1")
    come_back(rest, roomy, "dev-1")
    rest.wait_running(job, 120)
    assert verify(rest, job, Layout(UNEVEN)).fine
    both = {"op0": ["dev-2"], "op1": ["new-1", "new-1", "dev-1"]}
    other = apply(rest, program, Layout(both))
    assert verify(rest, other, Layout(both)).fine
    assert verify(rest, job, Layout(UNEVEN)).fine
    assert {d: roomy.processes[d].pid for d in ("dev-0", "dev-2")} == {
        d: before[d] for d in ("dev-0", "dev-2")
    }


UNEVENLY: Layout = Layout.from_json(
    {
        **TALLY,
        **{name: ["dev-0", "dev-1", "dev-1"] for name in ("KeyedProcess", "Process", "Writer")},
    }
)


@pytest.mark.parametrize("restarts", [True, False])
def test_a_spare_takes_over_with_the_state_when_a_task_manager_is_lost(
    rest, roomy, flink, jobs, tmp_path, restarts
):
    """Whole operators and counts; then the one that was lost is a spare itself.

    Without restarts, the job fails as soon as a connection breaks; Flink notices the loss seconds
    later.
    """
    tally = Tally(rest, flink, jobs, tmp_path)
    program = tally.retained()
    none = {} if restarts else {"restart-strategy.type": "none"}
    program = replace(program, settings={**program.settings, **none})
    job = tally.place(program, UNEVENLY)
    watch = WatchThread(mover(rest, program, tmp_path), job, UNEVENLY)
    for lost, number in (("dev-1", 1), ("dev-2", 2)):
        roomy.kill(lost)
        now, layout = watch.started(number)
        if lost == "dev-1":
            come_back(rest, roomy, lost)
        assert verify(rest, now, layout).fine
        restored = rest.get(f"/jobs/{now}/checkpoints")["latest"]["restored"]
        assert restored["external_path"].startswith("file:")
        before = len(tally.lines("windows"))
        while len(tally.lines("windows")) <= before:
            assert rest.job(now)["state"] not in ENDED
    failed_first = f"job {job} has failed; waiting for Flink to notice a lost TaskManager"
    lost_first = "lost: 'dev-1'; waiting 0.5 s for it"
    assert watch.steps[0] in [lost_first, *([] if restarts else [failed_first])]
    there = UNEVENLY.with_spares({"dev-1": "dev-2"}), UNEVENLY
    pairs = zip(there, watch.runs, strict=True)
    assert not any(where.moved_from(layout) for where, (_, layout) in pairs)
    stop(rest, now, tmp_path.as_uri())
    watch.ends()
    (error,) = watch.ended
    assert error.startswith(f"job {now} was stopped with a savepoint")
    tally.check_counts()
    windows = Counter((key, first // 100) for key, first, _ in tally.lines("windows"))
    assert set(range(10)) == {key for key, _ in windows}


def test_a_cluster_that_takes_no_jars_is_told_and_runs_the_jar_that_is_written(
    run, flink, graph_jar, tmp_path
):
    """By 'flink run', which needs no upload."""
    (tmp_path / "c.toml").write_text(
        'bandwidth = "1 Gbps"\ndevices = [{name = "dev-0"}, {name = "dev-1"}]\n'
    )
    assignment = {"op0": "dev-1", "op1#0": "dev-0", "op1#1": "dev-1", "op1#2": "dev-1"}
    (tmp_path / "p.json").write_text(json.dumps({"assignment": assignment}))
    settings = {"web.submit.enable": "false"}
    given = (str(graph_jar), "--entry-class", "GraphJob", "--placement", "p.json")
    graph = json.dumps(pipeline(1, 3))
    with local_cluster(flink, DEVICES[:2], settings=settings) as cluster:
        own = settings_file(tmp_path)
        answer = run("flink", "apply", *given, *own, "--rest", cluster.url, "--", graph)
        assert answer.status == 2
        assert "web.submit.enable: false" in answer.err
        answer = run("flink", "jar", *given, "--cluster", "c.toml", "-o", "placed.jar")
        assert answer.status == 0, answer.err
        assert "run it by: flink run -c Placed placed.jar GraphJob ARGUMENTS" in answer.err
        words = ("-c", "Placed", "placed.jar", "GraphJob", graph)
        flink_run(flink, tmp_path, cluster.url, *words)
        rest = Rest(cluster.url)
        (job,) = rest.live_jobs()
        rest.wait_running(job)
        vectors = {"op0": ["dev-1"], "op1": ["dev-0", "dev-1", "dev-1"]}
        assert verify(rest, job, Layout(vectors)).fine
