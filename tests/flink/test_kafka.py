"""Jobs that read a real Kafka: measured by their lag, and moved without losing a record.

One broker, or three that copy what they hold and speak with nobody they do not know.
"""

import re
import shlex
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import pytest
from command_lines import settings_file
from flink_clusters import posted
from kafka import WHY_SKIPPED, Broker, broker, kafka_flink, kafka_jars, kafka_jobs

from streamplace.flink.engine import FlinkEngine
from streamplace.flink.layout import Layout
from streamplace.flink.local.session import LocalCluster, local_cluster
from streamplace.flink.measure.profile import profile
from streamplace.flink.measure.source_lag import source_flow
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.program.program import Program
from streamplace.flink.rest.client import FlinkError
from streamplace.flink.rest.plan import layout_of
from streamplace.io.graphs import read_graph

pytestmark = [
    pytest.mark.xdist_group("flink"),
    pytest.mark.slow,
    pytest.mark.skipif(not kafka_jars(), reason=WHY_SKIPPED),
]
DEVICES = ("dev-0", "dev-1")
RATE, ORDERS = 1_000, 60_000
SETTLE = 6.0
"""Seconds after which a checkpoint is due."""
PARTITIONS, READ = 30, 20
"""Partitions of each topic of three brokers; those of them that hold records."""
EVEN = ":".join("1" * READ)
"""Shares of the records by partition."""
DISCOVERY = 2.0
"""Seconds after which the job looks for new partitions."""


@dataclass(frozen=True, slots=True)
class Shop:
    """Jobs on a cluster, and the broker that they read."""

    broker: Broker
    cluster: LocalCluster
    jar: Path

    @property
    def rest(self):
        """Client of the cluster."""
        return self.cluster.rest

    def submitted(self, main, *arguments, parallelism=2):
        """Submit a job as others do, and return its id."""
        own = (self.broker.address, *arguments)
        return posted(self.rest, self.jar, main, *own, parallelism=parallelism)

    def started(self, main, *arguments, parallelism=2):
        """Submit a job, and return its id when it runs."""
        job = self.submitted(main, *arguments, parallelism=parallelism)
        self.rest.wait_running(job, 120)
        return job

    def moved(self, job, settle, tell=print, *, main="WindowsJob", parallelism=2):
        """Move all of a job to the other TaskManager; returns its id there."""
        moves = MoveSettings(settle=settle, least_rate=0.0)
        engine = FlinkEngine(self.rest, moves=moves, tell=tell)
        there = layout_of(self.rest, job, self.rest.running_job(job))
        here = {device for own in there.values() for device in own}
        device = next((one for one in DEVICES if one not in here), DEVICES[0])
        target = Layout({name: [device] * len(own) for name, own in there.items()})
        program = Program(self.jar, main, (self.broker.address,), parallelism=parallelism)
        return engine.move(job, program, target).job

    @contextmanager
    def one_copy(self):
        """Check all the time that one job runs at most."""
        numbers, over = [0], Event()

        def look():
            while not over.wait(0.2):
                with suppress(FlinkError):
                    numbers.append(len(self.rest.live_jobs()))

        with _beside(look, over):
            yield
        assert max(numbers) == 1

    def tells_all(self, number, seconds=120, topic="windows"):
        """Wait until numbers of a topic add up to so many, and each record is there once."""
        windows = self.broker.await_total(topic, number, seconds=seconds)
        assert (windows.total, windows.repeated) == (number, 0)


@contextmanager
def _beside(act, over):
    """Run a function in a thread until the block is left, of which an event tells it."""
    thread = Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def kafka_cluster(flink, tmp_path_factory):
    """A cluster with Kafka's connector, on which jobs restart as by default elsewhere.

    TaskManagers that end are started again: a sink whose transaction cannot be aborted within
    a minute ends its own, which may be long after the broker is back.
    """
    folder = tmp_path_factory.mktemp("flink")
    settings = {
        "taskmanager.numberOfTaskSlots": 4,
        "env.java.opts.taskmanager": "-XX:TieredStopAtLevel=1",
        "execution.checkpointing.interval": "2 s",
        "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
        "execution.checkpointing.savepoint-dir": (folder / "savepoints").as_uri(),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 1000,
    }
    own = kafka_flink(flink, folder / "flink")
    kafka_jobs(own, folder / "jobs.jar")
    over = Event()
    with local_cluster(own, DEVICES, settings=settings) as cluster:

        def restart():
            while not over.wait(0.5):
                for device in DEVICES:
                    if cluster.processes[device].poll() is not None:
                        cluster.start(device)

        with _beside(restart, over):
            yield cluster


