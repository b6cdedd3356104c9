"""``streamplace export``: a placement in the format of an engine or another tool."""

from streamplace.api.exporting import ExportPlacement
from streamplace.cli._verbs import command_of

command = command_of(
    ExportPlacement,
    "export",
    "Write a placement as files for an engine.",
    "export placement.json --graph graph.json --to ray -o ray/",
)
