"""``streamplace compare``: comparison of placers in value, distance to the optimum and time."""

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamplace.cli import _options
from streamplace.cli._command import verb
from streamplace.cli._data_sets import FailedGraphs, resumable
from streamplace.cli._options import FILE
from streamplace.cli._output import counted, print_json, print_report, save_json, say
from streamplace.settings.compare import CompareSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.figure import Figure

    from streamplace.evaluate.results import Front, ObjectiveResults

RESULTS, TABLE_JSON, TABLE, REPORT = "results.jsonl", "table.json", "table.tex", "report.html"
FRONT = "pareto.png"
FIELDS = _options.KEYS | {"objective", "objectives"}
"""Fields of which table.json and the lines of results.jsonl have one."""


@verb(
    "compare",
    "Compare placers on a graph or a data set.",
    "compare branched.jsonl.gz --split test "
    "--placers metis,fuser --rate 10000 --rate 20000 -o out/ "
    "(after: streamplace generate branched -o branched.jsonl.gz)",
    settings=CompareSettings,
)
@click.argument("data", type=FILE)
@_options.common(
    "Folder for results.jsonl, table.json, table.tex, report.html, plots, or a figure of the "
    "distributions alone (.pdf, .svg or .png).",
    folder=None,
)
def command(data: Path, settings: CompareSettings, as_json: bool, output: Path | None) -> int:
    """Compare placers on DATA: a graph, a problem, a data set or a folder of them.

    With -o, every result is written to the folder at once: a run that was stopped continues where
    it ended, and adding a placer takes only its own time. If a placer fails on a graph, the graph
    is reported and left out.
    """
    from streamplace.api.comparing import compared
    from streamplace.io.files import write_text

    is_figure = output is not None and output.suffix in _options.PICTURES
    _options.check_output(output, is_folder=not is_figure)
    folder = None if is_figure else output
    if folder is not None:
        _options.spare_others(*_files(settings, folder), keys=FIELDS)
    failures, of_split = FailedGraphs(), f" of split {settings.split}" if settings.split else ""
    with resumable(folder):
        comparison, n_graphs, reused = compared(settings, data, folder, failures)
    title = f"{data.name}: {counted(n_graphs, 'graph')}{of_split}"
    document, report = comparison.document(), comparison.report()
    if folder is not None:
        if reused:
            say(f"{counted(reused, 'result')} reused from {folder / RESULTS}")
        save_json(document, folder / TABLE_JSON)
        write_text(folder / TABLE, f"% streamplace compare\n{comparison.latex()}")
        replace(report, title=title).save(folder / REPORT)
        _plots(comparison.results, comparison.front, title, folder)
    elif output is not None:
        from streamplace.drawing.figures import save
        from streamplace.evaluate.comparison_plots import draw_distributions

        save(draw_distributions(comparison.results, title), output)
        say(f"figure → {output}")
    print_json(document) if as_json else print_report(report)
    return failures.status


def _files(settings: CompareSettings, output: Path) -> "Iterator[Path]":
    """Files that a comparison may write; the names of pictures begin with one of objectives."""
    from streamplace.evaluate.comparison_plots import PLOTS

    yield from (output / name for name in (RESULTS, TABLE_JSON, TABLE, REPORT, FRONT))
    beginning = "*-" if len(settings.objective) > 1 else ""
    for name in PLOTS:
        yield from output.glob(f"{beginning}{name}.png")


def _plots(
    results: "Sequence[ObjectiveResults]", front: "Front | None", title: str, output: Path
) -> None:
    from streamplace.drawing.figures import save
    from streamplace.evaluate.comparison_plots import PLOTS, draw_front

    figures: dict[str, Figure | None] = {}
    for result in results:
        prefix = "" if len(results) == 1 else re.sub(r"[^\w.-]+", "-", result.judge.name) + "-"
        figures |= {f"{prefix}{name}.png": draw(result, title) for name, draw in PLOTS.items()}
    if front is not None:
        figures[FRONT] = draw_front(front, [result.judge for result in results], title)
    drawn = {name: figure for name, figure in figures.items() if figure is not None}
    for name, figure in drawn.items():
        save(figure, output / name)
    pictures = counted(len(drawn), "picture")
    say(f"{RESULTS}, {TABLE_JSON}, {TABLE}, {REPORT}, {pictures} → {output}/")
