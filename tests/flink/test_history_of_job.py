"""Jobs by their history in a real Prometheus, whose series have known costs."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_flink import OFFERS, SETTINGS, FakeFlink, application, failure, said
from history_series import COSTS, DAYS, HOUR, SPAN, SPLIT, WrittenJob, hourly_rates, merged
from prometheus_server import open_metrics, prometheus, require_prometheus

from streamplace.flink.cpu.charging import BUSY_SHARE, OF_PROCESS
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.prometheus import client, reading
from streamplace.flink.prometheus.client import Prometheus, PrometheusAddress, time_range
from streamplace.flink.prometheus.reading import read_history
from streamplace.model.graph import CPU_ERROR
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.traces import parse_trace

MIPS = 1000.0
NAMES = {"v0": "src", "v1": "split", "v2": "out"}
DAY = "2026-01-01T00:00..2026-01-02T00:00"
ONE_DAY = hourly_rates(24)
CASES = {
    "gauges": {"counters": False},
    "counters": {"gauges": False},
    "busy": {"cpu_seconds": False},
    "skewed": {"shares": (0.7, 0.3)},
    "late": {"begins": 12.0 * HOUR},
    "resets": {"restarts": 12.5 * HOUR},
    "lags": {"lag": 5.0, "checkpoint": 90.0},
    "pods": {"throttled": 0.4, "cpu_seconds": False},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A Prometheus with a job of known costs for three days, and others, each in a namespace."""
    require_prometheus()
    known = WrittenJob(labels=(("namespace", "known"),))
    usual = replace(known, rates=ONE_DAY)
    cases = [
        replace(usual, job=f"{i:032x}", labels=(("namespace", name),), **facts)
        for i, (name, facts) in enumerate(CASES.items())
    ]
    again = (("namespace", "again"),)
    first = replace(usual, job="d" * 32, labels=again, ends=12.0 * HOUR)
    second = replace(usual, job="e" * 32, labels=again, begins=12.0 * HOUR + 120)
    texts = (
        open_metrics(known.series(), known.times),
        open_metrics(merged(*cases, first, second), usual.times),
    )
    text = texts[0].removesuffix("# EOF\n") + texts[1]
    with prometheus(tmp_path_factory.mktemp("prometheus"), text) as url:
        yield url


@pytest.fixture
def read(server, shop):
    """History of the job in a namespace, as a Flink runs it now."""

    def call(namespace, span=DAY, flink=None):
        address = PrometheusAddress.of(f"prometheus:{server}?namespace={namespace}")
        rest = (flink or shop()).rest
        return read_history(Prometheus(address), rest, "job", time_range(span, 0.0))

    return call


@pytest.fixture
def offers(run):
    """A file of offers in the folder of the command."""
    Path("offers.toml").write_text('offers = [{name = "small", price = 0.1, cores = 1}]\n')
    return "offers.toml"


def costs_in(graph):
    """Cores of the subtasks of each operator at any rate, and core seconds per tuple."""
    return {
        task: (
            graph.operators[name].constant / (2 * MIPS),
            graph.operators[name].ipt / (1e6 * MIPS),
        )
        for task, name in NAMES.items()
    }


def check_costs(graph, fixed=0.15, per_tuple=0.05, factor=1.0):
    """They are those that were written, within some relative errors."""
    found = costs_in(graph)
    for task, (base, slope) in COSTS.items():
        assert found[task][0] == pytest.approx(factor * base, rel=fixed)
        assert found[task][1] == pytest.approx(factor * slope, rel=per_tuple)


