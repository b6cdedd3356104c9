"""Options of the models of papers."""

import pytest

from streamplace.errors import StreamplaceError
from streamplace.learn.registry import MODELS, configured


def test_weights_keep_the_exploration_that_is_a_part_of_how_a_model_learns():
    assert configured(MODELS["doppler"], start={"exploration": 0.6}).model.exploration == 0.6


@pytest.mark.parametrize(
    ("model", "preset", "options", "refusal"),
    [
        ("doppler", "paper", "training.batch = 2", "batch is 2"),
        ("doppler", "fast", "model = {select = 'critical-path', place = 'earliest'}", "place"),
        ("hsdag", "fast", "model.rounds = 9", r"on_policy is 8, .*9 rounds"),
        ("hsdag", "fast", "model.traits = ['neighbours']", r"traits\[0\] is 'neighbours'"),
    ],
)
def test_options_that_contradict_each_other_are_refused(model, preset, options, refusal, tmp_path):
    """A mean of earlier costs, no policy, rounds without samples, odd columns."""
    file = tmp_path / "c.toml"
    file.write_text(options)
    with pytest.raises(StreamplaceError, match=refusal):
        configured(MODELS[model], preset, file)
