"""Other questions than the rate, and moves from a placement that runs, from the command line."""

import json
from pathlib import Path

import pytest

FEW = ("--evaluations", "2000", "--devices", "2")


def test_a_task_graph_needs_no_option_to_be_placed_for_its_pass(run, tasks):
    answer = json.loads(run("place", tasks, *FEW, "--json", "-o", "p.json").out)
    assert answer["objective"] == "makespan"
    assert answer["makespan"] == pytest.approx(3.2)
    assert answer["gap"] == pytest.approx(0)
    assert answer["verdict"].startswith("the best possible, proven")
    document = json.loads(run("simulate", tasks, "p.json", "--devices", "2", "--json").out)
    assert document["makespan"] == answer["makespan"]
    assert document["bound"] == answer["bound"]
    assert set(document["schedule"]) == {"load", "left", "right", "add"}


def test_a_comparison_judges_by_one_objective(run, tasks):
    words = ("--placers", "single,round-robin,random", "--reference", "single", "-o", "out")
    first = json.loads(run("compare", tasks, *words, "--json").out)
    assert first["objective"] == "makespan"
    second = run("compare", tasks, *words, "--objective", "latency", "--json").out
    assert json.loads(second)["objective"] == "latency"
    again = json.loads(run("compare", tasks, *words, "--json").out)
    assert again == first
    single = first["rates"]["own"]["placers"]["single"]
    assert single["mean"] == pytest.approx(4.8)
    assert single["of_best"][0] >= 1
    assert "× best" in run("compare", tasks, *words).out


def test_devices_alone_say_what_they_carry(run):
    """One device is the fewest there can be, and lets a third of the tuples pass."""
    rows = [{"name": "in", "rate": 1000}, {"name": "work", "ipt": 7.5e6}]
    document = {"operators": rows, "streams": [{"from": "in", "to": "work"}]}
    Path("g.json").write_text(json.dumps(document))
    few = ("place", "g.json", "--objective", "devices", *FEW)
    verdict = "1 device, 33.3 % of the sources' rate, 333.333 tuples/s"
    assert verdict in run(*few).out
    answer = json.loads(run(*few, "--json", "-o", "p.json").out)
    assert answer["verdict"].endswith(verdict)
    assert answer["relative_throughput"] == pytest.approx(1 / 3)
    words = ("--objective", "devices", "--devices", "2", "--json")
    simulated = json.loads(run("simulate", "g.json", "p.json", *words).out)
    assert simulated["relative_throughput"] == pytest.approx(1 / 3)
    enough = run(*few, "--require", "throughput>=0.3").out
    assert "1 device, throughput>=0.3, 33.3 % of the sources' rate" in enough


def test_devices_of_a_task_graph_are_told_alone(run, tasks):
    assert "rate" not in run("place", tasks, "--objective", "devices", *FEW).out


def test_a_preset_is_an_option_of_the_makespan(run, tasks):
    run("place", tasks, "--placer", "round-robin", "--devices", "2", "-o", "p.json")
    line = ("simulate", tasks, "p.json", "--devices", "2", "--json")
    assert run(*line, "--objective", "makespan:preset=placeto").out != run(*line).out


def moving(passes):
    """Options for a task graph that runs on one device and moves after so many passes."""
    Path("move.toml").write_text(f'from = "present.json"\nstartup = "3 s"\npasses = {passes}\n')
    return "--settings", "move.toml"


def test_place_moves_only_what_pays_off(run, tasks):
    """4.8 s become 3.2 s when one operator moves, which takes 3 s: worth it over two passes."""
    line = ("place", tasks, *FEW, "--json")
    stay = json.loads(run(*line, *moving(passes=1)).out)
    move = json.loads(run(*line, *moving(passes=4)).out)
    assert set(stay["assignment"].values()) == {"d0"}
    assert stay["relocation"]["moved"] == []
    assert move["objective"] == "makespan after a move every 4 passes"
    assert move["makespan"] == pytest.approx(3.2)
    (moved,) = move["relocation"].pop("moved")
    assert (moved["source"], moved["target"]) == ("d0", "d1")
    assert move["relocation"].pop("lost") == []
    assert move["relocation"] == pytest.approx(
        {
            "seconds": 3.0,
            "passes": 4,
            "per_pass": 0.75,
            "value": 3.95,
            "before": 4.8,
            "pays_off_after": 3 / 1.6,
        }
    )
    assert move["gap"] == pytest.approx(0.75)
