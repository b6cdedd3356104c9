from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.models import checkpoints, resumed

from streamplace.errors import FormatError
from streamplace.io.weights import read_tensors, write_tensors
from streamplace.learn.checkpoint import NAME

Change = Callable[[dict[str, Any], dict[str, Any]], Any]
DAMAGED = r"last\.safetensors: is damaged; train anew into another folder"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d, t: d["history"].update(best=9), DAMAGED),
        (lambda d, t: t.update({"learner/memory.rewards": np.zeros(2)}), DAMAGED),
        (lambda d, t: d.update(version=2), "is not a checkpoint that this streamplace can resume"),
    ],
)
def test_a_damaged_checkpoint_is_refused(change: Change, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(checkpoints("dream")[1])
    document, tensors = read_tensors(path)
    change(document, tensors)
    write_tensors(path, document, tensors)
    with pytest.raises(FormatError, match=complaint):
        resumed("dream", path)
