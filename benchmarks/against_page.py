"""Tables of the runs against Flink's own placement (docs/evidence.md)."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from statistics import mean

import numpy as np
from against_cells import (
    AGAIN,
    FLINK,
    KINDS,
    RANDOM,
    REPLAY,
    SEED,
    STREAMPLACE,
    Cell,
    Row,
    comparable,
)

DRAWS, LEAST_REPEATS = 10_000, 3
FLOOR, LOSS = 0.1, 0.97
"""Least value of a ratio in geometric means, and ratio below which a cell may be a loss."""
Rates = dict[str, float]


def results(rows: Sequence[Row], expected: Sequence[Cell], arms: Sequence[str]) -> str:
    """Text of the page's second half."""
    earlier = [row for row in rows if "superseded" in row]
    rows = [row for row in rows if "superseded" not in row]
    usable = comparable([row for row in rows if not row["disturbed"]])
    seen = _by_cell([row for row in usable if row["measure"] == "saturated"], expected)
    missing = sum(len(set(arms) - rates.keys()) for rates in seen.values())
    if not any(seen.values()):
        return f"## Results\n\nNothing has been measured yet: {missing} runs are missing.\n"
    told = [
        "## Results",
        _state(rows, seen, missing, len(arms) * len(expected)),
        *([_by_kind(seen, unmoved(usable))] if _known(seen, gain) else []),
        _cells_table(seen),
        _small_numbers(seen, usable),
        _unusual(usable),
    ]
    sustained = _by_cell([row for row in usable if row["measure"] == "sustained"], expected)
    if any(sustained.values()):
        told += ["### Sustainable rates", _cells_table(sustained)]
    if earlier:
        told.append(_superseded(earlier))
    return "\n\n".join(told) + "\n"


def _superseded(rows: Sequence[Row]) -> str:
    """Runs that do not count: of earlier versions of the command, or of another computer."""
    told: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        rate = f"{row['rate']:,.0f}" if "rate" in row else f"recommends {row['mode']}"
        cell = row["job"], row["kind"], row["superseded"]
        told.setdefault(cell, []).append(f"{row['arm']} {rate}")
    lines = ["### Runs that do not count", "", "Their cells are measured again; rates in tuples/s."]
    lines += ["", "| job | clusters | runs | why |", "|---|---|---|---|"]
    for (job, kind, why), runs in told.items():
        lines.append(f"| {job} | {kind} | {', '.join(runs)} | {why} |")
    return "\n".join(lines)


def _by_cell(rows: Iterable[Row], expected: Sequence[Cell]) -> dict[Cell, Rates]:
    """Cell → rates of its arms."""
    found: dict[Cell, Rates] = {cell: {} for cell in expected}
    for row in rows:
        found.setdefault(Cell(row["job"], row["kind"], row["repeat"]), {})[row["arm"]] = row["rate"]
    return found


def gain(rates: Rates) -> float | None:
    """Rate of streamplace over the best of Flink's own; None where a run is missing.

    >>> gain({"NONE": 1.0, "SLOTS": 2.0, "TASKS": 1.5, "streamplace": 3.0})
    1.5
    """
    return _ratio(rates, STREAMPLACE, FLINK)


def _ratio(rates: Rates, arm: str, others: Sequence[str]) -> float | None:
    if arm not in rates or any(other not in rates for other in others):
        return None
    best = max(rates[other] for other in others)
    if not best:
        return math.inf if rates[arm] else None
    return rates[arm] / best


def _known(
    seen: dict[Cell, Rates], ratio: Callable[[Rates], float | None]
) -> dict[tuple[str, str], list[float]]:
    """Job and kind → ratios of its repeats."""
    found: dict[tuple[str, str], list[float]] = {}
    for cell, rates in seen.items():
        value = ratio(rates)
        if value is not None and math.isfinite(value):
            found.setdefault((cell.job, cell.kind), []).append(value)
    return found


def _state(rows: Sequence[Row], seen: dict[Cell, Rates], missing: int, whole: int) -> str:
    complete = sum(gain(rates) is not None for rates in seen.values())
    disturbed = sum(row["disturbed"] for row in rows)
    unsteady = sum(not row.get("steady", True) for row in rows if not row["disturbed"])
    return (
        f"{missing} of {whole} runs are missing; {complete} of {len(seen)} cells can be compared. "
        f"{disturbed} runs were disturbed and do not count, {unsteady} count without two windows "
        "that agree within 5 %."
    )


