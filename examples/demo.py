"""The main jobs, one command line after the other; run with ``make demo``.

Every command is printed before it runs, so that it can be copied, with a line on what it shows.
"""

import os
import shutil
import sys
import time
from pathlib import Path

from streamplace.cli.main import main

STEPS = """
A graph under three placers, with the reasons: what `streamplace demo` shows after an installation.
demo -o {out}/first

Twenty graphs of the benchmark: one source, three branches of four operators, one sink.
generate branched --branches 3 --depth 4 --devices 3 --copies 20 -o {out}/graphs.jsonl.gz

What they ask for, in CPU and in network, as a table and as distributions.
describe {out}/graphs.jsonl.gz -o {out}/figure4.png

A placement of the first graph, device by device and link by link.
simulate {out}/first/graph.json {out}/first/round-robin.json

DREAM, the published learned allocator, decides at once, without any search.
place {out}/first/graph.json --placer dream -o {out}/dream.json

So does pilot, our own, for any cluster; "refine=none" leaves out the search afterwards.
place {out}/first/graph.json --placer pilot:refine=none -o {out}/pilot.json

Now with queues, tick by tick: what arrives, how late, and where tuples wait.
simulate {out}/first/graph.json {out}/first/auto.json --engine -o {out}/run.png

The learned placements beside the best one: colour is the device, dashed streams cross the network.
draw {out}/first/graph.json {out}/dream.json {out}/pilot.json {out}/first/auto.json \
-o {out}/placements.svg

The same as a page on which operators can be moved, to see what that changes.
draw {out}/first/graph.json {out}/dream.json {out}/pilot.json {out}/first/auto.json \
-o {out}/report.html

Forty other graphs of the same kind to learn from.
generate branched --branches 3 --depth 4 --devices 3 --copies 40 --seed 1 -o {out}/lessons.jsonl.gz

Learning from nothing: "validation" is what the policy reaches on graphs that it never trains on.
train pilot --data {out}/lessons.jsonl.gz --rate 10000 --rate 20000 --epochs 12 --out {out}/trained

The weights that this gave, used like those that come with streamplace.
place {out}/first/graph.json --placer pilot:refine=none \
--weights {out}/trained/best.safetensors -o {out}/trained.json

Who places best, on the twenty graphs at two rates, against proven optima. The pilot with weights is
the one trained a moment ago; the other was trained before.
compare {out}/graphs.jsonl.gz --rate 10000 --rate 20000 --placers {placers} -o {out}/comparison

The other question: how long does one pass take? A task graph of ten lines needs no option.
place {tasks} --devices 3 -o {out}/tasks-placed.json

What the time is made of, part by part, and the Gantt chart of it.
simulate {tasks} {out}/tasks-placed.json --devices 3 -o {out}/pass.svg

The same pass to look at in Perfetto, https://ui.perfetto.dev.
simulate {tasks} {out}/tasks-placed.json --devices 3 -o {out}/pass.trace.json

Both questions to the same graphs: who answers which one better, and what the one costs the other.
compare {out}/graphs.jsonl.gz --objective throughput --objective makespan \
--placers round-robin,metis-oracle,auto:budget=50ms -o {out}/both
"""

TASKS = Path(__file__).with_name("tasks.json")
PLACERS = (
    "round-robin,metis,metis-oracle,fuser-oracle,dream,"
    "pilot:weights={out}/trained/best.safetensors:refine=none,pilot:refine=none,"
    "anneal:budget=5ms,exact"
)


def run(folder: Path) -> None:
    """Run every command, with its files in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / "trained", ignore_errors=True)  # a training begins in a new folder
    tasks = os.path.relpath(TASKS)
    seconds: list[tuple[float, str]] = []
    steps = STEPS.strip().split("\n\n")
    print(f"{len(steps)} commands; half a minute, and longer the first time, because kernels that")
    print("were not compiled during the installation are compiled when they are first used.")
    for number, step in enumerate(steps, 1):
        *text, line = step.splitlines()
        words = line.format(out=folder, placers=PLACERS.format(out=folder), tasks=tasks).split()
        head = ["", f"{number} of {len(steps)}", *text, f"$ streamplace {' '.join(words)}"]
        print(*head, sep="\n", flush=True)
        begin = time.perf_counter()
        try:
            main(words)
        except SystemExit as end:
            if end.code:
                raise
        seconds.append((time.perf_counter() - begin, " ".join(words[:2])))
    print(f"\nWritten to {folder}/: {', '.join(sorted(f.name for f in folder.iterdir()))}")
    tell_times(seconds)
    print(f"\nOpen {folder}/report.html in a browser, and drag operators from device to device;")
    print(f"{folder}/comparison/report.html has the comparison.")


def tell_times(seconds: list[tuple[float, str]]) -> None:
    """Print how long each command took; the first use of a kernel compiles it."""
    print(f"\nThe commands took {sum(took for took, _ in seconds):.0f} s:")
    for took, words in seconds:
        print(f"{took:7.1f} s  {words}")


if __name__ == "__main__":
    run(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
