"""The result of a comparison of placers: its numbers, its tables, and its JSON document."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from math import isfinite, isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamplace.display.latex import latex_table
from streamplace.display.report import Detail, Heading, PlainPart, Report, Sheet, percent
from streamplace.errors import SettingError
from streamplace.evaluate.paired import CONFIDENCE, Paired, half_interval, holm
from streamplace.evaluate.records import Record, problem_hash, problem_number
from streamplace.evaluate.results import (
    ObjectiveResults,
    ProblemNumbers,
    Row,
    TradeOffs,
    heading,
    mean_of,
    trade_offs_of,
)
from streamplace.evaluate.runner import ComparisonRun, check_placer, records_of
from streamplace.evaluate.scan import Scan
from streamplace.evaluate.trained_on import trainings_of
from streamplace.io.datasets import DataSet
from streamplace.io.files import json_text, make_folder, write_text
from streamplace.io.suffixes import PICTURES
from streamplace.model.message_text import counted, quoted
from streamplace.model.mixins import Displayed, data_frame
from streamplace.model.problem import Problem
from streamplace.model.units import exact_digits
from streamplace.objectives.registry import Objective
from streamplace.placers.named import named_placer
from streamplace.progress import tracked

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

RESULTS, TABLE_JSON, TABLE, PAGE = "results.jsonl", "table.json", "table.tex", "report.html"
FRONT = "pareto.png"
FILES = (RESULTS, TABLE_JSON, TABLE, PAGE, FRONT)
"""Files of a comparison in its folder, besides the plots."""
NO_FILE_NAME = re.compile(r"[^\w.-]+")
COLUMNS = (
    "mean", "q1", "median", "min", "max", "share_of_optimum", "reached", "proven", "ms_per_graph",
    "graphs", "failed",
)  # fmt: skip
FRAME = (
    "objective", "rate", "graph", "placer", "value", "bound", "optimum", "milliseconds",
    "devices_used",
)  # fmt: skip
OF_OPTIMUM = {"max": "of optimum", "min": "× optimum"}
OF_BEST = {"max": "of best", "min": "× best"}
"""Heads of the columns of value / optimum and value / best value of all placers, by sense."""
INTERVAL = f"{100 * CONFIDENCE:.0f} % interval"
SCREEN_ROWS = 20
"""Rows of placers that fit a screen of 24 lines with headings; further tables are details."""
MAX_GRAPHS = 2_000
"""Graphs whose results a page shows one by one: rows that a browser draws quickly."""
MAX_VALUES = 12
"""Values of an attribute of graphs for a table by them."""
MAX_PLACED = 6_000
"""Operators of all placements on a page, to keep it below about a megabyte."""


class GraphResults:
    """Names of the first graphs of a comparison, and placements of the first of these."""

    def __init__(self) -> None:
        self.names: list[str] = []
        # Row of a graph by the number of its problem, which differs between rates.
        self.row: dict[int, int] = {}
        self.attributes: list[Mapping[str, Any]] = []  # of the graphs, such as their topology
        self.placed: dict[int, list[Record]] = {}  # records of the first graphs, by row
        self.problems: dict[int, Problem] = {}  # of the records in `placed`, by row; see `read`
        self.left_out = 0  # number of further graphs
        self._size = 0

    def __repr__(self) -> str:
        return f"<GraphResults of {counted(len(self.names), 'graph')}>"

    def add(self, records: list[Record]) -> None:
        """Add the records of one graph."""
        if not records:
            return
        if len(self.names) == MAX_GRAPHS:
            self.left_out += 1
            return
        row = len(self.names)
        self.names.append(records[0].graph)
        self.attributes.append(records[0].attributes)
        for record in records:
            self.row.setdefault(problem_number(record.problem), row)
        first = [
            record
            for record in records
            if record.value is not None
            and (record.rate, record.objective) == (records[0].rate, records[0].objective)
        ]
        self._size += sum(len(record.devices) for record in first)
        if first and self._size <= MAX_PLACED:
            self.placed[row] = first

    def groups(self) -> Iterator[tuple[str, Any, ProblemNumbers]]:
        """Name and value of an attribute with few values, and the problems that have the value."""
        numbers = np.array([*self.row], np.uint64)
        for name in dict.fromkeys(chain.from_iterable(self.attributes)):
            values = [attributes.get(name) for attributes in self.attributes]
            different = sorted(set(values) - {None}, key=lambda value: (str(type(value)), value))
            if 1 < len(different) <= MAX_VALUES:
                for value in different:
                    yield name, value, numbers[[values[row] == value for row in self.row.values()]]

    def read(self, problems: Iterable[Problem]) -> None:
        """Find the problems of the records in ``placed`` among those of the comparison."""
        if not self.placed:
            return
        rates = {records[0].rate for records in self.placed.values()}
        for problem in islice(problems, max(self.placed) + 1):
            for rate in rates:
                at_rate = problem.at_rate(rate)
                row = self.row.get(problem_number(problem_hash(at_rate)), -1)
                if row in self.placed:
                    self.problems[row] = at_rate


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Displayed):
    """Result of a comparison; ``print`` shows the tables of ``streamplace compare``.

    Attributes
    ----------
    results
        ``judge`` and ``table`` of every objective: rows by rate and placer; the rate None stands
        for the graphs' original rates.
    reference
        Placer that the others are compared with.
    failures
        Graphs on which a placer failed, with the reasons.
    aliases
        Alias → placer, for the aliases in the tables.
    graphs
        Results by graph, for pages.
    trained_on, chosen_by
        Learned placer → number of these graphs that it was trained on, and number of graphs by
        whose results its weights were chosen, if any; near copies count.
    trainings
        Learned placer → its name without weights, if several trainings of it are compared that
        differ in their seed alone.
    title
        Title of pages and pictures: the data, and the number of graphs.
    """

    results: tuple[ObjectiveResults, ...]
    reference: str
    failures: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    graphs: GraphResults = field(default_factory=GraphResults)
    trained_on: Mapping[str, int] = field(default_factory=dict)
    chosen_by: Mapping[str, int] = field(default_factory=dict)
    trainings: Mapping[str, str] = field(default_factory=dict)
    title: str = ""

    @property
    def front(self) -> TradeOffs | None:
        """Trade-offs between several objectives; None for a single objective."""
        return trade_offs_of(self.results) if len(self.results) > 1 else None

    def rows(self) -> list[tuple[str, float | None, str, Row]]:
        """Objective, rate, placer, and its numbers."""
        return [
            (result.judge.name, rate, placer, row)
            for result in self.results
            for rate, by_placer in result.table.items()
            for placer, row in by_placer.items()
        ]

    def paired(self, reference: str | None = None) -> list[tuple[str, float | None, str, Paired]]:
        """Objective, rate, placer, and its comparison with a reference on the same graphs.

        Parameters
        ----------
        reference
            Placer that the others are compared with; by default that of the comparison.
        """
        rival = self.reference if reference is None else reference
        return [
            (result.judge.name, rate, placer, rivals[rival])
            for result in self.results
            for rate, by_placer in result.paired.items()
            for placer, rivals in by_placer.items()
            if rival in rivals
        ]

    def report(self) -> Report:
        """One table of all objectives and rates, statistics, details, and graphs that failed."""
        reference, front = self.reference, self.front or {}
        cases = self._cases
        is_long = 2 * sum(len(case.rows) for case in cases) > SCREEN_ROWS  # rows of both tables
        return Report(
            (
                _heading(cases),
                _table(cases),
                *self.notes,
                *(Detail(part) if is_long else part for part in _against(cases, reference)),
                *_over_trainings(cases, self.trainings),
                *_front_tables(front, only_best=True),
                *(Detail(part) for case in cases for part in _details(case)),
                *map(Detail, self._by_attribute()),
                *(Detail(part) for part in _front_tables(front, only_best=False)),
                *(f"failed: {graph}: {reason}" for graph, reason in self.failures.items()),
            ),
            subject=self,
        )

    @property
    def _cases(self) -> "list[_Case]":
        return [
            _Case(result.judge, rate, by_placer, result.paired[rate])
            for result in self.results
            for rate, by_placer in sorted(result.table.items())
        ]

    def _by_attribute(self) -> Iterator[Sheet]:
        """Mean of every placer over the graphs with each value of an attribute."""
        for result in self.results:
            for rate, by_placer in sorted(result.columns.items()):
                rows = []
                for name, value, chosen in self.graphs.groups():
                    values = [c.value[np.isin(c.problem, chosen)] for c in by_placer.values()]
                    means = (cell(mean_of(column), _form(result.judge)) for column in values)
                    graphs = max(map(len, values))
                    rows.append((f"{name} {value}", str(graphs), *means))
                if rows:
                    title = _Case(result.judge, rate, {}, {}).name
                    yield Sheet((title, "graphs", *by_placer), tuple(rows), names=0)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on placers that were trained on, or chosen by, graphs of the comparison."""
        graphs = max((row.graphs for *_, row in self.rows()), default=0)
        these = f"of these {counted(graphs, 'graph')}"
        return (
            *(f"{placer} was trained on {n} {these}" for placer, n in self.trained_on.items()),
            *(
                f"the weights of {placer} were chosen by {n} {these}"
                for placer, n in self.chosen_by.items()
            ),
        )

    def document(self) -> dict[str, Any]:
        """All numbers as the JSON document of ``streamplace compare --json``."""
        named = {name: dict(getattr(self, name)) for name in ("aliases", "trained_on", "chosen_by")}
        document = as_document(self.results, self.front, self.trainings)
        return {**document, **{k: v for k, v in named.items() if v}}

    to_json = document

    def write(self, path: Path) -> str:
        """Write a figure of the distributions, or tables, a page and plots into a folder.

        Returns the names of the files in words.
        """
        from streamplace.drawing.figures import save
        from streamplace.evaluate.comparison_plots import PLOTS, draw_distributions, draw_front

        if path.suffix in PICTURES:
            save(draw_distributions(self.results, self.title), path)
            return "figure"
        write_text(path / TABLE_JSON, json_text(self.document()))
        write_text(path / TABLE, f"% streamplace compare\n{self.latex()}")
        replace(self.report(), title=self.title).save(path / PAGE)
        figures: dict[str, Figure | None] = {}
        for result in self.results:
            several = f"{NO_FILE_NAME.sub('-', result.judge.name)}-"
            prefix = several if len(self.results) > 1 else ""
            figures |= {
                f"{prefix}{name}.png": draw(result, self.title) for name, draw in PLOTS.items()
            }
        if self.front is not None:
            figures[FRONT] = draw_front(self.front, [r.judge for r in self.results], self.title)
        drawn = {name: figure for name, figure in figures.items() if figure is not None}
        for name, figure in drawn.items():
            save(figure, path / name)
        return ", ".join((*FILES[:-1], counted(len(drawn), "picture")))

    def latex(self) -> str:
        """Tables of LaTeX (package booktabs): one per objective and rate, and the statistics."""
        cases = self._cases
        tables = [latex_table(_sheet(case), case.name) for case in cases]
        against = [latex_table(sheet) for sheet in _against(cases, self.reference)]
        others = (*_over_trainings(cases, self.trainings), *self._by_attribute())
        return "\n".join([*tables, *against, *map(latex_table, others)])

    def to_pandas(self) -> "DataFrame":
        """Table with a row for every objective, rate and placer."""
        rows = self.rows()
        return data_frame(
            {
                "objective": [objective for objective, _, _, _ in rows],
                "rate": [rate for _, rate, _, _ in rows],
                "placer": [placer for _, _, placer, _ in rows],
                **{name: [getattr(row, name) for *_, row in rows] for name in COLUMNS},
            }
        )

    def frame(self) -> "DataFrame":
        """Table with a row for every objective, rate, graph and placer.

        ``value`` and ``milliseconds`` are NaN if the placer failed, ``bound`` if it proved none,
        and ``optimum`` if it is not proven. Graphs that `graphs` omits are named by the number of
        their problem.
        """
        names = {number: self.graphs.names[row] for number, row in self.graphs.row.items()}
        rows = [
            (result.judge.name, rate, names.get(number, f"{number:016x}"), placer, *numbers)
            for result in self.results
            for rate, by_placer in result.columns.items()
            for placer, columns in by_placer.items()
            for number, *numbers in zip(
                columns.problem.tolist(),
                columns.value.tolist(),
                columns.bound.tolist(),
                result.optima.at(columns.problem).tolist(),
                np.where(np.isnan(columns.value), nan, columns.milliseconds).tolist(),
                columns.devices_used.tolist(),
                strict=True,
            )
        ]
        return data_frame({name: [row[i] for row in rows] for i, name in enumerate(FRAME)})

    def plot(self, kind: str = "distribution", objective: str | None = None) -> "Figure":
        """Plot the results with matplotlib.

        Parameters
        ----------
        kind
            One of the plots of ``streamplace compare -o``: "distribution", "steps" or "devices".
        objective
            Name of the objective; by default the first one of the comparison.
        """
        from streamplace.evaluate.comparison_plots import PLOTS

        if kind not in PLOTS:
            raise SettingError(f"there is no plot {quoted(kind)}; there are {', '.join(PLOTS)}")
        chosen = [r for r in self.results if objective in (None, r.judge.name)]
        if not chosen:
            names = ", ".join(result.judge.name for result in self.results)
            raise SettingError(
                f"the comparison has no objective {quoted(objective)}; it has {names}"
            )
        table = chosen[0].table
        graphs = max(row.graphs for by_placer in table.values() for row in by_placer.values())
        figure = PLOTS[kind](chosen[0], counted(graphs, "graph"))
        if figure is None:
            raise SettingError("no placer of the comparison reports its steps; anneal does")
        return figure

    def __repr__(self) -> str:
        rows = self.rows()
        placers = counted(len({placer for _, _, placer, _ in rows}), "placer")
        graphs = counted(max((row.graphs for *_, row in rows), default=0), "graph")
        return f"<Comparison of {placers} on {graphs}>"