def unmoved(rows: Iterable[Row]) -> dict[Cell, str]:
    """Cells in which streamplace moved nothing → the mode of Flink under which the job ran."""
    return {
        Cell(row["job"], row["kind"], row["repeat"]): row["mode"]
        for row in rows
        if row["arm"] == STREAMPLACE and row["measure"] == "saturated"
        if row.get("pinned") is False
    }


def _by_kind(seen: dict[Cell, Rates], stayed: dict[Cell, str]) -> str:
    """Geometric means per kind of cluster: to the best of Flink's own, and to each of them."""
    lines = [
        "| clusters | jobs | moved | geometric mean | 95 % interval | worst | best | "
        f"{' | '.join(f'to {mode} alone' for mode in FLINK)} |",
        "|---|---:|---:|---:|---:|---|---|---:|---:|---:|",
    ]
    still = {(cell.job, cell.kind) for cell in stayed}
    ratios = {key: mean(values) for key, values in _known(seen, gain).items()}
    single = [_known(seen, partial(_ratio, arm=STREAMPLACE, others=(mode,))) for mode in FLINK]
    for kind in KINDS:
        own = {job: value for (job, other), value in ratios.items() if other == kind}
        if own:
            low, high = _interval(np.log([max(FLOOR, value) for value in own.values()]))
            worst, best = min(own, key=own.__getitem__), max(own, key=own.__getitem__)
            alone = [
                geometric(mean(known[job, kind]) for job in own if (job, kind) in known)
                for known in single
            ]
            lines.append(
                f"| {kind} | {len(own)} | {sum((job, kind) not in still for job in own)} | "
                f"{geometric(own.values()):.2f} | "
                f"{math.exp(low):.2f} … {math.exp(high):.2f} | {worst} {own[worst]:.2f} | "
                f"{best} {own[best]:.2f} | {' | '.join(f'{value:.2f}' for value in alone)} |"
            )
    lines += [
        "",
        "Jobs that were not moved ran under a placement of Flink's own, which the command "
        "recommended or had found: their ratios are those of two runs of one layout. These counts "
        "and the ratios to one mode alone are not part of the protocol; they are of the same "
        "cells.",
    ]
    return "\n".join(lines)


def geometric(ratios: Iterable[float]) -> float:
    """Geometric mean; a ratio counts as at least 0.1.

    >>> round(geometric([0.0, 10.0]), 6)
    1.0
    """
    return math.exp(mean(math.log(max(FLOOR, ratio)) for ratio in ratios))


