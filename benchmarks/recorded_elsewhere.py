"""Rates of executions that others recorded: fitted on one table, predicted for another.

    python benchmarks/recorded_elsewhere.py FIT.csv JUDGE.csv [--json] [-o PICTURE.svg]

A row of a table is a run of a query on a Flink cluster: memory in MB of a TaskManager, TaskManagers
and their slots, subtasks of the source and of each operator (empty: one each), the rate in tuples/s
and, where others predicted it, theirs. Some runs were ``offered`` a rate for minutes; every other
rate is the highest that was sustained. Runs without a rate are left out.

Each query of FIT gives the limits of its parts (`rate_limits`), and these give the rate of every
row of JUDGE: the median of what they may be, and an interval that holds nine of ten runs. A row
that was offered a rate has at most this rate; it is called carried if the limits are above it. The
same tables give the same numbers.

A row some part of which is divided more than twice as far as in any run of FIT is told to be beyond
them. Of a part that never was the limit, only the least that it carries is known, so the upper end
of the interval of such a row leaves it out.
"""

import argparse
import csv
import json
import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rate_limits import FREEDOM, Runs, Samples, sampled
from studies import markdown

from streamplace.drawing.figures import finish, line_style, panels, svg_text
from streamplace.errors import FormatError, StreamplaceError
from streamplace.model.arrays import Bools, Floats
from streamplace.model.key_groups import busiest_parts
from streamplace.model.profile_trust import MAX_RATE_RATIO

STATELESS = {"Source", "Calc", "Sink", "Correlate", "LocalWindowAggregate"}
"""Operators without key groups, by the names of Flink's planner; all others are keyed."""
KEY_GROUPS, MOST_KEY_GROUPS, LEAST_MEMORY = 128, 32_768, 8192.0
INTERVAL = (0.025, 0.975)
"""Quantiles of a run's rate that ends an interval: with the runs that break, nine of ten."""
LIMITS = 0.5
"""Least share of the time that a run of FIT spends on a part that was its limit, in the mean."""
CARRIED = 0.95
"""Least share of an offer that was read by a run that carried it: ten minutes, less a start."""


class Run(NamedTuple):
    """A row of a table."""

    query: str
    memory: float  # MB of a TaskManager
    task_managers: float
    slots: str
    operators: tuple[str, ...]  # the source first
    subtasks: tuple[int, ...]
    offered: float  # tuples/s; NaN for the highest sustained rate
    rate: float
    theirs: float  # tuples/s that others predicted; NaN for nothing

    @property
    def carried(self) -> bool:
        """Whether about all was read that was offered."""
        return self.rate >= CARRIED * self.offered

    def parts(self) -> list[float]:
        """By how much the busiest subtask of each part divides the tuples, and TaskManagers."""
        own = zip(self.operators, self.subtasks, strict=True)
        groups = [0 if name in STATELESS else key_groups(p) for name, p in own]
        return [*busiest_parts(groups, self.subtasks).tolist(), self.task_managers]


def key_groups(parallelism: int) -> int:
    """Key groups that Flink gives an operator whose maximum parallelism was not set.

    >>> key_groups(1), key_groups(85), key_groups(86)
    (128, 128, 256)
    """
    rounded = 1 << max(parallelism + parallelism // 2 - 1, 0).bit_length()
    return min(max(rounded, KEY_GROUPS), MOST_KEY_GROUPS)


def read_runs(path: Path) -> dict[str, list[Run]]:
    """Runs of a table by their query."""
    try:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"cannot read {path}: {error}") from None
    if not rows:
        raise FormatError(f"{path} has no runs")
    runs = defaultdict(list)
    rates = [(n, row) for n, row in enumerate(rows, start=2) if row.get("rate") not in ("", "0")]
    for number, row in rates:
        try:
            run = run_of(row)
        except KeyError as error:
            raise FormatError(f"{path} has no column {error}") from None
        except (TypeError, ValueError) as error:
            raise FormatError(f"line {number} of {path}: {error}") from None
        runs[run.query].append(run)
    for query, own in runs.items():
        names = {run.operators for run in own if run.operators}
        if len(names) > 1:
            raise FormatError(f"{path} has runs of {query} with different operators")
        only = next(iter(names), None)
        if only is None:
            raise FormatError(f"{path} does not say what the operators of {query} are")
        runs[query] = [completed(run, only) for run in own]
    return dict(runs)