def pictures_in(folder: Path, *, of_several: bool) -> list[Path]:
    """Plots in the folder of a comparison; with several objectives, their names begin with one."""
    from streamplace.evaluate.comparison_plots import PLOTS

    beginning = "*-" if of_several else ""
    return [path for name in PLOTS for path in folder.glob(f"{beginning}{name}.png")]


def compared(
    run: ComparisonRun,
    problems: DataSet | Sequence[Problem],
    scan: Scan,
    reference: str,
    folder: Path | None,
    failed: Callable[[str, str], None],
    jobs: int | None,
    on: str | None,
) -> tuple[Comparison, int]:
    """Place every problem by every placer; return the comparison, and the number of old results.

    Results are written to the folder at once. ``failed`` receives the graphs on which a placer
    fails, and the reasons; a refusal is a result, unless the placer refuses all graphs.
    """
    results, graphs = tuple(map(ObjectiveResults, run.judges)), GraphResults()
    refusals, reused = Refusals(failed), list[int]()
    for placer in run.aliased:
        check_placer(named_placer(placer.spec), run.judges)
    if folder is not None:
        make_folder(folder)

    def saved(record: Record) -> None:
        for result in results:
            result.add_saved(record)

    records = records_of(
        run,
        problems,
        None if folder is None else folder / RESULTS,
        jobs=jobs,
        on=on,
        on_failure=refusals.fail,
        on_saved=saved,
        on_reused=reused.append,
    )
    for of_problem in tracked(records, "comparing", scan.total):
        for result in results:
            result.add(of_problem)
        graphs.add(of_problem)
        refusals.add(of_problem)
    graphs.read(problems)
    refusals.report()
    comparison = Comparison(
        results,
        reference,
        aliases=run.aliases,
        graphs=graphs,
        trained_on=scan.trained_on,
        chosen_by=scan.chosen_by,
        trainings=trainings_of(run.placers),
    )
    return comparison, sum(reused)


