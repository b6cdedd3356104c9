"""Comparison of placers on graphs or problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from streamplace.api.data_sets import GraphsLike, problems_of
from streamplace.errors import SettingError
from streamplace.io.datasets import DataSet, Reader, no_graph
from streamplace.io.files import make_folder
from streamplace.model.defaults import COMPARED, REFERENCE
from streamplace.model.problem import Problem
from streamplace.model.units import Quantity
from streamplace.placers.registry import USUAL_BUDGET
from streamplace.progress import tracked
from streamplace.settings.compare import CompareSettings
from streamplace.settings.convert import (
    BudgetLike,
    ClusterLike,
    ConstraintsLike,
    FilePath,
    is_path,
    path_of,
)

if TYPE_CHECKING:
    from streamplace.evaluate.comparison import Comparison
    from streamplace.evaluate.records import Record
    from streamplace.evaluate.runner import ComparisonRun
    from streamplace.evaluate.scan import Scan


def compare(
    data: GraphsLike,
    placers: str | Iterable[str] = COMPARED,
    cluster: ClusterLike | None = None,
    *,
    rate: Quantity | Iterable[Quantity] = (),
    objective: str | Iterable[str] = (),
    require: str | Iterable[str] = (),
    constraints: ConstraintsLike | None = None,
    reference: str = REFERENCE,
    split: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    budget: BudgetLike | None = None,
    out: FilePath | None = None,
    jobs: int | None = 1,
    on: str | None = None,
) -> Comparison:
    """Compare placers on graphs or problems.

    ``print`` shows the tables of ``streamplace compare``.

    Parameters
    ----------
    data
        A graph, a problem, several, or the path of a file or a folder of them.
    placers
        Names of placers, with options after colons; one text separates them by commas. An alias
        may precede a placer, as in ``mine=pilot:weights=best.safetensors``.
    cluster, constraints
        As for `place`, for graphs without their own.
    rate
        Total rate of the sources, or several; every graph is placed at each of them. Empty
        for the graph's own rate.
    objective
        One objective by name, or several, with a table of each and one of the trade-offs. By
        default that of the graphs.
    require
        Conditions that every placement must meet, as for `place`.
    reference
        Placer that the others are compared with, one of ``placers``. If the default one is not
        among them, there are no such comparisons.
    split, limit
        Only graphs with this attribute ``split``, and only this number of them, which ``seed``
        draws.
    seed, budget
        As for `place`, for every placement.
    out
        Folder for ``results.jsonl``. An interrupted comparison continues there.
    jobs
        Processes; None for one per core. A script that starts processes needs
        ``if __name__ == "__main__":`` around its calls.
    on
        Compute on Ray: ``ray`` starts one on this machine, ``auto`` or an address names a running
        cluster.

    Examples
    --------
    >>> from streamplace.api import generate
    >>> graphs = generate("branched", branches=2, depth=3, devices=2, copies=3)
    >>> comparison = compare(graphs, "metis,round-robin", 2)
    >>> [(placer, row.graphs) for _, _, placer, row in comparison.rows()]
    [('metis', 3), ('round-robin', 3)]
    """
    settings = CompareSettings.of(locals())
    failures: dict[str, str] = {}

    def failed(graph: str, reason: str) -> None:
        failures[graph] = f"{failures[graph]}; {reason}" if graph in failures else reason

    comparison, _, _ = compared(settings, data, settings.out, failed)
    return replace(comparison, failures=failures)


def compared(
    settings: CompareSettings,
    data: GraphsLike,
    out: Path | None,
    failed: Callable[[str, str], None],
) -> tuple[Comparison, int, int]:
    """Place every problem by every placer.

    Return the comparison, the number of problems, and the number of results that were reused.

    Results are written to the folder ``out`` at once. ``failed`` receives the graphs on which a
    placer fails, and the reasons; a refusal is a result, unless the placer refuses all of them.
    """
    from streamplace.evaluate.comparison import Comparison, GraphResults
    from streamplace.evaluate.on_ray import connected
    from streamplace.evaluate.results import ObjectiveResults
    from streamplace.evaluate.runner import check_placer, records_of
    from streamplace.evaluate.trained_on import trainings_of
    from streamplace.placers.named import label_of, named_placer

    refusals = _Refusals(failed)

    reused = 0

    def saved(record: Record) -> None:
        for result in results:
            result.add_saved(record)

    def count(n: int) -> None:
        nonlocal reused
        reused += n

    with connected(settings.on):
        scan, problems = _scanned(settings, data, Reader(settings.machines(), settings.constraints))
        run, graphs = _run_of(settings, scan), GraphResults()
        for placer in run.aliased:
            check_placer(named_placer(placer.spec), run.judges)
        results = tuple(map(ObjectiveResults, run.judges))
        if out is not None:
            make_folder(out)
        records = records_of(
            run,
            problems,
            None if out is None else out / "results.jsonl",
            jobs=settings.jobs,
            on=settings.on,
            on_failure=refusals.fail,
            on_saved=saved,
            on_reused=count,
        )
        for of_problem in tracked(records, "comparing", scan.total):
            for result in results:
                result.add(of_problem)
            graphs.add(of_problem)
            refusals.add(of_problem)
        graphs.read(problems)
    refusals.report()
    label = label_of(settings.reference, settings.placers)
    comparison = Comparison(
        results,
        label,
        aliases=run.aliases,
        graphs=graphs,
        trained_on=scan.trained_on,
        chosen_by=scan.chosen_by,
        trainings=trainings_of(settings.placers),
    )
    return comparison, scan.total, reused


class _Refusals:
    """Refusals of placers that have placed no graph yet; these fail on all of them."""

    def __init__(self, failed: Callable[[str, str], None]) -> None:
        self.failed = failed
        self.reported = set[tuple[str, str]]()
        self.placing = set[str]()
        self.reasons: dict[str, dict[str, str]] = {}

    def fail(self, graph: str, reason: str) -> None:
        """Report that a placer has failed, rather than refused."""
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
        """Report all graphs of the placers that have placed none."""
        for placer, reasons in self.reasons.items():
            for graph, reason in reasons.items():
                if (graph, reason) not in self.reported:
                    self.failed(graph, f"{placer}: {reason}")


def _run_of(settings: CompareSettings, scan: Scan) -> ComparisonRun:
    """Comparison of the settings, by default at the rate and by the objective of the graphs."""
    from streamplace.evaluate.runner import ComparisonRun

    return ComparisonRun(
        placers=settings.placers,
        rates=settings.rate or scan.rate,
        seed=settings.seed,
        budget=settings.limits() or USUAL_BUDGET,
        objectives=tuple(filter(None, settings.objective)) or (scan.objective,),
        require=settings.require,
    )


def _scanned(
    settings: CompareSettings, data: GraphsLike, reader: Reader
) -> tuple[Scan, DataSet | Sequence[Problem]]:
    """Common properties of the problems, and the problems."""
    from streamplace.evaluate.scan import scan, scan_of
    from streamplace.evaluate.trained_on import seen_by

    seen = seen_by(settings.placers)
    if is_path(data):
        path = path_of("data", data)
        stored = DataSet(path, settings.split, settings.limit, reader, settings.seed).rereadable()
        found = scan(stored, settings.jobs, settings.on, seen)
        if not found.total:
            raise no_graph(path, stored)
        return found, stored
    problems = tuple(problems_of(data, reader, settings.split, settings.limit, settings.seed))
    if not problems:
        raise SettingError("data holds no graph; give at least one, or another split")
    return scan_of(problems, seen), problems
