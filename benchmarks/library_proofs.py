"""Proofs of datasets/library by the checker's search, which also finds better solutions."""

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "checker"))
import check

HALVINGS = 24


class BetterSolutionError(check.RefusedError):
    """A search has met a better solution: the devices of operators in the order of its choices."""

    def __init__(self, place: dict[int, int]) -> None:
        super().__init__("a solution is better than the bound")
        self.place = place


def search(
    p: check.Instance,
    following: Callable[[dict[int, int]], Iterable[int]],
    ends: Callable[[dict[int, int]], bool],
) -> None:
    """Try what the checker's search tries, in its order, and hand over a better solution."""
    nodes, stack = 0, [dict[int, int]()]
    while stack:
        place = stack.pop()
        nodes += 1
        check.need(nodes <= check.NODES, f"a search takes more than {check.NODES} nodes")
        if ends(place):
            continue
        if len(place) == p.n:
            raise BetterSolutionError(place)
        unused = {k: d for d, k in enumerate(p.devices) if d not in place.values()}
        devices = {*place.values(), *unused.values()}
        choices = [(v, d) for v in following(place) for d in devices if p.devices[d] in p.work[v]]
        stack += [place | {v: d} for v, d in reversed(choices)]


check.search = search


@dataclass(frozen=True, slots=True)
class SearchedSolution:
    """A solution, whether the search has proven it the best, and the seconds of its last search."""

    solution: dict
    is_best: bool
    seconds: float


def value_of(document: dict, solution: dict) -> Fraction:
    """Exact value of a solution."""
    return check.VALUES[document["objective"]](check.Instance(document), solution)


def is_proven(document: dict, bound: Fraction, proof: dict, nodes: int) -> bool:
    """Whether the checker accepts a proof of a bound within so many nodes."""
    check.NODES = nodes
    try:
        check.PROOFS[document["objective"]](check.Instance(document), bound, proof)
    except check.RefusedError:
        return False
    return True


def searched(document: dict, solution: dict, proof: dict, nodes: int) -> SearchedSolution:
    """Search for better solutions, each within so many nodes, until there is none."""
    prove, check.NODES = check.PROOFS[document["objective"]], nodes
    while True:
        begin = time.process_time()
        try:
            prove(check.Instance(document), value_of(document, solution), proof)
            return SearchedSolution(solution, True, time.process_time() - begin)
        except BetterSolutionError as better:
            solution = _solution(document, better.place)
        except check.RefusedError:
            return SearchedSolution(solution, False, time.process_time() - begin)


def _solution(document: dict, place: dict[int, int]) -> dict:
    """Solution of a complete search."""
    solution = {"place": [place[v] for v in sorted(place)]}
    return solution | ({"order": list(place)} if document["objective"] == "makespan" else {})


def best_bound(document: dict, value: Fraction, proof: dict, nodes: int) -> Fraction:
    """Return the best bound, weaker than the value, that so many nodes prove."""
    is_throughput = document["objective"] == "throughput"
    low, high = (value, Fraction(1)) if is_throughput else (Fraction(0), value)
    for _ in range(HALVINGS):
        middle = shortened((low + high) / 2)
        if is_proven(document, middle, proof, nodes) == is_throughput:
            high = middle
        else:
            low = middle
    return high if is_throughput else low


def shortened(x: Fraction) -> Fraction:
    """Return a number of twelve digits."""
    return Fraction(f"{float(x):.12g}") if x else x
