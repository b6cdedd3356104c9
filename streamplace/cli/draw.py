"""``streamplace draw``: a graph alone, or placements of it side by side."""

from pathlib import Path

import click

from streamplace.cli._command import verb
from streamplace.cli._options import FILE, common
from streamplace.cli._output import print_json, say, with_command
from streamplace.cli._settings import simulated
from streamplace.errors import SettingError
from streamplace.settings.shared import DeviceOptions, ObjectiveOptions


class DrawSettings(ObjectiveOptions, DeviceOptions):
    """What a drawing shows."""


@verb("draw", "", "draw graph.json placement.json -o placement.svg", settings=DrawSettings)
@click.argument("graph", type=FILE)
@click.argument("placements", type=FILE, nargs=-1)
@common(
    "File to write: a drawing (.svg), or a report (.html).",
    suffixes=(".svg", ".html"),
    is_needed=True,
)
def command(
    graph: Path,
    placements: tuple[Path, ...],
    settings: DrawSettings,
    as_json: bool,
    output: Path,
) -> None:
    """Draw GRAPH alone, or PLACEMENTS of it side by side.

    A box is an operator; its colour is the device, and a stream is as wide as its traffic. Dashed
    streams cross the network. What limits the objective is red: for throughput what uses the
    bottleneck, for makespan the critical chain. The title is the value of the placement. Without
    placements, darker boxes need more CPU. Above 200 operators, chains of operators share a box.
    """
    from streamplace.api import draw

    if not placements and settings.inputs.keys() - {"rate"}:
        raise SettingError(
            "a graph alone has no devices and no value; add a placement, or drop --objective and "
            "the options of the cluster"
        )
    drawing = draw(
        graph, placements, settings.machines(), objective=settings.objective, rate=settings.rate
    )
    is_report = output.suffix == ".html"
    if is_report and placements:
        with_command(drawing.subject.report(), graph, simulated(settings)).save(output)
    else:
        drawing.save(output)
    if as_json:
        print_json({"output": str(output), "placements": [path.stem for path in placements]})
    else:
        say(f"{'report' if is_report else 'drawing'} → {output}")
