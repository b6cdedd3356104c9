from pathlib import Path

import pytest
from problems import chain

from streamplace.evaluate.compare import compare
from streamplace.evaluate.comparison_run import ComparisonRun
from streamplace.evaluate.record_file import RecordFile
from streamplace.model import Cluster, Problem


@pytest.mark.parametrize("name", ["x" * 300, "missing"])
def test_weights_that_cannot_be_named_are_told_as_any_that_are_missing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the record of the placer that was to use them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    comparison = ComparisonRun(placers=(f"dream:weights={name}",))
    ((record,),) = compare(
        comparison, [Problem(chain(), Cluster.uniform(2))], RecordFile(tmp_path / "results.jsonl")
    )
    assert record.value is None
    assert "cannot be read" in str(record.error)
