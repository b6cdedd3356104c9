"""How long the learned allocators take for all test graphs of the standard benchmark, on one core.

Run ``python benchmarks/placing.py``. The best of three runs each, without reading graphs and
weights; METIS, asked graph by graph, stands beside them as the yardstick of this machine.
"""

import time
from collections.abc import Callable

from studies import test_problems

from streamplace.learn.model_weights import shipped
from streamplace.learn.models.dream import policy as dream_policy
from streamplace.learn.models.pilot.placing import trained
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS

RATE, RUNS = 2e4, 3


def main() -> None:
    """Print seconds."""
    problems = test_problems(RATE)
    dream = dream_policy.trained(shipped("dream"), "dream")
    pilot, metis, objective = trained(shipped("pilot")), PLACERS["metis"], OBJECTIVES
    tasks: dict[str, Callable[[], object]] = {
        "metis": lambda: [metis.place(p, objective["throughput"]) for p in problems],
        "dream, one batch": lambda: dream.place_many(problems),
        "pilot, one rollout of one sweep": lambda: [pilot.greedy(p, 1, 1) for p in problems],
        "pilot, two rollouts of three sweeps": lambda: [pilot.greedy(p, 2, 3) for p in problems],
    }
    for name, task in tasks.items():
        print(f"{name}: {min(timed(task) for _ in range(RUNS)):.2f} s for {len(problems)} graphs")


def timed(task: Callable[[], object]) -> float:
    """Seconds of CPU that a task takes; the first time it may have to compile."""
    start = time.process_time()
    task()
    return time.process_time() - start


if __name__ == "__main__":
    main()
