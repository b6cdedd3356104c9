"""Jobs that read a real Kafka: measured by their lag, and moved without losing a record."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from kafka import WHY_SKIPPED, Broker, broker, kafka_flink, kafka_jars, kafka_jobs

from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster, local_cluster
from streamplace.engines.flink.measure.sources import source_flow
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.tasks import layout_of

pytestmark = [
    pytest.mark.xdist_group("flink"),
    pytest.mark.slow,
    pytest.mark.skipif(not kafka_jars(), reason=WHY_SKIPPED),
]
DEVICES = ("dev-0", "dev-1")
RATE, ORDERS = 1_000, 60_000


@dataclass(frozen=True, slots=True)
class Shop:
    """Jobs on a cluster, and the broker that they read."""

    broker: Broker
    cluster: LocalCluster
    jar: Path

    def program(self, main: str) -> Program:
        """A job of two subtasks, as it is submitted."""
        return Program(self.jar, main, (self.broker.address,), parallelism=2)

    def started(self, main: str) -> str:
        """Submit a job as others do; returns its id when it runs."""
        rest = self.cluster.rest
        uploaded = quote(rest.upload(self.jar), safe="")
        request = {
            "entryClass": main,
            "programArgsList": [self.broker.address],
            "parallelism": 2,
        }
        job = str(rest.post(f"/jars/{uploaded}/run", request)["jobid"])
        rest.wait_running(job, 120)
        return job


@pytest.fixture(scope="module")
def shop(flink: Flink, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A broker, and a cluster with Kafka's connector."""
    folder = tmp_path_factory.mktemp("kafka")
    flink = kafka_flink(flink, folder / "flink")
    jar = kafka_jobs(flink, folder / "jobs.jar")
    (folder / "broker").mkdir()
    settings = {
        "taskmanager.numberOfTaskSlots": 4,
        "env.java.opts.taskmanager": "-XX:TieredStopAtLevel=1",
        "execution.checkpointing.interval": "2 s",
        "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
        "execution.checkpointing.savepoint-dir": (folder / "savepoints").as_uri(),
    }
    with (
        broker(folder / "broker", jar) as made,
        local_cluster(flink, DEVICES, settings=settings) as cluster,
    ):
        for topic in ("orders", "payments", "windows", "paid", "large"):
            made.create(topic)
        made.create("totals", 4, "cleanup.policy=compact")
        yield Shop(made, cluster, jar)


def test_a_job_is_moved_under_load_to_the_last_record(shop: Shop) -> None:
    """Exactly once, five times in a row; its lag says that it keeps up before."""
    rest, job = shop.cluster.rest, shop.started("WindowsJob")
    engine = FlinkEngine(rest, home=shop.cluster.flink.home, moves=MoveSettings(settle=2.0))
    with shop.broker.fed("orders", ORDERS, rate=RATE):
        flow = source_flow(rest, job, 10.0)
        assert flow is not None
        assert flow.keeps_up
        assert flow.offered == pytest.approx(RATE, rel=0.3)
        for turn in range(5):
            there = layout_of(rest, job, rest.running_job(job))
            target = {name: [DEVICES[turn % 2]] * len(own) for name, own in there.items()}
            job = engine.move(job, shop.program("WindowsJob"), Layout(target)).job
    windows = shop.broker.await_total("windows", ORDERS)
    assert (windows.total, windows.repeated) == (ORDERS, 0)
    rest.cancel(job)


def test_a_join_and_a_table_read_every_record_once(shop: Shop) -> None:
    """Their counts add up without moves, so that what a move breaks is the move's doing."""
    jobs = [shop.started("JoinJob"), shop.started("SqlJob")]
    shop.broker.feed("payments", ORDERS)
    paid = shop.broker.await_total("paid", ORDERS * (ORDERS - 1) // 2)
    assert (paid.records, paid.repeated) == (ORDERS, 0)
    assert shop.broker.await_total("totals", ORDERS, last=True).total == ORDERS
    for job in jobs:
        shop.cluster.rest.cancel(job)
