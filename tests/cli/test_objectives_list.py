import json
from collections.abc import Callable

from streamplace.objectives.registry import OBJECTIVES


def test_the_list_is_the_registry(run: Callable) -> None:
    """Every registered objective is listed, and named in the help of --objective."""
    rows = json.loads(run("objectives", "--json").out)
    assert [row["name"] for row in rows] == list(OBJECTIVES)
    assert "|".join(OBJECTIVES) in "".join(run("simulate", "--help").out.split())
    assert all(name in run("objectives").out for name in OBJECTIVES)


def test_a_seed_is_accepted_where_it_changes_nothing_and_not_shown(
    run: Callable, graph: str, placement: str
) -> None:
    """As earlier versions did."""
    plain = run("simulate", graph, placement)
    assert run("simulate", graph, placement, "--seed", "3").out == plain.out
    for command in ("simulate", "draw", "describe", "import", "export", "schema", "placers"):
        assert "--seed" not in run(command, "--help").out
    assert "--seed" in run("place", "--help").out
