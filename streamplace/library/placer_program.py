"""Program that places the problem of a file by a registered placer; see `placer_method`."""

import sys
import time
from pathlib import Path

from streamplace.errors import StreamplaceError
from streamplace.io.placements import write_placement
from streamplace.io.problems import read_problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import stopwatch
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget


def main(name: str, problem: str, answer: str, objective: str, seconds: str, seed: str) -> int:
    """Place; the search is limited in processor time, as the machine may do other work."""
    stopwatch.clock = time.process_time
    try:
        placer, judge, budget = named_placer(name), OBJECTIVES[objective], Budget(float(seconds))
        result = placer.place(read_problem(Path(problem)), judge, seed=int(seed), budget=budget)
        write_placement(result.placement, answer)
    except StreamplaceError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
