"""Data sets: ``generate``, ``import`` and ``describe``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamplace.errors import SettingError
from streamplace.io.suffixes import GRAPHS, LINES, PICTURES
from streamplace.model.defaults import BANDWIDTH, SPEED
from streamplace.model.message_text import counted
from streamplace.model.paths import FilePath, path_of, wrong
from streamplace.settings.convert import ClusterFile, Count, Whole
from streamplace.settings.option import HOW_LONG, WHERE, argument, option, output
from streamplace.settings.shared import JOBS, SEED, SPLIT
from streamplace.settings.verb import SILENT, Progress, Verb, Written

if TYPE_CHECKING:
    from streamplace.display.report import Report
    from streamplace.evaluate.graph_statistics import GraphStatistics
    from streamplace.families.dataset import Recipe
    from streamplace.io.given import ClusterLike
    from streamplace.io.given_sets import GraphsLike
    from streamplace.io.problems import Draft
    from streamplace.model.graph import StreamGraph
    from streamplace.model.problem import Problem


class GenerateRecipe(Verb):
    """Generate the data set that the TOML file FILE describes."""

    recipe_file: Any = argument(word="FILE")
    shards: Count | None = option(
        "--files N", "Number of files of the data set. They are made in parallel."
    )
    jobs: Count | None = JOBS
    on: str | None = option(
        "--on RAY",
        "Compute on Ray: 'ray' starts one on this machine, 'auto' or an address names a running "
        "cluster.",
        HOW_LONG,
    )

    out: Path | None = output(
        "File to write: .jsonl or .jsonl.gz for a data set, .json for one graph.",
        suffixes=GRAPHS,
        is_needed=True,
    )

    def check(self) -> None:
        """Refuse options of parallel work without parallel files."""
        super().check()
        self.need("shards", "jobs", "on")

    def recipe(self) -> Recipe:
        """Family, parameters and seed."""
        from streamplace.families.dataset import read_recipe

        return read_recipe(self.recipe_file)

    def run(self, progress: Progress = SILENT) -> Written:
        """Generate into a file, or into several in parallel."""
        from streamplace.evaluate.parallel import parallel_map
        from streamplace.families.dataset import write_dataset
        from streamplace.families.shards import write_shards
        from streamplace.model.problem import Problem
        from streamplace.progress import progress as bar

        assert self.out is not None
        recipe, noun = self.recipe(), "graph"
        family, parameters, seed = recipe.family, recipe.parameters, recipe.seed
        if self.shards is not None:
            made_by = partial(parallel_map, jobs=self.jobs, on=self.on, max_serial=1)
            with bar(f"generating shards of {family}", self.shards) as tick:
                manifest = write_shards(
                    family, parameters, seed, self.out, self.shards, made_by, tick
                )
        else:

            def on_graph(item: StreamGraph | Problem) -> None:
                nonlocal noun
                noun = "problem" if isinstance(item, Problem) else "graph"
                tick()

            with bar(f"generating {family}", parameters.n_graphs) as tick:
                manifest = write_dataset(family, parameters, seed, self.out, on_graph)
        splits = ", ".join(f"{count} {name}" for name, count in manifest.splits.items())
        count = counted(manifest.graphs, noun) + (f" ({splits})" if splits else "")
        shards = f" in {len(manifest.shards)} shards" if manifest.shards else ""
        return Written(
            {**asdict(manifest), "output": str(self.out)},
            (f"{count} → {self.out}{shards}", f"content SHA-256 {manifest.content_sha256}"),
        )


class Generate(GenerateRecipe):
    """Generate benchmark graphs or problems of a family."""

    recipe_file: Any = None  # a family needs none
    seed: Whole = SEED
    family: str = ""
    parameters: Any = None

    def recipe(self) -> Recipe:
        """Family, parameters and seed."""
        from streamplace.families.dataset import Recipe
        from streamplace.families.parameters import parameters_of
        from streamplace.families.registry import FAMILIES

        parameters = parameters_of(FAMILIES[self.family].parameters, self.parameters or {})
        return Recipe(self.family, parameters, self.seed)


def generate(
    family: str, /, *, seed: int = 0, **parameters: int | float | str | bool
) -> list[StreamGraph | Problem]:
    """Generate benchmark graphs or problems of a family.

    `streamplace.families.dataset.write_dataset` writes data sets that do not fit into memory.

    Parameters
    ----------
    family
        Name of the family, such as ``branched``.
    seed
        Random seed; equal seeds and parameters give equal graphs.
    parameters
        Parameters of the family by name; missing ones have their defaults.

    Examples
    --------
    >>> graphs = generate("branched", branches=2, depth=3, devices=2, copies=3)
    >>> len(graphs), graphs[0].name
    (3, 'b2x3-v2-000')
    """
    from streamplace.families.registry import FAMILIES

    if not isinstance(family, str):
        raise wrong("family", family, f"one of {', '.join(FAMILIES)}")
    request = Generate.of({"family": family, "seed": seed, "parameters": parameters})
    return list(request.recipe().generate())


class Import(Verb):
    """Read SOURCE, a file or a folder in FORMAT (such as dream), and write native graphs.

    A PyTorch model (torch) is named as package.module:function instead.
    """

    format: str = argument(is_file=False)
    source: Any = argument()
    reader_options: Any = ()
    out: Path | None = output(
        "Where to write: .json for one graph, .jsonl or .jsonl.gz for a data set.",
        suffixes=GRAPHS,
        is_needed=True,
    )

    def graphs(self) -> Iterator[StreamGraph | Problem | Draft]:
        """Read the graphs, one after the other."""
        from streamplace.io.registry import FORMATS

        form = FORMATS[self.format].with_options(self.reader_options)
        return form.read(path_of("source", self.source))

    def run(self, progress: Progress = SILENT) -> Written:
        """Read the graphs, and write them."""
        from streamplace.io.problems import write_problem, write_problems
        from streamplace.progress import progress as bar

        assert self.out is not None
        graphs, count = self.graphs(), 1
        if self.out.name.endswith(LINES):
            with bar(f"importing {self.source}") as tick:
                count = write_problems(tick.over(graphs), self.out)
        else:
            first = next(graphs)
            if next(graphs, None) is not None:
                raise SettingError(
                    f"{self.source} holds several graphs; write them to a .jsonl.gz file"
                )
            write_problem(first, self.out)
        return Written(
            {"graphs": count, "output": str(self.out)}, (f"{counted(count, 'graph')} → {self.out}",)
        )


def import_graphs(
    format: str, source: FilePath, *, options: Iterable[str] = ()
) -> Iterator[StreamGraph | Problem | Draft]:
    """Read graphs of a foreign format, one after the other.

    Parameters
    ----------
    format
        Name of the format, such as ``dream`` or ``onnx``.
    source
        File or folder; a PyTorch model is named as ``package.module:function``.
    options
        Options of the reader; see ``streamplace import --help``.
    """
    from streamplace.io.registry import FORMATS

    if not isinstance(format, str):
        raise wrong("format", format, f"one of {', '.join(FORMATS)}")
    return Import.of({"reader_options": options, **locals()}).graphs()


class Describe(Verb):
    """Print statistics of DATA: graphs or problems (.json), data sets, or folders of them."""

    data: Any = argument(is_repeatable=True)
    cluster: ClusterFile = option(
        "--cluster FILE",
        "TOML file of a cluster, whose mean device and link are the units of CPU and traffic.  "
        f"[default: {SPEED}, {BANDWIDTH}]",
        WHERE,
    )
    split: str | None = SPLIT
    limit: Any = None
    out: Path | None = output(
        "Draw the histograms to this .png, .svg or .pdf file.", suffixes=PICTURES
    )

    def run(self, progress: Progress = SILENT) -> Description:
        """Describe the graphs of files."""
        from streamplace.evaluate.graph_statistics import statistics_of
        from streamplace.progress import progress as bar

        title = ", ".join(map(str, self.data))
        with bar(f"reading {title}") as tick:
            found = statistics_of(tick.over(self._every()), self.cluster)
        names = ", ".join(path.name for path in self.data)
        return Description(found, title, names, f" of split {self.split}" if self.split else "")

    def _every(self) -> Iterator[StreamGraph | Problem]:
        """Graphs and problems of the files; each must have some."""
        from streamplace.io.datasets import DataSet, no_graph

        for path in self.data:
            stored, item = DataSet(path, self.split), None
            for item in stored.graphs_and_problems():
                yield item
            if item is None:
                raise no_graph(path, stored)


@dataclass(frozen=True, slots=True)
class Description:
    """Statistics of graphs in files."""

    statistics: GraphStatistics
    title: str
    names: str
    of_split: str

    @property
    def _graphs(self) -> str:
        return counted(len(self.statistics.operators), "graph")

    def report(self) -> Report:
        """Tables below the names of the files."""
        from streamplace.display.report import Heading, Report

        heading = Heading(self.title, f": {self._graphs}")
        return Report((heading, *self.statistics.report().parts))

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``streamplace describe --json``."""
        spreads = self.statistics.spreads().items()
        return {
            "graphs": len(self.statistics.operators),
            "splits": self.statistics.splits,
            **{name: asdict(spread) for name, spread in spreads},
        }

    def write(self, path: Path) -> str:
        """Draw the histograms."""
        from streamplace.drawing.figures import save
        from streamplace.evaluate.graph_statistics import draw_statistics

        title = f"{self.names}: {self._graphs}{self.of_split}"
        save(draw_statistics(self.statistics, title), path)
        return "figure"


def describe(
    data: GraphsLike,
    *,
    cluster: ClusterLike | None = None,
    split: str | None = None,
    limit: int | None = None,
) -> GraphStatistics:
    """Describe graphs in numbers: sizes, CPU of operators, traffic of streams.

    Parameters
    ----------
    data
        A graph, a problem, several, or the path of a file or a folder of them.
    cluster
        Cluster whose mean device and link are the units of CPU and traffic; by default 2500 MIPS
        and 1000 Mbps.
    split
        Only graphs with this attribute ``split``.
    limit
        Maximum number of graphs, drawn by seed 0.

    Examples
    --------
    >>> graphs = generate("branched", branches=2, depth=3, devices=2, copies=3)
    >>> describe(graphs).operators
    (8, 8, 8)
    """
    from streamplace.evaluate.graph_statistics import statistics_of
    from streamplace.io.given_sets import graphs_of

    request = Describe.of(locals())
    return statistics_of(graphs_of(data, request.split, limit), request.cluster)
