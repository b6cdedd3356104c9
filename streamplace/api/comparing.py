"""``compare``: placers on a graph, a data set, or several of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamplace.api.placing import resumable
from streamplace.errors import SettingError
from streamplace.io.suffixes import PICTURES
from streamplace.model.defaults import COMPARED, REFERENCE
from streamplace.model.paths import FilePath, is_path, path_of
from streamplace.settings.convert import BudgetLike, Count, PlacerNames, Texts
from streamplace.settings.option import KEYS, argument, option, output
from streamplace.settings.searches import DataSetOptions, RateOptions, SearchOptions
from streamplace.settings.shared import JOBS, ConditionOptions, ConstraintOptions, DeviceOptions
from streamplace.settings.verb import SILENT, Progress, Verb

if TYPE_CHECKING:
    from streamplace.evaluate.comparison import Comparison
    from streamplace.evaluate.scan import Scan
    from streamplace.io.datasets import DataSet, Reader
    from streamplace.io.given import ClusterLike, ConstraintsLike
    from streamplace.io.given_sets import GraphsLike
    from streamplace.model.problem import Problem
    from streamplace.model.units import Quantity

FIELDS = KEYS | {"objective", "objectives"}
"""Fields by which table.json and lines of results.jsonl are recognised."""


class Compare(
    RateOptions,
    ConditionOptions,
    DataSetOptions,
    DeviceOptions,
    ConstraintOptions,
    SearchOptions,
    Verb,
    validate_default=True,
):
    """Compare placers on DATA: a graph, a problem, a data set or a folder of them.

    With -o, every result is written to the folder at once: a run that was stopped continues where
    it ended, and adding a placer takes only its own time. If a placer fails on a graph, the graph
    is reported and left out.
    """

    data: Any = argument()
    placers: PlacerNames = option(
        "--placers NAMES",
        "Placers to compare, separated by commas. Options follow after colons: metis:k=3, "
        "anneal:budget=5ms. An alias may precede a placer, as in "
        "mine=pilot:weights=best.safetensors.",
        default=COMPARED,
    )
    objective: Texts = option(
        "--objective NAME…",
        "Objective to optimise, as for place. Repeat it for a table of each objective and one of "
        "the trade-offs between them.",
    )
    reference: str = option(
        "--reference NAME", "Placer that the others are compared with.", default=REFERENCE
    )
    jobs: Count | None = JOBS
    out: Path | None = output(
        "Folder for results.jsonl, table.json, table.tex, report.html, plots, or a figure of the "
        "distributions alone (.pdf, .svg or .png).",
        folder=None,
    )

    def check(self) -> None:
        """Refuse a reference that is not compared."""
        from streamplace.placers.named import labels

        super().check()
        names = labels(self.placers)
        if "reference" in self.inputs and self.reference not in names:
            raise SettingError(
                f"{self.name('reference')} {self.reference} is none of the compared placers: "
                f"{', '.join(sorted(names))}"
            )

    @property
    def folder(self) -> Path | None:
        """Folder of results, in which a comparison that was stopped continues."""
        return None if self.out is None or self.out.suffix in PICTURES else self.out

    def when_stopped(self, progress: Progress) -> int | None:
        """Say how to continue."""
        progress.say(resumable(self.folder))
        return None

    def run(self, progress: Progress = SILENT) -> Comparison:
        """Place every problem by every placer, for every objective and rate."""
        from streamplace.evaluate.comparison import FILES, compared, pictures_in
        from streamplace.evaluate.on_ray import connected
        from streamplace.evaluate.runner import ComparisonRun
        from streamplace.io.datasets import Reader
        from streamplace.model.message_text import counted
        from streamplace.placers.named import label_of
        from streamplace.placers.registry import USUAL_BUDGET

        progress.check_kind(self.out, is_folder=self.folder is not None)
        if self.folder is not None:
            files = [self.folder / name for name in FILES]
            files += pictures_in(self.folder, of_several=len(self.objective) > 1)
            progress.spare_others(*files, keys=FIELDS)
        with connected(self.on):
            scan, problems = self._scanned(Reader(self.machines(), self.constraints))
            run = self.part(
                ComparisonRun,
                rates=self.rate or scan.rate,
                budget=self.limits() or USUAL_BUDGET,
                objectives=tuple(filter(None, self.objective)) or (scan.objective,),
            )
            label = label_of(self.reference, self.placers)
            comparison, reused = compared(
                run, problems, scan, label, self.folder, progress.failed, self.jobs, self.on
            )
        if self.folder is not None and reused:
            words = counted(reused, "result")
            progress.say(f"{words} reused from {self.folder / 'results.jsonl'}")
        title = counted(scan.total, "graph") + (f" of split {self.split}" if self.split else "")
        name = Path(self.data).name if is_path(self.data) else "comparison"
        return replace(comparison, title=f"{name}: {title}")

    def _scanned(self, reader: Reader) -> tuple[Scan, DataSet | Sequence[Problem]]:
        """Common properties of the problems, and the problems."""
        from streamplace.evaluate.scan import scan, scan_of
        from streamplace.evaluate.trained_on import weight_graphs
        from streamplace.io.datasets import DataSet, no_graph
        from streamplace.io.given_sets import problems_of

        of_weights = weight_graphs(self.placers)
        if is_path(self.data):
            path = path_of("data", self.data)
            stored = DataSet(path, self.split, self.limit, reader, self.seed).rereadable()
            scanned = scan(stored, self.jobs, self.on, of_weights)
            if not scanned.total:
                raise no_graph(path, stored)
            return scanned, stored
        problems = tuple(problems_of(self.data, reader, self.split, self.limit, self.seed))
        if not problems:
            raise SettingError("data holds no graph; give at least one, or another split")
        return scan_of(problems, of_weights), problems


class _Failures(Progress):
    """Graphs that fail, with the reasons."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}

    def failed(self, graph: str, reason: str) -> None:
        """Add the reason of a graph."""
        before = self.reasons.get(graph)
        self.reasons[graph] = reason if before is None else f"{before}; {reason}"


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
    failures = _Failures()
    return replace(Compare.of(locals()).run(failures), failures=failures.reasons)
