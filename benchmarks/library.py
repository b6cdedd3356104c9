"""Make datasets/library: instances with solutions, and bounds that the checker has accepted.

    python benchmarks/library.py [--seed 0] [--split public|hidden] [-o datasets/library]

The same seed gives the same files; the manifest of a hidden split does not state it. What exists
already is not made again. A certificate is written only where the checker accepts it; searches may
take --nodes nodes. With --only, the instances are made whose names contain one of the words.
"""

import argparse
import hashlib
import json
import sys
from fractions import Fraction
from pathlib import Path

from streamplace import Budget, place
from streamplace.library.certificates import plan_cut, plan_proof, proof
from streamplace.library.documents import library_problem, solution_document
from streamplace.library.plans import PlanColumns
from streamplace.objectives.registry import OBJECTIVES

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "checker"), str(ROOT / "benchmarks")]
import check  # noqa: E402
from library_instances import NamedInstance, instances  # noqa: E402

CLOSED = Fraction(1, 10**8)
EVALUATIONS = 20_000
HALVINGS = 24
NODE_WORK = 30_000_000
"""Streams by pairs of kinds that all nodes of a search may look at."""


def is_proven(document: dict, bound: Fraction, certificate: dict) -> bool:
    """Whether the checker accepts a proof of a bound."""
    objective = document["objective"]
    try:
        check.PROOFS[objective](check.Instance(document), bound, certificate)
    except check.RefusedError:
        return False
    return True


def best_bound(document: dict, value: Fraction, certificate: dict, nodes: int) -> Fraction:
    """Return the value where it is proven, or else the best bound that few nodes prove."""
    check.NODES = nodes
    if is_proven(document, value, certificate):
        return value
    check.NODES = max(1, nodes // 50)
    low, high = (value, Fraction(1)) if document["objective"] == "throughput" else (0, value)
    throughput = document["objective"] == "throughput"
    for _ in range(HALVINGS):
        middle = shortened((low + high) / 2)
        if is_proven(document, middle, certificate) == throughput:
            high = middle
        else:
            low = middle
    return high if throughput else low


def shortened(x: Fraction) -> Fraction:
    """Return a number of twelve digits."""
    return Fraction(f"{float(x):.12g}") if x else x


def as_text(x: Fraction) -> str:
    """Write a number exactly, as a decimal where that is short."""
    decimal = f"{float(x):.17f}".rstrip("0").rstrip(".")
    return decimal if Fraction(decimal) == x else str(x)


def solved(instance: NamedInstance, nodes: int) -> tuple[dict, Fraction, dict, str]:
    """Solution, bound and proof of an instance, and who made them."""
    document, objective = instance.document, instance.document["objective"]
    judge, planted = check.VALUES[objective], instance.planted
    if planted is not None:
        bound = Fraction(planted.bound)
        check.NODES = 1
        if not is_proven(document, bound, planted.proof):
            raise RuntimeError(f"{instance.name}: the planted bound is not proven")
        return planted.solution, bound, planted.proof, "construction"
    if objective == "plan":
        return planned(document)
    problem, asked, certificate = library_problem(document), OBJECTIVES[objective], proof(document)
    budget = Budget(None, EVALUATIONS)
    result = place(problem, placer="anneal", objective=objective, budget=budget)
    solution = solution_document(problem, result.placement, asked)
    by = f"streamplace anneal, {EVALUATIONS} evaluations"
    value = judge(check.Instance(document), solution)
    nodes = min(nodes, NODE_WORK // (1 + len(document["streams"]) * len(document["kinds"]) ** 2))
    return solution, best_bound(document, value, certificate, nodes), certificate, by


def planned(document: dict) -> tuple[dict, Fraction, dict, str]:
    """Solution, bound and proof of a plan."""
    columns = PlanColumns(document)
    columns.solve()
    solution = {"machines": columns.plan()}
    cost = check.plan(check.Instance(document), solution)
    best = Fraction(0), plan_proof(document, [0] * len(document["operators"]))
    for cut in columns.cuts:
        proof_ = plan_proof(document, cut.worth)
        columns.cuts = [plan_cut(document, proof_)]
        bound = Fraction(columns.least_cost())
        if best[0] < min(bound, cost) and is_proven(document, bound, proof_):
            best = bound, proof_
    return solution, *best, "streamplace, column generation"


def write(path: Path, document: object) -> None:
    """Write a document in one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n")


def make(out: Path, instance: NamedInstance, nodes: int) -> dict:
    """Write the files of an instance; return the line of the table."""
    objective = instance.document["objective"]
    names = ("instance.json", f"{objective}.solution.json", f"{objective}.certificate.json")
    paths = [out / instance.name / name for name in names]
    done = out / instance.name / "made.json"
    if not done.exists():
        solution, bound, proof_, by = solved(instance, nodes)
        certificate = {"bound": as_text(bound), "proof": proof_}
        for path, document in zip(paths, (instance.document, solution, certificate), strict=True):
            write(path, document)
        write(done, {"by": by})
    solution, certificate = (json.loads(path.read_text()) for path in paths[1:])
    value = check.VALUES[objective](check.Instance(instance.document), solution)
    bound = Fraction(certificate["bound"])
    return {
        "instance": instance.name,
        "objective": objective,
        "value": float(value),
        "bound": float(bound),
        "closed": abs(value - bound) <= CLOSED * value,
        "proof": "trivial" if objective == "throughput" and bound >= 1 else "search",
        "by": json.loads(done.read_text())["by"],
    }


def main() -> None:
    """Make the whole library."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", choices=["public", "hidden"], default="public")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("-o", type=Path, default=ROOT / "datasets/library")
    options = parser.parse_args()
    lines, origins = [], {}
    for instance in instances(options.seed):
        if not any(word in instance.name for word in options.only):
            continue
        lines.append(make(options.o, instance, options.nodes))
        size = {
            "operators": len(instance.document["operators"]),
            "devices": len(instance.document["devices"]) or len(instance.document["kinds"]),
        }
        origins[instance.name] = {"origin": instance.origin, **size}
        print(*lines[-1].values(), flush=True)
    if options.only != [""]:
        return
    (options.o / "best.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for path in options.o.rglob("made.json"):
        path.unlink()
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
