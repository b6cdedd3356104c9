"""A data set of your own: generate it, write it, and see what is in it."""

from pathlib import Path

from streamplace import read_graphs
from streamplace.evaluate.profile import Spread, profile
from streamplace.families.dataset import write_dataset
from streamplace.families.random_dag import RandomDag

parameters = RandomDag(operators=30, sources=2, layers=6, devices=3, skew=1.0, count=100)
path = Path("dags.jsonl.gz")

manifest = write_dataset("random-dag", parameters, seed=1, path=path)
print(f"{manifest.graphs} graphs, content SHA-256 {manifest.content_sha256[:12]}…")

found = profile(read_graphs(path), mips=2500, bandwidth_bps=1e9)
for what, values in (
    ("CPU of an operator, devices", found.utilisation),
    ("traffic of a stream, links", found.saturation),
):
    spread = Spread.of(values)
    print(f"{what}: median {spread.median:.3f}, largest {spread.max:.3f}")
