"""Min-min, max-min and sufferage as one writes them from the papers: lists and dictionaries."""

from streamplace.scheduling.tasks import Tasks

Answer = dict[int, tuple[int, float]]


def by_batches(tasks: Tasks, rule: str, rank: list[float]) -> Answer:
    """Device and finish of every task without rules."""
    work, cores = tasks.work.tolist(), range(int(tasks.core_start[-1]))
    device = [d for d in range(len(work[0])) for _ in range(_cores(tasks, d))]
    free = [0.0 for _ in cores]
    into = {v: [e for e, w in enumerate(tasks.target) if w == v] for v in range(len(work))}
    done: Answer = {}

    def finish(v: int, core: int) -> float:
        a, ready = device[core], float(tasks.release[v])
        for e in into[v]:
            b, end = done[int(tasks.source[e])]
            sent = tasks.latency[b, a] + tasks.size[e] * tasks.wire[b, a] + tasks.fixed_s[e]
            ready = max(ready, end + (sent if a != b else 0.0))
        return float(max(ready, free[core]) + work[v][a])

    def ends(v: int) -> dict[int, float]:
        by_device: dict[int, float] = {}
        for core in cores:
            end = by_device.get(device[core], float("inf"))
            by_device[device[core]] = min(end, finish(v, core))
        return by_device

    while len(done) < len(work):
        batch = [
            v
            for v in range(len(work))
            if v not in done and all(int(tasks.source[e]) in done for e in into[v])
        ]
        while batch:
            costs = {v: _cost(sorted(ends(v).values()), rule) for v in batch}
            least = min(costs.values())
            equal = [v for v in batch if costs[v] == least]
            v = min(equal, key=lambda v: (-rank[v], v))
            reached = ends(v)
            a = min(reached, key=lambda a: (reached[a], a))
            core = min((c for c in cores if device[c] == a), key=lambda c: free[c])
            done[v] = (a, finish(v, core))
            free[core] = done[v][1]
            batch.remove(v)
    return done


def _cores(tasks: Tasks, d: int) -> int:
    return int(tasks.core_start[d + 1] - tasks.core_start[d])


def _cost(ends: list[float], rule: str) -> float:
    """What the least of is next."""
    if rule == "sufferage":
        return ends[0] - (ends[1] if len(ends) > 1 else float("inf"))
    return ends[0] if rule == "min-min" else -ends[0]