def run_of(row: Mapping[str, str]) -> Run:
    """Run in a row, without operators if all have one subtask."""
    pairs = [text.split("=") for text in row["parallelism"].split()]
    if any(len(pair) != 2 or not pair[1].isdecimal() or int(pair[1]) < 1 for pair in pairs):
        raise ValueError(f"parallelism is {row['parallelism']!r}, not NAME=NUMBER …")
    sources = int(positive(row, "source_parallelism"))
    names = ("Source", *(name for name, _ in pairs)) if pairs else ()
    return Run(
        query=row["query"],
        memory=positive(row, "memory_mb"),
        task_managers=positive(row, "task_managers"),
        slots=row["slots"],
        operators=names,
        subtasks=(sources, *(int(number) for _, number in pairs)),
        offered=positive(row, "offered") if row["offered"] else math.nan,
        rate=positive(row, "rate"),
        theirs=float(row["theirs"] or 0) or math.nan,
    )


def positive(row: Mapping[str, str], column: str) -> float:
    """Number in a column."""
    value = float(row[column])
    if not 0 < value < math.inf:
        raise ValueError(f"{column} is {row[column]}; it must be more than 0")
    return value


def completed(run: Run, operators: tuple[str, ...]) -> Run:
    """Run with one subtask of each operator, if it names none."""
    if run.operators:
        return run
    return run._replace(operators=operators, subtasks=(*run.subtasks, *[1] * (len(operators) - 1)))


class Prediction(NamedTuple):
    """A row of JUDGE and what was predicted for it, in tuples/s."""

    run: Run
    limit: float  # of an unlimited offer
    low: float
    high: float
    is_beyond: bool  # whether a part is divided more than twice as far as in any run of FIT

    @property
    def rate(self) -> float:
        """Rate of the row: at most what it is offered."""
        return min(self.limit, self.run.offered) if self.run.offered > 0 else self.limit

    @property
    def error(self) -> float:
        """Difference to the measured rate, as a share of it."""
        return abs(self.rate / self.run.rate - 1)

    @property
    def held(self) -> bool:
        """Whether the interval holds the measured rate; offers are carried within `CARRIED`."""
        offered = self.run.offered if self.run.offered > 0 else math.inf
        return (
            min(self.low, CARRIED * offered) <= self.run.rate <= min(self.high, offered / CARRIED)
        )

    @property
    def called(self) -> bool:
        """Whether it was predicted whether the offer is carried."""
        return (self.limit >= CARRIED * self.run.offered) == self.run.carried


class Fit(NamedTuple):
    """What FIT says of a query."""

    operators: tuple[str, ...]
    samples: Samples
    most: Floats  # ln of by how much the runs divide each part at most
    never: Bools  # parts that never were the limit

    @classmethod
    def of(cls, query: str, runs: Sequence[Run], seed: int) -> "Fit":
        """Fit the limits of a query."""
        if len(runs) < 2 or all(run.carried for run in runs):
            raise FormatError(f"{query} has no two runs, or none at its limit, to fit")
        operators, arrays = runs[0].operators, as_arrays(runs)
        samples = sampled(arrays, stateful(operators), seed)
        slowness = samples.slowness(arrays)
        shares = (slowness / slowness.sum(2, keepdims=True)).mean(0)
        return cls(operators, samples, arrays.parts.max(0), shares.max(0) < LIMITS)

    def predictions(self, runs: Sequence[Run], seed: int) -> list[Prediction]:
        """Rates of runs."""
        if runs[0].operators != self.operators:
            raise FormatError(f"the two tables have different operators of {runs[0].query}")
        rng, arrays = np.random.default_rng(seed), as_arrays(runs)
        slowness = self.samples.slowness(arrays)
        rates = self.samples.rates(arrays, slowness)
        known = self.samples.rates(arrays, np.where(self.never, 0.0, slowness))
        beyond = (arrays.parts > self.most + math.log(MAX_RATE_RATIO)).any(1)
        error = np.exp(self.samples.shared[:, 2:]) * rng.standard_t(FREEDOM, rates.shape)
        highest = np.where(beyond, known, rates) + error
        low, high = (
            np.exp(np.quantile(ends, q, axis=0))
            for ends, q in zip((rates + error, highest), INTERVAL, strict=True)
        )
        limit = np.exp(np.median(rates, axis=0))
        rows = zip(runs, limit.tolist(), low, high, beyond.tolist(), strict=True)
        return [Prediction(*row) for row in rows]


def stateful(operators: Sequence[str]) -> Bools:
    """Parts that depend on memory: keyed operators, and TaskManagers by their disks."""
    return np.array([*(name not in STATELESS for name in operators), True])


def as_arrays(runs: Sequence[Run]) -> Runs:
    """Runs of one query as the fit reads them."""
    return Runs(
        parts=np.log([run.parts() for run in runs]),
        doublings=np.log2([run.memory / LEAST_MEMORY for run in runs]),
        measured=np.log([run.rate for run in runs]),
        overloaded=np.array([run.offered > 0 for run in runs]),
        carried=np.array([run.carried for run in runs]),
    )


