"""Order, resumption and arithmetic of `benchmarks/against_flink.py`."""

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmark_modules import benchmark_modules

ARMS = ("NONE", "SLOTS", "TASKS", "random 1", "streamplace", "replay", "SLOTS again")
RATES = (50.0, 100.0, 80.0, 10.0, 150.0, 99.0, 100.0)
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def modules() -> Any:
    return benchmark_modules("against_cells", "against_page", "against_runs", "against_flink")


def runs(*rates: float, job: str = "sales", kind: str = "equal", boot: str = "here") -> Rows:
    """Lines of the file: a rate for each arm, in their order."""
    row = {"job": job, "kind": kind, "repeat": 0, "measure": "saturated", "disturbed": False}
    row["boot"] = boot
    return [row | {"arm": arm, "rate": rate} for arm, rate in zip(ARMS, rates, strict=False)]


def changed(rows: Rows, arm: str, **facts: Any) -> Rows:
    """The lines, with other facts of the run of an arm."""
    return [row | facts if row["arm"] == arm else row for row in rows]


@pytest.fixture
def pending(modules: Any, tmp_path: Path) -> Callable[[Rows], list[tuple[str, list[str]]]]:
    """Modes of the clusters that the job still needs after some runs, with the missing arms."""

    def call(rows: Rows) -> list[tuple[str, list[str]]]:
        file = tmp_path / "runs"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        series = modules.against_flink.Series(file, 1, "saturated", math.inf, boot="here")
        cell = modules.against_cells.Cell("sales", "equal")
        return [(mode, sorted(arms)) for mode, arms in series.pending(cell)]

    return call


@pytest.fixture
def results(modules: Any) -> Callable[[Rows], str]:
    """What the page tells of some runs."""
    cells = modules.against_cells.cells(1)
    return lambda rows: str(modules.against_page.results(rows, cells, ARMS))


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


def test_a_series_goes_on_with_runs_that_are_missing_disturbed_or_of_earlier_versions(
    pending: Callable, results: Callable
) -> None:
    assert pending(runs(1.0, 2.0, 3.0, 4.0, 5.0)) == [("SLOTS", ["SLOTS again", "replay"])]
    assert pending(changed(runs(*RATES), "TASKS", disturbed=True)) == [("TASKS", ["TASKS"])]
    rows = changed(runs(*RATES), "streamplace", superseded="it waited for longer")
    assert pending(rows) == [("NONE", ["streamplace"])]
    text = results([*rows, rows[4] | {"rate": 120.0, "superseded": "again"}])
    assert "0 of 41 cells" in text
    assert "| sales | equal | streamplace 150 | it waited for longer |" in text


def test_a_cell_is_measured_on_one_computer(pending: Callable) -> None:
    """What was begun elsewhere is made again as a whole; what is complete is not."""
    begun = pending(runs(*RATES[:4], boot="elsewhere"))
    assert sorted(arm for _, own in begun for arm in own) == sorted(ARMS)
    assert pending(runs(*RATES, boot="elsewhere")) == []


def test_arms_of_two_computers_are_not_compared(results: Callable) -> None:
    """The other computer is twice as fast."""
    rows = runs(50.0, 100.0, 80.0, 10.0, 99.0, 99.0, 100.0)
    text = results([*rows, *runs(*[200.0] * 5, boot="elsewhere")])
    assert "0.99, no gain" in text
    assert "280 of 287 runs are missing; 1 of 41 cells" in text


def test_an_advised_mode_is_followed(modules: Any, pending: Callable) -> None:
    """The line of configuration is found in what the command says."""
    rows = changed(runs(*RATES), "streamplace", measure="advice", mode="SLOTS")
    assert pending(rows) == [("SLOTS", ["streamplace"])]
    advised = modules.against_runs.ADVISED
    text = "set taskmanager.load-balance.mode: SLOTS and restart"
    assert advised.search(text)[1] == "SLOTS"
    assert advised.search(json.dumps({"taskmanager.load-balance.mode": "TASKS"}))[1] == "TASKS"
    assert advised.search("moved by taskmanager") is None


def test_ratios_are_to_the_best_of_flinks_own(results: Callable) -> None:
    rows = runs(*RATES, kind="unequal")
    rows += runs(50.0, 100.0, 200.0, 10.0, 150.0, 99.0, 100.0, job="alarms", kind="unequal")
    text = results(rows)
    assert "| unequal | 2 | 2 | 1.06 |" in text
    assert "Losses beyond the noise: alarms on unequal (0.75)." in text
    assert "Replay: geometric mean 0.990" in text
    assert "273 of 287 runs are missing; 2 of 41 cells" in text


def test_jobs_that_were_not_moved_are_counted_and_tell_the_noise_of_layouts(
    results: Callable,
) -> None:
    """Their ratio is that of two runs of one layout."""
    text = results(changed(runs(*RATES), "streamplace", rate=90.0, pinned=False, mode="SLOTS"))
    assert "| equal | 1 | 0 | 0.90 |" in text
    assert "1 pairs of runs of one layout on two clusters" in text
    assert "the 90th percentile of |ln| is 0.105, the largest 0.105" in text


def test_within_the_noise_nothing_is_lost(results: Callable) -> None:
    text = results(runs(9.0, 100.0, 9.0, 9.0, 80.0, 100.0, 70.0))
    assert "Losses beyond the noise: none." in text
    assert "0.80, no gain" in text


def test_a_failure_counts_as_a_loss_and_is_told(results: Callable) -> None:
    failed = "no job runs after the command: it\n was lost"
    text = results(changed(runs(*RATES), "streamplace", rate=0.0, failed=failed))
    assert "| equal | 1 | 1 | 0.10 |" in text
    assert "sales on equal, streamplace: no job runs after the command: it was lost" in text


def test_what_was_disturbed_does_not_count(results: Callable) -> None:
    rows = runs(*RATES)
    assert "1.50" in results([*rows, rows[4] | {"rate": 1.0, "disturbed": True}])


def test_predictions_are_compared_with_what_was_measured(results: Callable) -> None:
    facts = {"predicted": 110.0, "moved": True, "command_seconds": 60.0}
    text = results(changed(runs(*RATES), "streamplace", rate=100.0, **facts))
    assert "jobs were moved in 1 cells: median error 10.0 %" in text
    assert "The command took 60 s" in text


def test_a_job_that_has_not_begun_to_emit_is_not_steady(modules: Any) -> None:
    """Two windows without tuples agree, and say nothing of what the job sustains."""
    are_steady = modules.against_runs.are_steady
    assert not are_steady([0.0, 0.0])
    assert are_steady([0.0, 100.0, 96.0])
