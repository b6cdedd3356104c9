"""`benchmarks/ship_weights.py`: weights go to the folder of their model."""

import pytest
from ship_weights import folder_of

from streamplace.learn.model_weights import shipped
from streamplace.learn.registry import MODELS


@pytest.mark.parametrize("model", list(MODELS))
def test_weights_are_written_where_shipped_weights_are_read(model):
    assert folder_of(model) == shipped(model).parent
