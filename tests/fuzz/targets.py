"""What is fuzzed: every reader that the registries know, with valid files to spoil."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from engine_deployments import DEPLOYMENTS
from fuzz.documents import CLUSTER, CONSTRAINTS, GRAPH, PLACEMENT, document_of, to_json, to_toml
from fuzz.library_files import library_readers
from fuzz.models import checkpoints, resumed, weights
from problems import parse_graph

import streamplace
from streamplace.engines.reading import read_assignment
from streamplace.engines.registry import EXPORTS
from streamplace.evaluate.records import Record, read_records
from streamplace.families.dataset import read_recipe
from streamplace.families.parameters import options
from streamplace.families.registry import FAMILIES
from streamplace.io.clusters import parse_cluster, read_cluster
from streamplace.io.constraints import parse_constraints
from streamplace.io.graphs import read_graphs
from streamplace.io.parsing import parse_json, parse_toml
from streamplace.io.placements import parse_placement
from streamplace.io.problems import read_problem
from streamplace.io.registry import FORMATS
from streamplace.io.schema import FILES, json_schema
from streamplace.io.weights import read_weights
from streamplace.learn.checkpoint import NAME
from streamplace.learn.registry import MODELS, configured
from streamplace.model import Cluster, Problem
from streamplace.placers.registry import PLACERS
from streamplace.planning.offers import parse_offers
from streamplace.planning.traces import parse_trace

SEEDS = Path(__file__).parent / "seeds"
"""Valid files of forms that streamplace itself does not write, named after their reader."""
BARE = {"operators": [{"name": n, "rate": 1} for n in ("src", "join", "sink")]}
WHOLE = {"graph": GRAPH, "cluster": CLUSTER, "seconds": [[1, 2.5, 3]] * 3}
PROBLEM = Problem(parse_graph(to_json(BARE), "bare"), Cluster.uniform(2))
OFFERS = {
    "overhead": "1 us",
    "offers": [
        {"name": "small", "price": 0.1, "cores": 2, "memory": "4 GB", "at_least": 1},
        {"name": "big", "price": 0.35, "mips": "3 GIPS", "cores": 8, "egress": "1 Gbps", "slots": 9}
        | {"ingress": 1e9, "tags": ["ssd"], "at_most": 5},
    ],
}
TRACE = b'time,src\n2026-03-01T00:00,5\n2026-03-01T01:00,10 k/s\n2026-03-02T01:30:00+01:00,"0"\n'
Seeds = Callable[[], Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class Target:
    """A reader."""

    name: str
    # Takes the content of a file and a folder to put it in; raises StreamplaceError or returns.
    read: Callable[[bytes, Path], Any]
    seeds: Seeds  # makes valid contents, at first use
    share: int = 1  # it gets one of so many inputs


def targets():
    """Everything that reads."""
    return [
        *_native(),
        *(_foreign(name) for name in FORMATS if _reads_files(name)),
        *(_schema(name) for name in FILES),
        *(_export(name) for name in EXPORTS if EXPORTS[name].read),
        *_small(),
        *(Target(name, read, seeds) for name, (read, seeds) in _of_flink().items()),
        *(Target(name, *reader) for name, reader in library_readers().items()),
        *(part for name in MODELS for part in _model(name)),
    ]


def _of_flink():
    """Readers of the optional room of Flink."""
    if find_spec("fuzz.flink_answers") is None:
        return {}
    from fuzz.flink_answers import answer_readers

    return answer_readers()


def _native():
    graph, lines = to_json(GRAPH), to_json(GRAPH) + b"\n" + to_json(BARE) + b"\n"
    return [
        _parsed("graph", parse_graph, graph),
        _parsed("placement", partial(parse_placement, problem=PROBLEM), to_json(PLACEMENT)),
        _parsed("cluster", parse_cluster, to_toml(CLUSTER)),
        _parsed("constraints", _compiled, to_toml(CONSTRAINTS)),
        _parsed("offers", parse_offers, to_toml(OFFERS)),
        _parsed("trace", parse_trace, TRACE),
        _file("graph file", ".json", lambda path: list(read_graphs(path)), [graph]),
        _file("problem", ".json", read_problem, [to_json(WHOLE)]),
        _file("data set", ".jsonl", lambda path: list(read_graphs(path)), [lines]),
        _file("packed data set", ".jsonl.gz", lambda path: list(read_graphs(path)), _packed),
    ]


def _compiled(content, where):
    rules = parse_constraints(content, where)
    return Problem(PROBLEM.graph, PROBLEM.cluster, rules)


def _packed():
    import gzip

    return [gzip.compress(to_json(GRAPH) + b"\n" + to_json(BARE), 1, mtime=0)]


def _reads_files(name):
    """Whether a format is read from files, by a reader that has what it needs."""
    package = FORMATS[name].package
    return name != "torch" and (not package or find_spec(package) is not None)


def _foreign(name):
    """Importer; where there is no valid file of its format, those of all others are spoiled."""

    def seeds():
        own = [path.read_bytes() for path in sorted(SEEDS.glob(f"{name}.*"))]
        return own or [to_json(GRAPH), *(path.read_bytes() for path in sorted(SEEDS.iterdir()))]

    suffix = next((path.suffix for path in SEEDS.glob(f"{name}.*")), ".txt")
    share = 10 if FORMATS[name].package else 1  # native code in a process of its own
    read = FORMATS[name].read
    return _file(f"import {name}", suffix, lambda path: list(read(path)), seeds, share)


def _schema(name):
    """Document of a published schema, as JSON and as TOML."""

    def seeds():
        documents = [document_of(json_schema(name), Random(i)) for i in range(20)]
        return [*map(to_json, documents), *map(to_toml, documents)]

    def read(content, folder):
        parse = parse_json if content.lstrip()[:1] == b"{" else parse_toml
        parse(name, content, "here")

    return Target(f"schema {name}", read, cache(seeds))


def _export(name):
    export = EXPORTS[name]

    def seeds():
        written = []
        for deployment in DEPLOYMENTS.values():
            (text,) = export.files(deployment).values()
            written.append(text.encode())
        return written

    return _file(f"export {name}", export.suffix, read_assignment, seeds)


def _small():
    """Recipes, results and names of files."""
    record = Record("p" * 64, "g", 1e4, "exact", "1 s", 0.8, 0.8, 0.1, (0, 1))
    results = [2 * (to_json(asdict(record)) + b"\n")]
    return [
        _file("recipe", ".toml", read_recipe, [_recipe(name) for name in FAMILIES]),
        _file("results", ".jsonl", lambda path: list(read_records(path)), results),
        Target("path", _read_path, lambda: [b"graph.json", b"data.jsonl.gz", b"a.toml"]),
    ]


def _recipe(name):
    known = {option.name: option.default for option in options(FAMILIES[name].parameters)}
    given = {key: value for key, value in known.items() if value is not None}
    return to_toml({"family": name, "seed": 1, "parameters": given})


def _read_path(content, folder):
    path = folder / content.decode(errors="surrogateescape").replace("/", "_")
    for read in (read_graphs, read_cluster, read_assignment, read_weights, read_recipe):
        try:
            list(read(path))
        except streamplace.StreamplaceError:
            continue


def _model(name):
    """Options, weights and checkpoints of a model."""
    model = MODELS[name]
    table = model.presets["fast"].model.model_dump(mode="json")
    training = model.presets["fast"].training.model_dump(mode="json")
    config = to_toml({"training": training, "model": table})
    found = [
        _file(f"config {name}", ".toml", lambda path: configured(model, file=path), [config]),
        _file(f"weights {name}", ".safetensors", read_weights, lambda: [weights(name)]),
        Target(
            f"checkpoint {name}",
            lambda content, folder: resumed(name, _put(content, folder, NAME)),
            lambda: checkpoints(name),
        ),
    ]
    if name in PLACERS:
        placed = partial(_place, name)
        found.append(_file(f"place {name}", ".safetensors", placed, lambda: [weights(name)]))
    return found


def _place(name, path):
    objective = (*MODELS[name].objectives, "throughput")[0]
    placer = f"{name}:weights={path}"
    streamplace.place(PROBLEM.graph, PROBLEM.cluster, placer=placer, objective=objective)


def _parsed(name, parse, *seeds):
    return Target(name, lambda content, folder: parse(content, "here"), lambda: seeds)


def _file(name, suffix, read, seeds, share=1):
    """Return a reader of files; each has a name of its own, because some are kept by name."""
    numbers = count()

    def read_file(content, folder):
        path = _put(content, folder, f"{next(numbers)}{suffix}")
        try:
            read(path)
        finally:
            path.unlink()

    return Target(name, read_file, cache(seeds) if callable(seeds) else lambda: seeds, share)


def _put(content, folder, name):
    path = folder / name
    path.write_bytes(content)
    return path