class Refusals:
    """Refusals of placers that have placed no graph yet; refusals of all graphs are failures."""

    def __init__(self, failed: Callable[[str, str], None]) -> None:
        self.failed = failed
        self.reported = set[tuple[str, str]]()
        self.placing = set[str]()
        self.reasons: dict[str, dict[str, str]] = {}

    def fail(self, graph: str, reason: str) -> None:
        """Report the failure of a placer on a graph."""
        self.reported.add((graph, reason))
        self.failed(graph, reason)

    def add(self, records: Iterable[Record]) -> None:
        """Add the records of one graph."""
        for record in records:
            if record.error is None:
                self.placing.add(record.label)
                self.reasons.pop(record.label, None)
            elif record.label not in self.placing:
                self.reasons.setdefault(record.label, {})[record.graph] = record.error

    def report(self) -> None:
        """Report the refusals of placers that have placed no graph."""
        for placer, reasons in self.reasons.items():
            for graph, reason in reasons.items():
                if (graph, reason) not in self.reported:
                    self.failed(graph, f"{placer}: {reason}")


@dataclass(frozen=True, slots=True)
class OverTrainings:
    """Several trainings of a learned placer, each by its mean over the graphs."""

    trainings: int
    mean: float  # over the trainings, like `min` and `max`
    interval: tuple[float, float]  # 95 % interval of the mean, by Student's distribution
    min: float
    max: float


