"""Results of a comparison as a report for people and as a JSON document."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from math import isfinite, isnan, nan
from string import ascii_uppercase
from typing import Any, NamedTuple

from streamplace.evaluate.objective_results import ObjectiveResults
from streamplace.evaluate.paired import CONFIDENCE, Paired
from streamplace.evaluate.pareto import Front
from streamplace.evaluate.rows import Row, heading
from streamplace.model.messages import counted
from streamplace.model.report import Detail, Heading, PlainPart, Report, Sheet, percent
from streamplace.model.units import exact_digits
from streamplace.objectives.registry import Objective

OF_OPTIMUM = {"max": "of optimum", "min": "× optimum"}
"""Heads of the column of values / optima, by sense."""
MOST_PAIRS = 8
"""Most placers in the table of pairs; the JSON document has all."""
MOST_COUNTS = 5
"""Fewest rates and objectives whose numbers of proven optima are not listed in a heading."""
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


SCREEN_ROWS = 20
"""Most rows of placers on a screen, beside headings; further tables are details."""


def comparison_report(
    results: Sequence[ObjectiveResults],
    front: Front | None,
    reference: str,
    notes: Iterable[str] = (),
) -> Report:
    """One table of all objectives and rates, and the statistics; the rest as details."""
    cases = [
        _Case(result.judge, rate, by_placer, result.paired[rate])
        for result in results
        for rate, by_placer in sorted(result.table.items())
    ]
    is_long = 2 * sum(len(case.rows) for case in cases) > SCREEN_ROWS  # rows of both tables
    against = [Detail(part) if is_long else part for part in _against(cases, reference)]
    front = front or {}
    return Report(
        (
            _heading(cases),
            _table(cases),
            *notes,
            *against,
            *_front_tables(front, only_best=True),
            *(Detail(part) for case in cases for part in _details(case, reference)),
            *(Detail(part) for part in _front_tables(front, only_best=False)),
        )
    )


class _Case(NamedTuple):
    """Results by one objective at one rate."""

    judge: Objective
    rate: float | None
    rows: dict[str, Row]
    paired: dict[str, dict[str, Paired]]

    @property
    def graphs(self) -> int:
        return max(row.graphs for row in self.rows.values())

    @property
    def proven(self) -> int:
        return max(row.proven for row in self.rows.values())

    @property
    def name(self) -> str:
        """Objective, unless it is the usual throughput, and rate."""
        usual = self.judge.kind == "rate" and self.judge.usual
        return f"{'' if usual else f'{self.judge.name}, '}{heading(self.rate)}"


def _heading(cases: Sequence[_Case]) -> Heading:
    """Number of graphs, and how many of them have a proven optimum."""
    rates, objectives = {case.rate for case in cases}, {case.judge.name for case in cases}
    name = cases[0].name
    if len(objectives) > 1:
        at = heading(cases[0].rate) if len(rates) == 1 else counted(len(rates), "rate")
        name = f"{len(objectives)} objectives, {at}"
    elif len(rates) > 1:
        name = cases[0].name.replace(heading(cases[0].rate), counted(len(rates), "rate"))
    graphs = cases[0].graphs
    proven = [case.proven for case in cases]
    if min(proven) == graphs:
        text = "all with a proven optimum"
    elif max(proven) == 0:
        text = "none with a proven optimum"
    else:
        counts = " and ".join(map(str, proven)) if len(proven) < MOST_COUNTS else "those"
        text = f"{OF_OPTIMUM['max']}: over the {counts} with a proven optimum"
    return Heading(name, f", {counted(graphs, 'graph')}, {text}")


def _labels(cases: Sequence[_Case]) -> tuple[str, list[str]]:
    """Head of a column that tells objectives and rates apart, and its cells; "" for one case."""
    objectives = {case.judge.name for case in cases}
    rates = {case.rate for case in cases}
    if len(cases) == 1:
        return "", [""]
    if len(objectives) == 1:
        return "tuples/s", [heading(case.rate).removesuffix(" tuples/s") for case in cases]
    if len(rates) == 1:
        return "objective", [case.judge.name for case in cases]
    return "objective, rate", [f"{case.judge.name}, {heading(case.rate)}" for case in cases]


def _blocks(
    cases: Sequence[_Case], head: Sequence[str], rows: Sequence[Sequence[tuple[str, ...]]]
) -> Sheet:
    """One table with the rows of every case, which is named beside the first of them."""
    label, names = _labels(cases)
    if not label:
        return Sheet(tuple(head), tuple(rows[0]), names=0)
    named = [
        (name if i == 0 else "", *row)
        for name, block in zip(names, rows, strict=True)
        for i, row in enumerate(block)
    ]
    return Sheet((label, *head), tuple(named), names=1)


def _table(cases: Sequence[_Case]) -> Sheet:
    """Mean, share of the optimum and time of every placer."""
    senses = {case.judge.sense for case in cases}
    multiples = senses == {"min"}
    of_optimum = OF_OPTIMUM["min" if multiples else "max"]
    head = ("placer", "mean", *(["× best"] if multiples else []), of_optimum, "optimal", "ms")
    blocks = [
        [
            (
                name,
                cell(row.mean, "{:.3f}" if case.judge.sense == "max" else case.judge.format),
                *([cell(row.of_best[0], "{:.3f}")] if multiples else []),
                _of_optimum(case.judge, row)
                + ("" if multiples or case.judge.sense == "max" else " ×"),
                "—" if row.reached is None else percent(row.reached),
                _time(row),
            )
            for name, row in case.rows.items()
        ]
        for case in cases
    ]
    return _blocks(cases, head, blocks)


def _of_optimum(judge: Objective, row: Row) -> str:
    if row.share_of_optimum is None:
        return "—"
    if judge.sense == "max":
        return f"{100 * row.share_of_optimum:.2f} %"
    return f"{row.share_of_optimum:.3f}"


def _time(row: Row) -> str:
    """Milliseconds per graph, and the number of graphs that were not placed."""
    failed = f"  ({row.failed} not placed)" if row.failed else ""
    return f"{cell(row.ms_per_graph, '{:.2f}')}{failed}"


def _details(case: _Case, reference: str) -> Iterator[PlainPart]:
    """All columns of one objective at one rate, and the comparison of all pairs of placers."""
    yield Heading(
        case.name, f", {counted(case.graphs, 'graph')}, {case.proven} with a proven optimum"
    )
    yield _sheet(case.judge, case.rows, reference if reference in case.rows else None)
    if 0 < case.proven < case.graphs:
        yield _proven_words(case.judge, case.rows, case.proven, case.graphs)
    if 1 < len(case.rows) <= MOST_PAIRS:
        yield _pairs(case.rows)


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
        further = (cell(row.measures.get(measure, nan), "{:.4g}") for measure in measures)
        rows.append((name, *cells(row), *further, _time(row)))
    return Sheet(("placer", *head, *measures, "ms"), tuple(rows), names=0)


def _against(cases: Sequence[_Case], reference: str) -> Iterator[Sheet]:
    """Wins, sign test and ratio of every placer against the reference, if there are others."""
    compared = [case for case in cases if reference in case.rows and len(case.rows) > 1]
    if not compared:
        return
    head = (
        f"against {reference}", "better / equal / worse", "sign test", "ratio",
        f"{100 * CONFIDENCE:.0f} % interval",
    )  # fmt: skip
    blocks = []
    for case in compared:
        block = []
        for name, rivals in case.paired.items():
            if name == reference:
                continue
            pair = rivals[reference]
            counts = f"{pair.better} / {pair.equal} / {pair.worse}"
            ratio = cell(nan if pair.ratio is None else pair.ratio, "{:.4f}")
            ends = "—" if pair.interval is None else "{:.4f} to {:.4f}".format(*pair.interval)
            block.append((name, counts, p_value(pair.sign_test), ratio, ends))
        blocks.append(block)
    yield _blocks(compared, head, blocks)


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


def _front_tables(front: Front, *, only_best: bool) -> Iterator[PlainPart]:
    """Values by all objectives: of the placements that are not dominated, or of all placers."""
    for rate, points in front.items():
        names = list(points[0].of_best) if points else []
        what = "not dominated by another" if only_best else "of all placers (● not dominated)"
        yield f"{heading(rate)}: value / best value by every objective, {what}"
        rows = tuple(
            (
                point.asked,
                point.placer,
                *(f"{point.of_best[name]:.3f}" for name in names),
                *([] if only_best else ["●" if point.front else ""]),
            )
            for point in points
            if point.front or not only_best
        )
        yield Sheet(("asked for", "placer", *names, *([] if only_best else [""])), rows, names=1)


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
            _of_optimum(judge, row),
            "—" if row.reached is None else percent(row.reached),
        )
    head = ("mean", "max", "× best", "worst", OF_OPTIMUM["min"], "optimal")
    return head, lambda row: (
        *(cell(value, judge.format) for value in (row.mean, row.max)),
        *(cell(ratio, "{:.3f}") for ratio in row.of_best),
        _of_optimum(judge, row),
        "—" if row.reached is None else percent(row.reached),
    )


def signs(row: Row, reference: str) -> str:
    """Shares of the graphs on which a placer is better, equal and worse than another."""
    shares = (row.better_than, row.equal_to, row.worse_than)
    return " / ".join(f"{100 * share[reference]:.0f}" for share in shares) + " %"