@pytest.fixture
def shop(kafka_cluster, tmp_path_factory):
    """A broker of its own with empty topics; no job is left."""
    with _shop(kafka_cluster, tmp_path_factory.mktemp("broker")) as made:
        made.broker.create("orders", "windows")
        yield made


@pytest.fixture
def guarded_shop(kafka_cluster, tmp_path_factory):
    """Three brokers with TLS and SCRAM, and two topics of thirty partitions."""
    folder = tmp_path_factory.mktemp("brokers")
    with _shop(kafka_cluster, folder, number=3, is_secure=True) as made:
        made.broker.create("orders", "payments", partitions=PARTITIONS)
        made.broker.create("paid", "large")
        yield made


@contextmanager
def _shop(cluster, folder, **facts):
    jar = cluster.flink.home.parent / "jobs.jar"
    with broker(folder, jar, **facts) as made:
        cluster.wait()
        yield Shop(made, cluster, jar)
        for job in cluster.rest.live_jobs():
            cluster.rest.cancel(job)


def test_a_job_is_moved_twenty_times_under_load_to_the_last_record(shop):
    """Exactly once; its lag says that it keeps up before."""
    job = shop.started("WindowsJob")
    with shop.broker.fed("orders", rate=RATE) as feed, shop.one_copy():
        flow = source_flow(shop.rest, job, 10.0)
        assert flow.keeps_up
        assert flow.offered == pytest.approx(RATE, rel=0.3)
        for _ in range(20):
            job = shop.moved(job, settle=2.0)
    shop.tells_all(feed.number)


@pytest.mark.parametrize("away", [5.0, 120.0])
@pytest.mark.parametrize("moment", ["checking", "stopping", "starting it", "watching"])
def test_a_broker_that_dies_in_a_move_costs_no_record(shop, run, monkeypatch, moment, away):
    """The job runs in the end, by itself or by the line that is printed: one copy, exactly once."""
    monkeypatch.setenv("FLINK_HOME", str(shop.cluster.flink.home))
    job, (dying,) = shop.started("WindowsJob"), shop.broker.nodes

    def tell(step):
        print(f"{time.strftime('%H:%M:%S')} {step}")
        if step.startswith(moment) and dying.coming is None:
            time.sleep(0.1 * (moment == "stopping"))
            dying.kill(away)

    with shop.broker.fed("orders", rate=RATE) as feed, shop.one_copy():
        time.sleep(5.0)
        line = None
        try:
            shop.moved(job, SETTLE, tell)
        except FlinkError as error:
            tell(f"error: {error}")
            line = re.search(r"streamplace flink move .* --resume.*", str(error))
        assert dying.coming is not None
        dying.await_return()
        if line is not None:
            answer = run(*shlex.split(line[0])[1:])
            tell(answer.err)
        (job,) = shop.rest.live_jobs()
        shop.rest.wait_running(job, 120)
        time.sleep(5.0)
    shop.tells_all(feed.number, 240)


def test_partitions_that_are_added_are_read_and_moved_too(shop):
    """Their number is told by the metrics of the source."""
    job = shop.started("WindowsJob")
    shop.broker.feed("orders", ORDERS, end=False)
    shop.broker.create("orders", partitions=6)
    time.sleep(3 * DISCOVERY)  # what is in them before the job knows of them would be too late
    with shop.broker.fed("orders", first=ORDERS, rate=RATE, shares="1:1:1:1:1:1") as feed:
        time.sleep(10.0)
        (source,) = profile(shop.rest, job, 10.0).flow.sources.values()
        assert source.partitions == 6
        shop.moved(job, settle=2.0)
    shop.tells_all(ORDERS + feed.number)


