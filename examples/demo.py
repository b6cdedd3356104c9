"""The main jobs, one command line after the other; run with ``make demo``.

Every command is printed before it runs, so that it can be copied, and what it prints is shortened
to the lines that its question asks for.
"""

import io
import os
import shutil
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple, TextIO

from streamplace.cli.main import main


class Step(NamedTuple):
    """A command, the question that it answers, and the lines of its output that are shown."""

    question: str
    command: str
    begin: str = ""  # how the first of these lines begins
    lines: int = 0


PLACERS = (
    "metis,dream,mine=pilot:weights=trained/best.safetensors:refine=none,"
    "shipped=pilot:refine=none,exact"
)
STEPS = (
    Step(
        "What share of the sources' rate does a graph carry under three placers?",
        "demo -o first",
        " placer",
        4,
    ),
    Step(
        "What limits one of them, and what should move?",
        "simulate first/graph.json first/round-robin.json",
        "Bottleneck",
        3,
    ),
    Step(
        "And under the best one, with queues, how late are the tuples?",
        "simulate first/graph.json first/auto.json --engine -o run.png",
        "With queues",
        2,
    ),
    Step(
        "A published network decides at once, without any search.",
        "place first/graph.json --placer dream -o dream.json",
        "Verdict",
        2,
    ),
    Step(
        "Sixty graphs of a benchmark, of which some are held out from training.",
        "generate branched --branches 3 --depth 4 --devices 3 --copies 60 -o graphs.jsonl.gz",
    ),
    Step(
        "What does a network learn from nothing? Validation: on graphs held out.",
        "train pilot --data graphs.jsonl.gz --rate 20000 --epochs 4 --out trained",
        " placer",
        5,
    ),
    Step(
        "Who places best, against proven optima?",
        f"compare graphs.jsonl.gz --split test --rate 20000 --placers {PLACERS} -o comparison",
        "",
        12,
    ),
    Step(
        "The other question: how long does one pass of a task graph take?",
        "place first/tasks.json -o pass.json",
        "Verdict",
        2,
    ),
)


SPARED = ("content SHA-256", "start-up", "reward:", "validation:")
"""How messages begin that the demo leaves out, as it does the names of written files."""


class Progress(io.TextIOBase):
    """Standard error for progress and problems."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        """Whether it is shown on a terminal."""
        return self._stream.isatty()

    def write(self, text: str) -> int:
        """Pass a text on."""
        if not text.startswith(SPARED) and " → " not in text:
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Show all of it."""
        self._stream.flush()


def run(folder: Path) -> None:
    """Run every command in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    shutil.rmtree("trained", ignore_errors=True)  # a training begins in a new folder
    begin = time.perf_counter()
    print(f"$ cd {folder}")
    for step in STEPS:
        print(f"# {step.question}\n$ streamplace {step.command}", flush=True)
        printed = io.StringIO()
        try:
            with redirect_stdout(printed), redirect_stderr(Progress(sys.stderr)):
                main(step.command.split())
        except SystemExit as end:
            if end.code:
                raise
        lines = printed.getvalue().splitlines()
        first = next(i for i, line in enumerate(lines or [""]) if line.startswith(step.begin))
        for line in lines[first : first + step.lines]:
            print(line.rstrip())
    print(f"{len(STEPS)} commands in {time.perf_counter() - begin:.0f} s. Open in a browser:")
    print(f"{folder}/first/report.html (operators can be dragged), {folder}/comparison/report.html")


if __name__ == "__main__":
    run(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
