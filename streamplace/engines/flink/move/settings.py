"""Settings of moves, the same for the engine, for the moves of a job and for their transactions."""

from dataclasses import dataclass, field

from streamplace.engines.flink.move.settling import Settling
from streamplace.engines.flink.move.stopping import Saving


@dataclass(frozen=True, slots=True)
class MoveSettings:
    """Settings of moves: folder of savepoints, limits of time, and the check after the start."""

    # Folder (path or URI) of savepoints that the JobManager can write to; None for the cluster's
    # own.
    savepoints: str | None = None
    # Whether state that belongs to no operator of the new job may be dropped.
    allow_non_restored: bool = False
    # Maximum number of seconds for the start of a job, with its state restored.
    seconds: float = 120.0
    saving: Saving = field(default_factory=Saving)  # how the state of a job is saved
    # How the moved job is checked after its start.
    settling: Settling = field(default_factory=Settling)
