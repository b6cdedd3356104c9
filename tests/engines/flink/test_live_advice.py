"""Advice on a real job that nobody has placed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flink_clusters import submitted

from streamplace.engines.flink.advise.advise import Advice
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster, local_cluster
from streamplace.engines.flink.measure.cluster import HEADROOM
from streamplace.engines.flink.program.jars import build_jar
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.problem import PlanSettings

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
TRIES = 6
JOB = {
    "name": "stock",
    "operators": [
        {"name": "src", "rate": 200, "payload": 200},
        {"name": "work", "rounds": 100_000, "parallelism": 2},
        {"name": "out"},
    ],
    "streams": [
        {"from": "src", "to": "work", "partitioning": "hash"},
        {"from": "work", "to": "out", "partitioning": "rebalance"},
    ],
}
OFFERS = Catalogue.of([Offer("box", 0.1), Offer("dev", 0.3)])


def advised(rest: Rest, job: str) -> Advice:
    """Advice once the job is steady."""
    settings = PlanSettings(HEADROOM, budget=Budget(None, 20_000))
    for _ in range(TRIES):
        try:
            return FlinkEngine(rest).advise(job, "2x", OFFERS, settings, seconds=6)
        except FlinkError:
            continue
    raise AssertionError("the job is never steady")


@pytest.fixture(scope="module", params=[("1.20.5", "default"), ("2.3.0", "adaptive")], ids=str)
def other(
    request: pytest.FixtureRequest, fetched: Callable[[str], Flink]
) -> Iterator[LocalCluster]:
    """A cluster of an older Flink, and one whose scheduler is the adaptive one."""
    version, scheduler = request.param
    settings = {"jobmanager.scheduler": scheduler}
    with local_cluster(fetched(version), ["dev-0", "dev-1"], settings=settings) as running:
        yield running


def test_a_stock_job_is_advised(other: LocalCluster, tmp_path: Path) -> None:
    """Rate, key groups and machines are Flink's; the job runs on, as it did.

    Commands are those that its scheduler takes.
    """
    rest, jar = Rest(other.url), tmp_path / "jobs.jar"
    examples = Path(__file__).parents[3] / "examples" / "flink"
    build_jar(other.flink, [examples / "GraphJob.java"], jar)
    job = submitted(rest, jar, "GraphJob", json.dumps(JOB))
    before = rest.job(job)
    advice = advised(rest, job)
    after = rest.job(job)
    rest.cancel(job)
    assert advice.flow.offered == pytest.approx(200, rel=0.2)
    assert advice.rate == pytest.approx(2 * advice.flow.offered)
    assert advice.current.counts == {"dev": 2}
    assert 0 < float(advice.plan.bound) <= advice.plan.cost <= advice.current.cost
    assert advice.carried is not None
    assert {o.name: o.max_parallelism for o in advice.operators} == dict.fromkeys(
        ("src", "work", "out"), 128
    )
    assert all(o.cpu > 0 for o in advice.operators)
    assert after["state"] == "RUNNING"
    assert [v["parallelism"] for v in after["vertices"]] == [
        v["parallelism"] for v in before["vertices"]
    ]
    adaptive = rest.settings().get("jobmanager.scheduler") == "adaptive"
    told = "resource-requirements" if adaptive else "--placement plan/placement.json"
    assert any(told in line for line in advice.commands)
