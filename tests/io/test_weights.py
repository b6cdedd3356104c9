import json
import pickle

import numpy as np
import pytest
from fuzz.trial import refused_in_little
from refusals import refusal_of

from streamplace.errors import FormatError
from streamplace.io.weights import read_weights, write_tensors, write_weights
from streamplace.learn.model_weights import shipped
from streamplace.learn.models.dream.policy import trained

DOCUMENT = {
    "model": "dream",
    "config": {"width": 4},
    "features": {"names": ["cpu", "payload"], "mean": [0.5, 1.0], "std": [1.0, 2.0]},
    "training": {"seed": 3},
}
TENSORS = {
    "a.weight": np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
    "a.bias": np.zeros(0, np.float32),
    "steps": np.array(7, np.int64),
    "turned": np.arange(6.0, dtype=np.float32).reshape(2, 3).T,
}


@pytest.fixture
def file(tmp_path):
    """A good weights file."""
    path = tmp_path / "w.safetensors"
    write_weights(path, DOCUMENT, TENSORS)
    return path


def test_weights_come_back_as_they_were(file):
    weights = read_weights(file, model="dream", features=["cpu", "payload"])
    assert weights.document == {"format": "streamplace-weights", "version": 1, **DOCUMENT}
    assert weights.model == "dream"
    assert weights.tensors.keys() == TENSORS.keys()
    for name, array in TENSORS.items():
        assert weights.tensors[name].dtype == array.dtype
        assert weights.tensors[name].shape == array.shape
        assert (weights.tensors[name] == array).all()
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])  # which any safetensors reader shows
    assert json.loads(header["__metadata__"]["streamplace"])["model"] == "dream"


def test_the_same_weights_are_the_same_bytes(file, tmp_path):
    other = tmp_path / "other.safetensors"
    write_weights(other, DOCUMENT, dict(reversed(TENSORS.items())))
    assert file.read_bytes() == other.read_bytes()


def test_half_precision_is_widened(tmp_path):
    """Files of half the size; what reads them sees float32."""
    path = tmp_path / "half.safetensors"
    halved = {
        name: array.astype(np.float16) if array.dtype == np.float32 else array
        for name, array in TENSORS.items()
    }
    write_weights(path, DOCUMENT, halved)
    tensors = read_weights(path).tensors
    assert tensors["a.weight"].dtype == np.float32
    assert tensors["steps"].dtype == np.int64
    np.testing.assert_allclose(tensors["a.weight"], TENSORS["a.weight"], atol=1e-3)
    assert (tensors["a.weight"] == TENSORS["a.weight"].astype(np.float16)).all()


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps({"a": 1}),
        b"[" * 100_000,
        (2).to_bytes(8, "little") + b"{}",
        (60).to_bytes(8, "little") + b'{"__metadata__":{"streamplace":"not json"}}'.ljust(60),
        (60).to_bytes(8, "little") + b'{"__metadata__":{"streamplace":"[1]"}}'.ljust(60),
        *(0, 8, 100, -1),
    ],
    ids=lambda content: content if isinstance(content, int) else content[-9:],
)
def test_other_files_and_parts_of_files_are_refused(file, content):
    whole = file.read_bytes()
    file.write_bytes(whole[:content] if isinstance(content, int) else content)
    refusal_of(file, read_weights, file, kind=FormatError)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"format": "streamplace-checkpoint"}, ""),
        ({"version": 2}, "has version 2"),
        ({"config": None}, "config"),
        ({"surprise": 1}, "surprise"),
        ({"features": {"names": ["a"], "mean": ["0"]}}, "features.mean[0]"),
        ({"features": {"names": ["a"], "std": [0.0]}}, "features.std[0]"),
        ({"model": "pilot"}, "contains weights of 'pilot', not of 'dream'"),
        ({"features": {"names": ["cpu"]}}, "was trained on other features"),
    ],
)
def test_other_descriptions_are_refused(file, changes, place):
    document = {"format": "streamplace-weights", "version": 1, **DOCUMENT, **changes}
    write_tensors(file, document, TENSORS)
    given = {"model": "dream", "features": ["cpu", "payload"]}
    assert refusal_of(file, read_weights, file, kind=FormatError, **given).startswith(place)


@pytest.mark.parametrize("number", ["NaN", "1e999"])
def test_a_feature_that_is_no_number_is_refused(file, number):
    write_weights(file, {**DOCUMENT, "features": {"names": ["a"], "mean": [0.5]}}, TENSORS)
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + size].replace(b"[0.5]", f"[{number}]".encode())
    file.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + size :])
    refusal_of(file, read_weights, file, kind=FormatError)


def test_a_parameter_that_is_no_number_is_refused(file):
    write_weights(file, DOCUMENT, {**TENSORS, "bad": np.array([np.nan], np.float32)})
    assert "'bad'" in refusal_of(file, read_weights, file, kind=FormatError)


def test_a_config_alone_takes_no_memory(tmp_path):
    """A kilobyte that asks for layers of 4096 units is refused for the layers that it lacks."""
    path = tmp_path / "w.safetensors"
    document = read_weights(shipped("dream")).document
    config = {**document["config"], "width": 4096}
    write_weights(path, {**document, "config": config}, {})
    told = refused_in_little(lambda: trained(path, "dream"), 2**28)
    assert "lacks parameter" in told
