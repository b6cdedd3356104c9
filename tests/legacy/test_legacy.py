"""Files of the version before are read by the commands of this one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of the files in the working folder, and an empty cache."""
    shutil.copytree(HERE, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_placement_has_the_value_that_was_written(run: Callable) -> None:
    written = json.loads((HERE / "placement.json").read_text())
    answer = run("simulate", "graph.json", "placement.json", "--json")
    assert answer.status == 0, answer.err
    assert json.loads(answer.out)["relative_throughput"] == written["value"]


def test_a_table_with_comment_lines_is_the_same_placement(run: Callable) -> None:
    answer = run("export", "placement.csv", "--to", "json")
    assert answer.status == 0, answer.err
    written = json.loads((HERE / "placement.json").read_text())
    assert json.loads(answer.out)["assignment"] == written["assignment"]


@pytest.mark.parametrize(
    ("command", "file"),
    [
        (("place", "graphs.jsonl", "--placer", "metis"), "placements.jsonl"),
        (("compare", "graphs.jsonl", "--placers", "metis,exact", "--rate", "10000"), "comparison"),
    ],
)
def test_results_are_complete_and_nothing_is_computed_again(
    run: Callable, tmp_path: Path, command: tuple[str, ...], file: str
) -> None:
    """Every result stands where it stood, with the time that it took then."""
    results = Path(file) / "results.jsonl" if file == "comparison" else Path(file)
    answer = run(*command, "-o", file)
    assert answer.status == 0, answer.err
    assert (tmp_path / results).read_bytes() == (HERE / results).read_bytes()


def test_the_table_of_a_comparison_is_the_same(run: Callable, tmp_path: Path) -> None:
    answer = run(
        "compare", "graphs.jsonl", "--placers", "metis,exact", "--rate", "10000", "-o",
        "comparison", "--json",
    )  # fmt: skip
    now = json.loads(answer.out)
    for rate in now["rates"].values():
        for row in rate["placers"].values():
            del row["paired"]  # not known then
    assert now == json.loads((HERE / "comparison" / "table.json").read_text())


def test_a_stopped_training_goes_on_to_the_same_history(run: Callable, tmp_path: Path) -> None:
    """The second epoch is that of the training that was not stopped."""
    answer = run(
        "train", "encdec", "--data", "graphs.jsonl", "--rate", "10000", "--config", "small.toml",
        "--epochs", "2", "--out", "run", "--resume",
    )  # fmt: skip
    assert answer.status == 0, answer.err
    resumed, whole = (
        [json.loads(line) for line in (tmp_path / "run" / name).read_text().splitlines()]
        for name in ("history.jsonl", "whole.jsonl")
    )
    assert [epoch["epoch"] for epoch in resumed] == [1, 2]
    for epoch, expected in zip(resumed, whole, strict=True):
        numbers = {key: value for key, value in expected.items() if key != "seconds"}
        assert {key: epoch[key] for key in numbers} == pytest.approx(numbers, rel=1e-4)


@pytest.mark.parametrize(
    ("placer", "weights"),
    [("encdec", "run/best.safetensors"), ("placeto", "weights/placeto.safetensors")],
)
def test_weights_place_a_graph(run: Callable, placer: str, weights: str) -> None:
    answer = run("place", "graph.json", "--placer", placer, "--weights", weights, "--json")
    assert answer.status == 0, answer.err
    assert 0 < json.loads(answer.out)["relative_throughput"] <= 1
