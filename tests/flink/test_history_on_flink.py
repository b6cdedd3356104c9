"""A real job in a real Prometheus: its history beside a profile."""

import json
import time

import numpy as np
import pytest
from flink_clusters import submitted
from prometheus_server import prometheus, require_prometheus

from streamplace.flink.engine import FlinkEngine
from streamplace.flink.local.session import free_port, local_cluster
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.measure.profile import steady_profile
from streamplace.flink.prometheus.client import Prometheus, PrometheusAddress, TimeRange
from streamplace.flink.prometheus.reading import (
    filtered,
    jobs_in,
    read_history,
    read_metrics,
)
from streamplace.planning.offers import Catalogue, Offer

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
MIPS, SECONDS = 1000.0, 40.0
RATES = (25, 50, 100)


def job_of(rate):
    """Job with an operator of much work, and one of less."""
    operators = [
        {"name": "src", "rate": rate, "payload": 100},
        {"name": "much", "rounds": 1_000_000},
        {"name": "less", "rounds": 300_000},
    ]
    streams = [{"from": "src", "to": "much"}, {"from": "much", "to": "less", "selectivity": 0.5}]
    return json.dumps({"name": "shop: all of it", "operators": operators, "streams": streams})


@pytest.fixture
def observed(flink, tmp_path, monkeypatch):
    """A cluster of one TaskManager, and its Prometheus."""
    require_prometheus()
    monkeypatch.setenv("FLINK_PLUGINS_DIR", str(flink.home / "plugins"))
    first = free_port()
    settings = {
        "metrics.reporters": "prom",
        "metrics.reporter.prom.factory.class": (
            "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"
        ),
        "metrics.reporter.prom.port": f"{first}-{first + 9}",
    }
    ports = range(first, first + 10)
    with (
        local_cluster(flink, ["dev-0"], settings=settings) as cluster,
        prometheus(tmp_path, scraped=ports) as url,
    ):
        yield cluster, url


def ipt_of(graph):
    """Instructions per tuple of each operator."""
    return dict(zip(graph.operators.name, graph.operators.ipt.tolist(), strict=True))


def test_history_costs_what_a_profile_says(observed, graph_jar):
    """At three rates, each of a job of its own under one name."""
    cluster, url = observed
    rest, began = cluster.rest, time.time()
    for rate in RATES:
        for old in rest.live_jobs():
            rest.cancel(old)
        job = submitted(rest, graph_jar, "GraphJob", job_of(rate))
        time.sleep(SECONDS)
    server = Prometheus(PrometheusAddress.of(f"prometheus:{url}"))
    span = TimeRange(began, time.time())
    history = read_history(server, rest, job, span)
    ((_, name),) = jobs_in(server, span)
    alone = read_metrics(server, name, span)
    assert np.nanmax(alone.used) == pytest.approx(np.nanmax(history.used))
    assert {*alone.busy} == {filtered(task.thread_name) for task in history.tasks}
    assert len(alone.managers) == 1
    profiled = measured_graph(steady_profile(rest, job, 5.0, 30.0), MIPS)
    remembered = measured_graph(history.profile(), MIPS)
    assert history.peak == pytest.approx(RATES[-1], rel=0.1)
    carried = {stream.source: stream.selectivity for stream in remembered.streams}
    assert carried == pytest.approx({"src": 1.0, "much": 0.5}, rel=0.1)
    costs = [ipt_of(graph) for graph in (remembered, profiled)]
    totals = [own["src"] + own["much"] + 0.5 * own["less"] for own in costs]
    assert totals[0] == pytest.approx(totals[1], rel=0.15)
    # busy time divides it, and that is waiting, too, where the machine has other work
    assert costs[0]["much"] == pytest.approx(costs[1]["much"], rel=0.25)
    offers = Catalogue.of([Offer("small", 0.1, cores=1)])
    advice = FlinkEngine(rest).advise(job, "1x", offers, history=history)
    assert advice.rate == pytest.approx(history.peak)
    assert [row.time for row in advice.costs][3] == "peak"