def _interval(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """95 % interval of a mean, by a bootstrap."""
    rng, array = np.random.default_rng(SEED), np.asarray(values, float)
    means = array[rng.integers(len(array), size=(DRAWS, len(array)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def noise(seen: dict[Cell, Rates]) -> float:
    """90th percentile of |ln(A/A)|; 0 where there is no such pair."""
    pairs = _known(seen, lambda rates: _ratio(rates, AGAIN, ("SLOTS",)))
    logs = [abs(math.log(max(FLOOR, ratio))) for own in pairs.values() for ratio in own]
    return float(np.quantile(logs, 0.9)) if logs else 0.0


def _cells_table(seen: dict[Cell, Rates]) -> str:
    """All cells: rates of all arms, the ratio, and whether it is a loss."""
    lines = [
        "| job | clusters | NONE | SLOTS | TASKS | best random | streamplace | replay / SLOTS | "
        "A/A | to the best of Flink's |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    ratios, limit = _known(seen, gain), min(LOSS, math.exp(-noise(seen)))
    together: dict[tuple[str, str], list[Rates]] = {}
    for cell, rates in seen.items():
        if rates:
            together.setdefault((cell.job, cell.kind), []).append(rates)
    for key, repeats in sorted(together.items()):
        every = [{**rates, "best random": _best_random(rates)} for rates in repeats]
        own = [_mean_of(every, arm) for arm in (*FLINK, "best random", STREAMPLACE)]
        pairs = [
            _of([_ratio(rates, arm, ("SLOTS",)) for rates in repeats]) for arm in (REPLAY, AGAIN)
        ]
        told = _told(ratios.get(key, []), limit)
        lines.append(f"| {' | '.join([*key, *own, *pairs, told])} |")
    return "\n".join(lines)


def _best_random(rates: Rates) -> float | None:
    return max((rate for arm, rate in rates.items() if arm.startswith(RANDOM)), default=None)


def _mean_of(every: Sequence[dict[str, float | None]], arm: str) -> str:
    known = [rate for rates in every if (rate := rates.get(arm)) is not None]
    return f"{mean(known):,.0f}" if known else "missing"


def _of(ratios: Sequence[float | None]) -> str:
    known = [ratio for ratio in ratios if ratio is not None]
    return f"{mean(known):.2f}" if known else "missing"


def _told(ratios: Sequence[float], limit: float) -> str:
    if not ratios:
        return "missing"
    text = f"{mean(ratios):.2f}"
    if len(ratios) >= LEAST_REPEATS:
        low, high = _interval(ratios)
        text += f" ({low:.2f} … {high:.2f})"
    if mean(ratios) < limit:
        return f"**{text}**, a loss"
    return f"{text}, no gain" if mean(ratios) <= 1 else text


def _small_numbers(seen: dict[Cell, Rates], rows: Sequence[Row]) -> str:
    """Noise, replay, losses, and how well the command predicts."""
    ratios = {key: mean(values) for key, values in _known(seen, gain).items()}
    replays = _known(seen, lambda rates: _ratio(rates, REPLAY, ("SLOTS",)))
    within, limit = noise(seen), min(LOSS, math.exp(-noise(seen)))
    lines = [f"- A/A: the 90th percentile of |ln| is {within:.3f}."]
    twice = [
        abs(math.log(max(FLOOR, seen[cell][STREAMPLACE] / seen[cell][mode])))
        for cell, mode in unmoved(rows).items()
        if seen.get(cell, {}).get(mode)
    ]
    if twice:
        lines.append(
            f"- Jobs that were not moved, {len(twice)} pairs of runs of one layout on two "
            f"clusters: the 90th percentile of |ln| is {np.quantile(twice, 0.9):.3f}, the largest "
            f"{max(twice):.3f}."
        )
    if replays:
        lines.append(f"- Replay: geometric mean {geometric(map(mean, replays.values())):.3f}.")
    losses = sorted((value, key) for key, value in ratios.items() if value < limit)
    named = ", ".join(f"{job} on {kind} ({value:.2f})" for value, (job, kind) in losses)
    lines.append(f"- Losses beyond the noise: {named or 'none'}.")
    if ratios:
        worst = min(ratios, key=ratios.__getitem__)
        lines.append(f"- Worst cell: {' on '.join(worst)}, {ratios[worst]:.2f}.")
    errors = [
        abs(row["predicted"] / row["rate"] - 1)
        for row in rows
        if row.get("predicted") and row.get("moved") and row["measure"] == "saturated"
        if row["rate"]
    ]
    if errors:
        median, most = np.quantile(errors, [0.5, 0.9])
        lines.append(
            f"- Predictions of the layouts to which jobs were moved in {len(errors)} cells: median "
            f"error {100 * median:.1f} %, 90th percentile {100 * most:.1f} %."
        )
    else:
        lines.append("- Predictions: the command told none.")
    commands = [row["command_seconds"] for row in rows if "command_seconds" in row]
    if commands:
        lines.append(
            f"- The command took {np.median(commands):.0f} s in the median, at most "
            f"{max(commands):.0f} s."
        )
    return "\n".join(lines)


def _unusual(rows: Sequence[Row]) -> str:
    """Failures, advice, and jobs that the command did not move."""
    lines = ["### Failures, advice, and jobs that were left where they were", ""]
    for row in rows:
        where = f"- {row['job']} on {row['kind']}, {row['arm']}: "
        if "failed" in row:
            lines.append(where + " ".join(row["failed"].split())[:300])
        elif row["measure"] == "advice":
            lines.append(f"{where}the command recommends {row['mode']}")
        elif row.get("moved") is False:
            lines.append(f"{where}the command moved nothing (exit status {row['code']})")
    return "\n".join(lines if len(lines) > 2 else [*lines, "None."])
