"""A job on one TaskManager is probed, on a real cluster."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from streamplace.engines.flink.decide.probing import Prober, left_probe, resumed
from streamplace.engines.flink.engine import FlinkEngine
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.measure.sending_cost import ASSUMED
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
JOB = {
    "name": "probed",
    "operators": [
        {"name": "src", "rate": 500, "payload": 200},
        {"name": "work", "rounds": 50_000, "payload": 200, "parallelism": 2},
        {"name": "out"},
    ],
    "streams": [
        {"from": "src", "to": "work", "partitioning": "rebalance"},
        {"from": "work", "to": "out", "partitioning": "rebalance"},
    ],
}
TOGETHER = {"src": ["dev-0"], "work": ["dev-0", "dev-0"], "out": ["dev-0"]}


def test_a_job_on_one_task_manager_is_probed_and_goes_back(
    rest: Rest, flink: Flink, graph_jar: Path, submit: Callable[..., str], tmp_path: Path
) -> None:
    """It keeps up, so it goes back; an interrupted probe does so when it is resumed."""
    job = submit(JOB, TOGETHER)
    told: list[str] = []
    engine = FlinkEngine(
        rest,
        flink.home,
        moves=MoveSettings(tmp_path.as_uri()),
        tell=told.append,
        patience=20.0,
        accept_cold=True,
    )
    move = engine.moving(Program(graph_jar, "GraphJob", [json.dumps(JOB)]))
    prober = Prober(engine, move, seconds=4.0, trusts_profile=True, tell=told.append)
    probed = prober.probe(job)
    assert probed is not None, told
    spread = {device for devices in probed.record.spread.values() for device in devices}
    assert len(spread) > 1
    overhead = probed.proposal.measured.cluster.overhead_s
    assert 0 < overhead != ASSUMED.rounded().per_tuple
    moved = prober.finish(probed)
    assert set(move.plan(moved.job, TOGETHER).moved) == set()
    assert left_probe(move, None) is None
    again = prober.probe(moved.job)
    assert again is not None
    back = resumed(move, again.proposal.job)
    assert rest.state(back.job) == "RUNNING"
    assert set(move.plan(back.job, TOGETHER).moved) == set()
    assert left_probe(move, None) is None
