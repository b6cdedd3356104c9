"""A job that is watched: a plan of it, the end of its watch, and what that has written."""

from streamplace.engines.flink.watch.plans import WatchPlan
from streamplace.io.watch_store import WatchStore
from streamplace.model.intervals import RateInterval

OLD = "a" * 32


class Killed(BaseException):
    """The watch is killed: nothing after this happens."""


def outcome(store: WatchStore) -> tuple[str, str]:
    """State of the only decision, and the id of the job that it left."""
    (decision,) = store.records(9)[0].decisions
    return decision.state, decision.after


def plan(*devices: str) -> WatchPlan:
    """A layout that carries 100 tuples/s per TaskManager, or a tenth less."""
    rate = 100.0 * len(devices)
    carries = RateInterval(0.9 * rate, rate, 1.1 * rate)
    return WatchPlan(len(devices), {"map": [*devices]}, carries)
