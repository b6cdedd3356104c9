"""Results of a comparison as a report for people and as a JSON document."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from math import isfinite, isnan, nan
from string import ascii_uppercase
from typing import Any

from streamplace.evaluate.objective_results import ObjectiveResults
from streamplace.evaluate.paired import CONFIDENCE, Paired
from streamplace.evaluate.pareto import Front
from streamplace.evaluate.rows import Row, heading
from streamplace.model.messages import counted
from streamplace.model.report import Heading, Part, Report, Sheet, percent
from streamplace.model.units import exact_digits
from streamplace.objectives.registry import Objective

OF_OPTIMUM = {"max": "of optimum", "min": "× optimum"}
"""Heads of the column of values / optima, by sense."""
MOST_PAIRS = 8
"""Most placers in the table of pairs; the JSON document has all."""
MOST_HEADS = 65
"""Most characters of all names in the head of a table; beyond, letters replace the names."""


def as_document(results: Sequence[ObjectiveResults], front: Front | None = None) -> dict[str, Any]:
    """JSON document of a comparison; for several objectives, a document of documents."""
    documents = [_document(result) for result in results]
    if front is None:
        return documents[0]
    return {
        "objectives": {document["objective"]: document for document in documents},
        "pareto": {_key(rate): [asdict(point) for point in row] for rate, row in front.items()},
    }


def _document(result: ObjectiveResults) -> dict[str, Any]:
    return {
        "objective": result.judge.name,
        "rates": {
            _key(rate): {
                "placers": {
                    name: _row_document(row, result.paired[rate][name])
                    for name, row in rows.items()
                }
            }
            for rate, rows in sorted(result.table.items())
        },
    }


def _row_document(row: Row, rivals: dict[str, Paired]) -> dict[str, Any]:
    pairs = {name: asdict(pair) for name, pair in rivals.items()}
    return _finite({**asdict(row), "paired": pairs})


def _key(rate: float | None) -> str:
    if rate is None:
        return "own"
    return str(int(rate)) if rate >= 1e6 and rate.is_integer() else exact_digits(rate)


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """Replace numbers that JSON does not have, such as multiples of a best of 0, by None."""
    return {key: _number(value) for key, value in row.items()}


def _number(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_number(part) for part in value]
    if isinstance(value, dict):
        return _finite(value)
    return None if isinstance(value, float) and not isfinite(value) else value


def comparison_report(
    results: Sequence[ObjectiveResults], front: Front | None, reference: str
) -> Report:
    """Tables of a comparison: one for every objective and rate, and one of the trade-offs."""
    parts = [part for result in results for part in _tables(result, reference)]
    return Report((*parts, *_front_tables(front or {})))


def _tables(result: ObjectiveResults, reference: str) -> Iterator[Part]:
    """Tables by rate, compared with the best values and with the optima."""
    judge = result.judge
    for rate, by_placer in sorted(result.table.items()):
        graphs = max(row.graphs for row in by_placer.values())
        proven = max(row.proven for row in by_placer.values())
        facts = f", {counted(graphs, 'graph')}, {proven} with a proven optimum"
        plain_rate = judge.kind == "rate" and judge.usual
        asked = "" if plain_rate else f"{judge.name}, "
        yield Heading(f"{asked}{heading(rate)}", facts)
        yield _sheet(judge, by_placer, reference if reference in by_placer else None)
        if 0 < proven < graphs:
            yield _proven_words(judge, by_placer, proven, graphs)
        if reference in by_placer and len(by_placer) > 1:
            yield _against(result.paired[rate], reference)
        few = judge.sense == "min" or len(by_placer) > 2  # else the table above shows it
        if few and 1 < len(by_placer) <= MOST_PAIRS:
            yield _pairs(by_placer)


def _proven_words(judge: Objective, by_placer: dict[str, Row], proven: int, graphs: int) -> str:
    """Number of graphs in the means of the optimum's columns, if it is not all of them."""
    fewer = [f"{name} over {row.proven}" for name, row in by_placer.items() if row.proven < proven]
    placed = f"; {', '.join(fewer)} of these" if fewer else ""
    column = OF_OPTIMUM[judge.sense]
    return (
        f"{column} and optimal: over the {proven} of {counted(graphs, 'graph')} whose optimum is "
        f"proven{placed}"
    )


