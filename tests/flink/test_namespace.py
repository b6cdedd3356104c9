"""All jobs of a namespace in one table, by Kubernetes, by Prometheus, and by both."""

import json
from pathlib import Path

import pytest
from fake_flink import CPU, application, rates, said
from history_series import (
    BUFFERS,
    BUSY,
    COSTS,
    HOUR,
    JAVA,
    SPLIT,
    WAKING,
    WrittenJob,
    hourly_rates,
    merged,
)
from operator_stand_in import PATH, FakeKubernetes, kubeconfig, specification
from pods import NAMESPACE
from prometheus_server import open_metrics, prometheus, require_prometheus

from streamplace.flink.advise.namespace import FREE

HOURS = 6
SPAN = f"2026-01-01T00:00..2026-01-01T0{HOURS}:00"
OFFERS = """
offers = [{name = "small", price = 0.1, cores = 1}, {name = "large", price = 0.25, cores = 2}]
"""


def full(flink):
    """Let the second operator be held back by its own work."""
    split = rates(100, 250, 100 * 400, 250 * 40, busy=1.99)
    flink.vertices["v1"].rates = split
    flink.vertices["v0"].rates["accumulateBackPressuredTimeMs"] = 1500.0
    return flink


@pytest.fixture
def namespace(shop, tmp_path, monkeypatch):
    """Four jobs: one on more pods than it needs, one at its limit, one suspended, and a session."""
    spec = specification()
    large, held_back = (
        application(shop, name, number, 10**9) for name, number in (("large", 3), ("full", 1))
    )
    flinks = {"large": large, "full": full(held_back)}
    deployments = {
        "full": spec,
        "large": spec,
        "none": spec | {"job": spec["job"] | {"state": "suspended"}},
        "session": {key: value for key, value in spec.items() if key != "job"},
    }
    (tmp_path / "offers.toml").write_text(OFFERS)
    with FakeKubernetes(deployments, flinks).served() as served:
        kubeconfig(tmp_path, served.url, monkeypatch)
        yield served


def table(run, *words):
    """Rows of the command by their names, in order, and the document."""
    answer = run("flink", "advise", *words, "--json")
    assert answer.status == 0, answer
    document = json.loads(answer.out)
    return {row["name"]: row for row in document["jobs"]}, document


HERE = ("--rest", f"kubernetes:{NAMESPACE}")


def test_every_job_of_a_namespace_has_a_row(namespace, run):
    """The one that saves most is the first; what cannot be judged comes last, with the reason."""
    rows, document = table(run, *HERE)
    assert [*rows] == ["large", "full", "none", "session"]
    assert document["unit"] == "cores"
    large, full = rows["large"], rows["full"]
    assert large["pods"] == {"number": 3, "cores": 2.0, "memory": 10**9, "offer": ""}
    assert (large["cost"], large["cores"], large["saves"]) == (6.0, 2.0, 4.0)
    assert large["load"] == pytest.approx(sum(CPU.values()) / 6)
    assert large["limit"] == "split"
    assert (full["needs"], full["saves"], full["limit"]) == (None, None, "CPU")
    assert "suspended" in rows["none"]["why"]
    assert "session cluster" in rows["session"]["why"]
    assert {request.partition(" ")[0] for request, _ in namespace.asked} == {"GET"}


def test_prices_are_those_of_the_offers(namespace, run):
    rows, document = table(run, *HERE, "--offers", "offers.toml", "--rate", "1.1x")
    assert document["unit"] == "per hour"
    assert rows["large"]["cost"] == pytest.approx(0.75)
    assert rows["large"]["saves"] == pytest.approx(0.65)
    assert rows["large"]["needs"]["offer"] == "small"
    Path("offers.toml").write_text('offers = [{name = "other", price = 0.1, cores = 5}]\n')
    rows, _ = table(run, *HERE, "--offers", "offers.toml")
    assert (rows["large"]["cost"], rows["large"]["saves"]) == (None, None)
    assert rows["large"]["needs"] == {"number": 1, "cores": 5.0, "memory": None, "offer": "other"}


