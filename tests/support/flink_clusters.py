"""What tests do to a running Flink cluster, and a cluster of two JobManagers."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from streamplace.engines.flink.local.config import as_yaml
from streamplace.engines.flink.local.dist import Flink, find_java
from streamplace.engines.flink.local.session import (
    _COMMON,
    JOB_MANAGER,
    START_SECONDS,
    LocalCluster,
    local_cluster,
)
from streamplace.engines.flink.move.settling import source_rate
from streamplace.engines.flink.rest.client import FlinkError, Rest

STEADY_SECONDS = 6.0
"""Three intervals of heartbeats."""


def come_back(rest: Rest, cluster: LocalCluster, device: str) -> None:
    """Start a TaskManager that has ended, and wait until the cluster knows the new one for good.

    Heartbeats to the old one, which has the same id, may fail late; Flink then drops the new one.
    """
    before = address(rest, device)
    cluster.start(device)
    since = time.monotonic()
    while time.monotonic() - since < STEADY_SECONDS:
        if address(rest, device) in (None, before):  # the old one may still be listed
            since = time.monotonic()
        time.sleep(0.1)


def address(rest: Rest, device: str) -> str | None:
    """Where a device's TaskManager takes calls, if the cluster knows one."""
    paths = {manager["id"]: manager["path"] for manager in rest.task_managers()}
    return paths.get(device)


def await_flow(rest: Rest, job: str) -> None:
    """Wait until Flink tells that the sources of a job send something."""
    deadline = time.monotonic() + 90
    while not source_rate(rest, job):
        assert time.monotonic() < deadline


def flink_run(flink: Flink, folder: Path, url: str, *words: str) -> None:
    """Submit a job by Flink's own command, in a folder that gets its configuration."""
    (folder / "config.yaml").write_text("rest.address: 127.0.0.1\n")
    java = [find_java(), *flink.java_options(), "-cp", ":".join(map(str, flink.jars))]
    run = ("run", "-d", "-m", url.removeprefix("http://"), *words)
    done = subprocess.run(
        [*java, "org.apache.flink.client.cli.CliFrontend", *run],
        env={**os.environ, "FLINK_CONF_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr


STANDBY = "standby"
_ZOOKEEPER = "org.apache.flink.shaded.zookeeper3.org.apache.zookeeper.server.ZooKeeperServerMain"


@contextmanager
def available_cluster(flink: Flink, devices: Sequence[str]) -> Iterator[tuple[LocalCluster, str]]:
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
            folder = cluster.folder / STANDBY
            folder.mkdir()
            (folder / "config.yaml").write_text(as_yaml({**_COMMON, **settings, "rest.port": port}))
            leader = cluster.processes[JOB_MANAGER].args
            assert isinstance(leader, list)
            with (folder / "log").open("ab") as log:
                cluster.processes[STANDBY] = subprocess.Popen(
                    [*leader[:-1], str(folder)], stdout=log, stderr=subprocess.STDOUT
                )
            url = f"http://127.0.0.1:{port}"
            _await_devices(Rest(url), devices)
            yield cluster, url


@contextmanager
def _zookeeper(flink: Flink, folder: Path) -> Iterator[str]:
    """Address of a ZooKeeper that runs while the block does."""
    port = free_port()
    (folder / "zoo.cfg").write_text(
        f"dataDir={folder / 'zookeeper'}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        "tickTime=500\nadmin.enableServer=false\n"
    )
    classes = ["-Xmx64m", "-cp", ":".join(map(str, flink.jars)), _ZOOKEEPER]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [find_java(), *classes, str(folder / "zoo.cfg")],
            stdout=log,
            stderr=subprocess.STDOUT,
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


def _await_devices(rest: Rest, devices: Sequence[str]) -> None:
    """Wait until a JobManager answers, and knows TaskManagers."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        with suppress(FlinkError):
            if set(rest.offered()) == set(devices):
                return
        assert time.monotonic() < deadline
        time.sleep(0.1)


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
