"""Settings of moves, the same for the engine, for the moves of a job and for their transactions."""

from dataclasses import dataclass, field

from streamplace.engines.flink.move.settling import Settling
from streamplace.engines.flink.move.stopping import Saving


@dataclass(frozen=True, slots=True)
class MoveSettings:
    """Settings of moves: the folder of savepoints, limits of time, and the check after the start.

    Attributes
    ----------
    savepoints
        Folder (path or URI) of savepoints that the JobManager can write to; None for the cluster's
        own.
    allow_non_restored
        Whether state that belongs to no operator of the new job may be dropped.
    seconds
        Maximum number of seconds for the start of a job, with its state restored.
    saving
        How the state of a job is saved.
    settling
        How the moved job is checked after its start.
    """

    savepoints: str | None = None
    allow_non_restored: bool = False
    seconds: float = 120.0
    saving: Saving = field(default_factory=Saving)
    settling: Settling = field(default_factory=Settling)
