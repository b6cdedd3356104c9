"""Settings of ``train``."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from streamplace.errors import SettingError
from streamplace.model.defaults import PRESET
from streamplace.settings.convert import Whole, in_tuple
from streamplace.settings.option import HOW_LONG, WHERE, option
from streamplace.settings.shared import DataSetOptions, DeviceOptions, RateOptions


class TrainSettings(RateOptions, DataSetOptions, DeviceOptions):
    """How a model is trained, and on which graphs."""

    preset: str = option(
        "--preset NAME", "Set of options; each model below lists its own.", default=PRESET
    )
    config: Path | None = option(
        "--config FILE", "TOML file whose tables [training] and [model] change the preset."
    )
    epochs: Whole | None = option(
        "--epochs N", "Number of epochs.  [default: that of the preset]", HOW_LONG
    )
    objective: str = option(
        "--objective NAME", "What to learn.  [default: that of the graphs]", default=""
    )
    reward: Literal["steady", "engine", "ray"] | Callable[..., Any] = option(
        "--reward NAME",
        "How placements are evaluated: steady simulates the steady state, engine simulates queues "
        "and is slower, ray measures real passes on a local Ray (for makespan; seconds each).",
        default="steady",
    )
    device: str = option(
        "--device NAME",
        "Where torch computes: cpu, cuda, cuda:1, or auto for a GPU if there is one.",
        WHERE,
        default="auto",
    )
    seed: Annotated[tuple[Whole, ...], BeforeValidator(in_tuple)] = option(
        "--seed N…",
        "Results depend on it, not on the number of cores or workers; several train one after the "
        "other, into folders seed-N of --out.  [default: 0]",
        HOW_LONG,
        default=(0,),
    )
    start: Annotated[str, BeforeValidator(str)] | None = option(
        "--start FILE",
        "Weights to begin from: a file, or 'shipped' for the weights that come with streamplace.",
    )
    resume: bool = option("--resume", "Continue the run in --out that was stopped.", HOW_LONG)

    def check(self) -> None:
        """Refuse on Ray what one machine alone computes."""
        super().check()
        if not self.seed or len(set(self.seed)) < len(self.seed):
            raise SettingError(f"{self.name('seed')} must name different seeds, at least one")
        if self.on is None:
            return
        if self.reward not in ("steady", "engine"):
            raise SettingError(
                "real passes (the reward ray, or a function) are measured one after the other on "
                f"one machine; train without {self.name('on')}"
            )