def test_costs_selectivities_and_peaks_are_those_of_the_job(read):
    history = read("known", SPAN)
    profile = history.profile()
    graph = measured_graph(profile, MIPS)
    check_costs(graph)
    assert [stream.selectivity for stream in graph.streams] == pytest.approx([1.0, SPLIT])
    assert graph.operators["split"].payload == pytest.approx(40.0)
    rates = hourly_rates()
    assert history.peak == pytest.approx(rates.max())
    for share in (0.5, 0.95):
        level = np.quantile(rates, share, method="inverted_cdf")
        assert history.level(share) == pytest.approx(level, rel=0.01)
    assert {cpu.source for cpu in profile.cpu.values()} == {OF_PROCESS}
    assert not profile.flow.is_limited
    assert str(history) == (
        "3 d of Prometheus from 2026-01-01 00:00 on, in windows of 5 min: 478 tuples/s or less in "
        "half of the time, 878 in 95 %, at most 895 (at 2026-01-02 11:00)"
    )


def test_the_trace_has_the_rate_of_every_hour(read):
    history = read("known", SPAN)
    trace = parse_trace(history.trace_text().encode(), "rates.csv")
    assert trace.sources == ("src",)
    hours = np.array([rates[0] for _, rates in trace.hours()])
    assert hours == pytest.approx(hourly_rates(24 * DAYS), rel=1e-5)


@pytest.mark.parametrize(
    ("text", "rate"), [("50%", 478.0), ("1.5x", 1.5 * 895), ("700", 700), ("100%", 895)]
)
def test_a_rate_is_a_percentile_or_a_multiple_of_the_peak(read, text, rate):
    assert read("known", SPAN).requested_rate(text) == pytest.approx(rate, rel=0.01)


@pytest.mark.parametrize("kind", ["gauges", "counters"])
def test_gauges_of_rates_or_counters_suffice(read, kind):
    check_costs(measured_graph(read(kind).profile(), MIPS))


def test_busy_time_counts_if_the_cpu_is_unknown(read):
    profile = read("busy").profile()
    assert {cpu.source for cpu in profile.cpu.values()} == {BUSY_SHARE}
    check_costs(measured_graph(profile, MIPS), factor=1.3)


def test_uneven_keys_are_found(read):
    assert read("skewed").profile().shares["split"] == pytest.approx((0.7, 0.3))
    assert read("known").profile().shares == {}


def test_restarted_counters_make_no_peak(read):
    history = read("resets")
    assert history.peak == pytest.approx(ONE_DAY.max(), rel=1e-6)
    check_costs(measured_graph(history.profile(), MIPS))


