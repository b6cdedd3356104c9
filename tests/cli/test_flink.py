from collections.abc import Callable
from pathlib import Path

CLUSTER = """\
bandwidth = "1000 Mbps"
devices = [{name = "big", mips = 5000}, {name = "small", mips = 2500}]
"""


def test_config_makes_task_managers_devices(run: Callable, tmp_path: Path) -> None:
    """One file each, and whatever is placed later needs no other."""
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    assert run("flink", "config", "--cluster", "cluster.toml", "-o", "config").status == 0
    written = {path.name: path.read_text() for path in (tmp_path / "config").iterdir()}
    assert set(written) == {"big.yaml", "small.yaml"}
    assert 'taskmanager.resource-id: "big"' in written["big.yaml"]
    assert "external-resource.lim-31-dev-small.amount" in written["big.yaml"]


def test_config_of_no_cluster_is_told_in_one_line(run: Callable) -> None:
    """And writes nothing."""
    answer = run("flink", "config", "--cluster", "none.toml", "-o", "config")
    assert answer.status == 2
    assert len(answer.err.splitlines()) == 1
