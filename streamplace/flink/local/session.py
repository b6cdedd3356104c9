"""A Flink on this machine: its libraries, and a session cluster with one TaskManager per device."""

import ctypes
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from streamplace.engines.names import resource
from streamplace.errors import SettingError, StreamplaceError
from streamplace.flink.pin.pinning import Settings, as_yaml, device_settings, future_devices
from streamplace.flink.rest.client import Rest, turns
from streamplace.flink.rest.settings import memory_bytes
from streamplace.flink.versions import DOWNLOADED, OLDEST
from streamplace.io.files import user_cache

TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
"""Main class of TaskManagers."""
LOOPBACK = "127.0.0.1"
_DIST_JAR = re.compile(r"flink-dist-(\d+\.\d[\w.+-]*)\.jar")
_JAVA_OPTIONS = re.compile(rb"^\s*all:\s*(--add-.*)$", re.MULTILINE)
JOB_MANAGER = "jobmanager"
LOGGING = "log4j.properties"
JOIN_SECONDS, STOP_SECONDS = 300.0, 5.0
"""Timeouts until all TaskManagers have joined, and until a process has ended."""
_JOB_MAIN = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_SIZES = {
    "-Xmx{}": "heap.size",
    "-XX:MaxDirectMemorySize={}": "off-heap.size",
    "-XX:MaxMetaspaceSize={}": "jvm-metaspace.size",
}
"""Option of Java → suffix of Flink's settings with its size, as in Flink's scripts."""
_NETWORK = "taskmanager.memory.network.max"
_ADDRESS = ("taskmanager.host", "taskmanager.bind-host")


@dataclass(frozen=True, slots=True)
class Flink:
    """An unpacked Flink with the folders ``lib`` and ``opt``."""

    home: Path
    version: str

    @property
    def dist_jar(self) -> Path:
        """The jar with the classes of Flink."""
        return self.home / "lib" / f"flink-dist-{self.version}.jar"

    @property
    def jars(self) -> list[Path]:
        """Jars on the class path of a cluster."""
        return sorted((self.home / "lib").glob("*.jar"))

    def java_options(self) -> list[str]:
        """Options that recent versions of Java need to run Flink."""
        try:
            with zipfile.ZipFile(self.dist_jar) as jar:
                match = _JAVA_OPTIONS.search(jar.read("config.yaml"))
        except (KeyError, OSError, zipfile.BadZipFile):
            raise SettingError(
                f"{self.dist_jar}: holds no config.yaml, which a local cluster needs; name the "
                f"folder of a complete Flink of version {OLDEST} or later"
            ) from None
        return match[1].decode().split() if match else []


def find_flink(home: Path | None = None) -> Flink:
    """Flink at ``home``, at $FLINK_HOME, installed from PyPI, or downloaded; in this order."""
    if home is not None:
        return _flink_at(home)
    if variable := os.environ.get("FLINK_HOME"):
        return _flink_at(Path(variable))
    spec = importlib.util.find_spec("pyflink")
    folders = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    for folder in (*folders, fetched_home(DOWNLOADED)):
        if (folder / "lib").is_dir():
            return _flink_at(folder)
    raise SettingError(
        "Flink is not installed; run 'streamplace flink fetch' (230 MB), or set FLINK_HOME to "
        "the folder of an installation"
    )


def fetched_home(version: str) -> Path:
    """Folder of a downloaded Flink."""
    return user_cache() / f"flink-{version}" / "pyflink"


