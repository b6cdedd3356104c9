"""Comparison of placers on graphs or problems."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from streamplace.api.data_sets import GraphsLike, problems_of
from streamplace.errors import SettingError
from streamplace.io.datasets import DataSet, Reader
from streamplace.model.defaults import COMPARED, REFERENCE
from streamplace.model.problem import Problem
from streamplace.model.units import Quantity
from streamplace.placers.registry import USUAL_BUDGET
from streamplace.progress import tracked
from streamplace.settings.convert import (
    BudgetLike,
    ClusterLike,
    ConstraintsLike,
    FilePath,
    budget_of,
    cluster_of,
    constraints_of,
    is_path,
    path_of,
    rates_of,
    seed_of,
    texts_of,
)

if TYPE_CHECKING:
    from streamplace.evaluate.comparison import Comparison
    from streamplace.evaluate.scan import Scan, Trained


def compare(
    data: GraphsLike,
    placers: str | Iterable[str] = COMPARED,
    cluster: ClusterLike | None = None,
    *,
    rates: Quantity | Iterable[Quantity] = (),
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
) -> "Comparison":
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
    rates
        Total rates of the sources; every graph is placed at each of them. Empty for its own rate.
    objective
        One objective by name, or several, with a table of each and one of the trade-offs. By
        default that of the graphs.
    require
        Conditions that every placement must meet, as for `place`.
    reference
        Placer that the others are compared with, one of ``placers``. If the default one is not
        among them, there are no such comparisons.
    split, limit
        Only graphs with this attribute ``split``, and only this number of them.
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
    from streamplace.evaluate.compare import compare as compared
    from streamplace.evaluate.comparison import Comparison
    from streamplace.evaluate.comparison_run import ComparisonRun
    from streamplace.evaluate.objective_results import GraphResults, ResultsByObjective
    from streamplace.evaluate.parallel import ray_connection
    from streamplace.evaluate.record_file import results_file
    from streamplace.evaluate.trained_on import trained_on
    from streamplace.placers.named import label_of, labels

    names = _placers(placers)
    known = labels(names)
    if reference not in {REFERENCE, *known}:
        listed = ", ".join(sorted(known))
        raise SettingError(f"reference {reference} is none of the compared placers: {listed}")
    reader = Reader(cluster_of(cluster), constraints_of(constraints))
    file = None if out is None else results_file(path_of("out", out))
    with ray_connection(on):
        facts, problems = _problems(data, reader, split, limit, jobs, on, trained_on(names))
        run = ComparisonRun(
            placers=names,
            rates=rates_of(rates) or facts.rate,
            seed=seed_of(seed),
            budget=budget_of(budget) or USUAL_BUDGET,
            objectives=tuple(filter(None, texts_of("objective", objective))) or (facts.objective,),
            require=texts_of("require", require),
        )
        collected, failures = ResultsByObjective(run.judges), dict[str, str]()
        graphs = GraphResults()

        def failed(graph: str, reason: str) -> None:
            failures[graph] = f"{failures[graph]}; {reason}" if graph in failures else reason

        records = compared(
            run, problems, file, jobs=jobs, on=on, on_failure=failed, on_saved=collected.add_saved
        )
        for of_problem in tracked(records, "comparing", facts.total):
            collected.add(of_problem)
            graphs.add(of_problem)
    graphs.read(problems)
    reference = label_of(reference, names)
    results = tuple(collected.results())
    return Comparison(results, reference, failures, run.aliases, graphs, facts.trained)


def _placers(placers: str | Iterable[str]) -> tuple[str, ...]:
    """Names of placers without duplicates; raise SettingError for unknown ones."""
    from streamplace.placers.named import placer_names

    texts = texts_of("placers", placers)
    return placer_names(texts[0].split(",") if len(texts) == 1 else texts)


def _problems(
    data: GraphsLike,
    reader: Reader,
    split: str | None,
    limit: int | None,
    jobs: int | None,
    on: str | None,
    trained: "Trained",
) -> "tuple[Scan, DataSet | Sequence[Problem]]":
    """Common properties of the problems, and the problems."""
    from streamplace.evaluate.scan import scan, scan_of
    from streamplace.io.datasets import no_graph

    if is_path(data):
        path = path_of("data", data)
        stored = DataSet(path, split, limit, reader).rereadable()
        facts, problems = scan(stored, jobs, on, trained)
        if not facts.total:
            raise no_graph(path, stored)
        return facts, problems
    given = tuple(problems_of(data, reader, split, limit))
    if not given:
        raise SettingError("data holds no graph; give at least one, or another split")
    return scan_of(given, trained), given
