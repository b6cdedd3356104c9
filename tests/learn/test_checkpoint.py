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


@pytest.fixture
def spoilt(tmp_path: Path) -> Callable[..., Path]:
    """Checkpoint of a model after its first epoch, changed."""

    def call(model: str, change: Change) -> Path:
        path = tmp_path / NAME
        path.write_bytes(checkpoints(model)[1])
        document, tensors = read_tensors(path)
        change(document, tensors)
        write_tensors(path, document, tensors)
        return path

    return call


@pytest.mark.parametrize("model", ["dream", "pilot", "placeto"])
def test_a_checkpoint_is_taken_up(model: str, spoilt: Callable[..., Path]) -> None:
    """Otherwise the rest would prove nothing."""
    resumed(model, spoilt(model, lambda document, tensors: None))


def epoch(name: str, value: Any) -> Change:
    """Change the first epoch."""
    return lambda document, tensors: document["history"]["epochs"][0].update({name: value})


def array(name: str, value: Any) -> Change:
    """Change an array, or every one whose name begins so."""

    def change(document: dict[str, Any], tensors: dict[str, Any]) -> None:
        for key in [key for key in tensors if key.startswith(name)]:
            tensors[key] = value(tensors[key])

    return change


@pytest.mark.parametrize(
    ("model", "change", "complaint"),
    [
        ("dream", lambda d, t: d.pop("history"), "history is missing"),
        ("dream", lambda d, t: d["history"].update(best=9), "epochs do not follow one another"),
        ("dream", lambda d, t: d["history"].update(best=True), "history.best is True"),
        ("dream", lambda d, t: d.update(settings=[]), r"settings is \[\]"),
        ("dream", epoch("reward", "high"), r"history.epochs\[0\].reward is 'high'"),
        ("dream", epoch("epoch", 3), "epochs do not follow one another"),
        ("dream", epoch("mood", 1), r"history.epochs\[0\].mood is not a known field"),
        ("dream", lambda d, t: t.pop("best/values"), "lacks the values of the best epoch"),
        ("dream", array("module", lambda a: a * np.float32("nan")), "is not a number"),
        ("dream", array("module", lambda a: a.astype(np.int64)), "is of type int64"),
        ("dream", array("adam/exp_avg/", lambda a: a[None]), "adam/exp_avg/.* is "),
        ("dream", lambda d, t: _drop(t, "adam/step"), "lacks adam/step"),
        ("dream", lambda d, t: _drop(t, "adam/exp_avg_sq"), "lacks adam/exp_avg_sq"),
        ("dream", array("learner/memory.placements", lambda a: a - 1), "memory.* belongs to other"),
        (
            "dream",
            array("learner/memory.placements", lambda a: a + 100),
            "memory.* belongs to other",
        ),
        ("dream", array("learner/memory.rewards", lambda a: a[:1]), "memory.* belongs to other"),
        ("dream", array("learner/memory.rewards", lambda a: a[0]), "'memory.rewards' is "),
        ("dream", lambda d, t: t.pop("learner/memory.rewards"), "lacks array 'memory.rewards'"),
        ("placeto", array("learner/past.places", lambda a: a - 1), "memory.* belongs to other"),
        ("placeto", array("learner/past.places", lambda a: a + 3), "memory.* belongs to other"),
        ("pilot", array("learner/ends", lambda a: a + 1), "placements belong to other problems"),
        ("pilot", array("learner/best", lambda a: a[:1]), "placements belong to other problems"),
    ],
)
def test_a_spoilt_checkpoint_is_refused(
    model: str, change: Change, complaint: str, spoilt: Callable[..., Path]
) -> None:
    path = spoilt(model, change)
    with pytest.raises(FormatError, match=complaint):
        resumed(model, path)


def test_a_run_in_a_folder_that_cannot_be_named_is_none() -> None:
    for name in ("a\0b", "x" * 5000):
        with pytest.raises(FormatError, match="holds no run to resume"):
            resumed("dream", Path(name) / NAME)


def _drop(tensors: dict[str, Any], name: str) -> None:
    for key in [key for key in tensors if key.startswith(name)]:
        del tensors[key]
