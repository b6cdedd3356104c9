"""``plan --schedule``: its answer, its files."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from streamplace.control import problem
from streamplace.control.policy import POLICIES

GRAPH = {
    "name": "clicks",
    "operators": [{"name": "src", "ipt": 1e5, "rate": 1e4}, {"name": "count", "ipt": 1e5}],
    "streams": [{"from": "src", "to": "count"}],
}
OFFERS = "[[offers]]\nname = 'small'\nprice = 0.1\ncores = 1\n"
RATES = [5e3, 5e3, 4e4, 4e4, 5e3, 5e3]


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A day of six hours, of which two need several machines; few plans are enough for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(problem, "PLANS", 8)
    Path("graph.json").write_text(json.dumps(GRAPH))
    Path("offers.toml").write_text(OFFERS)
    rows = [f"{3600 * hour},{rate}" for hour, rate in enumerate(RATES)]
    Path("day.csv").write_text("\n".join(["time,rate", *rows]))
    Path("hourly.toml").write_text("slot = '1h'\njobs = 1\n")
    files = "--trace day.csv --offers offers.toml --settings hourly.toml"
    return f"plan graph.json {files} --evaluations 200".split()


def test_the_schedule_has_fewer_machines_while_rates_are_low(
    run: Callable, words: list[str]
) -> None:
    """It costs less than the peak all day, and no less than the bound."""
    answer = json.loads(run(*words, "--schedule", "--policy", "all", "--json").out)
    plans = answer["plans"]
    cost = [plans[step["plan"]]["cost"] for step in answer["steps"]]
    assert len(cost) == 3
    assert cost[0] < cost[1] > cost[2]
    assert answer["bound"] <= answer["cost"] < answer["static_cost"]
    assert all(plans[step["plan"]]["carries"] >= step["rate"] for step in answer["steps"])
    assert {policy["name"] for policy in answer["policies"]} == set(POLICIES)
    assert all(policy["cost"] >= answer["bound"] for policy in answer["policies"])


def test_a_schedule_is_written_with_its_plans(run: Callable, words: list[str]) -> None:
    answer = run(*words, "--schedule", "-o", "made")
    assert answer.status == 0
    assert "With" not in answer.err
    assert "No controller that decides between slots" in " ".join(answer.out.split())
    document = json.loads(Path("made/schedule.json").read_text())
    for number, _ in enumerate(document["plans"]):
        assert Path(f"made/plan-{number}/placement.json").exists()
    assert "<svg" in Path("made/schedule.svg").read_text()
