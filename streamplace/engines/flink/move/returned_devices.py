"""Wait for TaskManagers that register again with a restarted JobManager."""

import time
from collections.abc import Callable

from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.model.messages import listed

LOOK_SECONDS = 0.5


def await_devices(
    rest: Rest, needed: set[str], seconds: float, tell: Callable[[str], None]
) -> None:
    """Wait until TaskManagers have joined, and released the slots of jobs that the cluster forgot.

    They release the slots of a job some time after its JobManager has gone.

    Raises
    ------
    FlinkError
        When that takes longer than ``seconds``.
    """
    deadline, before = time.monotonic() + seconds, ""
    while waiting := _awaited(rest, needed):
        if time.monotonic() > deadline:
            raise FlinkError(f"{waiting}, and did not within {seconds:g} s")
        if waiting != before:
            tell(f"waiting: {waiting}")
        before = waiting
        time.sleep(LOOK_SECONDS)


def _awaited(rest: Rest, needed: set[str]) -> str:
    """Condition that TaskManagers do not meet yet, as a clause; empty if they meet all."""
    offered, jobs = rest.offered(), rest.jobs().keys()
    if missing := sorted(needed.difference(offered)):
        return f"{listed(missing)} have to join the cluster"
    held = [device for device in sorted(needed) if set(rest.holders(device)) - jobs]
    return f"{listed(held)} have to give back the slots of a forgotten job" if held else ""