def fetch_flink(version: str = DOWNLOADED) -> Flink:
    """Flink's libraries in the user's cache folder, downloaded from PyPI if they are missing."""
    home = fetched_home(version)
    if not (home / "lib").is_dir():
        target = home.parent.with_name(f"{home.parent.name}.{os.getpid()}")
        package = f"apache-flink-libraries=={version}"
        pip = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        done = subprocess.run([*pip, str(target), package], capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(target, ignore_errors=True)
            reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
            raise SettingError(f"cannot download {package}: {reason}")
        if home.parent.exists():  # another process was faster
            shutil.rmtree(target)
        else:
            target.rename(home.parent)
    return _flink_at(home)


def find_java(tool: str = "java") -> str:
    """Path of ``java`` or another tool of the JDK."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which(tool, path=str(Path(home) / "bin") if home else None)
    if path is None:
        raise SettingError(f"{tool} is not installed; install JDK 17 or set JAVA_HOME")
    return path


def _flink_at(home: Path) -> Flink:
    names = [path.name for path in (home / "lib").glob("flink-dist-*.jar")]
    versions = [match[1] for match in map(_DIST_JAR.fullmatch, names) if match]
    if not versions:
        raise SettingError(
            f"{home}: holds no lib/flink-dist-*.jar; name the folder of a Flink installation"
        )
    return Flink(home, versions[0])


@dataclass(frozen=True, slots=True)
class Host:
    """Host of a TaskManager, if it does not run directly on this machine."""

    address: str
    # Prefix of a command line that runs the command there, by replacing itself (``exec``).
    entry: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """A running cluster."""

    url: str  # address of its REST interface
    devices: tuple[str, ...]
    flink: Flink
    # Folder with a folder for the configuration and log of every process; deleted at the end.
    folder: Path
    hosts: Mapping[str, Host]  # hosts of devices that do not run directly on this machine
    # The JobManager and the TaskManager of every device, by name.
    processes: dict[str, subprocess.Popen[bytes]]
    settings: Settings  # of all of them

    @property
    def rest(self) -> Rest:
        """Client of its REST interface."""
        return Rest(self.url)

    def start(self, name: str) -> None:
        """Start or restart the JobManager or the TaskManager of a device."""
        main = _JOB_MAIN if name == JOB_MANAGER else TASK_MANAGER
        kind = JOB_MANAGER if name == JOB_MANAGER else "taskmanager"
        java = [find_java(), *_memory_options(self.settings, kind), *self.flink.java_options()]
        classes = ":".join(map(str, self.flink.jars))
        folder = self.folder / name
        log4j = f"-Dlog4j.configurationFile={self.folder / LOGGING}"
        options = [*java, log4j, f"-Djava.io.tmpdir={folder}"]
        entry = self.hosts[name].entry if name in self.hosts else ()
        with (folder / "log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*entry, *options, "-cp", classes, main, "--configDir", str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that Ctrl-C reaches only this process, which ends all
                preexec_fn=_dying_with_parent(),
            )

    def kill(self, device: str) -> None:
        """Kill the TaskManager of a device, as a crash would."""
        self.processes[device].kill()
        self.processes[device].wait()

    def watch(self, tell: Callable[[str], None]) -> None:
        """Wait while the JobManager is running; if it ends, raise an error that quotes its log.

        ``tell`` receives a message when a TaskManager ends; the cluster keeps running.
        """
        ended = set[str]()
        while True:
            self._check_alive(JOB_MANAGER)
            for device in self.devices:
                process = self.processes[device]
                if process.poll() is not None and device not in ended:
                    ended.add(device)
                    failure = _failure_in(self.folder / device / "log")
                    tell(
                        f"TaskManager {device} (process {process.pid}) has ended; "
                        f"its log says: {failure}"
                    )
            time.sleep(1.0)

    def wait(self) -> None:
        """Wait until every device has joined the cluster and can be pinned to.

        If a process ends, or after a timeout, raise an error that quotes a log.
        """
        rest = self.rest
        for _ in turns(JOIN_SECONDS):
            with suppress(StreamplaceError):
                offered = rest.offered()
                if all(resource(device) in offered.get(device, ()) for device in self.devices):
                    return
            self._check_alive(*self.processes)
        raise SettingError(
            f"the local Flink was not up after {JOIN_SECONDS:g} s; "
            f"its JobManager's log says: {_failure_in(self.folder / JOB_MANAGER / 'log')}"
        )

    def _check_alive(self, *names: str) -> None:
        """Raise SettingError if one of these processes has ended."""
        for name in names:
            if self.processes[name].poll() is not None:
                failure = _failure_in(self.folder / name / "log")
                raise SettingError(f"the local Flink's {name} ended; its log says: {failure}")


@contextmanager
def local_cluster(
    flink: Flink,
    devices: Sequence[str],
    *,
    settings: Settings | None = None,
    layers: int | None = None,
    future: int = 0,
    port: int | None = None,
    hosts: Mapping[str, Host] | None = None,
) -> Iterator[LocalCluster]:
    """Run a session cluster while the block runs, and end all of its processes after it.

    On Linux, the processes end with this one, even if it is killed. With ``hosts``, ``settings``
    must give the JobManager an address that these can reach.

    ``future``: number of devices, ``new-1`` and so on, that can be started later.
    """
    folder = Path(tempfile.mkdtemp(prefix="streamplace-flink-"))
    rest, rpc = port or free_port(), free_port()
    shared = {**usual_settings(), "rest.port": rest, "jobmanager.rpc.port": rpc, **(settings or {})}
    url = f"http://{LOOPBACK}:{rest}"
    cluster = LocalCluster(url, tuple(devices), flink, folder, hosts or {}, {}, shared)
    try:
        (folder / LOGGING).write_text(files(__package__).joinpath(LOGGING).read_text())
        _configure(folder / JOB_MANAGER, shared)
        cluster.start(JOB_MANAGER)
        every = [*devices, *future_devices(devices, future)]
        for device in every:
            of_device = device_settings(device, every, layers)
            if host := cluster.hosts.get(device):
                of_device |= dict.fromkeys(_ADDRESS, host.address)
            _configure(folder / device, {**shared, **of_device})
        for device in devices:
            cluster.start(device)
        cluster.wait()
        yield cluster
    finally:
        _stop_all(cluster.processes.values())
        shutil.rmtree(folder, ignore_errors=True)


def usual_settings() -> Settings:
    """Settings of all processes, from a file of this package in Flink's format."""
    lines = files(__package__).joinpath("config.yaml").read_text().splitlines()
    pairs = (line.partition(" #")[0].partition(": ") for line in lines)
    return {key: value.strip() for key, _, value in pairs}


def _memory_options(settings: Settings, kind: str) -> list[str]:
    """Options of Java for the memory of the JobManager or a TaskManager, from Flink's settings.

    >>> sizes = {"framework.off-heap.size": "3b", "network.max": "4b"}
    >>> settings = {f"taskmanager.memory.{key}": size for key, size in sizes.items()}
    >>> _memory_options(settings, "taskmanager")[2]
    '-XX:MaxDirectMemorySize=7'
    """
    options = ["-XX:+UseSerialGC"]
    for option, end in _SIZES.items():
        names = [key for key in settings if re.fullmatch(rf"{kind}\.memory\.(\w+\.)?{end}", key)]
        if kind != JOB_MANAGER and end == "off-heap.size":
            names.append(_NETWORK)
        options.append(option.format(sum(int(memory_bytes(str(settings[n])) or 0) for n in names)))
    return options


def _configure(folder: Path, settings: Settings) -> None:
    folder.mkdir()
    (folder / "config.yaml").write_text(as_yaml(settings))


def _stop_all(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Terminate processes, and kill those that are still running after STOP_SECONDS."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for process in running:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def check_port(port: int) -> None:
    """Raise SettingError if no process can listen on a port of this machine."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Flink does
        try:
            sock.bind((LOOPBACK, port))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SettingError(
                f"port {port} is not available: {reason}; choose another port or stop the process "
                "that uses it"
            ) from None


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as sock:
        sock.bind((LOOPBACK, 0))
        port: int = sock.getsockname()[1]
        return port


def _dying_with_parent() -> Callable[[], None] | None:
    """Return a function for a child process that lets the kernel kill it when its parent ends."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def end_with_parent() -> None:
        prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

    return end_with_parent


def _failure_in(log: Path) -> str:
    """Root cause of the first failure in a log, or its last line."""
    cause, last = "", "nothing"
    for line in log.read_text(errors="replace").splitlines():
        if cause and line[:1].isdigit():  # a new entry: the failure is complete
            return cause
        if line.startswith("Caused by: "):
            cause = line.removeprefix("Caused by: ")
        last = line if line.strip() else last
    return cause or last
