"""Samples per second of training, by number of cores: ``python benchmarks/training.py``.

Every line is a training of its own on the first graphs of a data set; the first epoch compiles and
warms up and is not counted. All of them come to the same weights, which is checked.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from streamplace.cores import available_cores
from streamplace.io.weights import read_tensors, read_weights


def main() -> None:
    """Train, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="dream")
    parser.add_argument("--data", type=Path, default=Path("datasets/branched.jsonl.gz"))
    parser.add_argument("--rate", default="10000")
    parser.add_argument("--limit", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, available_cores()])
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    print("| cores | problems/s | samples/s | times the first |\n|---|---|---|---|")
    with TemporaryDirectory() as folder:
        first, bits = 0.0, None
        for cores in asked.cores:
            run = trained(asked, Path(folder) / f"on-{cores}", cores)
            tensors = read_tensors(run / "last.safetensors")[1]
            assert bits is None or all((tensors[name] == bits[name]).all() for name in bits)
            bits, rate = tensors, problems_per_second(run)
            first = first or rate
            samples = rate * samples_per_problem(run)
            print(f"| {cores} | {rate:.0f} | {samples:.0f} | {rate / first:.2f} |", flush=True)


def trained(asked: argparse.Namespace, run: Path, cores: int) -> Path:
    """Folder of a run on so many cores."""
    settings = run.with_suffix(".toml")
    settings.write_text(f"limit = {asked.limit}\n", encoding="utf-8")
    command = [sys.executable, "-m", "streamplace", "train", asked.model]
    command += ["--data", str(asked.data), "--rate", asked.rate, "--settings", str(settings)]
    command += ["--epochs", str(asked.epochs), "--device", asked.device]
    command += ["--out", str(run), "--json"]
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(every)[:cores])  # which the command inherits
    try:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    finally:
        os.sched_setaffinity(0, every)
    return run


def problems_per_second(run: Path) -> float:
    """Training problems over the time of all epochs but the first, validation included."""
    epochs = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()][1:]
    problems = read_weights(run / "best.safetensors").document["training"]["problems"]
    return float(problems * len(epochs) / sum(epoch["seconds"] for epoch in epochs))


def samples_per_problem(run: Path) -> int:
    """Placements that are drawn of a problem in an epoch."""
    config = read_weights(run / "best.safetensors").document["config"]
    names = ("on_policy", "samples", "walks", "episodes")
    return next((int(config[name]) for name in names if name in config), 1)


if __name__ == "__main__":
    main()
