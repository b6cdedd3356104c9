"""Tables of the runs against Flink's own placement (docs/results/evidence.md)."""

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import mean, median
from typing import Any, NamedTuple

import numpy as np
from against_cells import AGAIN, ARMS, FLINK, KINDS, MOVE, SEED, Cell, Row

DRAWS = 10_000
FLOOR, LOSS = 0.1, 0.97
"""Least value of a ratio in geometric means, and ratio below which a cell may be a loss."""


class Compared(NamedTuple):
    """A cell in which all arms were measured on one computer."""

    cell: Cell
    rates: dict[str, float]
    run: Row  # of the command

    @property
    def best(self) -> float:
        """The best rate of Flink's own placements."""
        return max(self.rates[mode] for mode in FLINK)

    @property
    def gain(self) -> float:
        """Rate after the command, relative to the best of Flink's own."""
        return self.rates[MOVE] / self.best if self.best else math.inf

    @property
    def trials(self) -> list[Row]:
        """Layouts that the command measured, the one before first."""
        return trials_of(self.run)

    @property
    def first(self) -> float:
        """Gain that one try has: the better one of the layout before and the first tried one."""
        rates = [trial["measured"] or 0.0 for trial in self.trials[:2]]
        return max(rates, default=self.rates[MOVE]) / self.best

    @property
    def last(self) -> float | None:
        """Rate that the command reported at the end, relative to what was measured afterwards."""
        reported, rate = decision_of(self.run).get("measured"), self.rates[MOVE]
        return reported / rate if reported and rate else None


def decision_of(run: Row) -> Row:
    """What a run of the command says of its decision; empty where it has failed."""
    answer = run.get("answer")
    decision: Row = answer.get("decision") or {} if isinstance(answer, dict) else {}
    return decision


def trials_of(run: Row) -> list[Row]:
    """Layouts that a run of the command measured, the one before first."""
    return list(decision_of(run).get("trials", ()))


def compared(rows: Iterable[Row]) -> list[Compared]:
    """Complete cells, of the computer that measured them last."""
    runs: dict[tuple[Cell, str], dict[str, Row]] = {}
    for row in rows:
        if not row["disturbed"]:
            cell = Cell(row["job"], row["kind"], row["repeat"])
            runs.setdefault((cell, row["boot"]), {})[row["arm"]] = row
    complete = {cell: own for (cell, _), own in runs.items() if own.keys() >= {*ARMS}}
    return [
        Compared(cell, {arm: row["rate"] for arm, row in own.items()}, own[MOVE])
        for cell, own in complete.items()
    ]


def results(rows: Sequence[Row]) -> str:
    """All tables."""
    cells = compared(rows)
    if not cells:
        return "No cell is complete yet."
    disturbed = sum(row["disturbed"] for row in rows)
    head = f"{len(cells)} cells; {disturbed} runs were disturbed and do not count."
    parts = [head, "\n".join(_by_kind(cells)), "\n".join(_facts(cells))]
    return "\n\n".join(parts)


def _by_kind(cells: Sequence[Compared]) -> Iterator[str]:
    yield (
        "| clusters | jobs | geometric mean | 95 % interval | one try | worst | best | "
        f"{' | '.join(f'to {mode}' for mode in FLINK)} |"
    )
    yield "|---|---:|---:|---|---:|---|---|---:|---:|---:|"
    for kind in KINDS:
        own = [cell for cell in cells if cell.cell.kind == kind]
        if not own:
            continue
        low, high = interval([cell.gain for cell in own])
        worst, best = min(own, key=lambda cell: cell.gain), max(own, key=lambda cell: cell.gain)
        alone = [
            geometric(cell.rates[MOVE] / max(cell.rates[mode], 1e-9) for cell in own)
            for mode in FLINK
        ]
        yield (
            f"| {kind} | {len(own)} | {geometric(cell.gain for cell in own):.2f} | {low:.2f} to "
            f"{high:.2f} | {geometric(cell.first for cell in own):.2f} | {worst.cell.job} "
            f"{worst.gain:.2f} | {best.cell.job} {best.gain:.2f} | "
            f"{' | '.join(f'{ratio:.2f}' for ratio in alone)} |"
        )


