"""Results of ``streamplace compare`` on the terminal and as a JSON document."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from math import isfinite, isnan, nan
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from streamplace.cli._output import console, counted
from streamplace.model.report import percent

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from streamplace.evaluate.objective_results import ObjectiveResults
    from streamplace.evaluate.pareto import Front
    from streamplace.evaluate.rows import Row, Table
    from streamplace.objectives.registry import Objective

MOST_PAIRS = 8
"""Placers in the table of pairs on a terminal; the JSON document has all."""
MOST_NAME = 24
"""Characters of a placer's name in one line of a table."""
MOST_HEADS = 65
"""Characters of all names at the head of a table, beyond which letters stand for them."""


def as_document(
    results: "Sequence[ObjectiveResults]", front: "Front | None" = None
) -> dict[str, Any]:
    """JSON document of a comparison; for several objectives, one inside another."""
    documents = [_document(result.judge, result.table) for result in results]
    if front is None:
        return documents[0]
    return {
        "objectives": {document["objective"]: document for document in documents},
        "pareto": {_key(rate): [asdict(point) for point in row] for rate, row in front.items()},
    }


def _document(judge: "Objective", table: "Table") -> dict[str, Any]:
    return {
        "objective": judge.name,
        "rates": {
            _key(rate): {"placers": {name: _finite(asdict(row)) for name, row in rows.items()}}
            for rate, rows in sorted(table.items())
        },
    }


def _key(rate: float | None) -> str:
    if rate is None:
        return "own"
    return f"{rate:g}" if rate < 1e6 else str(int(rate))


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """Numbers that JSON has; None for others, such as a multiple of a best of 0."""
    return {key: _number(value) for key, value in row.items()}


def _number(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_number(part) for part in value]
    if isinstance(value, dict):
        return _finite(value)
    return None if isinstance(value, float) and not isfinite(value) else value


def show(judge: "Objective", table: "Table", reference: str) -> None:
    """Print a table per rate, with the distance to the best and to the optimum."""
    from rich.table import Column
    from rich.table import Table as RichTable

    from streamplace.evaluate.rows import heading
    from streamplace.model.console import titled

    out = console()
    for rate, by_placer in sorted(table.items()):
        head, cells = _columns(judge, reference if reference in by_placer else None)
        graphs = max(row.graphs for row in by_placer.values())
        proven = max(row.proven for row in by_placer.values())
        facts = f", {counted(graphs, 'graph')}, {proven} with a proven optimum"
        plain_rate = judge.kind == "rate" and judge.usual
        asked = "" if plain_rate else f"{judge.name}, "
        out.print(titled(f"{asked}{heading(rate)}", facts))
        measures = sorted({name for row in by_placer.values() for name in row.measures})
        names = Column("placer", overflow="fold", min_width=_width(by_placer))
        rows = RichTable(names, *head, *measures, "ms", box=None)
        for name, row in by_placer.items():
            left_out = f"  ({row.failed} not placed)" if row.failed else ""
            further = (_cell(row.measures.get(measure, nan), "{:.4g}") for measure in measures)
            time = _cell(row.ms_per_graph, "{:.2f}")
            rows.add_row(name, *cells(row), *further, f"{time}{left_out}")
        out.print(rows)
        few = judge.sense == "min" or len(by_placer) > 2  # else the table above says it
        if few and 1 < len(by_placer) <= MOST_PAIRS:
            out.print(_pairs(by_placer))


def _cell(value: float, form: str | Callable[[float], str]) -> str:
    """Cell of a number; a dash where the placer has placed nothing."""
    if isnan(value):
        return "—"
    return form.format(value) if isinstance(form, str) else form(value)


def _pairs(by_placer: "dict[str, Row]") -> "RichTable":
    """How often each placer is better, equal or worse than each other."""
    from rich.table import Column
    from rich.table import Table as RichTable

    heads = {name: name for name in by_placer}
    if sum(len(name) + 2 for name in heads) > MOST_HEADS:
        heads = dict(zip(by_placer, ascii_uppercase, strict=False))
    columns = (Column(head, no_wrap=True) for head in heads.values())
    rows = RichTable(Column("better / equal / worse than, %", overflow="fold"), *columns, box=None)
    for name, row in by_placer.items():
        shares = (row.better_than, row.equal_to, row.worse_than)
        cells = (
            "" if other == name else "/".join(f"{100 * share[other]:.0f}" for share in shares)
            for other in by_placer
        )
        rows.add_row(name if heads[name] == name else f"{heads[name]}  {name}", *cells)
    return rows


def _width(names: Iterable[str]) -> int:
    """Width of a column of names, beyond which they go on in the next line."""
    return min(MOST_NAME, max(map(len, names), default=0))


def show_front(front: "Front") -> None:
    """Print the values of every placer by all objectives, and which are not dominated."""
    from rich.table import Column
    from rich.table import Table as RichTable

    from streamplace.evaluate.rows import heading

    out = console()
    for rate, points in front.items():
        names = list(points[0].of_best) if points else []
        out.print(f"{heading(rate)}: value / best value, by every objective (● not dominated)")
        placers = Column(
            "placer", overflow="fold", min_width=_width(point.placer for point in points)
        )
        rows = RichTable("asked for", placers, *names, "", box=None)
        for point in points:
            shares = (f"{point.of_best[name]:.3f}" for name in names)
            rows.add_row(point.asked, point.placer, *shares, "●" if point.front else "")
        out.print(rows)


def _columns(
    judge: "Objective", reference: str | None
) -> "tuple[tuple[str, ...], Callable[[Row], tuple[str, ...]]]":
    """Heads of the columns, and their cells for one placer.

    The columns of an objective that is maximised are those of the paper's Table 1; the values of
    one that is minimised are multiples of the best value of all placers. Without a reference, no
    column compares placers with one.
    """
    if judge.sense == "max":
        against = () if reference is None else (f"vs {reference} +/=/−",)
        return ("mean", "q1", "median", "min", *against, "of optimum", "optimal"), lambda row: (
            *(_cell(value, "{:.3f}") for value in (row.mean, row.q1, row.median, row.min)),
            *(() if reference is None else (_signs(row, reference),)),
            "—" if row.share_of_optimum is None else f"{100 * row.share_of_optimum:.2f} %",
            "—" if row.reached is None else percent(row.reached),
        )
    head = ("mean", "max", "× best", "worst", "× optimum", "optimal")
    return head, lambda row: (
        *(_cell(value, judge.format) for value in (row.mean, row.max)),
        *(_cell(ratio, "{:.3f}") for ratio in row.of_best),
        "—" if row.share_of_optimum is None else f"{row.share_of_optimum:.3f}",
        "—" if row.reached is None else percent(row.reached),
    )


def _signs(row: "Row", reference: str) -> str:
    shares = (row.better_than, row.equal_to, row.worse_than)
    return " / ".join(f"{100 * share[reference]:.0f}" for share in shares) + " %"
