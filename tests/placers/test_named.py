"""Placers by name: what is given twice is refused, since one of the two would have no effect."""

from pathlib import Path

import pytest

from streamplace.errors import SettingError
from streamplace.placers.named import named_placer, with_weights
from streamplace.placers.registry import PLACERS


@pytest.mark.parametrize("text", ["metis:k=2:k=3", "anneal:budget=5ms:budget=9ms"])
def test_an_option_that_is_given_twice_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="is given twice; drop one"):
        named_placer(text)


def test_weights_that_are_given_twice_are_refused() -> None:
    placer = PLACERS["pilot"].with_options(weights="one.safetensors")
    with pytest.raises(SettingError, match="weights of placer 'pilot' are given twice"):
        with_weights(placer, Path("other.safetensors"))
