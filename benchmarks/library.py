"""Make datasets/library: instances with solutions, and bounds that the checker has accepted.

    python benchmarks/library.py [--seed 0] [--split public|hidden] [-o datasets/library]

The same seed gives the same files, but for dates and seconds; the manifest of a hidden split does
not state it. What exists already is not made again. Solutions of the annealer are improved by the
checker's search, which may take --nodes nodes. With --only, the instances are made whose names
contain one of the words.
"""

import argparse
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from library_certificates import PlanColumns, plan_cut, plan_proof, proof
from library_instances import NamedInstance, instances
from library_proofs import best_bound, is_proven, searched, value_of

from streamplace import Budget, place
from streamplace.library.documents import library_problem, solution_document
from streamplace.library.folder import BEST, MANIFEST, LibraryEntry
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import stopwatch

ROOT = Path(__file__).parents[1]
CLOSED = Fraction(1, 10**8)
EVALUATIONS = 20_000
MADE = "made.json"
"""Line of an instance whose files are there; removed in the end."""
NODE_WORK = 300_000_000
"""Streams by pairs of kinds that all nodes of a search may look at."""


@dataclass(frozen=True, slots=True)
class MadeEntry:
    """Solution, bound and proof of an instance; who made them, and in how many seconds.

    `proof_seconds` are of the proof that closes it, None where it is open.
    """

    solution: dict
    bound: Fraction
    proof: dict
    by: str
    seconds: float
    proof_seconds: float | None


def solved(instance: NamedInstance, nodes: int, seconds: float) -> MadeEntry:
    """Solve an instance that took so many seconds to make."""
    document, begin = instance.document, time.process_time()
    if instance.planted is not None:
        bound, proof_ = Fraction(instance.planted.bound), instance.planted.proof
        if not is_proven(document, bound, proof_, nodes):
            raise RuntimeError(f"{instance.name}: the planted bound is not proven")
        spent = time.process_time() - begin
        return MadeEntry(instance.planted.solution, bound, proof_, "construction", seconds, spent)
    return (planned if document["objective"] == "plan" else placed)(document, nodes)


def placed(document: dict, nodes: int) -> MadeEntry:
    """Place by annealing and by the checker's search; prove that it is the best, or a bound."""
    problem, objective = library_problem(document), OBJECTIVES[document["objective"]]
    begin = stopwatch.now()
    budget = Budget(None, EVALUATIONS)
    result = place(problem, placer="anneal", objective=objective.name, budget=budget)
    first, proof_ = solution_document(problem, result.placement, objective), proof(document)
    nodes = min(nodes, NODE_WORK // (1 + len(document["streams"]) * len(document["kinds"]) ** 2))
    last = searched(document, first, proof_, nodes)
    seconds = stopwatch.now() - begin - last.seconds
    by = f"streamplace anneal, {EVALUATIONS} evaluations"
    if last.solution != first:
        by += ", and a search"
    bound = value_of(document, last.solution)
    if not last.is_best:
        bound = best_bound(document, bound, proof_, max(1, nodes // 50))
    spent = last.seconds if last.is_best else None
    return MadeEntry(last.solution, bound, proof_, by, seconds, spent)


def planned(document: dict, nodes: int) -> MadeEntry:
    """Plan by column generation; the proof is the dual solution that proves most."""
    begin = time.process_time()
    columns = PlanColumns(document)
    columns.solve()
    solution = {"machines": columns.plan()}
    seconds = time.process_time() - begin
    cost = value_of(document, solution)
    best = Fraction(0), plan_proof(document, [0] * len(document["operators"]))
    for cut in columns.cuts:
        proof_ = plan_proof(document, cut.worth)
        columns.cuts = [plan_cut(document, proof_)]
        bound = Fraction(columns.least_cost())
        if best[0] < min(bound, cost) and is_proven(document, bound, proof_, nodes):
            best = bound, proof_
    by, spent = "streamplace, column generation", time.process_time() - begin
    return MadeEntry(solution, *best, by, seconds, spent)


def as_text(x: Fraction) -> str:
    """Write a number exactly, as a decimal where that is short."""
    decimal = f"{float(x):.17f}".rstrip("0").rstrip(".")
    return decimal if Fraction(decimal) == x else str(x)


def write(path: Path, document: object) -> None:
    """Write a document in one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n")


def make(out: Path, instance: NamedInstance, nodes: int, seconds: float) -> dict[str, Any]:
    """Write the files of an instance; return its line of the table."""
    folder, objective = out / instance.name, instance.document["objective"]
    done = folder / MADE
    if not done.exists():
        made = solved(instance, nodes, seconds)
        certificate = {"bound": as_text(made.bound), "proof": made.proof}
        write(folder / "instance.json", instance.document)
        write(folder / f"{objective}.solution.json", made.solution)
        write(folder / f"{objective}.certificate.json", certificate)
        write(done, line_of(instance, made))
    return json.loads(done.read_text())


def line_of(instance: NamedInstance, made: MadeEntry) -> dict[str, Any]:
    """Line of an instance in the table."""
    value, bound = value_of(instance.document, made.solution), made.bound
    objective = instance.document["objective"]
    closed = abs(value - bound) <= CLOSED * value
    return LibraryEntry(
        instance.name,
        objective,
        float(value),
        float(bound),
        closed,
        "trivial" if objective == "throughput" and bound >= 1 else "search",
        made.by,
        round(made.seconds, 3),
        datetime.now(UTC).date().isoformat(),
        round(made.proof_seconds, 3) if closed and made.proof_seconds is not None else None,
    ).document()


def timed(items: Iterable[NamedInstance]) -> Iterator[tuple[NamedInstance, float]]:
    """Instances, and the processor seconds that each took to make."""
    begin = time.process_time()
    for item in items:
        yield item, time.process_time() - begin
        begin = time.process_time()


def main() -> None:
    """Make the whole library."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", choices=["public", "hidden"], default="public")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("-o", type=Path, default=ROOT / "datasets/library")
    options = parser.parse_args()
    lines, origins = [], {}
    stopwatch.clock = time.process_time
    for instance, seconds in timed(instances(options.seed)):
        if not any(word in instance.name for word in options.only):
            continue
        lines.append(make(options.o, instance, options.nodes, seconds))
        size = {
            "operators": len(instance.document["operators"]),
            "devices": len(instance.document["devices"]) or len(instance.document["kinds"]),
        }
        origins[instance.name] = {"origin": instance.origin, **size}
        print(*lines[-1].values(), flush=True)
    if options.only != [""]:
        return
    (options.o / BEST).write_text("".join(json.dumps(line) + "\n" for line in lines))
    for path in options.o.rglob(MADE):
        path.unlink()
    split = {"split": "hidden"} if options.split == "hidden" else {"seed": options.seed}
    sums = {
        path.relative_to(options.o).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(options.o.rglob("*.json*"))
        if path.name != MANIFEST
    }
    manifest = json.dumps({**split, "instances": origins, "sha256": sums}, indent=1)
    (options.o / MANIFEST).write_text(manifest + "\n")


if __name__ == "__main__":
    main()
