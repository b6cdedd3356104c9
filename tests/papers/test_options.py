"""Options of models that contradict each other are refused before training begins."""

from pathlib import Path

import pytest

from streamplace.errors import StreamplaceError
from streamplace.learn.registry import MODELS, configured


@pytest.mark.parametrize(
    ("model", "preset", "options", "refusal"),
    [
        ("doppler", "paper", "training.batch = 2", "batch is 2 and must be 1"),
        ("doppler", "fast", "model = {select = 'critical-path', place = 'earliest'}", "nothing is"),
        ("hsdag", "fast", "model.rounds = 9", "on_policy is 8, fewer samples than the 9 rounds"),
        ("hsdag", "fast", "model.traits = ['neighbours']", r"traits\[0\] is 'neighbours'"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    model: str, preset: str, options: str, refusal: str, tmp_path: Path
) -> None:
    """A mean of earlier costs, no policy, rounds without samples, columns without a number."""
    file = tmp_path / "c.toml"
    file.write_text(options)
    with pytest.raises(StreamplaceError, match=refusal):
        configured(MODELS[model], preset, file)
