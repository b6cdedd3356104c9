"""Verifying, with a cluster that answers what it is told to."""

from typing import Any

import pytest

from streamplace.engines.flink.verify import verify


class TwoMaps:
    """A job of two operators of one name, on two devices."""

    def job(self, job: str) -> dict[str, Any]:
        """State and vertices."""
        rows = [{"id": v, "name": "Map", "parallelism": 1} for v in ("v0", "v1")]
        return {"state": "RUNNING", "schedulerType": "Default", "vertices": rows}

    def get(self, path: str) -> Any:
        """Subtasks of a vertex."""
        device = "dev-0" if path.endswith("v0") else "dev-2"
        return {"subtasks": [{"taskmanager-id": device}]}


@pytest.mark.parametrize(
    ("devices", "fine"), [(["dev-2"], False), (["dev-0"], False), (["dev-0", "dev-2"], False)]
)
def test_operators_of_one_name_are_all_looked_at(devices: list[str], fine: bool) -> None:
    """One of them where it should be does not hide the other."""
    found = verify(TwoMaps(), "job", {"Map": devices})  # type: ignore[arg-type]
    assert found.fine is fine
    (check,) = found.checks
    assert dict(check.actual) == {"dev-0": 1, "dev-2": 1}