def _sheet(judge: Objective, by_placer: dict[str, Row], reference: str | None) -> Sheet:
    """Row for every placer."""
    head, cells = _columns(judge, reference)
    measures = sorted({name for row in by_placer.values() for name in row.measures})
    rows = []
    for name, row in by_placer.items():
        left_out = f"  ({row.failed} not placed)" if row.failed else ""
        further = (cell(row.measures.get(measure, nan), "{:.4g}") for measure in measures)
        time = cell(row.ms_per_graph, "{:.2f}")
        rows.append((name, *cells(row), *further, f"{time}{left_out}"))
    return Sheet(("placer", *head, *measures, "ms"), tuple(rows), names=0)


def _against(paired: dict[str, dict[str, Paired]], reference: str) -> Sheet:
    """Wins, sign test and ratio of every placer against the reference."""
    head = (
        f"against {reference}", "better / equal / worse", "sign test", "value ratio",
        f"{100 * CONFIDENCE:.0f} % interval",
    )  # fmt: skip
    rows = []
    for name, rivals in paired.items():
        if name == reference:
            continue
        pair = rivals[reference]
        counts = f"{pair.better} / {pair.equal} / {pair.worse}"
        ratio = cell(nan if pair.ratio is None else pair.ratio, "{:.4f}")
        ends = "—" if pair.interval is None else "{:.4f} to {:.4f}".format(*pair.interval)
        rows.append((name, counts, p_value(pair.sign_test), ratio, ends))
    return Sheet(head, tuple(rows), names=0)


def p_value(p: float) -> str:
    """Text of the p value of a test.

    >>> p_value(0.021484), p_value(2e-9), p_value(1.0)
    ('p = 0.021', 'p < 0.0001', 'p = 1')
    """
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def cell(value: float, form: str | Callable[[float], str]) -> str:
    """Format a number; a dash if the placer placed nothing."""
    if isnan(value):
        return "—"
    return form.format(value) if isinstance(form, str) else form(value)


def _pairs(by_placer: dict[str, Row]) -> Sheet:
    """Shares of graphs on which each placer is better, equal or worse, by pairs of placers."""
    heads = {name: name for name in by_placer}
    if sum(len(name) + 2 for name in heads) > MOST_HEADS:
        heads = dict(zip(by_placer, ascii_uppercase, strict=False))
    rows = []
    for name, row in by_placer.items():
        shares = (row.better_than, row.equal_to, row.worse_than)
        cells = (
            "" if other == name else "/".join(f"{100 * share[other]:.0f}" for share in shares)
            for other in by_placer
        )
        rows.append((name if heads[name] == name else f"{heads[name]}  {name}", *cells))
    head = ("better / equal / worse than, %", *heads.values())
    return Sheet(head, tuple(rows), names=0)


def _front_tables(front: Front) -> Iterator[Part]:
    """Values of every placer by all objectives, marked if they are not dominated."""
    for rate, points in front.items():
        names = list(points[0].of_best) if points else []
        yield f"{heading(rate)}: value / best value, by every objective (● not dominated)"
        rows = tuple(
            (
                point.asked,
                point.placer,
                *(f"{point.of_best[name]:.3f}" for name in names),
                "●" if point.front else "",
            )
            for point in points
        )
        yield Sheet(("asked for", "placer", *names, ""), rows, names=1)


def _columns(
    judge: Objective, reference: str | None
) -> tuple[tuple[str, ...], Callable[[Row], tuple[str, ...]]]:
    """Heads of the columns, and their cells for one placer.

    The columns of a maximised objective are those of the paper's Table 1; the values of a
    minimised one are multiples of the best value of all placers. Without a reference, no column
    compares placers with it.
    """
    if judge.sense == "max":
        against = () if reference is None else (f"vs {reference} +/=/−",)
        return (
            "mean",
            "q1",
            "median",
            "min",
            *against,
            OF_OPTIMUM["max"],
            "optimal",
        ), lambda row: (
            *(cell(value, "{:.3f}") for value in (row.mean, row.q1, row.median, row.min)),
            *(() if reference is None else (signs(row, reference),)),
            "—" if row.share_of_optimum is None else f"{100 * row.share_of_optimum:.2f} %",
            "—" if row.reached is None else percent(row.reached),
        )
    head = ("mean", "max", "× best", "worst", OF_OPTIMUM["min"], "optimal")
    return head, lambda row: (
        *(cell(value, judge.format) for value in (row.mean, row.max)),
        *(cell(ratio, "{:.3f}") for ratio in row.of_best),
        "—" if row.share_of_optimum is None else f"{row.share_of_optimum:.3f}",
        "—" if row.reached is None else percent(row.reached),
    )


def signs(row: Row, reference: str) -> str:
    """Shares of the graphs on which a placer is better, equal and worse than another."""
    shares = (row.better_than, row.equal_to, row.worse_than)
    return " / ".join(f"{100 * share[reference]:.0f}" for share in shares) + " %"