def test_a_restarted_job_is_the_same_job(read):
    history = read("again")
    whole = history.complete
    assert 0.98 < whole.mean() < 1
    rates = ONE_DAY.repeat(len(whole) // len(ONE_DAY))
    assert history.total[whole] == pytest.approx(rates[whole], rel=0.01)  # of whole windows only
    check_costs(measured_graph(history.profile(), MIPS))


def test_gaps_have_a_note(read):
    history = read("late")
    told = (
        "metrics of the job are missing in 50.0 % of this time, for 12 h from 2026-01-01 00:00 on"
    )
    assert any(note.startswith(told) for note in history.profile().doubts)
    assert history.peak == pytest.approx(ONE_DAY[12:].max())


def test_pending_tuples_have_arrived(read):
    history = read("lags")
    grown = 2 * 5.0 / 2
    assert history.peak == pytest.approx(ONE_DAY.max() + grown, rel=1e-3)
    source = history.profile().flow.sources["src"]
    assert source.growth == pytest.approx(grown, rel=0.01)


def test_containers_show_cpu_and_throttling(read):
    profile = read("pods").profile()
    graph = measured_graph(profile, MIPS)
    check_costs(graph)
    assert profile.throttled == pytest.approx({"dev-0": 0.4, "dev-1": 0.4})
    assert any(
        "a quota stopped 'dev-0', 'dev-1' in up to 40.0 %" in note for note in profile.doubts
    )
    assert "has no CPU left for it" in profile.flow.sources["src"].why


def test_errors_of_dividing_cpu_cancel_out_over_equal_taskmanagers(read):
    history = read("known")
    errors = [
        measured_graph(history.profile(is_spread=is_spread), MIPS).attributes[CPU_ERROR]
        for is_spread in (False, True)
    ]
    assert errors == [1.8, 0.05]


def test_memory_is_the_use_after_collections(read):
    used = read("known").memory
    assert used == pytest.approx((100e6, 500e6, 40e6, 64e6))
    assert used.process(1000e6) == pytest.approx(1000e6 - (500e6 - 150e6) - (64e6 - 40e6))
    note = (
        "the heap of a TaskManager held up to 100 MB of 500 MB, its managed memory 40 MB of 64 MB"
    )
    assert note in read("known").profile().doubts


@pytest.mark.parametrize("size", [300e6, 600e6])
def test_a_pod_has_room_for_the_peak_of_its_memory(read, shop, size):
    """Each of the present ones has 950 MB, of which it needs 576 MB for all of its slots."""
    flink = application(shop, "shop", 3, 950_000_000, slots="1")
    history = read("known", flink=flink)
    offers = Catalogue.of([Offer("pod", 0.5, cores=2, memory=size), Offer("large", 2.0, cores=2)])
    advice = FlinkEngine(flink.rest).advise("job", "1x", offers, SETTINGS, history=history)
    assert advice.plan.machines == {"pod" if size > 576e6 else "large": 1}
    assert "which all run the same operators" in advice.cpu


def test_late_checkpoints_have_a_note(read, shop):
    flink = shop()
    kept = {"externalization": {"enabled": False, "delete_on_cancellation": True}}
    flink.answers["GET /jobs/job/checkpoints/config"] = kept | {"interval": 60_000}
    for namespace, is_late in (("lags", True), ("known", False)):
        notes = [*read(namespace, flink=flink).checkpoints.notes()]
        assert any("longer than their interval of 1 min" in note for note in notes) == is_late


def test_too_many_samples_make_windows_longer_with_a_note(read, monkeypatch):
    monkeypatch.setattr(reading, "MAX_SAMPLES", 6500)
    history = read("known", SPAN)
    assert history.grid.step == 3600
    assert any("windows are 3600 s long instead of 300 s" in one for one in history.notes)
    assert history.peak == pytest.approx(hourly_rates().max())


def test_answers_are_divided_by_time(read, monkeypatch):
    whole = read("known", SPAN)
    monkeypatch.setattr(client, "MAX_CHUNK", 1000)
    assert read("known", SPAN).total.tolist() == whole.total.tolist()


def test_advice_has_the_cost_of_past_rates(read, shop):
    history = read("known", SPAN)
    engine = FlinkEngine(shop().rest)
    advice = engine.advise("job", "1.2x", OFFERS, SETTINGS, history=history)
    assert advice.rate == pytest.approx(1.2 * history.peak)
    costs = {row.time: row.cost for row in advice.costs}
    assert [*costs] == [
        "50% of the time",
        "95% of the time",
        "99% of the time",
        "peak",
        "each hour alone",
    ]
    assert costs["50% of the time"] <= costs["95% of the time"] <= costs["peak"] <= advice.plan.cost
    assert costs["each hour alone"] <= costs["peak"]
    text = " ".join(str(advice).split())
    assert text.count("3 d of Prometheus from 2026-01-01 00:00 on") == 1
    assert advice.to_json()["costs"][3]["rate"] == pytest.approx(history.peak)


def refused(flink, run, *words):
    """The line that the command is refused with."""
    with flink.served():
        answer = run("flink", "profile", "--rest", flink.url, *words)
    assert (answer.status, answer.out) == (2, "")
    assert "Traceback" not in answer.err
    return answer.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("query", "since", "facts", "told"),
    [
        (
            "?namespace=none",
            DAY,
            {},
            "no metrics of job 'shop' from 2026-01-01 00:00:00 to 2026-01-02",
        ),
        ("?namespace=known", DAY, {"facts": {"name": "bazaar"}}, "it has those of 'shop'"),
        ("?namespace=late", "2026-01-01..2026-01-01T06:00", {}, "of another time"),
        ("", DAY, {}, "two jobs are called 'shop' at the same time"),
        ("?name-space=x", DAY, {}, "'name-space' is not a label"),
        ("?namespace=none", DAY, {}, "it has none of any job of Flink"),
        ("", "yesterday", {}, "yesterday"),
        ("", "2026-01-02..2026-01-01", {}, "ends before it begins"),
        ("", "100d", {}, "it may be 2000 hours at most"),
    ],
)
def test_a_missing_history_is_refused_in_one_line(server, shop, run, query, since, facts, told):
    flink = shop(**facts)
    assert told in refused(flink, run, "--from", f"prometheus:{server}{query}", "--since", since)