def test_the_table_fits_a_screen_and_is_a_page(namespace, run):
    """The time of all measurements is told before the first one."""
    answer = run("flink", "advise", *HERE, "-o", "namespace.html")
    assert answer.status == 0
    first, *others = answer.err.splitlines()
    assert first.startswith("4 jobs, measured one after the other: 1 min 40 s in all, up to 8 min")
    assert others == ["table → namespace.html"]
    lines = answer.out.splitlines()
    assert lines[0] == "Judged: 2 of 4 jobs. Cores: 8 today, of which 4 can be saved."
    assert " ".join(lines[2].split()) == "large 3 × 2 6 4 % 1 × 2 4 split 10 %"
    assert max(map(len, lines)) <= 80
    page = Path("namespace.html").read_text("utf-8")
    assert "<title>Namespace flink</title>" in page
    assert "<td>3 × 2, 1 GB</td>" in page
    assert page.count("</meter>") == 2
    assert "is suspended" in page


def test_a_job_that_fails_does_not_stop_the_others(namespace, run):
    """Nor does one of which Kubernetes says nothing that is understood."""
    del namespace.flinks["full"]
    namespace.answers[f"GET {PATH}/none"] = {"kind": "FlinkDeployment"}
    rows, _ = table(run, *HERE)
    assert rows["large"]["saves"] == 4.0
    assert "404" in rows["full"]["why"]
    assert "in another form" in rows["none"]["why"]


CANARY = {"metadata": {"name": "canary", "labels": {"flink.apache.org/canary": "true"}}}
FORBIDDEN = {"message": 'cannot list resource "flinksessionjobs"', "reason": "Forbidden"}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"items": []}, "namespace flink has no FlinkDeployment or FlinkSessionJob"),
        ({"items": [CANARY]}, "namespace flink has no FlinkDeployment or FlinkSessionJob"),
        (said(json.dumps(FORBIDDEN).encode(), 403), "a right is missing: cannot list resource"),
        (said(b"404 page not found", 404), "no resources of Flink's operator"),
        (said(b"<html>"), "not as Kubernetes does"),
        ({"items": 3}, "FlinkDeployment in another form"),
    ],
)
def test_a_namespace_that_cannot_be_listed_is_refused_in_one_line(namespace, refusal, answer, told):
    namespace.answers[f"GET {PATH}"] = answer
    assert told in refusal("flink", "advise", *HERE)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--job", "a" * 32), "--job is for one job"),
        (("--rate", "500"), "give a multiple, such as 1.2x"),
        (("-o", "plan.json"), ".html"),
        (("job.jar",), "JAR is for one job"),
    ],
)
def test_what_is_of_one_job_is_refused_for_all(namespace, refusal, words, told):
    Path("job.jar").write_bytes(b"")
    assert told in refusal("flink", "advise", *HERE, *words)


def test_other_commands_need_the_name_of_a_resource(namespace, refusal):
    assert "names no resource" in refusal("flink", "profile", *HERE)


RATES = hourly_rates(HOURS)
SIZE = (2.0, 1e9)
PEAK = 2 * JAVA + sum(
    2 * fixed + per_tuple * RATES.max() * (SPLIT if task == "v2" else 1.0)
    for task, (fixed, per_tuple) in COSTS.items()
)
"""Cores of a written job at its peak."""


def written(name, number=0, **facts):
    """A job of known costs, on two pods of its own."""
    space = (("namespace", facts.pop("namespace", NAMESPACE)),)
    usual = {"device": name, "limits": SIZE, "throttled": 0.0, "noise": 0.0}
    return WrittenJob(RATES, f"{number:032x}", name, space, **(usual | facts))


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    """A Prometheus with jobs of all kinds."""
    require_prometheus()
    jobs = [
        written("large"),
        written("full", 1, throttled=0.4),
        written("gone", 2, ends=3.0 * HOUR),
        written("twice", 3, device="twice-a"),
        written("twice", 4, device="twice-b"),
        written("one", 5, device="session"),
        written("two", 6, device="session"),
        written("bare", 7, throttled=None, limits=None),
        written("busy", 8, throttled=None, limits=None, cpu_seconds=False),
        written("elsewhere", 9, namespace="other"),
    ]
    text = open_metrics(merged(*jobs), jobs[0].times)
    with prometheus(tmp_path_factory.mktemp("prometheus"), text) as url:
        yield f"prometheus:{url}"


