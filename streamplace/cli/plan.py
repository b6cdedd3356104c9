"""``streamplace plan``: the cheapest machines, parallelism and placement that carry a rate."""

from streamplace.api.planning import Plan
from streamplace.cli._verbs import command_of

command = command_of(
    Plan,
    "plan",
    "Find the cheapest machines that carry a rate.",
    "plan graph.json --rate 50000 --offers offers.toml -o plan/",
)
