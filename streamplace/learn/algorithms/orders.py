"""Orders in which a policy decides about operators.

They are named as by Wang et al., "Accelerate Model Parallel Training by Using Efficient Graph
Traversal Order", II-C, where NetworkX makes them. Of operators that may come next, the one of the
lowest rank goes first: by default the first one in the graph.
"""

from collections.abc import Callable

import numpy as np

from streamplace.model.arrays import Longs
from streamplace.model.problem import Problem


def decision_order(problem: Problem, name: str, rank: Longs | None = None) -> Longs:
    """Operators [N] in the order of this name; ties go by rank [N], else by row."""
    if rank is None:
        rank = np.arange(problem.n_operators)
    return np.array(ORDERS[name](problem, rank), np.int64)


def bfs(problem: Problem, rank: Longs) -> list[int]:
    """Breadth first from the sources; an operator comes as soon as all of its inputs have come.

    So every operator follows the operators upstream of it, as equation 3 of the DREAM paper wants.
    """
    below = _downstream(problem, rank)
    waiting = _waiting(problem)
    order = _sources(problem, rank)
    for u in order:
        for v in below[u]:
            waiting[v] -= 1
            if not waiting[v]:
                order.append(v)
    return order


def topological(problem: Problem, rank: Longs) -> list[int]:
    """Topological and depth first: a chain is finished before its neighbour is begun."""
    below = _downstream(problem, rank)
    waiting = _waiting(problem)
    ready = _sources(problem, rank)[::-1]
    order = []
    while ready:
        u = ready.pop()
        order.append(u)
        for v in reversed(below[u]):
            waiting[v] -= 1
            if not waiting[v]:
                ready.append(v)
    return order


def lexicographic(problem: Problem, rank: Longs) -> list[int]:
    """By name, whatever the rank."""
    names = problem.graph.operators.name
    return sorted(range(len(names)), key=names.__getitem__)


ORDERS: dict[str, Callable[[Problem, Longs], list[int]]] = {
    "topological": topological,
    "bfs": bfs,
    "dfs-preorder": lambda problem, rank: _depth_first(problem, rank)[0],
    "dfs-postorder": lambda problem, rank: _depth_first(problem, rank)[1],
    "reversed-topological": lambda problem, rank: topological(problem, rank)[::-1],
    "lexicographic": lexicographic,
}


def _downstream(problem: Problem, rank: Longs) -> list[list[int]]:
    """Operators downstream of each, once per stream, by rank."""
    instance = problem.instance
    below: list[list[int]] = [[] for _ in range(problem.n_operators)]
    by_rank = np.argsort(rank[instance.target], kind="stable")
    source, target = instance.source[by_rank].tolist(), instance.target[by_rank].tolist()
    for u, v in zip(source, target, strict=True):
        below[u].append(v)
    return below


def _waiting(problem: Problem) -> list[int]:
    counts: list[int] = np.bincount(problem.instance.target, minlength=problem.n_operators).tolist()
    return counts


def _sources(problem: Problem, rank: Longs) -> list[int]:
    """Operators that no stream enters, by rank."""
    rows = np.flatnonzero(np.array(_waiting(problem)) == 0)
    sources: list[int] = rows[np.argsort(rank[rows], kind="stable")].tolist()
    return sources


def _depth_first(problem: Problem, rank: Longs) -> tuple[list[int], list[int]]:
    """Operators when depth-first search from the sources enters them, and when it leaves them."""
    below = _downstream(problem, rank)
    entered: list[int] = []
    finished: list[int] = []
    visited = [False] * problem.n_operators
    for source in _sources(problem, rank):
        entered.append(source)
        path = [(source, iter(below[source]))]
        while path:
            u, more = path[-1]
            v = next(more, None)
            if v is None:
                finished.append(u)
                path.pop()
            elif not visited[v]:
                visited[v] = True
                entered.append(v)
                path.append((v, iter(below[v])))
    return entered, finished
