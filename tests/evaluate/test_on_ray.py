"""Sweeps on Ray: the same as on one machine, whoever dies. All share one cluster of four nodes."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from makespan_cases import giph
from running import lines_in

from streamplace.errors import SettingError
from streamplace.evaluate.on_ray import connected
from streamplace.evaluate.parallel import parallel_map
from streamplace.evaluate.placing import Placing, place_all
from streamplace.evaluate.records import read_records
from streamplace.evaluate.runner import ComparisonRun, records_of
from streamplace.families.branched import Branched
from streamplace.families.shards import write_shards
from streamplace.io.datasets import DataSet
from streamplace.io.extras import LOOPBACK
from streamplace.placers.registry import Budget
from streamplace.placers.request import PlacementRequest

ray = pytest.importorskip("ray")
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
pytestmark = pytest.mark.xdist_group("ray")

PROBLEMS = giph(20)
COMPARISON = ComparisonRun(("heft", "anneal"), budget=Budget(None, 300), objectives=("makespan",))
GRAPHS = Branched(branches=3, depth=3, devices=3, copies=120)
ALONE = """
from streamplace.evaluate.on_ray import connected

with connected("ray"):
    from ray._private.authentication.authentication_utils import is_token_auth_enabled

    print(is_token_auth_enabled(), flush=True)
    input()
"""
"""Program that starts a Ray of its own until it reads a line."""
ANNEAL = "anneal:evaluations=30000"


@pytest.fixture(scope="module")
def client_port():
    """A port that is free."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def cluster(client_port):
    """Four nodes of one core each, to which this process is connected."""
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    head = {"num_cpus": 1, "ray_client_server_port": client_port}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(3):
            cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        with connected(cluster.address):
            yield cluster
    finally:
        cluster.shutdown()


def untimed(records):
    """Records without the times that they took."""
    return [[replace(record, milliseconds=0.0) for record in of_one] for of_one in records]


@pytest.mark.slow
def test_a_comparison_on_ray_is_that_of_this_machine():
    here = untimed(records_of(COMPARISON, PROBLEMS, jobs=1))
    assert untimed(records_of(COMPARISON, PROBLEMS, on="ray")) == here
    assert not ray.is_initialized()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="looks at /proc")
