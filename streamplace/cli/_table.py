"""Commands that only run a verb; other commands have a file each in this folder."""

TABLE: dict[str, tuple[str, str, str]] = {
    "compare": (
        "streamplace.api.comparing:Compare",
        "Compare placers on a graph or a data set.",
        "compare branched.jsonl.gz --split test "
        "--placers metis,fuser --rate 10000 --rate 20000 -o out/ "
        "(after: streamplace generate branched -o branched.jsonl.gz)",
    ),
    "describe": (
        "streamplace.api.data_sets:Describe",
        "Print statistics of a graph or a data set.",
        "describe datasets/branched.jsonl.gz -o figure4.png",
    ),
    "draw": ("streamplace.api.drawing:Draw", "", "draw graph.json placement.json -o placement.svg"),
    "export": (
        "streamplace.api.exporting:ExportPlacement",
        "Write a placement as files for an engine.",
        "export placement.json --graph graph.json --to ray -o ray/",
    ),
    "objectives": (
        "streamplace.cli._listings:ListObjectives",
        "List the objectives.",
        "objectives --json",
    ),
    "place": (
        "streamplace.api.placing:Place",
        "",
        "place graph.json --devices 5 --budget 1 --seed 1 -o placement.json",
    ),
    "placers": ("streamplace.cli._listings:ListPlacers", "", "placers --json"),
    "plan": (
        "streamplace.api.planning:Plan",
        "Find the cheapest machines that carry a rate.",
        "plan graph.json --rate 50000 --offers offers.toml -o plan/",
    ),
    "schema": (
        "streamplace.cli._listings:PrintSchema",
        "Print the JSON Schema of a file format.",
        "schema graph > graph.schema.json",
    ),
    "simulate": (
        "streamplace.api.simulating:Simulate",
        "Show what limits a placement, and what to move.",
        "simulate tasks.json placement.json -o run.svg",
    ),
}
"""Verb of a command as ``module:Class``, its line in the list of commands, and an example.

Without a line, the list has the first sentence of the help.
"""
