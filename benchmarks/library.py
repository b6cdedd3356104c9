"""Make datasets/library: instances with solutions, and bounds that the checker has accepted.

    python benchmarks/library.py [--seed 0] [--split public|hidden] [-o datasets/library]

The same seed gives the same files; the manifest of a hidden split does not state it. A certificate
is written only where the checker derives its bound; of several the best is kept, and a search may
take --nodes nodes.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from streamplace import Budget, Cluster, Problem, generate, place
from streamplace.io.problems import read_problems
from streamplace.library.certificates import above, below, certificates
from streamplace.library.documents import instance_document, solution_document
from streamplace.model import Device
from streamplace.objectives.registry import OBJECTIVES

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "checker"))
import check  # noqa: E402
import check_instance  # noqa: E402
import check_search  # noqa: E402

CLOSED = 1e-8
EVALUATIONS = 20_000


def instances(seed: int) -> Iterator[tuple[str, str, Problem, str]]:
    """Name, origin, problem and objectives of every instance."""
    for i, (branches, depth) in enumerate([(2, 2), (3, 2), (2, 3), (4, 2)]):
        shape = {"branches": branches, "depth": depth, "devices": 2, "copies": 4, "rate": 2e4}
        for k, graph in enumerate(generate("branched", seed=seed, **shape)[:4]):
            problem = Problem(graph.at_rate(2e4), Cluster.uniform(3))
            yield f"branched-{4 * i + k:02}", f"family branched, {shape}", problem, "throughput"
    for path in sorted((ROOT / "datasets/applications").glob("*.json")):
        (application,) = read_problems(path)
        problem = Problem(application.graph, Cluster.uniform(3))
        load = float(problem.instance.load.min(axis=1).sum())
        rate = float(f"{application.graph.source_rate * 3.3 / load:.3g}")
        name = f"application-{path.stem}"
        yield name, f"datasets/applications/{path.name}", problem.at_rate(rate), "throughput"
    for i in range(16):
        shape = {"operators": 6 + i // 2, "devices": 3.3, "network": 2.0, "layers": 3}
        (graph,) = generate("random-dag", seed=seed + i, **shape)
        speeds = [2500, 2500, 2500] if i % 2 else [3000, 2500, 1500]
        devices = [Device(f"d{d}", mips) for d, mips in enumerate(speeds)]
        problem = Problem(graph, Cluster.of(devices))
        yield f"random-{i:02}", f"family random-dag, {shape}", problem, "throughput makespan"
    small = [p for p in read_problems(ROOT / "datasets/giph-grid.jsonl.gz") if p.n_operators <= 20]
    for i, problem in enumerate(small):
        yield f"giph-{i:02}", f"giph-grid, {problem.graph.name}", problem, "makespan"


def as_read(document: object) -> dict:
    """Document as the checker reads it."""
    number = check_instance.number
    hooks = {"parse_float": number, "parse_int": number, "parse_constant": number}
    return json.loads(json.dumps(document), **hooks)


def best_certificate(problem: Problem, name: str, value: float) -> dict:
    """Return the certificate of the best bound that the checker derives."""
    checked = check_instance.Problem(as_read(instance_document(problem)))
    best, sign = None, 1 if OBJECTIVES[name].sense == "max" else -1
    for certificate in certificates(problem, OBJECTIVES[name], value):
        if best is not None and abs(best["bound"] - value) <= CLOSED * value:
            break
        try:
            read = as_read(certificate)
            bound = check.derived(checked, name, read["bound"], read["proof"])
        except check_instance.RefusedError:
            continue  # a search that takes too many nodes
        if certificate["proof"]["kind"] in ("dual", "interval", "path"):
            certificate["bound"] = above(float(bound)) if sign > 0 else below(float(bound))
        if best is None or sign * certificate["bound"] < sign * best["bound"]:
            best = certificate
    return best


def write(path: Path, document: object) -> None:
    """Write a document in one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n")


def make(out: Path, name: str, problem: Problem, objective: str) -> dict:
    """Write solution and certificate of an instance; return the line of the table."""
    result = place(problem, placer="anneal", objective=objective, budget=Budget(None, EVALUATIONS))
    judge = OBJECTIVES[objective]
    solution = solution_document(problem, result.placement, judge, result.value, "anneal")
    checked = check_instance.Problem(as_read(instance_document(problem)))
    rows = [checked.dev[solution["assignment"][name]] for name in checked.op]
    exact = check.throughput(checked, rows)
    if "priority" in solution:
        priority = as_read(solution["priority"])
        exact = check.makespan(checked, rows, [priority[name] for name in checked.op])
    solution["value"] = float(f"{float(exact):.14g}")
    certificate = best_certificate(problem, objective, float(exact))
    write(out / name / f"{objective}.solution.json", solution)
    write(out / name / f"{objective}.certificate.json", certificate)
    gap = abs(certificate["bound"] - float(exact)) / float(exact)
    return {
        "instance": name,
        "objective": objective,
        "value": solution["value"],
        "bound": certificate["bound"],
        "closed": gap <= CLOSED,
        "proof": certificate["proof"]["kind"],
        "by": f"streamplace anneal, {EVALUATIONS} evaluations",
    }


def main() -> None:
    """Make the whole library."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", choices=["public", "hidden"], default="public")
    parser.add_argument("--nodes", type=int, default=3000)
    parser.add_argument("-o", type=Path, default=ROOT / "datasets/library")
    options = parser.parse_args()
    check_search.NODES = options.nodes
    lines, origins = [], {}
    for name, origin, problem, objectives in instances(options.seed):
        write(options.o / name / "instance.json", instance_document(problem))
        size = {"operators": problem.n_operators, "devices": problem.n_devices}
        origins[name] = {"origin": origin, **size}
        for objective in objectives.split():
            lines.append(make(options.o, name, problem, objective))
            print(name, *lines[-1].values())
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (options.o / "best.jsonl").write_text(text)
    files = sorted(path for path in options.o.rglob("*.json*") if path.name != "manifest.json")
    sums = {
        str(path.relative_to(options.o)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    document = {"seed": options.seed, "instances": origins, "sha256": sums}
    if options.split == "hidden":
        document = {"split": "hidden", "instances": origins, "sha256": sums}
    (options.o / "manifest.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
