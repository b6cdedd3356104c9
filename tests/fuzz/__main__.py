"""``make fuzz``: spoil valid files of every kind; whatever reads them must read or refuse them.

Exits with 1 where one does neither, and stores the inputs that show it.
"""

import argparse
import os
import sys
from pathlib import Path
from time import monotonic

from fuzz.campaign import Tally, campaign
from fuzz.targets import targets
from fuzz.trial import Finding, content_of

EVERY = 10.0
"""Seconds between two lines of progress."""


def main() -> int:
    """Run a campaign and say what came of it."""
    options = _options()
    chosen = [target for target in targets() if options.only in target.name]
    by_name = {target.name: target for target in chosen}
    start = last = monotonic()
    kept: dict[tuple[str, str], Finding] = {}

    def told(tally: Tally) -> None:
        nonlocal last
        for finding in tally.findings:
            key = (finding.target, finding.fault[:60])
            if key not in kept:
                kept[key] = finding
                content = content_of(by_name[finding.target], options.seed, finding.number)
                _store(options.out, finding, content)
        if monotonic() - last > EVERY:
            last = monotonic()
            done = tally.done.total()
            left = (last - start) * (tally.wanted - done) / max(done, 1) / 60
            _say(f"{done:,} of {tally.wanted:,} inputs, {len(kept)} findings, {left:.0f} min left")

    tally = campaign(chosen, options.inputs, options.seed, options.jobs, told)
    told(tally)
    for name, count in sorted(tally.done.items()):
        _say(f"  {count:9,} {name}")
    _say(
        f"{tally.done.total():,} inputs over {len(tally.done)} readers (seed {options.seed}) in "
        f"{(monotonic() - start) / 60:.0f} min: {len(tally.findings)} findings"
        + (f" of {len(kept)} kinds, stored in {options.out}/" if kept else "")
    )
    return 1 if tally.findings else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many, over all readers")
    parser.add_argument("--seed", type=int, default=0, help="one seed gives the same inputs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--only", default="", help="only the readers whose names hold this")
    parser.add_argument("--out", type=Path, default=Path("findings"), help="where findings go")
    return parser.parse_args()


def _store(folder: Path, finding: Finding, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = finding.target.replace(" ", "-").replace("/", "-")
    path = folder / f"{name}-{finding.number}"
    path.write_bytes(content)
    _say(f"FOUND {finding.target} {finding.number}: {finding.fault[:300]} → {path}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
