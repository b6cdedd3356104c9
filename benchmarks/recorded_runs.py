"""Recorded runs: what was predicted for the measured runs of this repository, as a ledger.

    python benchmarks/recorded_runs.py

Writes `streamplace/io/recorded_runs.jsonl`, of which the package takes the errors of its
predictions, from the runs in `docs/assets`: every placement of the calibration, the placements on
eight TaskManagers and the plans less their cheapest machine, of the last two series of the same
protocol and without the jobs that must not choose anything, and the jobs that were moved in the
comparison with Flink's own placement. Sources of all of these offered more than was predicted.
Plans, with or without that machine, are left out that were offered less than predicted: of them,
only those that failed would tell anything. Runs are left out whose operators did not all sustain
the same rate within 5 %, because queues still filled. Of jobs that were not warm, what was allowed
for is recorded, too. Layouts that `flink move` tried are kept apart, because they are unlike the
measured ones. Nothing is measured. The command prints the errors by job, how wide the
intervals are, and how many runs they cover where each job is judged by the others.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
from against_cells import KINDS
from against_flink import trials_of
from calibration import judged
from flink_jobs import ROOT, UNSEEN
from planned_facts import CARRIED, OFFERED, JobFacts
from studies import read_rows, table

from streamplace.io.ledger import MOVE, RECORDED, LedgerEntry, errors_of_runs
from streamplace.model.prediction_intervals import USUAL_CONFIDENCE

ASSETS = ROOT / "docs" / "assets"
CALIBRATION, AGAINST, TRIES = (
    "calibration.jsonl",
    "against-flink-before.jsonl",
    "against-flink.jsonl",
)
PLANS = ("plans-measured-before.jsonl", "plans-that-hold.jsonl")
DIGITS = 5
VARIED = re.compile(r"Its CPU per tuple varied by (\d+)%")
"""What `flink move` says of a job that was not warm, by which it has widened the interval."""


def of_calibration(path: Path) -> Iterator[LedgerEntry]:
    """Placements whose rate was predicted from probes of the same job."""
    for job, rows in judged(read_rows(path)).items():
        for measured, predicted in rows.tolist():
            yield _entry(job, predicted, measured, True, path.stem)


def of_plans(path: Path) -> Iterator[LedgerEntry]:
    """Placements on eight TaskManagers, and plans with one machine less."""
    rows = [row for row in read_rows(path) if row["job"] not in UNSEEN]
    facts = {row["job"]: JobFacts.of(row) for row in rows if row["kind"] == "profile"}
    pairs = {(row["job"], row["level"]): row for row in rows if row["kind"] == "pair"}
    for row in rows:
        if row["kind"] == "eight":
            predicted = row["predicted"]
            offered = OFFERED * predicted
        elif row.get("which") == "less":
            pair = pairs[row["job"], row["level"]]
            predicted, offered = pair["less"]["predicted"], pair["rate"]
        else:
            continue
        own = facts[row["job"]]
        if predicted < offered and own.is_steady(row["rates"]):
            is_limited = own.received(row["rates"], offered) < CARRIED
            yield _entry(row["job"], predicted, own.throughput(row["rates"]), is_limited, path.stem)


def of_moves(path: Path) -> Iterator[LedgerEntry]:
    """Jobs that were moved in the comparison with Flink's own placement, where held back."""
    for row in read_rows(path):
        is_predicted = row.get("predicted") and row.get("moved")
        is_usable = row["measure"] == "saturated" and not row["disturbed"]
        if is_predicted and is_usable and "superseded" not in row:
            varied = VARIED.search(row["told"])
            drift = int(varied[1]) / 100 if varied else None
            yield _entry(row["job"], row["predicted"], row["rate"], True, path.stem, drift)


def of_tries(path: Path) -> Iterator[LedgerEntry]:
    """Layouts that the command tried in that comparison, with what it had predicted of them."""
    for row in read_rows(path):
        if row["disturbed"] or KINDS[row["kind"]].partitions:
            continue
        for trial in trials_of(row)[1:]:
            predicted = (trial["predicted"] or {}).get("value")
            if trial["measured"] and predicted:
                is_limited = not trial["keeps_up"]
                yield _entry(row["job"], predicted, trial["measured"], is_limited, MOVE)


def _entry(
    job: str,
    predicted: float,
    measured: float,
    is_limited: bool,
    by: str,
    drift: float | None = None,
) -> LedgerEntry:
    rates = (float(f"{rate:.{DIGITS}g}") for rate in (predicted, measured))
    return LedgerEntry(job, *rates, is_limited, by=by, drift=drift)


def _line(entry: LedgerEntry) -> str:
    row = {name: value for name, value in asdict(entry).items() if value not in (None, "")}
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def summary(entries: list[LedgerEntry], confidence: float = USUAL_CONFIDENCE) -> str:
    """Errors by job, and what intervals cover where each job is judged by the others."""
    heads = ("job", "runs", "median error", "90 % within", "interval", "covered", "at least")
    lines = []
    inside, above, widths = [], [], []
    for job in dict.fromkeys(entry.job for entry in entries):
        scores = [entry.score for entry in entries if entry.job == job]
        ratios = [math.exp(score) for score in scores if score is not None]
        errors = np.abs(np.array(ratios) - 1)
        known = errors_of_runs(entries, job, confidence)
        covered = [known.low <= ratio <= known.high for ratio in ratios]
        inside.append(np.mean(covered))
        above.append(np.mean([ratio >= known.least for ratio in ratios]))
        widths.append((known.high - known.low) / 2)
        cells = (job, len(ratios), f"{np.median(errors):.1%}", f"{np.quantile(errors, 0.9):.1%}")
        cells += (f"{known.low:.2f}–{known.high:.2f}", f"{inside[-1]:.0%}", f"{known.least:.2f}")
        lines.append(cells)
    whole = errors_of_runs(entries, confidence=confidence)
    text = table(heads, lines)
    return (
        f"{text}\nOver jobs, intervals cover {np.mean(inside):.0%} of the runs and lower ends "
        f"{np.mean(above):.0%}; the median half-width is {np.median(widths):.0%}. For a new job, "
        f"measured rates are {whole.low:.3f} to {whole.high:.3f} of the predicted ones, and at "
        f"least {whole.least:.3f}, with {whole.words}.\n"
    )


def main() -> None:
    """Write the file, and print what it amounts to."""
    readers = {CALIBRATION: of_calibration, **dict.fromkeys(PLANS, of_plans), AGAINST: of_moves}
    found = [
        entry
        for name, read in readers.items()
        if (ASSETS / name).exists()
        for entry in read(ASSETS / name)
    ]
    tries = [*of_tries(ASSETS / TRIES)]
    RECORDED.write_text("".join(map(_line, [*found, *tries])), "utf-8")
    print(summary(found))
    print("Layouts that `flink move` tried:\n")
    print(summary(tries))


if __name__ == "__main__":
    main()
