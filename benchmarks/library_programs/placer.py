"""A registered placer as a program: python placer.py NAME PROBLEM ANSWER OBJECTIVE SECONDS SEED.

The search is limited in processor time, as the machine may do other work.
"""

import sys
import time
from pathlib import Path

from streamplace.io.placements import write_placement
from streamplace.io.problems import read_problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import stopwatch
from streamplace.placers.named import named_placer
from streamplace.placers.registry import Budget

if __name__ == "__main__":
    stopwatch.clock = time.process_time
    name, problem, answer, objective, seconds, seed = sys.argv[1:]
    placer, judge, budget = named_placer(name), OBJECTIVES[objective], Budget(float(seconds))
    result = placer.place(read_problem(Path(problem)), judge, seed=int(seed), budget=budget)
    write_placement(result.placement, answer)
