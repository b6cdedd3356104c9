"""Answers of Flink's REST interface about checkpoints and savepoints, as typed dictionaries."""

from typing import Annotated, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from streamplace.engines.flink.rest.answer_shapes import CHECKED


@with_config(CHECKED)
class CheckpointCounts(TypedDict):
    """Numbers of completed and failed checkpoints and savepoints of a job."""

    completed: Annotated[int, Field(ge=0)]
    failed: NotRequired[Annotated[int, Field(ge=0)]]


@with_config(CHECKED)
class CheckpointAnswer(TypedDict):
    """A checkpoint or savepoint, with its path; later ones of a job have larger ids."""

    id: NotRequired[int]
    external_path: NotRequired[str | None]
    end_to_end_duration: NotRequired[int]
    checkpoint_type: NotRequired[str]
    state_size: NotRequired[Annotated[int, Field(ge=0)]]
    trigger_timestamp: NotRequired[int]


@with_config(CHECKED)
class LatestCheckpoints(TypedDict):
    """Latest checkpoints and savepoints of a job, and the one that it was restored from."""

    completed: NotRequired[CheckpointAnswer | None]
    savepoint: NotRequired[CheckpointAnswer | None]
    restored: NotRequired[CheckpointAnswer | None]


@with_config(CHECKED)
class Checkpoints(TypedDict):
    """Checkpoints and savepoints of a job."""

    counts: CheckpointCounts
    latest: NotRequired[LatestCheckpoints | None]


@with_config(CHECKED)
class Externalization(TypedDict):
    """Whether the checkpoints of a job are retained when it ends."""

    enabled: bool
    delete_on_cancellation: bool


@with_config(CHECKED)
class CheckpointSettings(TypedDict):
    """Checkpointing settings of a job."""

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
    """Status of an asynchronous operation."""

    id: str


Cause = TypedDict("Cause", {"stack-trace": NotRequired[str]})
with_config(CHECKED)(Cause)
SavingAnswer = TypedDict(
    "SavingAnswer", {"location": NotRequired[str], "failure-cause": NotRequired[Cause]}
)
with_config(CHECKED)(SavingAnswer)


@with_config(CHECKED)
class SavepointAnswer(TypedDict):
    """Status and result of a requested savepoint."""

    status: Progress
    operation: NotRequired[SavingAnswer | None]


Removal = TypedDict("Removal", {"failure-cause": NotRequired[Cause | None]})
with_config(CHECKED)(Removal)


@with_config(CHECKED)
class Disposal(TypedDict):
    """Status and result of the removal of a savepoint."""

    status: Progress
    operation: NotRequired[Removal | None]
