"""Commands that only run a verb; other commands have a file each in this folder."""

from typing import NamedTuple


class VerbCommand(NamedTuple):
    """A command: its verb as ``module:Class``, its line in the list of commands, an example.

    Without a summary, the list has the first sentence of the help.
    """

    verb: str
    summary: str
    example: str


TABLE = {
    "compare": VerbCommand(
        "streamplace.api.comparing:Compare",
        "Compare placers on a graph or a data set.",
        "compare branched.jsonl.gz --split test "
        "--placers metis,fuser --rate 10000 --rate 20000 -o out/ "
        "(after: streamplace generate branched -o branched.jsonl.gz)",
    ),
    "describe": VerbCommand(
        "streamplace.api.data_sets:Describe",
        "Print statistics of a graph or a data set.",
        "describe datasets/branched.jsonl.gz -o figure4.png",
    ),
    "draw": VerbCommand(
        "streamplace.api.drawing:Draw", "", "draw graph.json placement.json -o placement.svg"
    ),
    "export": VerbCommand(
        "streamplace.api.exporting:ExportPlacement",
        "Write a placement as files for an engine.",
        "export placement.json --graph graph.json --to ray -o ray/",
    ),
    "objectives": VerbCommand(
        "streamplace.cli._listings:ListObjectives", "List the objectives.", "objectives --json"
    ),
    "place": VerbCommand(
        "streamplace.api.placing:Place",
        "",
        "place graph.json --devices 5 --budget 1 --seed 1 -o placement.json",
    ),
    "placers": VerbCommand("streamplace.cli._listings:ListPlacers", "", "placers --json"),
    "plan": VerbCommand(
        "streamplace.api.planning:Plan",
        "Find the cheapest machines that carry a rate.",
        "plan graph.json --rate 50000 --offers offers.toml -o plan/",
    ),
    "schema": VerbCommand(
        "streamplace.cli._listings:PrintSchema",
        "Print the JSON Schema of a file format.",
        "schema graph > graph.schema.json",
    ),
    "simulate": VerbCommand(
        "streamplace.api.simulating:Simulate",
        "Show what limits a placement, and what to move.",
        "simulate tasks.json placement.json -o run.svg",
    ),
}
