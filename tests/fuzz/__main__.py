"""``make fuzz``: spoil valid files of every kind; whatever reads them must read or refuse them.

Exits with 1 where one does neither, and stores the inputs that show it.
"""

import argparse
import os
import sys
from pathlib import Path
from time import monotonic

from fuzz.targets import targets
from fuzz.trial import Finding, campaign, content_of

EVERY = 10.0
"""Seconds between two lines of progress."""


def main() -> int:
    """Run a campaign and say what came of it."""
    options = _options()
    chosen = {target.name: target for target in targets() if options.only in target.name}
    begun = last = monotonic()
    stored: set[tuple[str, str]] = set()
    for tally in campaign([*chosen.values()], options.inputs, options.seed, options.jobs):
        for finding in tally.findings:
            key = (finding.target, finding.fault[:60])
            if key not in stored:
                stored.add(key)
                content = content_of(chosen[finding.target], options.seed, finding.number)
                _store(options.out, finding, content)
        if monotonic() - last > EVERY:
            last = monotonic()
            _say(f"{tally.done.total():,} of {tally.wanted:,} inputs, {len(stored)} findings")
    for name, count in sorted(tally.done.items()):
        _say(f"  {count:9,} {name}")
    _say(
        f"{tally.done.total():,} inputs over {len(tally.done)} readers (seed {options.seed}) in "
        f"{(monotonic() - begun) / 60:.0f} min: {len(tally.findings)} findings"
        + (f" of {len(stored)} kinds, stored in {options.out}/" if stored else "")
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