def test_metrics_alone_are_judged_by_cpu(metrics, run):
    """Needed cores leave a quarter free; sizes of pods are those of their containers."""
    rows, document = table(run, "--from", f"{metrics}?namespace={NAMESPACE}", "--since", SPAN)
    assert {name for name, row in rows.items() if row["why"]} == {"gone", "twice", "one", "two"}
    assert "it does not run: its metrics end at 2026-01-01 03:0" in rows["gone"]["why"]
    assert "two jobs are called 'twice'" in rows["twice"]["why"]
    assert "run other jobs" in rows["one"]["why"]
    large = rows["large"]
    assert large["pods"] == {"number": 2, "cores": 2.0, "memory": 1e9, "offer": ""}
    assert large["load"] == pytest.approx(PEAK / 4, rel=0.01)
    assert large["cores"] == pytest.approx(PEAK / (1 - FREE), rel=0.01)
    # 2 pods hold 576 MB each of their memory, of which one has 1 GB
    assert (large["needs"]["number"], large["saves"]) == (2, 0.0)
    assert rows["full"]["limit"] == "CPU"
    assert rows["bare"]["pods"] is None
    assert rows["bare"]["cores"] == pytest.approx(PEAK / (1 - FREE), rel=0.01)
    busy = BUSY * (PEAK - 2 * JAVA) + 2 * WAKING * BUFFERS
    assert rows["busy"]["cores"] == pytest.approx(busy / (1 - FREE), rel=0.01)
    assert "Streams between operators are in no metric" in document["notes"][0]


def test_metrics_have_prices_and_percentiles(metrics, run, tmp_path):
    (tmp_path / "offers.toml").write_text(OFFERS)
    words = (
        "--from",
        f"{metrics}?namespace={NAMESPACE}",
        "--since",
        SPAN,
        "--offers",
        "offers.toml",
    )
    peak, _ = table(run, *words)
    assert peak["large"]["cost"] == 0.5
    assert peak["large"]["needs"] == {"number": 1, "cores": 1.0, "memory": None, "offer": "small"}
    assert peak["large"]["saves"] == pytest.approx(0.4)
    assert peak["bare"]["needs"] == peak["large"]["needs"]
    double, _ = table(run, *words, "--rate", "4x")
    assert double["large"]["cores"] == pytest.approx(4 * peak["large"]["cores"])
    half, _ = table(run, *words, "--rate", "50%")
    java = 2 * JAVA / (1 - FREE)
    assert half["large"]["cores"] - java < 0.7 * (peak["large"]["cores"] - java)
    assert half["large"]["load"] == peak["large"]["load"]


def test_jobs_of_several_namespaces_have_both_names(metrics, run):
    rows, _ = table(run, "--from", metrics, "--since", SPAN)
    assert {"flink/large", "other/elsewhere"} <= rows.keys()
    answer = run("flink", "advise", "--from", metrics, "--since", SPAN)
    assert "Streams between operators are in no metric" in " ".join(answer.out.split())


def test_a_prometheus_without_jobs_is_refused(metrics, refusal):
    address = f"{metrics}?namespace=none"
    assert "no metrics of any job" in refusal("flink", "advise", "--from", address, "--since", SPAN)


def test_history_judges_the_jobs_of_a_namespace(namespace, metrics, run):
    """Each with its streams; a job that Prometheus does not have is a row."""
    rows, _ = table(run, *HERE, "--from", metrics, "--since", SPAN)
    assert rows["large"]["load"] == pytest.approx(PEAK / 6, rel=0.01)
    assert (rows["large"]["cost"], rows["large"]["saves"]) == (6.0, 4.0)
    assert rows["full"]["limit"] == "CPU"
    rows, _ = table(run, *HERE, "--from", f"{metrics}?namespace=other", "--since", SPAN)
    assert "no metrics of job 'large'" in rows["large"]["why"]
