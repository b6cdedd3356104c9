"""``streamplace compare``: comparison of placers in value, distance to the optimum and time."""

from streamplace.api.comparing import Compare
from streamplace.cli._verbs import command_of

command = command_of(
    Compare,
    "compare",
    "Compare placers on a graph or a data set.",
    "compare branched.jsonl.gz --split test "
    "--placers metis,fuser --rate 10000 --rate 20000 -o out/ "
    "(after: streamplace generate branched -o branched.jsonl.gz)",
)
