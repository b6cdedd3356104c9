"""What Flink's REST interface answers about checkpoints and savepoints: the shape of it."""

from typing import Annotated, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from streamplace.engines.flink.answer_shapes import CHECKED


@with_config(CHECKED)
class CheckpointCounts(TypedDict):
    """How many checkpoints and savepoints a job has taken."""

    completed: Annotated[int, Field(ge=0)]
    failed: NotRequired[Annotated[int, Field(ge=0)]]


@with_config(CHECKED)
class CheckpointAnswer(TypedDict):
    """Where a checkpoint or savepoint lies; the later one of a job has the larger number."""

    id: NotRequired[int]
    external_path: NotRequired[str | None]
    end_to_end_duration: NotRequired[int]
    checkpoint_type: NotRequired[str]
    state_size: NotRequired[Annotated[int, Field(ge=0)]]
    trigger_timestamp: NotRequired[int]


@with_config(CHECKED)
class LatestCheckpoints(TypedDict):
    """The last ones of a job, and the one that it began from."""

    completed: NotRequired[CheckpointAnswer | None]
    savepoint: NotRequired[CheckpointAnswer | None]
    restored: NotRequired[CheckpointAnswer | None]


@with_config(CHECKED)
class Checkpoints(TypedDict):
    """What a job has saved."""

    counts: CheckpointCounts
    latest: NotRequired[LatestCheckpoints | None]


@with_config(CHECKED)
class Externalization(TypedDict):
    """What becomes of the checkpoints of a job that ends."""

    enabled: bool
    delete_on_cancellation: bool


@with_config(CHECKED)
class CheckpointSettings(TypedDict):
    """How a job takes its checkpoints."""

    externalization: Externalization
    checkpoint_storage: NotRequired[str]
    state_backend: NotRequired[str]
    mode: NotRequired[str]
    interval: NotRequired[int]
    timeout: NotRequired[int]
    min_pause: NotRequired[int]
    max_concurrent: NotRequired[int]
    unaligned_checkpoints: NotRequired[bool]
    tolerable_failed_checkpoints: NotRequired[int]
    aligned_checkpoint_timeout: NotRequired[int]
    state_changelog_enabled: NotRequired[bool]


Triggered = TypedDict("Triggered", {"request-id": str})
with_config(CHECKED)(Triggered)


@with_config(CHECKED)
class Progress(TypedDict):
    """How far an operation is."""

    id: str


Cause = TypedDict("Cause", {"stack-trace": NotRequired[str]})
with_config(CHECKED)(Cause)
SavingAnswer = TypedDict(
    "SavingAnswer", {"location": NotRequired[str], "failure-cause": NotRequired[Cause]}
)
with_config(CHECKED)(SavingAnswer)


@with_config(CHECKED)
class SavepointAnswer(TypedDict):
    """What became of a savepoint that was asked for."""

    status: Progress
    operation: NotRequired[SavingAnswer | None]


Removal = TypedDict("Removal", {"failure-cause": NotRequired[Cause | None]})
with_config(CHECKED)(Removal)


@with_config(CHECKED)
class Disposal(TypedDict):
    """What became of a savepoint that was to be removed."""

    status: Progress
    operation: NotRequired[Removal | None]
