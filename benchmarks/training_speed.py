"""Seconds per epoch of training ``dream``, of this code and of other versions by turns.

``python benchmarks/training_speed.py [STREAMPLACE ...]``: each is the command of an environment in
which another version is installed. All train on the 288 training graphs that ``generate branched
--seed 3 --copies 9`` makes, with the default preset and seed 1, for eight epochs; the fastest of
the last four counts, which come after those of imitation. Prints them, and how many times as long
the first of the others takes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from streamplace.families.branched import Branched
from streamplace.families.dataset import write_dataset

EPOCHS, WARM = 8, 4


def main() -> None:
    """Train by turns, and print a line for each version and turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("others", nargs="*", metavar="STREAMPLACE")
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    commands = [str(Path(sys.executable).with_name("streamplace")), *given.others]
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        write_dataset("branched", Branched(copies=9), 3, folder / "graphs.jsonl")
        for command in commands:  # a first run, which fills the caches
            epoch_seconds(command, folder, 1)
        best = dict.fromkeys(commands, float("inf"))
        for turn in range(given.turns):
            for command in commands[:: -1 if turn % 2 else 1]:
                seconds = epoch_seconds(command, folder, EPOCHS)
                best[command] = min(best[command], *seconds[WARM:])
                print(f"turn {turn + 1}, {command}: {min(seconds[WARM:]):.3f} s per epoch")
    for command, seconds in best.items():
        print(
            f"{command}: {seconds:.3f} s per epoch, {seconds / best[commands[0]]:.2f} × this code"
        )


def epoch_seconds(command: str, folder: Path, epochs: int) -> list[float]:
    """Seconds of each epoch of a training."""
    out = Path(tempfile.mkdtemp(dir=folder))
    options = ["--data", folder / "graphs.jsonl", "--epochs", epochs, "--seed", 1, "--out", out]
    words = [command, "train", "dream", *map(str, options)]
    subprocess.run(words, check=True, capture_output=True)
    return [json.loads(line)["seconds"] for line in (out / "history.jsonl").open()]


if __name__ == "__main__":
    main()
