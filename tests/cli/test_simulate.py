import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("graph", "placement")
SIMULATE = ("simulate", "graph.json", "placement.json")


def test_json_has_the_throughput_the_bottleneck_and_every_load(run):
    """The machine-readable answer is one document with everything, which -o keeps."""
    answer = run(*SIMULATE, "--json", "-o", "answer.json")
    document = json.loads(answer.out)
    assert json.loads(Path("answer.json").read_text()) == document
    assert document["relative_throughput"] == pytest.approx(2500 / 7100)
    assert document["throughput"] == pytest.approx(1e4 * 2500 / 7100)
    assert document["bottleneck"]["kind"] == "device"
    assert document["bottleneck"]["name"] == "d0"
    assert [device["name"] for device in document["devices"]] == ["d0", "d1", "d2", "d3", "d4"]
    assert [(link["source"], link["target"]) for link in document["links"]] == [("d0", "d1")]


def test_a_bad_placement_is_explained_with_what_to_move(run):
    out = run(*SIMULATE).out
    assert "of the sources' 10000 tuples/s (35.2 %)" in out
    assert "Bottleneck: the CPU of d0 at 284.0 %" in out
    assert "What to move: b" in out


def test_advice_breaks_no_pin(run):
    line = (*SIMULATE, "--json")
    free = json.loads(run(*line).out)["move"]
    pins = "".join(f'{name} = "d0"\n' for name in free["operators"])
    Path("rules.toml").write_text(f"[pin]\n{pins}")
    bound = json.loads(run(*line, "--constraints", "rules.toml").out)["move"]
    assert not set(bound["operators"]) & set(free["operators"])


def test_the_engine_adds_latency_and_the_time_to_steady(run):
    document = json.loads(run(*SIMULATE, "--engine", "--json").out)
    assert document["latency"]["p99"] >= document["latency"]["p50"] > 0
    assert document["time_to_steady"] is not None
    assert document["engine"]["relative_throughput"] == pytest.approx(
        document["relative_throughput"], abs=0.01
    )


def test_a_run_with_queues_that_tells_nothing_exits_with_1(run):
    """The reason stands in place of the numbers; the flag is in --json."""
    short = (*SIMULATE, "--engine", "--duration", "0.02")
    answer = run(*short)
    assert answer.status == 1
    assert "With queues: no result." in answer.out
    assert "has not settled; give a duration" in " ".join(answer.out.split())
    answer = run(*short, "--json")
    assert answer.status == 1
    assert json.loads(answer.out)["engine"]["valid"] is False


def test_a_placement_is_simulated_at_the_rate_it_was_placed_for(run):
    """Unless another rate is given; a file without one has that of the graph."""
    placed = run(
        "place", "graph.json", "--rate", "20000", "--evaluations", "100", "-o", "fast.json"
    )
    assert placed.status == 0
    again = run("simulate", "graph.json", "fast.json", "--json")
    assert json.loads(again.out)["offered"] == 20000
    assert "20000" in again.err
    other = run("simulate", "graph.json", "fast.json", "--json", "--rate", "5000")
    assert (json.loads(other.out)["offered"], other.err) == (5000, "")
    old = json.loads(Path("fast.json").read_text())
    Path("fast.json").write_text(json.dumps({"assignment": old["assignment"]}))
    assert json.loads(run("simulate", "graph.json", "fast.json", "--json").out)["offered"] == 10000


def test_a_held_order_is_simulated_as_it_was_placed(run):
    """While the second task waits for its input, only a held order lets the free one wait, too."""
    operators = [
        {"name": "first", "ipt": 1e9, "payload": "1 GB"},
        {"name": "second", "ipt": 1e9},
        {"name": "free", "ipt": 5e9},
    ]
    streams = [{"from": "first", "to": "second"}]
    tasks = {"name": "tasks", "fires": "all", "operators": operators, "streams": streams}
    Path("tasks.json").write_text(json.dumps(tasks))
    order = {"second": 2, "free": 1, "first": 3}
    held = {
        "objective": "makespan:queue=order",
        "assignment": {"first": "d0", "second": "d1", "free": "d1"},
        "priority": order,
    }
    Path("held.json").write_text(json.dumps(held))
    line = ("simulate", "tasks.json", "held.json", "--devices", "2", "--json")
    answer = run(*line)
    ordered = json.loads(run(*line, "--objective", "makespan:queue=order").out)
    assert json.loads(answer.out) == ordered
    assert ordered["makespan"] > json.loads(run(*line, "--objective", "makespan").out)["makespan"]
    assert "makespan:queue=order" in answer.err


def test_a_lost_device_moves_its_operators_alone(run, graph):
    """The others stay; a pin to the device is dropped, and the answer says so."""
    Path("rules.toml").write_text('pin = {src = "d1"}\n')
    line = (graph, "--devices", "4", "--constraints", "rules.toml")
    run("place", *line, "--evaluations", "300", "-o", "before.json")
    before = json.loads(Path("before.json").read_text())["assignment"]
    lost = {name for name, device in before.items() if device == "d1"}
    after = ("simulate", graph, "before.json", *line[1:], "--without", "d1")
    told = json.loads(run(*after, "--json").out)
    assert {move["operator"] for move in told["relocation"]["moved"]} == lost
    assert set(told["relocation"]["lost"]) == lost
    assert "no pin to d1, which is lost (src)" in told["assumptions"]
    assert f"{len(lost)} because their device is gone" in told["verdict"]


@pytest.mark.parametrize("verb", ["place", "simulate"])
@pytest.mark.parametrize(
    ("lost", "reason"),
    [("gpu", "requires 'gpu', which no device offers"), ("d7", "has no device 'd7'")],
)
def test_a_device_that_cannot_be_lost_is_refused(run, verb, lost, reason):
    """One line names the operator that may run nowhere else, or the devices that there are."""
    operators = [{"name": "a", "rate": 1}, {"name": "b", "requires": ["gpu"]}]
    streams = [{"from": "a", "to": "b"}]
    Path("g.json").write_text(json.dumps({"operators": operators, "streams": streams}))
    Path("c.toml").write_text('devices = [{name = "box"}, {name = "gpu", tags = ["gpu"]}]')
    Path("p.json").write_text('{"assignment": {"a": "box", "b": "gpu"}}')
    files = ("g.json", "p.json") if verb == "simulate" else ("g.json",)
    answer = run(verb, *files, "--cluster", "c.toml", "--without", lost)
    assert (answer.status, answer.out) == (2, "")
    assert reason in answer.err
    assert answer.err.count("\n") == 1
