import json
from collections.abc import Callable

from streamplace.placers.registry import PLACERS


def test_the_list_is_the_registry(run: Callable) -> None:
    """Every registered placer is listed with its options, and nobody else."""
    rows = json.loads(run("placers", "--json").out)
    assert [row["name"] for row in rows] == list(PLACERS)
    assert all(row["name"] in run("placers").out for row in rows[:3])
