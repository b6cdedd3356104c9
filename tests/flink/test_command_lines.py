"""Command lines of Flink: outputs, which spare the files of others, and mistakes."""

import json
import socket
import sys
from pathlib import Path

import pytest

from streamplace.flink.engine import FlinkEngine
from streamplace.flink.move.settling import MoveSettings
from streamplace.flink.settings import FlinkAdviseSettings, FlinkMoveSettings, FlinkWatchSettings
from streamplace.flink.watch.deciding import Guards
from streamplace.model.defaults import FLINK_HEADROOM
from streamplace.planning.problem import PlannerSettings

pytestmark = pytest.mark.usefixtures("graph", "placement")
EXPORT = ("export", "placement.json", "--to")


@pytest.fixture(autouse=True)
def _cluster(tmp_path):
    """A cluster of two devices, in cluster.toml."""
    devices = '[{name = "big", mips = 5000}, {name = "small", mips = 2500}]'
    (tmp_path / "cluster.toml").write_text(f'bandwidth = "1000 Mbps"\ndevices = {devices}\n')


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("move --settle", "--settle --settings"),
        ("move --placement placement.json --tries 2", "--tries --placement"),
        ("advise --rate fast --offers offers.toml", "'fast'"),
        ("advise --rate 2x --offers offers.toml --cluster cluster.toml", "--offers --cluster"),
    ],
)
def test_a_mistake_is_named(refusal, line, words):
    Path("offers.toml").write_text("offers = [{name = 'small', price = 0.1}]\n")
    message = refusal("flink", *line.split())
    assert [word for word in words.split() if word not in message] == []


def test_the_bare_group_prints_its_help(run):
    assert run("flink") == run("flink", "--help")


def test_an_export_does_not_overwrite_its_placement(refusal):
    assert "overwrite" in refusal(*EXPORT, "flink", "-o", ".")


@pytest.mark.parametrize(
    "line",
    [
        "flink jar job.jar --placement placement.json -o mine.jar",
        "flink config --cluster cluster.toml -o folder",
    ],
)
def test_files_of_others_are_spared(refusal, line):
    Path("folder").mkdir()
    Path("folder", "big.yaml").write_text("title = 'mine'\n")
    Path("mine.jar").write_text("no jar")
    Path("job.jar").write_text("no jar")
    assert "streamplace did not write; name another file" in refusal(*line.split())
    assert Path("mine.jar").read_text() == "no jar"


@pytest.mark.parametrize(
    "line",
    [
        "export placement.json --to flink -o flink",
        "export placement.json --to flink-kubernetes -o flink-kubernetes",
        "flink config --cluster cluster.toml -o config",
    ],
)
def test_files_of_streamplace_are_written_again(run, line):
    for _ in range(2):
        answer = run(*line.split())
        assert answer.status == 0, answer.err


@pytest.mark.parametrize("form", ["flink", "flink-kubernetes"])
def test_spread_subtasks_need_all_devices(run, refusal, form):
    """An idle TaskManager would take what it was not told to refuse."""
    graph = {
        "name": "g",
        "operators": [{"name": "a", "rate": 1}, {"name": "b", "parallelism": 2}],
        "streams": [{"from": "a", "to": "b"}],
    }
    Path("graph.json").write_text(json.dumps(graph))
    Path("placement.json").write_text('{"assignment": {"a": "d0", "b#0": "d0", "b#1": "d1"}}')
    command = [*EXPORT, form, "-o", "out"]
    assert "--cluster or --devices" in refusal(*command)
    assert run(*command, "--devices", "3").status == 0


def test_constraints_and_clusters_are_carried(run):
    """Idle devices get their configuration too, groups their note."""
    Path("rules.toml").write_text('colocate = [["b0s1", "b0s2"]]\n')
    words = ["--constraints", "rules.toml", "--devices", "3", "--json"]
    files = json.loads(run(*EXPORT, "flink", *words).out)["files"]
    assert "config/d2.yaml" in files
    assert any("Must share a device: b0s1, b0s2" in text for text in files.values())


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("flink verify --placement placement.json", "httpx"),
        ("flink profile --rest kubernetes:shop/count", "lightkube"),
    ],
)
def test_missing_packages_are_named_with_their_extra(refusal, monkeypatch, line, package):
    monkeypatch.setitem(sys.modules, package, None)
    install = "install it with: pip install 'streamplace[flink]'"
    assert refusal(*line.split()) == f"error: {package} is not installed; {install}\n"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("--tries 1", "--tries"),
        ("--max-interruption 1min", "--max-interruption"),
        ("--savepoints /tmp", "--savepoints"),
        ("-p 2", "--parallelism"),
        ("job.jar", "JAR"),
    ],
)
def test_options_without_effect_on_a_job_of_the_operator_are_refused(refusal, given, name):
    Path("job.jar").touch()
    line = refusal("flink", "move", "--rest", "kubernetes:flink/count", *given.split())
    assert line == f"error: {name} is not for a job that Flink's operator owns; drop it\n"


CONFIG = ("flink", "config", "--cluster")


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
