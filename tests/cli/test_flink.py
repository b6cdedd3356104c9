import socket
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from streamplace.engines.flink.local.config import as_yaml
from streamplace.engines.text import quoted_yaml

CLUSTER = """\
bandwidth = "1000 Mbps"
devices = [{name = "big", mips = 5000}, {name = "small", mips = 2500}]
"""


def test_config_makes_task_managers_devices(run: Callable, tmp_path: Path) -> None:
    """One file of a few lines each, which serves whatever whole operators are placed later."""
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    assert run("flink", "config", "--cluster", "cluster.toml", "-o", "config").status == 0
    written = {path.name: path.read_text() for path in (tmp_path / "config").iterdir()}
    assert set(written) == {"big.yaml", "small.yaml"}
    assert written["big.yaml"].splitlines() == [
        'taskmanager.resource-id: "big"',
        'external-resources: "dev-big"',
        "external-resource.dev-big.amount: 10000",
    ]


def test_config_lets_subtasks_be_placed_one_by_one_where_it_is_asked_to(
    run: Callable, tmp_path: Path
) -> None:
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    command = ("flink", "config", "--cluster", "cluster.toml", "--subtasks", "-o", "config")
    assert run(*command).status == 0
    text = (tmp_path / "config" / "big.yaml").read_text()
    assert "external-resource.lim-31-dev-small.amount" in text


def test_config_leaves_room_for_devices_that_come_later(run: Callable, tmp_path: Path) -> None:
    """All are told of them, so that they need not be started again."""
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    more = ("--room", "2", "--layers", "3")
    assert run("flink", "config", "--cluster", "cluster.toml", *more, "-o", "config").status == 0
    written = {path.name: path.read_text() for path in (tmp_path / "config").iterdir()}
    assert set(written) == {"big.yaml", "small.yaml", "new-1.yaml", "new-2.yaml"}
    assert all("external-resource.lim-2-dev-new-2.amount" in text for text in written.values())
    assert not any("lim-3-dev" in text for text in written.values())


def test_config_of_no_cluster_is_told_in_one_line(run: Callable) -> None:
    """And writes nothing."""
    answer = run("flink", "config", "--cluster", "none.toml", "-o", "config")
    assert answer.status == 2
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize("where", ["file", "file/below", "cluster.toml/config"])
def test_config_into_what_is_no_folder_is_told_in_one_line(
    run: Callable, tmp_path: Path, where: str
) -> None:
    """A file is in the way."""
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    (tmp_path / "file").write_text("mine")
    answer = run("flink", "config", "--cluster", "cluster.toml", "-o", where)
    assert answer.status == 2
    assert len(answer.err.splitlines()) == 1
    assert "cannot create the folder" in answer.err
    assert (tmp_path / "file").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"cluster.toml", "file"}


def test_config_over_what_cannot_be_replaced_is_told_in_one_line(
    run: Callable, tmp_path: Path
) -> None:
    """A folder bears the name of a device's file."""
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    (tmp_path / "config" / "big.yaml").mkdir(parents=True)
    answer = run("flink", "config", "--cluster", "cluster.toml", "-o", "config")
    assert answer.status == 2
    assert len(answer.err.splitlines()) == 1
    assert "big.yaml: cannot be written" in answer.err


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_settings_hold_any_text_as_text(text: str) -> None:
    """Emojis too, which are no pairs of surrogates in YAML."""
    assert yaml.safe_load(as_yaml({"taskmanager.resource-id": text})) == {
        "taskmanager.resource-id": text
    }


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_toml_holds_any_text_as_text(text: str) -> None:
    """Nothing of it is read as more than that."""
    assert tomllib.loads(f"name = {quoted_yaml(text)}\n") == {"name": text}


def test_a_taken_port_is_told_before_anything_starts(run: Callable, tmp_path: Path) -> None:
    """In one line; even a Flink on this machine is not looked for."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        answer = run("flink", "local", "--port", port, "--flink-home", str(tmp_path))
    assert answer.status == 2
    assert len(answer.err.splitlines()) == 1
    assert f"port {port} is not available: address already in use" in answer.err