def test_a_ray_of_our_own_listens_on_loopback_alone_and_wants_a_token():
    """Whoever reaches it can run any code."""
    words = [sys.executable, "-c", ALONE]
    environment = {name: value for name, value in os.environ.items() if name != LOOPBACK}
    with subprocess.Popen(
        words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "True\n"
        hosts = listening(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
    assert len(hosts) >= 3
    assert all(host.is_loopback for host in hosts)


def test_an_imported_ray_is_not_started_here(monkeypatch):
    """It would listen on all interfaces."""
    monkeypatch.delenv(LOOPBACK)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(SettingError, match=f"{LOOPBACK}=0"), connected("ray"):
        pass


def listening(process):
    """Addresses that a process and those that it started listen on."""
    family, sockets = [process], set()
    for parent in family:
        family += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
    for one in family:
        for descriptor in Path(f"/proc/{one}/fd").glob("*"):
            with suppress(OSError):
                sockets.add(str(descriptor.readlink()))
    found = []
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in sockets:
                host = local.partition(":")[0]
                last = IPv4Address(int.from_bytes(bytes.fromhex(host[-8:]), "little"))
                found.append(last)
    return found


def test_processes_are_of_this_machine():
    with pytest.raises(SettingError):
        next(records_of(COMPARISON, PROBLEMS, jobs=2, on="ray"))


def test_where_no_cluster_is_that_is_said():
    with pytest.raises(SettingError, match=r"'127\.0\.0\.1:1'"):
        next(records_of(COMPARISON, PROBLEMS, on="127.0.0.1:1"))


@pytest.mark.parametrize(
    ("on", "raised", "told"),
    [
        ("ray", "The node timed out.\nMore.", r"on this machine: The node timed out\.$"),
        ("auto", "No server:\nIt failed\nMore.", "at 'auto': No server: It failed"),
    ],
)
def test_what_ray_raises_is_told(monkeypatch, on, raised, told):
    """Whatever it is: Ray has no error of its own for a start that takes too long."""

    def init(*_, **__):
        raise Exception(raised)

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(SettingError, match=told):
        next(records_of(COMPARISON, PROBLEMS, on=on))


@dataclass(frozen=True)
class Slow:
    """Doubles a number, in its own time."""

    seconds: float

    def __call__(self, number):
        """Wait, then double."""
        if number < 0:
            raise SettingError(f"{number} is below 0")
        time.sleep(self.seconds)
        return 2 * number


@pytest.mark.slow
def test_errors_of_workers_are_errors_here(cluster):
    with pytest.raises(SettingError, match="-3 is below 0"):
        list(parallel_map(Slow(0.0), [1, 2, -3, 4], on=cluster.address))


def deadly(number):
    """Double a number; 7 kills the process, as a graph does that takes all memory."""
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


@pytest.mark.slow
def test_what_kills_its_workers_is_named_and_the_rest_goes_on(cluster):
    found = parallel_map(
        deadly, range(20), on=cluster.address, lost=lambda number, why: (number, why)
    )
    others = [2 * number for number in range(20)]
    others[7] = (7, "its worker process was killed, perhaps because memory ran out")  # type: ignore[call-overload]
    assert list(found) == others


def deadly_once(marker, number):
    """Double a number; the first 7 kills the process."""
    if number == 7 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(cluster, tmp_path):
    marker = tmp_path / "killed"
    found = parallel_map(partial(deadly_once, marker), range(20), on=cluster.address)
    assert list(found) == [2 * number for number in range(20)]
    assert marker.exists()


@pytest.mark.slow
def test_shards_are_those_of_this_machine(cluster, run):
    command = "generate branched --branches 3 --depth 3 --devices 3 --copies 40 --files 3 -o"
    assert run(*command.split(), "there.jsonl", "--on", cluster.address).status == 0
    there = {path.name: path.read_bytes() for path in Path().glob("there-*.jsonl")}
    assert len(there) == 3
    Path("here").mkdir()
    assert run(*command.split(), "here/there.jsonl").status == 0
    assert {name: Path("here", name).read_bytes() for name in there} == there


@pytest.mark.slow
def test_a_stopped_comparison_goes_on_where_workers_cannot_see_its_results(
    cluster, tmp_path, monkeypatch
):
    """The results are read here alone, so that workers may be anywhere."""
    monkeypatch.chdir(tmp_path)
    file = Path("results.jsonl")  # workers have another working folder
    first = [*records_of(COMPARISON, PROBLEMS, file, jobs=1)]
    assert [*records_of(COMPARISON, PROBLEMS, file, on=cluster.address)] == first
    assert len(list(read_records(file))) == 2 * len(PROBLEMS)


@pytest.mark.slow
def test_a_driver_that_is_killed_and_one_that_is_interrupted_are_gone_on_with(
    cluster, client_port, tmp_path
):
    """Byte for byte what one process makes; the last driver is a client (ray://)."""
    write_shards("branched", GRAPHS, 5, tmp_path / "s.jsonl", 3)
    out, here = tmp_path / "p.jsonl", tmp_path / "here.jsonl"
    client = f"ray://127.0.0.1:{client_port}"
    stops = [(signal.SIGKILL, cluster.address), (signal.SIGINT, cluster.address), (None, client)]
    statuses, counts = [], []
    for stop, on in stops:
        (tmp_path / "ray.toml").write_text(f"on = '{on}'\n")
        command = f"place s.jsonl --placer {ANNEAL} --budget 600 -o p.jsonl --settings ray.toml"
        with subprocess.Popen(
            [sys.executable, "-m", "streamplace", *command.split()], cwd=tmp_path
        ) as driver:
            before = lines_in(out)
            while stop and driver.poll() is None and lines_in(out) < before + 5:
                time.sleep(0.02)
            if stop:
                driver.send_signal(stop)
        statuses.append(driver.returncode)
        counts.append(lines_in(out))
    assert statuses == [-signal.SIGKILL, 130, 0]
    assert 0 < counts[0] < counts[1] < counts[2] == GRAPHS.n_graphs
    placing = Placing(PlacementRequest(ANNEAL, budget=Budget(600.0)))
    for _ in place_all(placing, DataSet(tmp_path / "s.jsonl"), here, jobs=1):
        pass
    assert out.read_bytes() == here.read_bytes()


@pytest.mark.slow
def test_a_machine_that_is_lost_changes_nothing(cluster):
    found = parallel_map(Slow(0.05), range(200), on=cluster.address)
    first = [next(found) for _ in range(20)]
    cluster.remove_node(sorted(cluster.worker_nodes, key=id)[0], allow_graceful=False)
    assert first + list(found) == [2 * number for number in range(200)]