def test_a_profile_names_the_subtask_that_falls_behind(shop, run, tmp_path):
    """Of a fifth subtask without a partition, nothing is reported; the first reads 7 of 10."""
    job = shop.started("WindowsJob", "400", parallelism=5)
    with shop.broker.fed("orders", rate=RATE, shares="7:1:1:1"):
        time.sleep(15.0)
        source_flow(shop.rest, job, 5.0)  # Flink fetches metrics when it is asked
        given = settings_file(tmp_path, patience=0)
        answer = run("flink", "profile", "--rest", shop.cluster.url, *given, "-o", "graph.json")
    assert answer.status == 0, answer.err
    (told,) = re.findall("^lag of orders.*", answer.err, re.MULTILINE)
    print(told)
    (growth,) = re.findall(r"#\d falls behind by (\S+) tuples/s", told)
    assert 200 < float(growth) < 600
    assert read_graph(tmp_path / "graph.json").operators.max_parallelism.tolist()[0] == 5


@pytest.mark.parametrize("moment", ["checking", "stopping", "starting it", "watching"])
def test_one_of_three_guarded_brokers_dies_in_a_move_to_the_last_record(guarded_shop, moment):
    """The others answer, so the move ends as usual; every third partition is empty."""
    job = guarded_shop.started("JoinJob", parallelism=4)
    orders, payments, dying = *_both_fed(guarded_shop.broker), guarded_shop.broker.nodes[1]

    def tell(step):
        print(f"{time.strftime('%H:%M:%S')} {step}")
        if step.startswith(moment) and dying.coming is None:
            dying.kill(20.0)

    with orders as feed, payments as other, guarded_shop.one_copy():
        time.sleep(10.0)
        flow = profile(guarded_shop.rest, job, 10.0).flow
        assert [source.partitions for source in flow.sources.values()] == [PARTITIONS] * 2
        assert flow.keeps_up
        assert flow.offered == pytest.approx(2 * RATE, rel=0.3)
        with suppress(*[FlinkError] * (moment == "watching")):  # without a checkpoint, it goes back
            guarded_shop.moved(job, SETTLE, tell, main="JoinJob", parallelism=4)
        assert dying.coming is not None
        dying.await_return()
        (job,) = guarded_shop.rest.live_jobs()
        guarded_shop.moved(job, SETTLE, main="JoinJob", parallelism=4)
    least = min(feed.number, other.number)
    guarded_shop.tells_all(least * (least - 1) // 2, 240, "paid")


def test_a_profile_of_sixty_partitions_names_the_subtasks_that_fall_behind(
    guarded_shop, run, tmp_path
):
    """Each fourth partition, and so one subtask of each source, has most of the records."""
    guarded_shop.submitted("JoinJob", "300", parallelism=4)
    shares = ":".join(["7:1:1:1"] * (READ // 4))
    with ExitStack() as fed:
        for feed in _both_fed(guarded_shop.broker, shares):
            fed.enter_context(feed)
        time.sleep(20.0)
        given = settings_file(tmp_path, patience=0)
        answer = run("flink", "profile", "--rest", guarded_shop.cluster.url, *given, "-o", "graph")
    assert answer.status == 0, answer.err
    print(answer.err)
    for topic in ("orders", "payments"):
        (growth,) = re.findall(rf"lag of {topic} .*#\d falls behind by (\S+) tuples/s", answer.err)
        assert 200 < float(growth) < 700


def _both_fed(broker, shares=EVEN):
    for topic in ("orders", "payments"):
        yield broker.fed(topic, rate=RATE, shares=shares, end=False)


def test_records_that_hold_several_orders_are_counted_as_tuples(shop):
    """Three of each: what is offered is three times what is written, whether it waits or is read.

    The first subtasks parse 500 tuples/s each, of the 3,000 that arrive.
    """
    shop.submitted("WindowsJob", "500", "0", "3")
    with shop.broker.fed("orders", rate=RATE):
        time.sleep(15.0)
        flow = profile(shop.rest, shop.rest.live_jobs()[0], 10.0).flow
    assert flow.rate == pytest.approx(1_000, rel=0.2)
    assert flow.offered == pytest.approx(3 * RATE, rel=0.2)


@pytest.mark.parametrize("trouble", ["unreachable", "deleted"])
def test_a_source_that_cannot_read_is_told_in_a_line(shop, refusal, tmp_path, trouble):
    """Whether Flink still waits for the broker, or has failed and starts the job again."""
    if trouble == "unreachable":
        shop.broker.nodes[0].kill()
    else:
        shop.broker.delete("orders")
    shop.submitted("WindowsJob")
    time.sleep(10.0)
    given = settings_file(tmp_path, patience=0, seconds=2)
    told = refusal("flink", "profile", "--rest", shop.cluster.url, *given)
    assert re.search("sent nothing|not RUNNING|not running|restarted", told)
