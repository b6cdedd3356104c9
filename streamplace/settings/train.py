"""Settings of ``train``."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from streamplace.settings.convert import FLAG, PATH, TEXT, FieldKind, whole
from streamplace.settings.option import HOW_LONG, WHERE
from streamplace.settings.shared import AtRates, OfDataSet, OnDevices


class TrainSettings(AtRates, OfDataSet, OnDevices):
    """How a model is trained, and on which graphs."""

    preset: Annotated[
        str,
        TEXT.option("--preset", "Set of options: fast, or paper for those of the model's paper."),
    ] = "fast"
    config: Annotated[
        Path | None,
        PATH.option("--config", "TOML file whose tables [training] and [model] change the preset."),
    ] = None
    epochs: Annotated[
        int | None,
        whole().option("--epochs", "Number of epochs.  [default: that of the preset]", HOW_LONG),
    ] = None
    device: Annotated[str, TEXT.option("--device", "Device: cpu or cuda.", WHERE)] = "cpu"
    objective: Annotated[
        str, TEXT.option("--objective", "What to learn.  [default: that of the graphs]")
    ] = ""
    reward: Annotated[
        str | Callable[..., Any],
        FieldKind(lambda value: value, "NAME").option(
            "--reward",
            "How placements are evaluated: steady simulates the steady state, engine simulates "
            "queues and is slower, ray measures real passes on a local Ray (for makespan; seconds "
            "each).",
        ),
    ] = "steady"
    seed: Annotated[
        int,
        whole().option(
            "--seed", "Results depend on it, not on the number of cores or workers.", HOW_LONG
        ),
    ] = 0
    start: Annotated[
        str | None,
        FieldKind(str, "FILE").option(
            "--start",
            "Weights to begin from: a file, or 'shipped' for the weights that come with "
            "streamplace.",
        ),
    ] = None
    resume: Annotated[
        bool, FLAG.option("--resume", "Continue the run in --out that was stopped.", HOW_LONG)
    ] = False
