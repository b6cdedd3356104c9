"""Settings of a running job, and the settings that a new submission has to repeat.

Flink's REST interface reports how a job checkpoints, where it keeps its state and how it restarts,
but not the settings themselves. They are derived from its answers.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from streamplace.flink.move.savepoints import (
    NOT_RETAINED,
    checkpoint_settings,
    latest,
    path_of,
    retention_of,
)
from streamplace.flink.rest.answers import CheckpointSettings
from streamplace.flink.rest.client import Rest, job_path
from streamplace.flink.rest.plan import job_operators

Settings = dict[str, str]
PERIODIC_LIMIT_MS = 10**15
"""Flink reports at least this interval for a job without periodic checkpoints."""
BACKENDS = {
    "HashMapStateBackend": "hashmap",
    "EmbeddedRocksDBStateBackend": "rocksdb",
    "ForStStateBackend": "forst",
}
CHECKPOINTING = "execution.checkpointing"
RETENTION = f"{CHECKPOINTING}.externalized-checkpoint-retention"
"""Setting: when the checkpoints of an ended job are kept."""
RESTART = "restart-strategy"
DEFAULTS: Settings = {
    f"{CHECKPOINTING}.timeout": "600000 ms",
    f"{CHECKPOINTING}.min-pause": "0 ms",
    f"{CHECKPOINTING}.max-concurrent-checkpoints": "1",
    f"{CHECKPOINTING}.mode": "exactly_once",
    f"{CHECKPOINTING}.unaligned.enabled": "false",
    f"{CHECKPOINTING}.tolerable-failed-checkpoints": "0",
    f"{CHECKPOINTING}.aligned-checkpoint-timeout": "0 ms",
    RETENTION: NOT_RETAINED,
    "state.backend.type": "hashmap",
    "state.changelog.enabled": "false",
    "pipeline.object-reuse": "false",
    "pipeline.operator-chaining.enabled": "true",
}
"""Flink's defaults."""
LATER = "(a folder that Flink reports once a checkpoint has completed)"
"""Stands for the checkpoint folder of a job that has not completed a checkpoint yet."""
_AMOUNTS = re.compile(r"PT[\dA-Z.]*[\dA-Z]|\d+(?:\.\d+)?")
"""Durations and numbers in Flink's text on a restart strategy."""
_STRATEGIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "none": ("Restart deactivated", ()),
    "fixed-delay": ("Restart with fixed delay", ("delay", "attempts")),
    "failure-rate": (
        "Failure rate restart",
        ("max-failures-per-interval", "failure-rate-interval", "delay"),
    ),
    "exponential-delay": (
        "Restart with exponential delay",
        (
            "initial-backoff",
            "backoff-multiplier",
            "max-backoff",
            "reset-backoff-threshold",
            "jitter-factor",
        ),
    ),
}
"""Strategy → how its description begins, and its settings in the order of their values there."""


def running_settings(rest: Rest, job: str) -> Settings:
    """Settings of a running job, from Flink's reports and the job's tasks."""
    document = rest.job(job)
    execution = rest.get(job_path(job, "config"))["execution-config"]
    settings = dict(_restart_settings(execution.get("restart-strategy", "")))
    settings["pipeline.name"] = document["name"]
    if all(len(task) == 1 for task in job_operators(document)):
        settings["pipeline.operator-chaining.enabled"] = "false"
    settings["pipeline.object-reuse"] = str(execution.get("object-reuse-mode", False)).lower()
    if (checkpoints := checkpoint_settings(rest, job)) is not None:
        settings |= _checkpointing_settings(checkpoints)
        if checkpoints.get("checkpoint_storage") == "FileSystemCheckpointStorage":
            settings[f"{CHECKPOINTING}.dir"] = _present_folder(rest, job) or LATER
    return settings


def changed_settings(
    running: Mapping[str, str], planned: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """Settings of a running job that differ in its planned successor, with both values."""
    pairs = {
        key: (value, planned.get(key, DEFAULTS.get(key, ""))) for key, value in running.items()
    }
    return {
        key: (was, will_be)
        for key, (was, will_be) in pairs.items()
        if was != will_be and not (was == LATER and will_be)
    }


def _checkpointing_settings(answer: CheckpointSettings) -> Iterator[tuple[str, str]]:
    backend = BACKENDS.get(answer.get("state_backend", ""))
    if backend is not None:
        yield "state.backend.type", backend
    if "state_changelog_enabled" in answer:
        yield "state.changelog.enabled", str(answer["state_changelog_enabled"]).lower()
    if answer.get("interval", PERIODIC_LIMIT_MS) >= PERIODIC_LIMIT_MS:
        return
    yield f"{CHECKPOINTING}.interval", f"{answer['interval']} ms"
    row: Mapping[str, Any] = answer
    for field, key, unit in (
        ("timeout", "timeout", " ms"),
        ("min_pause", "min-pause", " ms"),
        ("max_concurrent", "max-concurrent-checkpoints", ""),
        ("mode", "mode", ""),
        ("unaligned_checkpoints", "unaligned.enabled", ""),
        ("tolerable_failed_checkpoints", "tolerable-failed-checkpoints", ""),
        ("aligned_checkpoint_timeout", "aligned-checkpoint-timeout", " ms"),
    ):
        if field in row:
            yield f"{CHECKPOINTING}.{key}", f"{str(row[field]).lower()}{unit}"
    yield RETENTION, retention_of(answer)


def checkpoint_folder(rest: Rest, job: str, settings: Mapping[str, str]) -> str | None:
    """Folder in which successors of a job keep their checkpoints; None if unknown."""
    keys = (f"{CHECKPOINTING}.dir", "state.checkpoints.dir")
    named = [settings[key] for key in keys if key in settings and settings[key] != LATER]
    if named:
        return named[0]
    if (folder := _present_folder(rest, job)) is not None:
        return folder
    cluster = rest.settings()
    return next((cluster[key] for key in keys if cluster.get(key)), None)


def _present_folder(rest: Rest, job: str) -> str | None:
    """Folder of the checkpoints of a job, from the path of the last one; None if unknown."""
    last = path_of(latest(rest, job).get("completed", {}))
    folder, separator, _ = (last or "").rpartition(f"/{job}/chk-")
    return folder if separator else None


def _restart_settings(text: str) -> Iterator[tuple[str, str]]:
    for kind, (words, names) in _STRATEGIES.items():
        if text.startswith(words):
            yield f"{RESTART}.type", kind
            for name, value in zip(names, _AMOUNTS.findall(text), strict=False):
                yield f"{RESTART}.{kind}.{name}", _plain(value)


def _plain(value: str) -> str:
    """Format a number, or a duration in ms.

    >>> _plain("PT1M0.5S"), _plain("1.500000"), _plain("2147483647")
    ('60500 ms', '1.5', '2147483647')
    """
    if value.isdecimal():
        return value
    parts = re.fullmatch(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?", value)
    if parts is None:
        return f"{float(value):g}"
    hours, minutes, seconds = (float(part or 0) for part in parts.groups())
    return f"{round(1000 * (3600 * hours + 60 * minutes + seconds))} ms"