@pytest.mark.parametrize("rate", ["200%", "0%", "x%", "fast"])
def test_a_malformed_rate_is_refused_before_anything_is_read(refusal, rate):
    words = ("flink", "advise", "--from", "prometheus:http://127.0.0.1:9", "--rate", rate)
    assert rate in refusal(*words)


def test_a_regular_expression_chooses_among_labels(read):
    assert read("~kno.*").peak == pytest.approx(hourly_rates()[:24].max())


def test_a_history_without_the_running_job_is_refused(server, run):
    answer = run(
        "flink", "profile", "--rest", "http://127.0.0.1:9", "--from", f"prometheus:{server}"
    )
    assert answer.status == 2
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (said(b"", 401), "requires authorization (401); put NAME:PASSWORD"),
        (said(b"no", 403), "requires authorization (403)"),
        (said(b"<html>"), "it answers 200 without a document"),
        (said(b"gone", 404), "it answers 404 without a document"),
        (said(b'{"status": "error", "error": "too many samples"}', 422), "too many samples"),
        (
            said(b'{"status": "success", "data": {"result": [{"values": 3}]}}'),
            "not one of Prometheus",
        ),
        (said(b"", 302, "http://elsewhere"), "it answers 302"),
    ],
)
def test_a_server_that_is_no_prometheus_is_refused_in_one_line(shop, run, answer, told):
    flink = shop()
    with FakeFlink(otherwise=answer).served() as other:
        assert told in refused(flink, run, "--from", f"prometheus:{other.url}")
    assert "connection refused" in refused(shop(), run, "--from", f"prometheus:{other.url}")


def test_a_password_is_sent_and_belongs_in_the_environment(shop, run, monkeypatch):
    monkeypatch.setenv(client.AUTHORIZATION, "me:secret")
    with FakeFlink(otherwise=failure("no")).served() as other:
        refused(shop(), run, "--from", f"prometheus:{other.url}")
        assert other.headers[0]["Authorization"] == "Basic bWU6c2VjcmV0"
        address = other.url.replace("://", "://me:secret@")
        line = refused(shop(), run, "--from", f"prometheus:{address}")
    assert client.AUTHORIZATION in line
    assert "secret" not in line


def test_a_profile_of_history_is_planned_with_its_trace(server, shop, run, offers):
    flink = shop()
    words = ("--from", f"prometheus:{server}?namespace=known", "--since", SPAN)
    with flink.served():
        answer = run("flink", "profile", "--rest", flink.url, *words, "-o", "shop")
    assert answer.status == 0, answer.err
    assert "3 d of Prometheus from 2026-01-01 00:00 on" in answer.err
    planned = ("plan", "shop/graph.json", "--trace", "shop/rates.csv", "--offers", offers)
    plan = json.loads(run(*planned, "--evaluations", "500", "--json").out)
    assert len(plan["hours"]) == 24 * DAYS


def test_the_command_advises_from_history(server, shop, run, offers):
    flink = shop()
    words = ("--from", f"prometheus:{server}?namespace=known", "--since", SPAN)
    with flink.served():
        command = ("flink", "advise", "--rest", flink.url, "--offers", offers, *words)
        document = json.loads(run(*command, "--json").out)
        printed = run(*command, "--rate", "95%")
    assert document["rate"] == pytest.approx(hourly_rates().max())
    assert "95% of the time" in printed.out
    assert not any(request.startswith("POST") for request, _ in flink.asked)