def over_trainings(
    rows: Mapping[str, Row], trainings: Mapping[str, str]
) -> dict[str, OverTrainings]:
    """Results of several trainings by the name of the placer without its weights."""
    results = {}
    for name in dict.fromkeys(trainings.values()):
        means = np.array([row.mean for label, row in rows.items() if trainings.get(label) == name])
        mean, half = float(means.mean()), half_interval(means)
        ends = mean - half, mean + half
        least, most = float(means.min()), float(means.max())
        results[name] = OverTrainings(len(means), mean, ends, least, most)
    return results


def as_document(
    results: Sequence[ObjectiveResults],
    front: TradeOffs | None = None,
    trainings: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """JSON document of a comparison; for several objectives, a document of documents."""
    documents = [
        {
            "objective": result.judge.name,
            "rates": {
                _key(rate): _rate_document(rows, result.paired[rate], trainings or {})
                for rate, rows in sorted(result.table.items())
            },
        }
        for result in results
    ]
    if front is None:
        return documents[0]
    return {
        "objectives": {document["objective"]: document for document in documents},
        "pareto": {_key(rate): [asdict(point) for point in row] for rate, row in front.items()},
    }


def _rate_document(
    rows: dict[str, Row], pairs: dict[str, dict[str, Paired]], trainings: Mapping[str, str]
) -> Any:
    placers = {
        name: asdict(row) | {"paired": {rival: asdict(pair) for rival, pair in pairs[name].items()}}
        for name, row in rows.items()
    }
    means = {name: asdict(mean) for name, mean in over_trainings(rows, trainings).items()}
    return _finite({"placers": placers, **({"trainings": means} if means else {})})


def _key(rate: float | None) -> str:
    if rate is None:
        return "own"
    return str(int(rate)) if rate >= 1e6 and rate.is_integer() else exact_digits(rate)


def _finite(value: Any) -> Any:
    """Replace infinite numbers and NaN, such as multiples of a best value of 0, by None."""
    if isinstance(value, tuple):
        return [_finite(part) for part in value]
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value


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
        usual = self.judge.usual_kind == "rate"
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
        best = OF_BEST[cases[0].judge.sense]
        text = f"{best}: of these placers; none of them proves an optimum"
    else:
        these = f"the {proven[0]}" if min(proven) == max(proven) else "those"
        text = f"{OF_OPTIMUM['max']}: over {these} with a proven optimum"
    return Heading(name, f", {counted(graphs, 'graph')}, {text}")


def _blocks(
    cases: Sequence[_Case], head: Sequence[str], blocks: Sequence[Sequence[tuple[str, ...]]]
) -> Sheet:
    """One table with the rows of every case; the first row of a case has its name."""
    objectives, rates = {case.judge.name for case in cases}, {case.rate for case in cases}
    if len(cases) == 1:
        return Sheet(tuple(head), tuple(blocks[0]), names=0)
    if len(objectives) == 1:
        label = "tuples/s"
        names = [heading(case.rate).removesuffix(" tuples/s") for case in cases]
    elif len(rates) == 1:
        label, names = "objective", [case.judge.name for case in cases]
    else:
        label = "objective, rate"
        names = [f"{case.judge.name}, {heading(case.rate)}" for case in cases]
    rows = [
        (name if i == 0 else "", *row)
        for name, block in zip(names, blocks, strict=True)
        for i, row in enumerate(block)
    ]
    return Sheet((label, *head), tuple(rows), names=1)


def _table(cases: Sequence[_Case]) -> Sheet:
    """Mean, share of the optimum or of the best value, and time of every placer."""
    sense = "min" if {case.judge.sense for case in cases} == {"min"} else "max"
    is_proven = any(case.proven for case in cases)
    has_best = sense == "min" or not is_proven
    best, optimum = [OF_BEST[sense]] * has_best, [OF_OPTIMUM[sense]] * is_proven
    head = ("placer", "mean", INTERVAL, *best, *optimum, "ms")
    blocks = []
    for case in cases:
        block, form = [], _form(case.judge)
        for name, row in case.rows.items():
            shares = [_of(case.judge, row.of_best[0])] if has_best else []
            if is_proven:
                shares.append(_optimum_cells(case.judge, row)[0])
            if sense != case.judge.sense:
                shares[0] += " ×"
            mean = cell(row.mean, form), _ends(row.interval, form)
            block.append((name, *mean, *shares, _time(row)))
        blocks.append(block)
    return _blocks(cases, head, blocks)


def _form(judge: Objective) -> Callable[[float], str]:
    """Format of values, with three decimals for a maximised objective."""
    return "{:.3f}".format if judge.sense == "max" else judge.format


def _ends(interval: tuple[float, float] | None, form: Callable[[float], str]) -> str:
    """Ends of an interval."""
    return "—" if interval is None else " to ".join(cell(end, form) for end in interval)


def _of(judge: Objective, ratio: float) -> str:
    """Mean of value / optimum or best value, as a share or a multiple."""
    return cell(100 * ratio, "{:.2f} %") if judge.sense == "max" else cell(ratio, "{:.3f}")


def _optimum_cells(judge: Objective, row: Row) -> tuple[str, str]:
    """Mean of value / optimum, and the share of graphs on which the optimum is reached."""
    if row.share_of_optimum is None or row.reached is None:
        return "—", "—"
    return _of(judge, row.share_of_optimum), percent(row.reached)


def _time(row: Row) -> str:
    """Milliseconds per graph, and the number of graphs that were not placed."""
    failed = f"  ({row.failed} not placed)" if row.failed else ""
    return f"{cell(row.ms_per_graph, '{:.2f}')}{failed}"


def _against(cases: Sequence[_Case], reference: str) -> Iterator[Sheet]:
    """Wins, both tests and ratio of every placer against the reference; nothing without rivals."""
    compared = [case for case in cases if reference in case.rows and len(case.rows) > 1]
    if not compared:
        return
    pairs = [
        [(name, rivals[reference]) for name, rivals in case.paired.items() if name != reference]
        for case in compared
    ]
    every = [pair for block in pairs for _, pair in block if pair.graphs]
    corrected = iter(holm([p for pair in every for p in (pair.sign_test, pair.signed_rank_test)]))
    head = (f"against {reference}", "+ / = / −", "sign, Holm", "rank, Holm", "ratio", INTERVAL)
    blocks = []
    for of_case in pairs:
        block = []
        for name, pair in of_case:
            counts = f"{pair.better} / {pair.equal} / {pair.worse}"
            ratio = cell(nan if pair.ratio is None else pair.ratio, "{:.4f}")
            ends = _ends(pair.interval, "{:.4f}".format)
            values = [next(corrected) for _ in range(2 if pair.graphs else 0)]
            tests = [f"p = {p:.2g}" if p >= 1e-4 else "p < 0.0001" for p in values] or ["—", "—"]
            block.append((name, counts, *tests, ratio, ends))
        blocks.append(block)
    yield _blocks(compared, head, blocks)


def _over_trainings(cases: Sequence[_Case], trainings: Mapping[str, str]) -> Iterator[Sheet]:
    """Mean over trainings of the means over graphs, with its interval."""
    if not trainings:
        return
    blocks = []
    for case in cases:
        form = _form(case.judge)
        blocks.append(
            [
                (
                    name, str(means.trainings), cell(means.mean, form),
                    _ends(means.interval, form), cell(means.min, form), cell(means.max, form),
                )
                for name, means in over_trainings(case.rows, trainings).items()
            ]
        )  # fmt: skip
    head = ("over seeds", "trainings", "mean", INTERVAL, "least", "most")
    yield _blocks(cases, head, blocks)


def _details(case: _Case) -> Iterator[PlainPart]:
    """All columns of one objective at one rate."""
    graphs = counted(case.graphs, "graph")
    yield Heading(case.name, f", {graphs}, {case.proven} with a proven optimum")
    yield _sheet(case)
    if 0 < case.proven < case.graphs:
        fewer = [(name, row.proven) for name, row in case.rows.items() if row.proven < case.proven]
        placed = ", ".join(f"{name} over {proven}" for name, proven in fewer)
        yield (
            f"{OF_OPTIMUM[case.judge.sense]} and optimal: over the {case.proven} of {graphs} whose "
            f"optimum is proven{f'; {placed} of these' if placed else ''}"
        )


def _sheet(case: _Case) -> Sheet:
    """All columns of every placer.

    A maximised objective has the columns of the paper's Table 1; a minimised one has multiples of
    the best value of all placers.
    """
    judge, form, sense = case.judge, _form(case.judge), case.judge.sense
    measures = sorted({name for row in case.rows.values() for name in row.measures})
    columns = ["q1", "median", "min"] if sense == "max" else ["max", OF_BEST[sense], "worst"]
    if sense == "max" and not case.proven:
        columns.append(OF_BEST[sense])
    optimum = (OF_OPTIMUM[sense], "optimal") if case.proven else ()
    rows = []
    for name, row in case.rows.items():
        if sense == "max":
            cells = [cell(x, form) for x in (row.q1, row.median, row.min)]
            cells += [] if case.proven else [_of(judge, row.of_best[0])]
        else:
            cells = [cell(row.max, form), *(_of(judge, ratio) for ratio in row.of_best)]
        cells += _optimum_cells(judge, row) if case.proven else []
        cells += [cell(row.measures.get(measure, nan), "{:.4g}") for measure in measures]
        rows.append((name, cell(row.mean, form), _ends(row.interval, form), *cells, _time(row)))
    head = ("placer", "mean", INTERVAL, *columns, *optimum, *measures, "ms")
    return Sheet(head, tuple(rows), names=0)


def _front_tables(front: TradeOffs, *, only_best: bool) -> Iterator[PlainPart]:
    """Values by all objectives of placements that are not dominated, or of all placements."""
    for rate, points in front.items():
        names = list(points[0].of_best) if points else []
        title = "not dominated by another" if only_best else "of all placers (● not dominated)"
        yield f"{heading(rate)}: value / best value by every objective, {title}"
        rows = tuple(
            (
                point.objective,
                point.placer,
                *(f"{point.of_best[name]:.3f}" for name in names),
                *([] if only_best else ["●" if point.front else ""]),
            )
            for point in points
            if point.front or not only_best
        )
        yield Sheet(
            ("optimised for", "placer", *names, *([] if only_best else [""])), rows, names=1
        )


def cell(value: float, form: str | Callable[[float], str]) -> str:
    """Format a number; a dash if the placer placed nothing."""
    if isnan(value):
        return "—"
    return form.format(value) if isinstance(form, str) else form(value)
