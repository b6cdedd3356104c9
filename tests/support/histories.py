"""What a training has written: about its epochs, and its parameters."""

import json

from streamplace.io.weights import read_tensors
from streamplace.learn.history import Watcher


def history(folder):
    """Everything about every epoch but the time it took."""
    rows = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def assert_same(mine, whole, *files):
    """Check that two runs have the same history but for its times, and the same bits in files."""
    assert history(mine) == history(whole)
    for name in files:
        arrays, others = (read_tensors(folder / name)[1] for folder in (mine, whole))
        assert arrays.keys() == others.keys()
        assert all(arrays[key].tobytes() == others[key].tobytes() for key in others)


class InterruptsEpoch(Watcher):
    """Presses Ctrl-C after the first step of an epoch."""

    def __init__(self, epoch):
        self._epoch = epoch

    def step(self, epoch, report):
        """Wait for the epoch."""
        if epoch == self._epoch:
            raise KeyboardInterrupt
