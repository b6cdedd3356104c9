"""Order, resumption and arithmetic of `benchmarks/against_flink.py`."""

import json
import math
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
ARMS = ("NONE", "SLOTS", "TASKS", "random 1", "streamplace", "replay", "SLOTS again")


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark's modules, which are no package."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    names = ("against_cells", "against_page", "against_runs", "against_flink")
    return SimpleNamespace(**{name: import_module(name) for name in names})


def runs(job: str, kind: str, *rates: float, **facts: Any) -> list[dict[str, Any]]:
    """Lines of the file: a rate for each arm, in their order."""
    row = {"job": job, "kind": kind, "repeat": 0, "measure": "saturated", "disturbed": False}
    row["boot"] = "here"
    return [row | {"arm": arm, "rate": r} | facts for arm, r in zip(ARMS, rates, strict=False)]


def series(modules: Any, file: Path, rows: list[dict[str, Any]]) -> Any:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return modules.against_flink.Series(file, 1, "saturated", math.inf, boot="here")


@pytest.mark.parametrize("cut", [4, 8, 12])
def test_a_series_that_ends_early_is_balanced(modules: Any, cut: int) -> None:
    cells = modules.against_cells.cells(1)
    counts = Counter(cell.kind for cell in cells[:cut])
    assert len(counts) == 4
    assert max(counts.values()) - min(counts.values()) <= 2
    assert len({cell.job for cell in cells[:cut]}) == cut


def test_every_job_meets_every_kind_once_and_skew_only_where_a_key_can_be_skewed(
    modules: Any,
) -> None:
    found = [(cell.job, cell.kind) for cell in modules.against_cells.cells(1)]
    jobs, skewable = modules.against_cells.JOBS, modules.against_cells.SKEWABLE
    plain = {(job, kind) for job in jobs for kind in ("equal", "unequal", "scarce network")}
    assert sorted(found) == sorted(plain | {(job, "skewed") for job in skewable})


def test_all_arms_run_once_and_replay_after_the_layout_that_it_re_creates(modules: Any) -> None:
    for cell in modules.against_cells.cells(2):
        made = dict(modules.against_cells.sessions(cell, 1))
        assert sorted(arm for own in made.values() for arm in own) == sorted(ARMS)
        assert made["SLOTS"][0] == "SLOTS"
        assert made == dict(modules.against_cells.sessions(cell, 1))


def test_a_stopped_series_goes_on_with_what_is_missing(modules: Any, tmp_path: Path) -> None:
    cell = modules.against_cells.Cell("sales", "equal")
    rows = runs("sales", "equal", 1.0, 2.0, 3.0, 4.0, 5.0)
    pending = series(modules, tmp_path / "runs", rows).pending(cell)
    assert [(mode, sorted(arms)) for mode, arms in pending] == [
        ("SLOTS", ["SLOTS again", "replay"])
    ]


def test_a_disturbed_run_is_made_again(modules: Any, tmp_path: Path) -> None:
    rows = runs("sales", "equal", *[1.0] * 7)
    rows[2]["disturbed"] = True
    cell = modules.against_cells.Cell("sales", "equal")
    assert series(modules, tmp_path / "runs", rows).pending(cell) == [("TASKS", ["TASKS"])]


def test_a_cell_is_measured_on_one_computer(modules: Any, tmp_path: Path) -> None:
    """What was begun elsewhere is made again as a whole; what is complete is not."""
    rows = runs("sales", "equal", 50.0, 100.0, 80.0, 10.0, boot="elsewhere")
    cell = modules.against_cells.Cell("sales", "equal")
    pending = series(modules, tmp_path / "runs", rows).pending(cell)
    assert sorted(arm for _, own in pending for arm in own) == sorted(ARMS)
    whole = runs("sales", "equal", *[1.0] * 7, boot="elsewhere")
    assert series(modules, tmp_path / "runs", whole).pending(cell) == []


def test_arms_of_two_computers_are_not_compared(modules: Any) -> None:
    """The other computer is twice as fast."""
    rows = runs("sales", "equal", 50.0, 100.0, 80.0, 10.0, 99.0, 99.0, 100.0)
    faster = runs("sales", "equal", *[200.0] * 5, boot="elsewhere")
    text = results(modules, [*rows, *faster])
    assert "0.99, no gain" in text
    assert "280 of 287 runs are missing; 1 of 41 cells" in text


def test_an_advised_mode_is_followed(modules: Any, tmp_path: Path) -> None:
    rows = runs("sales", "equal", *[1.0] * 7)
    rows[4] |= {"measure": "advice", "mode": "SLOTS"}
    cell = modules.against_cells.Cell("sales", "equal")
    assert series(modules, tmp_path / "runs", rows).pending(cell) == [("SLOTS", ["streamplace"])]


