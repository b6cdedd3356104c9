import socket
import tomllib
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from streamplace.engines.text import quoted_yaml
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.pin.pinning import as_yaml
from streamplace.flink.settings import FlinkAdviseSettings, FlinkMoveSettings, FlinkWatchSettings
from streamplace.flink.watch.deciding import Guards
from streamplace.model.defaults import FLINK_HEADROOM
from streamplace.planning.problem import PlannerSettings

CONFIG = ("flink", "config", "--cluster")


@pytest.fixture(autouse=True)
def _cluster(tmp_path):
    """A cluster of two devices, in cluster.toml."""
    devices = '[{name = "big", mips = 5000}, {name = "small", mips = 2500}]'
    (tmp_path / "cluster.toml").write_text(f'bandwidth = "1000 Mbps"\ndevices = {devices}\n')


@pytest.fixture
def written(run):
    """Texts of the files that ``flink config`` writes for the cluster, by their names."""

    def call(*options):
        assert run(*CONFIG, "cluster.toml", *options, "-o", "config").status == 0
        return {path.name: path.read_text() for path in Path("config").iterdir()}

    return call


def test_config_makes_task_managers_devices(written):
    """One file of a few lines each, which serves whatever whole operators are placed later."""
    files = written()
    assert set(files) == {"big.yaml", "small.yaml"}
    head, *lines = files["big.yaml"].splitlines()
    assert head.startswith("# streamplace flink config: ")
    assert lines == [
        'taskmanager.resource-id: "big"',
        'external-resources: "dev-big"',
        "external-resource.dev-big.amount: 10000",
    ]


def test_config_lets_subtasks_be_placed_one_by_one_where_it_is_asked_to(written):
    assert "external-resource.lim-31-dev-small.amount" in written("--subtasks")["big.yaml"]


def test_config_leaves_room_for_devices_that_come_later(written):
    """All are told of them, so that they need not be started again."""
    files = written("--room", "2", "--layers", "3")
    assert set(files) == {"big.yaml", "small.yaml", "new-1.yaml", "new-2.yaml"}
    assert all("external-resource.lim-2-dev-new-2.amount" in text for text in files.values())
    assert not any("lim-3-dev" in text for text in files.values())


@pytest.mark.parametrize(
    ("cluster", "where", "place"),
    [
        ("none.toml", "config", "none.toml: "),
        ("cluster.toml", "file", "file: "),
        ("cluster.toml", "taken", "big.yaml: "),
    ],
)
def test_config_that_cannot_be_made_is_told_in_one_line(refusal, tmp_path, cluster, where, place):
    """A file is in the way, or a folder that bears the name of a device's file."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "taken" / "big.yaml").mkdir(parents=True)
    assert place in refusal(*CONFIG, cluster, "-o", where)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_settings_hold_any_text_as_text(text):
    """In TOML, and in YAML, in which emojis are no pairs of surrogates."""
    setting = {"taskmanager.resource-id": text}
    assert tomllib.loads(f"name = {quoted_yaml(text)}\n") == {"name": text}
    assert yaml.safe_load(as_yaml(setting)) == setting


def test_a_taken_port_is_told_before_anything_starts(refusal, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        message = refusal("flink", "local", "--port", port, "--flink-home", str(tmp_path))
    assert f"port {port}" in message


def test_commands_do_what_python_does_without_options():
    move = FlinkMoveSettings.of_command({})
    engine = move.engine()
    assert move.moves() == MoveSettings()
    assert engine == FlinkEngine(engine.rest, tell=engine.tell)
    assert FlinkAdviseSettings.of_command({"rate": "2x"}).of_plan() == PlannerSettings(
        FLINK_HEADROOM
    )
    assert FlinkWatchSettings.of_command({}).guards() == Guards()
