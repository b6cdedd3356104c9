"""Options and commands of development versions that are gone; this table goes with 0.2."""

from typing import Any

import click

LEARNT = "drop it: what was measured is kept in $XDG_STATE_HOME/streamplace"
SURE = "put confidence = 0.9 into a file for --settings, for a graph that was measured"
WARM = "drop it: the command waits until the job is steady, for the patience of --settings"
DOUBTFUL = "drop it: a doubtful model is tried, and said to be doubtful"
BESIDE = "place one job beside the others, with 'flink cluster --beside'"
HEADROOM = "use --headroom"
GONE = {
    "place": {"--ledger": LEARNT, "--robust": SURE, "--error": SURE},
    "plan": {
        "--ledger": LEARNT,
        **dict.fromkeys(("--robust", "--error", "--catch-up", "--latency"), HEADROOM),
        "--variability": HEADROOM,
    },
    "flink": {
        **dict.fromkeys(("--accept-cold", "--warm-up"), WARM),
        **dict.fromkeys(("--confidence", "--trust-profile"), DOUBTFUL),
        **dict.fromkeys(("split", "union"), BESIDE),
        "--catch-up": HEADROOM,
        "--ledger": LEARNT,
        "--least-rate": "drop it: the job ends in the best layout that was measured",
        "--machines": "let the cloud's autoscaler start and stop machines",
        "--probe": "drop it: what crossing costs is assumed until tuples cross",
        "--trial-savepoint": "try it with Flink's own 'flink savepoint JOB FOLDER'",
        "savepoints": "remove a savepoint with Flink's own 'flink savepoint -d PATH'",
    },
}
"""Command, option or subcommand: what to use instead."""


def replacement(context: click.Context, word: str) -> str | None:
    """What to use instead of an option or a subcommand that is gone, if it was one.

    Many options have become keys of the file for ``--settings``.
    """
    model: Any = getattr(context.command.callback, "settings", None)
    for name, option in () if model is None else model.options().items():
        key, kind = (option.key or name).replace("_", "-"), model.kind(name)
        if word == f"--{key}":
            metavar = kind.metavar if isinstance(kind.metavar, str) else kind.metavar()
            value = "true" if kind.form == "flag" else f"'{metavar}'"
            return f"put {key} = {value} into a file for --settings"
    _, *command = context.command_path.split()
    return GONE.get(command[0] if command else "", {}).get(word)
