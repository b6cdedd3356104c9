"""Moving from a placement that runs, from the command line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

FEW = ("--evaluations", "2000", "--devices", "2")


def moving(passes: int) -> tuple[str, str]:
    Path("move.toml").write_text(f'from = "present.json"\nstartup = "3 s"\npasses = {passes}\n')
    return "--settings", "move.toml"


def test_place_moves_only_what_pays_off(run: Callable, tasks: str) -> None:
    """4.8 s become 3.2 s when one operator moves, which takes 3 s: worth it over two passes."""
    asked = ("place", tasks, *FEW, "--json")
    stay = json.loads(run(*asked, *moving(passes=1)).out)
    move = json.loads(run(*asked, *moving(passes=4)).out)
    assert set(stay["assignment"].values()) == {"d0"}
    assert stay["relocation"]["moved"] == []
    assert move["objective"] == "makespan after a move every 4 passes"
    assert move["makespan"] == pytest.approx(3.2)
    (moved,) = move["relocation"].pop("moved")
    assert (moved["source"], moved["target"]) == ("d0", "d1")
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


def test_place_and_simulate_tell_people_what_moves(run: Callable, tasks: str) -> None:
    way = ("--from", "present.json", "--startup", "3 s")
    placed = run("place", tasks, *FEW, *moving(passes=4), "-o", "new.json").out
    for told in (placed, run("simulate", tasks, "new.json", "--devices", "2", *way).out):
        assert "d0 → d1" in told
        assert "takes 3 s and pays off after 2 passes" in " ".join(told.split())
