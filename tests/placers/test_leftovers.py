"""What a placement leaves behind in the temporary folder."""

import pytest
from problems import fork_join
from third_parties import run_with

from streamplace.io.graphs import write_graph


@pytest.mark.slow
def test_no_temporary_file_is_left(tmp_path, monkeypatch):
    write_graph(fork_join(), tmp_path / "graph.json")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    answer = run_with(tmp_path, tmp_path, "place", "graph.json", "--placer", "dream")
    assert answer.status == 0, answer.err
    assert list((tmp_path / "temporary").iterdir()) == []
