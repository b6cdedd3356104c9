"""``streamplace draw``: a graph alone, or placements of it side by side."""

from streamplace.api.drawing import Draw
from streamplace.cli._verbs import command_of

command = command_of(Draw, "draw", "", "draw graph.json placement.json -o placement.svg")
