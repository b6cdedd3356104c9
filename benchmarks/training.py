"""Samples per second of training, by number of processes: ``python benchmarks/training.py``.

Every line is a training of its own, by torchrun, on the first graphs of a data set; the first epoch
compiles and warms up and is not counted. All of them have the same number of shards, and come to
the same weights, which is checked. With ``--device cuda`` there has to be a GPU for every process.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from streamplace.io.weights import read_tensors, read_weights


def main() -> None:
    """Train, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="dream")
    parser.add_argument("--data", type=Path, default=Path("datasets/branched.jsonl.gz"))
    parser.add_argument("--rate", default="10000")
    parser.add_argument("--limit", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    print("| processes | problems/s | samples/s | times one process |\n|---|---|---|---|")
    with TemporaryDirectory() as folder:
        first, bits = 0.0, None
        for processes in asked.processes:
            run = trained(asked, Path(folder), processes)
            tensors = read_tensors(run / "last.safetensors")[1]
            assert bits is None or all((tensors[name] == bits[name]).all() for name in bits)
            bits, rate = tensors, problems_per_second(run)
            first = first or rate
            samples = rate * samples_per_problem(run)
            print(f"| {processes} | {rate:.0f} | {samples:.0f} | {rate / first:.2f} |", flush=True)


def trained(asked: argparse.Namespace, folder: Path, processes: int) -> Path:
    """Folder of a run by so many processes."""
    (folder / "shards.toml").write_text(f"[training]\nshards = {asked.shards}\n")
    run = folder / f"by-{processes}"
    torchrun = ("torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m")
    command = [sys.executable, "-m", *torchrun, "streamplace", "train", asked.model]
    command += ["--data", str(asked.data), "--rate", asked.rate, "--limit", str(asked.limit)]
    command += ["--epochs", str(asked.epochs), "--device", asked.device]
    command += ["--config", str(folder / "shards.toml"), "--out", str(run), "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
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
