"""Options of models, and what is said where they do not suffice."""

import pytest
from problems import chain

import streamplace
from streamplace.errors import SettingError, StreamplaceError
from streamplace.io.weights import read_weights
from streamplace.learn.config import MAX_DEVICES
from streamplace.learn.model_weights import shipped
from streamplace.learn.registry import MODELS, configured
from streamplace.model import Cluster


@pytest.mark.parametrize(
    "name", [name for name in MODELS if "devices" in MODELS[name].config.model_fields]
)
def test_a_training_is_only_advised_where_its_options_would_be_accepted(name):
    assert MODELS[name].config.model_validate({"devices": MAX_DEVICES})
    for devices in (MAX_DEVICES, MAX_DEVICES + 1):
        with pytest.raises(SettingError, match=f"{devices} devices, .*pilot") as refused:
            streamplace.place(chain(2), Cluster.uniform(devices), placer=name)
        assert (f"'devices = {devices}'" in str(refused.value)) == (devices == MAX_DEVICES)


def test_training_from_weights_asks_anew_what_to_train_on():
    """`dream` was trained without a search in the end; those given begin with one again."""
    start = read_weights(shipped("dream")).document["config"]
    assert start["searched"] == 0
    chosen = configured(MODELS["dream"], start=start).model.model_dump()
    assert chosen["searched"] > 0
    assert chosen["replayed"] == MODELS["dream"].presets["fast"].model.model_dump()["replayed"]
    assert chosen["device_state"] == start["device_state"]
    # The exploration of pilot is a part of how it learns.
    assert configured(MODELS["pilot"], start={"exploration": 0.6}).model.exploration == 0.6


def test_options_that_contradict_each_other_are_refused(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("model.fresh = 100")
    with pytest.raises(StreamplaceError, match=r"64 devices, .* at most 5"):
        configured(MODELS["encdec"], "fast", file)
