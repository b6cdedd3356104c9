"""``streamplace demo``: one graph under three placers, drawn and explained."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamplace.cli._command import verb
from streamplace.cli._options import AS_JSON, writes
from streamplace.cli._output import spare_others
from streamplace.cli._printing import print_json, print_line, print_report, progress, say_written
from streamplace.settings.option import KEYS

if TYPE_CHECKING:
    from streamplace.model.problem import Problem
    from streamplace.placers.result import Result


OFFERS = """\
# Machines that can be rented, for: streamplace plan graph.json --offers offers.toml --rate 50000
overhead = "500 ns"  # CPU time for each tuple that leaves or enters a machine

[[offers]]
name = "small"
price = 0.10         # per hour
cores = 4
mips = "2500 MIPS"   # of one core
egress = "1 Gbps"    # of the network card
ingress = "1 Gbps"

[[offers]]
name = "large"
price = 0.36
cores = 16
mips = "2500 MIPS"
egress = "5 Gbps"
ingress = "5 Gbps"
"""
TASKS = {"load": 1e9, "left": 6e9, "right": 4e9, "add": 1e9}
"""Instructions of each task of a task graph."""
FILES = ("tasks.json", "graphs.jsonl.gz", "offers.toml")


def write_files(folder: Path) -> None:
    """Write a task graph, a small data set of graphs, and offers of machines."""
    from streamplace.families.registry import FAMILIES
    from streamplace.io.files import write_text
    from streamplace.io.graphs import write_graph, write_graphs
    from streamplace.model.graph import StreamGraph
    from streamplace.model.operators import Operator
    from streamplace.model.streams import Stream

    operators = [Operator(name, ipt=ipt, payload=1e6) for name, ipt in TASKS.items()]
    ends = [("load", "left"), ("load", "right"), ("left", "add"), ("right", "add")]
    tasks = StreamGraph.of("tasks", operators, [Stream(*pair) for pair in ends], fires="all")
    family = FAMILIES["branched"]
    small = family.parameters(branches=2, depth=3, devices=2, copies=20)
    write_graph(tasks, folder / "tasks.json")
    graphs = (graph for graph in family.generate(small, seed=1) if isinstance(graph, StreamGraph))
    write_graphs(graphs, folder / "graphs.jsonl.gz")
    write_text(folder / "offers.toml", OFFERS)


PLACERS = ("round-robin", "metis", "auto")
REPORT = "report.html"
DRAWINGS = ("placements.svg", REPORT)
SEED = 12
"""Seed of a graph on which neither an even load nor a small cut is enough."""
DESCRIPTIONS = {
    "round-robin": "deals the operators out in turn",
    "metis": "balances the CPU and cuts as little traffic as it can",
    "auto": "searches for the highest rate itself",
}
SUGGESTIONS = (
    "streamplace simulate graph.json metis.json    # what limits, and what to move",
    "streamplace place graph.json --rate '20 k/s'  # more than five devices take",
    "streamplace place graph.json --objective devices --require 'throughput>=1'",
    "streamplace export auto.json --to dot         # or flink, ray",
    "streamplace --help",
)
"""Commands to try in the folder of the demo."""


@verb("demo", "Show on an example what streamplace does.", "demo -o first-steps")
@AS_JSON
@writes("The folder to write to.", folder=True, default=Path("streamplace-demo"), show_default=True)
def command(as_json: bool, output: Path) -> None:
    """Generate a stream graph, place it by three placers, draw the results and explain them.

    Needs no files and takes seconds once kernels are compiled. The folder then holds the graph,
    the placements, the picture and a report, for the commands that the demo suggests at its end.
    For further commands it holds a task graph, a small data set and offers of machines.
    """
    from streamplace.api import place
    from streamplace.drawing.graphs import draw_placements
    from streamplace.io.files import make_folder
    from streamplace.io.graphs import write_graph
    from streamplace.io.placements import write_placement

    written = ["graph.json", *(f"{name}.json" for name in PLACERS), *DRAWINGS]
    spare_others(*(output / name for name in (*written, *FILES)), keys=KEYS | {"offers"})
    problem = _problem()
    with progress("placing", len(PLACERS)) as tick:
        results = [place(problem, placer=name) for name in tick.over(PLACERS)]
    make_folder(output)
    write_graph(problem.graph, output / "graph.json")
    for result in results:
        write_placement(result.placement, output / f"{result.placer}.json")
    named = [(result.placer, result.placement) for result in results]
    drawing = draw_placements(problem, named)
    for name in DRAWINGS:
        drawing.save(output / name)
    write_files(output)
    if as_json:
        print_json(_document(problem, results, output))
    else:
        _print(problem, results, output)
    say_written(", ".join(written), output)


def _problem() -> "Problem":
    """Source, three branches of three operators, and sink, on five equal devices."""
    from streamplace.families.registry import FAMILIES
    from streamplace.io.given import problem_of

    family = FAMILIES["branched"]
    parameters = family.parameters(branches=3, depth=3, devices=3, copies=1)
    return problem_of(next(iter(family.generate(parameters, seed=SEED))))


def _document(problem: "Problem", results: "list[Result]", folder: Path) -> dict[str, Any]:
    """Convert the demo to a JSON document."""
    return {
        "graph": problem.graph.name,
        "folder": str(folder),
        "placements": [
            {"placer": result.placer, "value": result.value, "verdict": result.verdict}
            for result in results
        ],
    }


def _print(problem: "Problem", results: "list[Result]", folder: Path) -> None:
    """Print the graph, a line per placer with its verdict, and suggestions."""
    from streamplace.display.report import Report, Sheet, percent

    graph = problem.graph
    rows = [(r.placer, percent(r.value), DESCRIPTIONS[r.placer]) for r in results]
    print_report(
        Report(
            (
                f"The graph: {graph.n_operators} operators, which {graph.source_rate:g} tuples/s "
                "enter. The cluster: five devices of 2500 MIPS, with links of 1 Gbps between them",
                Sheet(("placer", "carries", "what it does"), tuple(rows)),
                *(f"{result.placer}: {result.verdict}." for result in results),
                "",
                f"Open {folder / REPORT} in a browser, and drag operators from device to device. "
                "What limits the rate is red, and dashed streams cross the network.",
                f"Commands to try in {folder}, which also holds {', '.join(FILES)}:",
            )
        )
    )
    for line in SUGGESTIONS:
        print_line(f"  {line}")