def summary(found: Sequence[Prediction]) -> dict[str, float | None]:
    """Errors, coverage and calls of some rows."""
    errors: Floats = np.array([row.error for row in found])
    called = [row.called for row in found if row.run.offered > 0]
    return {
        "median": float(np.median(errors)),
        "p90": float(np.quantile(errors, 0.9)),
        "coverage": float(np.mean([row.held for row in found])),
        "called": float(np.mean(called)) if called else None,
        "beyond": float(np.mean([row.is_beyond for row in found])),
    }


def shown(title: str, found: Sequence[Prediction]) -> dict[str, Any]:
    """Row of the table of results; at their limit, and beside what others predicted."""
    limited = [row for row in found if not row.run.carried]
    both = [row for row in limited if row.run.theirs > 0]
    both_errors = [row.error for row in both]
    theirs = [abs(row.run.theirs / row.run.rate - 1) for row in both]
    every = {key: "–" if value is None else value for key, value in summary(found).items()}
    cells: dict[str, Any] = {"": title, "rows": str(len(found)), **every}
    cells |= {"at limit": str(len(limited))}
    if limited:
        cells |= {f"{key} at limit": summary(limited)[key] for key in ("median", "p90")}
    if both:
        cells |= {"ours, same rows": np.median(both_errors), "theirs": np.median(theirs)}
    return cells


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, predict and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fit", type=Path, help="table of runs that are fitted")
    parser.add_argument("judge", type=Path, help="table of runs that are predicted")
    parser.add_argument("--json", action="store_true", help="one object instead of tables")
    parser.add_argument("-o", "--output", type=Path, help="picture of predicted over measured")
    given = parser.parse_args(arguments)
    fitted, judged = read_runs(given.fit), read_runs(given.judge)
    found: dict[str, list[Prediction]] = {}
    for number, (query, runs) in enumerate(judged.items()):
        if query not in fitted:
            raise FormatError(f"{given.fit} has no runs of {query}")
        found[query] = Fit.of(query, fitted[query], number).predictions(runs, number)
    every = [row for rows in found.values() for row in rows]
    if given.output:
        draw(found, given.output)
    if given.json:
        queries = {query: summary(rows) for query, rows in found.items()}
        print(json.dumps(summary(every) | {"queries": queries}))
        return
    print(markdown([predicted_row(row) for row in every]))
    print(markdown([*(shown(q, rows) for q, rows in found.items()), shown("all", every)]))
    if beyond := [row for row in every if row.is_beyond]:
        print(
            f"{len(beyond)} of {len(every)} rows are beyond {MAX_RATE_RATIO:g} times what was "
            f"fitted, and extrapolated: their intervals hold {summary(beyond)['coverage']:.0%}."
        )


def draw(found: Mapping[str, Sequence[Prediction]], path: Path) -> None:
    """Draw the predicted over the measured rates of runs at their limit, with intervals."""
    figure, axes = panels([""])
    for number, (query, rows) in enumerate(found.items()):
        limited = [row for row in rows if not row.run.carried]
        measured, predicted = np.array([(row.run.rate, row.rate) for row in limited]).T
        ends = [(row.rate - min(row.low, row.rate), row.high - row.rate) for row in limited]
        axes[0].errorbar(
            measured,
            predicted,
            np.maximum(np.transpose(ends), 0),
            fmt="osD^vP*X"[number % 8],
            color=line_style(number)["color"],
            markersize=3,
            elinewidth=0.4,
            label=query,
        )
    every = [row.run.rate for rows in found.values() for row in rows]
    axes[0].plot([min(every), max(every)], [min(every), max(every)], color="#777777", lw=0.8)
    axes[0].set(xscale="log", yscale="log", xlabel="measured, tuples/s", ylabel="predicted")
    finish(figure, "Rates that were predicted and recorded elsewhere")
    path.write_text(svg_text(figure))


def predicted_row(row: Prediction) -> dict[str, str]:
    """Row of the table of predictions."""
    run, offered = row.run, row.run.offered
    top = offered if offered > 0 else math.inf
    return {
        "query": run.query,
        "memory": f"{run.memory / 1024:g} GB",
        "slots": run.slots,
        "offered": f"{offered:,.0f}" if offered > 0 else "–",
        "predicted": f"{row.rate:,.0f}",
        "interval": f"{min(row.low, top):,.0f} to {min(row.high, top):,.0f}",
        "measured": f"{run.rate:,.0f}",
        "theirs": f"{run.theirs:,.0f}" if run.theirs > 0 else "–",
    }


if __name__ == "__main__":
    try:
        main()
    except StreamplaceError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
