"""``streamplace place``: placements of a graph or of a data set, and their quality."""

from streamplace.api.placing import Place
from streamplace.cli._verbs import command_of

command = command_of(
    Place, "place", "", "place graph.json --devices 5 --budget 1 --seed 1 -o placement.json"
)
