"""``streamplace flink union`` and ``split``: placement of several jobs together."""

import json
from pathlib import Path

import click

from streamplace.cli._options import FILE, spare_inputs, writes
from streamplace.cli._output import say
from streamplace.errors import SettingError


@click.command(
    "union",
    short_help="Write one graph of several jobs.",
    epilog="Example: streamplace flink union shop.json fraud.json --weight shop=2 -o both.json",
)
@click.argument("graphs", type=FILE, nargs=-1, required=True)
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="JOB=NUMBER",
    help="Factor for the rates of a job. May be repeated.  [default: 1]",
)
@writes("Write the graph to this file.", required=True)
def union_(graphs: tuple[Path, ...], weights: tuple[str, ...], output: Path) -> None:
    """Write one graph of several jobs, each as 'flink profile' measured it, to place them together.

    Its operators are called JOB/OPERATOR. All jobs sustain the same share of their rates; a job of
    weight 2 counts as if it had twice its rate. 'flink split' writes the placement of each job from
    a placement of the union.
    """
    from streamplace.engines.flink.union import union_of
    from streamplace.io.graphs import read_graph, write_graph

    spare_inputs(output)
    graph = union_of([read_graph(path) for path in graphs], _numbers(weights))
    write_graph(graph, output)
    say(f"{len(graphs)} jobs of {graph.n_operators} operators → {output}")


@click.command(
    "split",
    short_help="Write the placement of each job of a union.",
    epilog="Example: streamplace flink split placement.json -o placements/",
)
@click.argument("placement", type=FILE)
@writes("Folder for the placement of each job, JOB.json.", folder=True, required=True)
def split_(placement: Path, output: Path) -> None:
    """Write the placement of each job from the PLACEMENT of their union.

    PLACEMENT is what 'place' wrote for the graph of 'flink union'.
    """
    from streamplace.engines.flink.union import split_placement
    from streamplace.io.files import make_folder, read_bytes, spot, write_text
    from streamplace.io.placements import LARGEST_PLACEMENT, parse_document

    spare_inputs(output)
    content = read_bytes(placement, LARGEST_PLACEMENT)
    jobs = split_placement(parse_document(content, spot(placement)))
    spare_inputs(*(output / f"{job}.json" for job in jobs))
    make_folder(output)
    for job, document in jobs.items():
        write_text(output / f"{job}.json", json.dumps(document, indent=1) + "\n")
    say(f"{', '.join(f'{job}.json' for job in jobs)} → {output}")


def _numbers(weights: tuple[str, ...]) -> dict[str, float]:
    """Weight of each job, from texts such as ``shop=2``."""
    numbers: dict[str, float] = {}
    for text in weights:
        job, equals, number = text.partition("=")
        try:
            numbers[job] = float(number)
        except ValueError:
            equals = ""
        if not equals or not 0 < numbers[job] < float("inf"):
            raise SettingError(f"--weight {text}: write JOB=NUMBER with a number above 0")
    return numbers
