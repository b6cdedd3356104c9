"""Order, resumption and arithmetic of `benchmarks/against_flink.py`."""

import json
import math

import against_cells
import against_flink
import pytest

ARMS = ("NONE", "SLOTS", "TASKS", "SLOTS again", "flink move")
RATES = (50.0, 100.0, 80.0, 100.0, 150.0)


def runs(*rates, job="sales", kind="equal", boot="here"):
    """Lines of the file: a rate for each arm, in their order."""
    row = {"job": job, "kind": kind, "repeat": 0, "disturbed": False, "boot": boot}
    return [row | {"arm": arm, "rate": rate} for arm, rate in zip(ARMS, rates, strict=False)]


def changed(rows, arm, **facts):
    """The lines, with other facts of the run of an arm."""
    return [row | facts if row["arm"] == arm else row for row in rows]


@pytest.fixture
def pending(tmp_path):
    """Arms that a job still needs after some runs."""

    def call(rows):
        file = tmp_path / "runs"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        series = against_flink.Series(file, math.inf, boot="here")
        own = series.pending(against_cells.Cell("sales", "equal"))
        return sorted(arm for _, arms in own for arm in arms)

    return call


def test_every_job_meets_every_kind_once_and_skew_only_where_a_key_can_be_skewed():
    found = [(cell.job, cell.kind) for cell in against_cells.cells(1)]
    jobs, skewable = against_cells.JOBS, against_cells.SKEWABLE
    plain = {(job, kind) for job in jobs for kind in ("equal", "unequal", "scarce network")}
    plain |= {(job, "skewed") for job in skewable}
    kafka = [kind for kind in against_cells.KINDS if "Kafka" in kind]
    plain |= {(job, kind) for job in against_cells.KAFKA for kind in kafka}
    assert sorted(found) == sorted(plain)


def test_a_series_goes_on_with_missing_or_bad_runs(pending):
    assert pending([]) == sorted(ARMS)
    assert pending(runs(*RATES)[:3]) == ["SLOTS again", "flink move"]
    assert pending(changed(runs(*RATES), "TASKS", disturbed=True)) == ["TASKS"]


def test_a_cell_is_measured_on_one_computer(pending):
    """What was begun elsewhere is made again as a whole; what is complete is not."""
    begun = runs(*RATES[:4], boot="elsewhere")
    assert pending(begun) == sorted(ARMS)
    assert pending(runs(*RATES, boot="elsewhere")) == []
    rows = [*runs(50.0, 100.0, 80.0, 100.0, 99.0), *runs(*[200.0] * 4, boot="elsewhere")]
    assert [one.gain for one in against_flink.compared(rows)] == [0.99]


def test_ratios_are_to_the_best_of_flinks_own():
    trials = [{"measured": 50.0}, {"measured": 120.0}, {"measured": 155.0}]
    rows = changed(
        runs(*RATES, kind="unequal"),
        "flink move",
        answer={"decision": {"trials": trials, "measured": 155.0}},
    )
    rows += runs(50.0, 100.0, 200.0, 100.0, 150.0, job="alarms", kind="unequal")
    first, second = against_flink.compared(rows)
    assert (first.gain, first.first, second.gain) == (1.5, 1.2, 0.75)
    assert first.last == pytest.approx(155 / 150)
    text = against_flink.results(rows)
    assert "Losses beyond the noise: alarms on unequal (0.75)." in text
