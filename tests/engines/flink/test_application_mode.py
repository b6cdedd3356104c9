"""The manifest for Flink's operator, carried out by hand: its pods are processes here."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from flink_clusters import free_port
from flink_graphs import pipeline

from streamplace.engines.deployment import Deployment
from streamplace.engines.flink.local.config import as_yaml
from streamplace.engines.flink.local.dist import Flink, find_java
from streamplace.engines.flink.local.session import _COMMON
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.pin.apply import check
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink_kubernetes import as_flink_kubernetes
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph

yaml = pytest.importorskip("yaml")
pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
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
        found = verify(rest, one, vectors)
        measured = profile(rest, one, 2.0)
        with pytest.raises(FlinkError, match="runs in application mode and accepts no job but its"):
            check(rest, flink, Program(graph_jar, "GraphJob"), vectors, one)
    assert found.fine, found
    assert {task.name for task in measured.tasks} == {"op0", "op1"}
