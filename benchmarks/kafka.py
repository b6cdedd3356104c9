"""A Kafka broker on this machine, jobs that read it, what feeds them, and what was committed."""

import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

from flink_jars import build_jar

from streamplace.engines.flink.local.dist import Flink, find_java

VARIABLE = "STREAMPLACE_KAFKA"
SOURCES = Path(__file__).parents[1] / "tests" / "kafka"
WHY_SKIPPED = f"needs Kafka: mvn -f tests/kafka/pom.xml package, and {VARIABLE} set to its jars"
START_SECONDS = 180.0
ENDLESS = 10**12
CLIENT = (
    "kafka-clients-",
    "lz4-java-",
    "jackson-annotations-",
    "jackson-core-",
    "jackson-databind-",
)
"""Beginnings of the names of the jars that a job needs beside the connector."""
SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
transaction.max.timeout.ms=3600000
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
"""
LOGGING = """<Configuration><Appenders><Console name="out"/></Appenders>
<Loggers><Root level="error"><AppenderRef ref="out"/></Root></Loggers></Configuration>
"""


@cache
def kafka_jars() -> list[Path]:
    """Jars of Kafka and of Flink's connector; none where there is no Kafka."""
    folder = os.environ.get(VARIABLE)
    return sorted(Path(folder).resolve().rglob("*.jar")) if folder else []


def kept_port() -> int:
    """A free port below those that systems give to clients, which could take it meanwhile."""
    for port in random.sample(range(20_000, 30_000), 100):
        with suppress(OSError), socket.socket() as sock:
            sock.bind(("127.0.0.1", port))
            return port
    raise AssertionError


@dataclass
class Feed:
    """Records that are written to a topic while a block runs."""

    number: int = 0  # how many were, when all are


class Output(NamedTuple):
    """What a topic holds of committed records."""

    records: int
    repeated: int  # different records that occur more than once
    total: int  # sum of the numbers at their ends


@dataclass
class Broker:
    """A broker in its own folder, which keeps its data when it is killed."""

    folder: Path
    classes: str  # class path of Kafka's own programs, and of those that feed and check
    host: str = "127.0.0.1"  # address of this machine at which it listens
    port: int = field(default_factory=kept_port)
    process: subprocess.Popen[bytes] | None = None
    coming: Timer | None = None  # starts it again after it was killed

    @property
    def address(self) -> str:
        """Address that clients begin with."""
        return f"{self.host}:{self.port}"

    def format(self) -> None:
        """Prepare the folder."""
        text = SETTINGS.format(
            host=self.host, port=self.port, controller=kept_port(), folder=self.folder
        )
        (self.folder / "server.properties").write_text(text)
        (self.folder / "quiet.xml").write_text(LOGGING)
        settings = ("-c", str(self.folder / "server.properties"))
        self._java("kafka.tools.StorageTool", "format", "-t", "A" * 21 + "Q", *settings)

    def start(self) -> None:
        """Start the broker, and wait until it answers."""
        log4j = f"-Dlog4j2.configurationFile={self.folder / 'quiet.xml'}"
        java = [find_java(), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", log4j]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*java, "-cp", self.classes, "kafka.Kafka", str(self.folder / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            with suppress(OSError), socket.create_connection((self.host, self.port), 1):
                return
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def kill(self, away: float | None = None) -> None:
        """Kill the broker, as a crash would; it may come back after so many seconds."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        if away is not None:
            self.coming = Timer(away, self.start)
            self.coming.start()

    def await_return(self) -> None:
        """Wait until a broker that was killed for some time is back."""
        if self.coming is not None:
            self.coming.join()

    def end(self) -> None:
        """Kill the broker for good."""
        if self.coming is not None:
            self.coming.cancel()
        self.await_return()
        self.kill()

    def create(self, *topics: str, partitions: int = 4) -> None:
        """Create topics, or add partitions to those that exist."""
        self._java("Topics", self.address, str(partitions), *topics)

    def delete(self, *topics: str) -> None:
        """Delete topics."""
        self._java("Topics", self.address, "0", *topics)

    @contextmanager
    def fed(
        self,
        topic: str,
        number: int | None = None,
        *,
        rate: float = 0.0,
        first: int = 0,
        shares: str = "1:1:1:1",
        keys: int = 100,
        end: bool = True,
    ) -> Iterator[Feed]:
        """Write records to a topic while the block runs, or so many, whose last it waits for."""
        words = (topic, first, number or ENDLESS, rate, shares, keys, "end" if end else "on")
        command = self._command("Feeder", self.address, *map(str, words))
        feed = Feed()
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            yield feed
            written, _ = process.communicate("" if number else "enough\n")
            assert process.returncode == 0
            feed.number = int(written)
        finally:
            process.kill()

    def feed(self, topic: str, number: int, **facts: Any) -> None:
        """Write so many records to a topic."""
        with self.fed(topic, number, **facts):
            pass

    def committed(self, topic: str) -> Output:
        """Committed records of a topic."""
        told = self._java("Committed", self.address, topic, "all")
        return Output(*map(int, told.split()))

    def await_total(self, topic: str, total: int, *, seconds: float = 120) -> Output:
        """Wait until the numbers in a topic add up to a total, and return what it holds."""
        deadline = time.monotonic() + seconds
        while (found := self.committed(topic)).total < total:
            assert time.monotonic() < deadline, found
            time.sleep(2.0)
        return found

    def _command(self, main: str, *words: str) -> list[str]:
        log4j = f"-Dlog4j2.configurationFile={self.folder / 'quiet.xml'}"
        return [find_java(), "-XX:TieredStopAtLevel=1", log4j, "-cp", self.classes, main, *words]

    def _java(self, main: str, *words: str) -> str:
        done = subprocess.run(self._command(main, *words), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@contextmanager
def broker(folder: Path, jar: Path, host: str = "127.0.0.1") -> Iterator[Broker]:
    """Run a broker while the block does; ``jar`` holds the programs that feed and check."""
    made = Broker(folder, ":".join(map(str, [jar, *kafka_jars()])), host)
    made.format()
    try:
        made.start()
        yield made
    finally:
        made.end()


def kafka_flink(flink: Flink, home: Path) -> Flink:
    """Flink with the connector and what it needs among its own libraries."""
    names = ("flink-connector-kafka-", *CLIENT)
    own = [jar for jar in kafka_jars() if jar.name.startswith(names)]
    (home / "lib").mkdir(parents=True)
    for one in (*flink.jars, *own):
        (home / "lib" / one.name).symlink_to(one)
    (home / "opt").symlink_to(flink.home / "opt")
    return Flink(home, flink.version)


def kafka_jobs(flink: Flink, jar: Path) -> Path:
    """Build the jobs, the feeder and the checker into a jar; returns it."""
    build_jar(flink, sorted((SOURCES / "java").glob("*.java")), jar)
    return jar
