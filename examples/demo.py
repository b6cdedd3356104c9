"""The main jobs, one command line after the other; run with ``make demo``.

Every command is printed before it runs, so that it can be copied.
"""

import contextlib
import sys
from pathlib import Path

from streamplace.cli.main import main

COMMANDS = """
generate branched --branches 3 --depth 4 --devices 3 --copies 20 -o {out}/graphs.jsonl.gz
describe {out}/graphs.jsonl.gz -o {out}/figure4.png
generate branched --branches 3 --depth 2 --devices 2 --copies 1 -o {out}/graph.json
place {out}/graph.json --placer round-robin -o {out}/round-robin.json
simulate {out}/graph.json {out}/round-robin.json
place {out}/graph.json -o {out}/placement.json
simulate {out}/graph.json {out}/placement.json --engine -o {out}/run.png
draw {out}/graph.json {out}/round-robin.json {out}/placement.json -o {out}/placements.svg
compare {out}/graphs.jsonl.gz --rate 10000 --rate 20000 --placers {placers} -o {out}/comparison
"""

PLACERS = "round-robin,metis,metis-oracle,fuser-oracle,anneal:budget=5ms,exact"


def run(folder: Path) -> None:
    """Run every command, with its files in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for line in COMMANDS.strip().splitlines():
        words = line.format(out=folder, placers=PLACERS).split()
        print(f"\n$ streamplace {' '.join(words)}", flush=True)
        with contextlib.suppress(SystemExit):
            main(words)
    print(f"\nWritten to {folder}/: {', '.join(sorted(f.name for f in folder.iterdir()))}")


if __name__ == "__main__":
    run(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
