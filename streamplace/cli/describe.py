"""``streamplace describe``: statistics of a graph or a data set."""

from streamplace.api.data_sets import Describe
from streamplace.cli._verbs import command_of

command = command_of(
    Describe,
    "describe",
    "Print statistics of a graph or a data set.",
    "describe datasets/branched.jsonl.gz -o figure4.png",
)
