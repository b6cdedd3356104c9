"""Settings of moves: where savepoints go, how long each step may take, and the check afterwards."""

from dataclasses import dataclass

from streamplace.model.defaults import SAVEPOINT_SECONDS, START_SECONDS


@dataclass(frozen=True, slots=True)
class MoveSettings:
    """Settings of moves."""

    # Folder (path or URI) of savepoints that the JobManager can write to; None for the cluster's
    # own.
    savepoints: str | None = None
    # Whether state that belongs to no operator of the new job may be dropped.
    allow_non_restored: bool = False
    # Maximum number of seconds for the start of a job, with its state restored.
    seconds: float = START_SECONDS
    savepoint_seconds: float = SAVEPOINT_SECONDS  # maximum number of seconds for the savepoint
    # Whether savepoints have the format of the state backend: faster, but for this backend only.
    native: bool = False
    # Seconds for which a moved job is checked after its start; 0 omits the check.
    settle: float = 30.0
    # Share of the previous rate that its sources must reach; 0 compares no rates.
    least_rate: float = 0.8

    @property
    def compares_rates(self) -> bool:
        """Whether the rates before and after are compared."""
        return self.settle > 0 and self.least_rate > 0
