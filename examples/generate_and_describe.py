"""A data set of your own: generate it, write it, and see what is in it."""

from pathlib import Path

from streamplace import describe
from streamplace.families.dataset import write_dataset
from streamplace.families.random_dag import RandomDag

parameters = RandomDag(operators=30, sources=2, layers=6, devices=3, skew=1.0, count=100)
path = Path("dags.jsonl.gz")

manifest = write_dataset("random-dag", parameters, seed=1, path=path)
print(f"{manifest.graphs} graphs, content SHA-256 {manifest.content_sha256[:12]}…")

spreads = describe(path).spreads()
for what, name in (
    ("CPU of an operator, devices", "utilisation"),
    ("traffic of a stream, links", "saturation"),
):
    print(f"{what}: median {spreads[name].median:.3f}, largest {spreads[name].max:.3f}")
