"""Kafka brokers on this machine, jobs that read it, what feeds them, and what was committed."""

import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

from flink_jars import build_jar, with_jars

from streamplace.flink.local.session import Flink, find_java

VARIABLE = "STREAMPLACE_KAFKA"
SOURCES = Path(__file__).parents[1] / "tests" / "kafka"
WHY_SKIPPED = f"needs Kafka: mvn -f tests/kafka/pom.xml package, and {VARIABLE} set to its jars"
START_SECONDS = 180.0
HEAP = ("-Xmx512m", "-XX:+UseSerialGC")
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
node.id={number}
controller.quorum.voters={voters}
listeners={protocol}://{host}:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={protocol}://{host}:{port}
inter.broker.listener.name={protocol}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,{protocol}:{protocol}
log.dirs={folder}/data
offsets.topic.replication.factor={copies}
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr={least}
min.insync.replicas={least}
share.coordinator.state.topic.replication.factor=1
transaction.max.timeout.ms=3600000
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
"""
PASSWORD = "for-tests-only"
SECURITY = """sasl.enabled.mechanisms=SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
sasl.mechanism=SCRAM-SHA-512
security.protocol=SASL_SSL
{listener}sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
  username="tests" password="{password}";
ssl.keystore.location={store}
ssl.keystore.password={password}
ssl.truststore.location={store}
ssl.truststore.password={password}
"""
"""What brokers and their clients need for TLS and SCRAM."""
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
class Node:
    """A broker and controller in its own folder, which keeps its data when it is killed."""

    folder: Path
    command: Sequence[str]
    address: tuple[str, int]
    process: subprocess.Popen[bytes] | None = None
    coming: Timer | None = None  # starts it again after it was killed

    def start(self) -> None:
        """Start the broker."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def wait(self) -> None:
        """Wait until the broker answers."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            with suppress(OSError), socket.create_connection(self.address, 1):
                return
            assert self.process is not None
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
            self.wait()

    def end(self) -> None:
        """Kill the broker for good."""
        if self.coming is not None:
            self.coming.cancel()
            self.coming.join()
        self.kill()


@dataclass
class Broker:
    """One broker, or several with copies of all that they hold.

    ``is_secure``: clients reach them by TLS, and say who they are by SCRAM.
    """

    folder: Path
    classes: str  # class path of Kafka's own programs, and of those that feed and check
    host: str = "127.0.0.1"  # address of this machine at which they listen
    number: int = 1
    is_secure: bool = False
    nodes: list[Node] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Address that clients begin with, or the file of what they need beside it."""
        if self.is_secure:
            return str(self.folder / "client.properties")
        return self._servers

    @property
    def _servers(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in (node.address for node in self.nodes))

    @property
    def copies(self) -> int:
        """Copies of each partition."""
        return min(self.number, 3)

    def format(self) -> None:
        """Prepare the folders."""
        (self.folder / "quiet.xml").write_text(LOGGING)
        ports = [kept_port() for _ in range(2 * self.number)]
        controllers, own = ports[: self.number], ports[self.number :]
        voters = ",".join(f"{i}@127.0.0.1:{port}" for i, port in enumerate(controllers, 1))
        scram = []
        if self.is_secure:
            self._make_certificate()
            scram = ["--add-scram", f"SCRAM-SHA-512=[name=tests,password={PASSWORD}]"]
        for i, (controller, port) in enumerate(zip(controllers, own, strict=True), 1):
            folder = self.folder / f"broker-{i}"
            folder.mkdir()
            text = SETTINGS.format(
                number=i,
                voters=voters,
                protocol="SASL_SSL" if self.is_secure else "PLAINTEXT",
                host=self.host,
                port=port,
                controller=controller,
                folder=folder,
                copies=self.copies,
                least=(self.copies + 1) // 2,
            )
            file = folder / "server.properties"
            file.write_text(text + self._security("listener.name.sasl_ssl.scram-sha-512."))
            command = self._command("kafka.Kafka", str(file), options=HEAP)
            self.nodes.append(Node(folder, command, (self.host, port)))
            words = ("format", "-t", "A" * 21 + "Q", "-c", str(file), *scram)
            self._java("kafka.tools.StorageTool", *words)
        text = f"bootstrap.servers={self._servers}\n" + self._security()
        (self.folder / "client.properties").write_text(text)

    def _security(self, listener: str = "") -> str:
        if not self.is_secure:
            return ""
        store = self.folder / "store.p12"
        return SECURITY.format(listener=listener, password=PASSWORD, store=store)

    def _make_certificate(self) -> None:
        """A certificate of the host for all brokers, which clients trust."""
        words = ["-genkeypair", "-alias", "tests", "-keyalg", "EC", "-dname", "CN=tests"]
        words += ["-ext", f"SAN=ip:{self.host}", "-storetype", "PKCS12", "-storepass", PASSWORD]
        tool = Path(find_java()).with_name("keytool")
        done = subprocess.run(
            [tool, *words, "-keystore", self.folder / "store.p12"], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Start the brokers, and wait until they answer."""
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.wait()

    def end(self) -> None:
        """Kill the brokers for good."""
        for node in self.nodes:
            node.end()

    def create(self, *topics: str, partitions: int = 4) -> None:
        """Create topics, or add partitions to those that exist."""
        self._java("Topics", self.address, str(self.copies), str(partitions), *topics)

    def delete(self, *topics: str) -> None:
        """Delete topics."""
        self._java("Topics", self.address, str(self.copies), "0", *topics)

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

    def _command(self, main: str, *words: str, options: Sequence[str] = ()) -> list[str]:
        log4j = f"-Dlog4j2.configurationFile={self.folder / 'quiet.xml'}"
        java = [find_java(), "-XX:TieredStopAtLevel=1", *options, log4j, "-cp", self.classes]
        return [*java, main, *words]

    def _java(self, main: str, *words: str) -> str:
        done = subprocess.run(self._command(main, *words), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@contextmanager
def broker(
    folder: Path, jar: Path, host: str = "127.0.0.1", *, number: int = 1, is_secure: bool = False
) -> Iterator[Broker]:
    """Run brokers while the block does; ``jar`` holds the programs that feed and check."""
    classes = ":".join(map(str, [jar, *kafka_jars()]))
    made = Broker(folder, classes, host, number, is_secure)
    made.format()
    try:
        made.start()
        yield made
    finally:
        made.end()


def connector_jars() -> list[Path]:
    """Jars of Flink's connector, and of what it needs."""
    names = ("flink-connector-kafka-", *CLIENT)
    return [jar for jar in kafka_jars() if jar.name.startswith(names)]


def kafka_flink(flink: Flink, home: Path) -> Flink:
    """Flink with the connector and what it needs among its own libraries."""
    return with_jars(flink, connector_jars(), home)


def kafka_jobs(flink: Flink, jar: Path) -> Path:
    """Build the jobs, the feeder and the checker into a jar; returns it."""
    build_jar(flink, sorted((SOURCES / "java").glob("*.java")), jar)
    return jar
