"""``streamplace simulate``: value and bottleneck of a placement, and advice."""

from streamplace.api.simulating import Simulate
from streamplace.cli._verbs import command_of

command = command_of(
    Simulate,
    "simulate",
    "Show what limits a placement, and what to move.",
    "simulate tasks.json placement.json -o run.svg",
)