def _facts(cells: Sequence[Compared]) -> Iterator[str]:
    within = noise(cells)
    yield f"- The same layout twice (A/A): the 90th percentile of |ln| is {within:.3f}."
    losses = [cell for cell in cells if cell.gain < min(LOSS, math.exp(-within))]
    named = [f"{cell.cell.job} on {cell.cell.kind} ({cell.gain:.2f})" for cell in losses]
    yield f"- Losses beyond the noise: {', '.join(named) or 'none'}."
    seconds = [cell.run["command_seconds"] for cell in cells if "command_seconds" in cell.run]
    if seconds:
        yield (
            f"- The command took {median(seconds):.0f} s in the median, at most "
            f"{max(seconds):.0f} s."
        )
    reported = [abs(cell.last - 1) for cell in cells if cell.last is not None]
    if reported:
        yield (
            "- The rate that it reported differs from what was measured afterwards by "
            f"{_quantiles(reported)}."
        )
    tries = [trial for cell in cells for trial in cell.trials[1:] if trial["measured"]]
    announced = [trial for trial in tries if trial.get("predicted")]
    if announced:
        errors = [abs(trial["predicted"]["value"] / trial["measured"] - 1) for trial in announced]
        held = mean(
            trial["predicted"]["low"]
            <= trial["measured"]
            <= (trial["predicted"]["high"] or math.inf)
            for trial in announced
        )
        yield (
            f"- Predictions of {len(announced)} tries are off by {_quantiles(errors)}; "
            f"{held:.0%} of the intervals contain what was measured."
        )
    interrupted = [
        trial for trial in tries if trial.get("interruption") and trial.get("expected_interruption")
    ]
    if interrupted:
        ratios = [
            abs(math.log(trial["expected_interruption"] / trial["interruption"]))
            for trial in interrupted
        ]
        yield f"- Interruptions told differ from those measured by a factor of {_factors(ratios)}."
    failed = [cell for cell in cells if cell.run.get("code") or "failed" in cell.run]
    for cell in failed:
        reason = " ".join((cell.run.get("failed") or cell.run["told"]).split())[-300:]
        yield f"- {cell.cell.job} on {cell.cell.kind}: {reason}"


def _quantiles(errors: Sequence[float]) -> str:
    middle, most = np.quantile(errors, [0.5, 0.9])
    return f"{middle:.1%} in the median and {most:.1%} at the 90th percentile"


def _factors(logs: Sequence[float]) -> str:
    middle, most = np.exp(np.quantile(logs, [0.5, 0.9]))
    return f"{middle:.2f} in the median and {most:.2f} at the 90th percentile"


def geometric(ratios: Iterable[float]) -> float:
    """Geometric mean; a ratio counts as at least 0.1.

    >>> round(geometric([0.0, 10.0]), 6)
    1.0
    """
    return math.exp(mean(math.log(max(FLOOR, ratio)) for ratio in ratios))


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """95 % interval of a geometric mean, by a bootstrap."""
    logs: Any = np.log([max(FLOOR, ratio) for ratio in ratios])
    rng = np.random.default_rng(SEED)
    means = logs[rng.integers(len(logs), size=(DRAWS, len(logs)))].mean(axis=1)
    low, high = np.exp(np.quantile(means, [0.025, 0.975]))
    return float(low), float(high)


def noise(cells: Sequence[Compared]) -> float:
    """90th percentile of |ln| of two runs of SLOTS."""
    pairs = [(cell.rates[AGAIN], cell.rates["SLOTS"]) for cell in cells]
    logs = [abs(math.log(a / b)) for a, b in pairs if a and b]
    return float(np.quantile(logs, 0.9)) if logs else 0.0