def test_ratios_are_to_the_best_of_flinks_own(modules: Any) -> None:
    rows = runs("sales", "unequal", 50.0, 100.0, 80.0, 10.0, 150.0, 99.0, 100.0)
    rows += runs("alarms", "unequal", 50.0, 100.0, 200.0, 10.0, 150.0, 99.0, 100.0)
    text = results(modules, rows)
    assert "| unequal | 2 | 2 | 1.06 |" in text
    assert "Losses beyond the noise: alarms on unequal (0.75)." in text
    assert "Replay: geometric mean 0.990" in text
    assert "273 of 287 runs are missing; 2 of 41 cells" in text


def test_jobs_that_were_not_moved_are_counted_and_tell_the_noise_of_layouts(modules: Any) -> None:
    """Their ratio is that of two runs of one layout."""
    rows = runs("sales", "equal", 50.0, 100.0, 80.0, 10.0, 90.0, 99.0, 100.0)
    rows[4] |= {"pinned": False, "mode": "SLOTS"}
    text = results(modules, rows)
    assert "| equal | 1 | 0 | 0.90 |" in text
    assert "1 pairs of runs of one layout on two clusters" in text
    assert "the 90th percentile of |ln| is 0.105, the largest 0.105" in text


def test_within_the_noise_nothing_is_lost(modules: Any) -> None:
    text = results(modules, runs("sales", "equal", 9.0, 100.0, 9.0, 9.0, 80.0, 100.0, 70.0))
    assert "Losses beyond the noise: none." in text
    assert "0.80, no gain" in text


def test_a_failure_counts_as_a_loss_and_is_told(modules: Any) -> None:
    rows = runs("sales", "equal", 50.0, 100.0, 80.0, 10.0, 0.0, 99.0, 100.0)
    rows[4]["failed"] = "no job runs after the command: it\n was lost"
    text = results(modules, rows)
    assert "| equal | 1 | 1 | 0.10 |" in text
    assert "sales on equal, streamplace: no job runs after the command: it was lost" in text


def test_what_was_disturbed_does_not_count(modules: Any) -> None:
    rows = runs("sales", "equal", 50.0, 100.0, 80.0, 10.0, 150.0, 99.0, 100.0)
    disturbed = rows[4] | {"rate": 1.0, "disturbed": True}
    assert "1.50" in results(modules, [*rows, disturbed])


def test_predictions_are_compared_with_what_was_measured(modules: Any) -> None:
    rows = runs("sales", "equal", 50.0, 100.0, 80.0, 10.0, 100.0, 99.0, 100.0)
    rows[4] |= {"predicted": 110.0, "moved": True, "command_seconds": 60.0}
    text = results(modules, rows)
    assert "jobs were moved in 1 cells: median error 10.0 %" in text
    assert "The command took 60 s" in text


def test_the_line_of_configuration_is_found_in_what_the_command_says(modules: Any) -> None:
    advised = modules.against_runs.ADVISED
    text = "set taskmanager.load-balance.mode: SLOTS and restart"
    assert advised.search(text)[1] == "SLOTS"
    assert advised.search(json.dumps({"taskmanager.load-balance.mode": "TASKS"}))[1] == "TASKS"
    assert advised.search("moved by taskmanager") is None


def test_the_protocol_names_every_job_kind_and_the_seed(modules: Any) -> None:
    page = (ROOT / "docs" / "against-flink.md").read_text()
    cells = modules.against_cells
    protocol = page.partition(modules.against_flink.BEGIN)[0]
    assert all(name in protocol for name in (*cells.JOBS, *cells.KINDS, str(cells.SEED)))
    assert modules.against_flink.END in page


def results(modules: Any, rows: list[dict[str, Any]]) -> str:
    return str(modules.against_page.results(rows, modules.against_cells.cells(1), ARMS))


def test_a_job_that_has_not_begun_to_emit_is_not_steady(modules: Any) -> None:
    """Two windows without tuples agree, and say nothing of what the job sustains."""
    are_steady = modules.against_runs.are_steady
    assert not are_steady([0.0, 0.0])
    assert are_steady([0.0, 100.0, 96.0])


def test_runs_of_earlier_versions_are_made_again_and_listed(modules: Any, tmp_path: Path) -> None:
    rows = runs("sales", "equal", 50.0, 100.0, 80.0, 10.0, 150.0, 99.0, 100.0)
    rows[4]["superseded"] = "it waited for longer"
    cell = modules.against_cells.Cell("sales", "equal")
    assert series(modules, tmp_path / "runs", rows).pending(cell) == [("NONE", ["streamplace"])]
    text = results(modules, [*rows, {**rows[4], "rate": 120.0} | {"superseded": "again"}])
    assert "0 of 41 cells" in text
    assert "| sales | equal | streamplace 150 | it waited for longer |" in text
