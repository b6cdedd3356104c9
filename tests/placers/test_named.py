"""Placers by name, and the oracles of those with a number of parts."""

from pathlib import Path

import pytest
from problems import chain

from streamplace.errors import SettingError
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.named import named_placer, with_weights
from streamplace.placers.registry import PLACERS

THROUGHPUT = OBJECTIVES["throughput"]


@pytest.mark.parametrize("text", ["metis:k=2:k=3", "anneal:budget=5ms:budget=9ms"])
def test_an_option_that_is_given_twice_is_refused(text):
    with pytest.raises(SettingError, match="twice"):
        named_placer(text)
    placer = PLACERS["pilot"].with_options(weights="one.safetensors")
    with pytest.raises(SettingError, match=r"'pilot' .*twice"):
        with_weights(placer, Path("other.safetensors"))


@pytest.mark.parametrize("k", ["99999999", "-99999999"])
def test_a_number_that_is_too_large_either_way_is_refused_with_both_limits(k):
    with pytest.raises(SettingError, match=f"k is '{k}'; it must be between -1000000 and 1000000"):
        named_placer(f"metis:k={k}")


def piped(payload, ipt):
    """A pipeline of eight operators on four devices of 1 MIPS joined by 1 kB/s."""
    return Problem(chain(8, ipt, payload, 1.0), Cluster.uniform(4, mips=1, bandwidth="8 kbps"))


@pytest.mark.parametrize("base", ["metis", "fuser"])
@pytest.mark.parametrize(
    ("payload", "ipt", "n_devices"),
    [(5e3, 1e5, 1), (1, 5e5, 4)],
    ids=["heavy streams", "heavy ipt"],
)
def test_all_numbers_are_tried(base, payload, ipt, n_devices):
    result = PLACERS[f"{base}-oracle"].place(piped(payload, ipt), THROUGHPUT)
    assert result.value == 1
    assert len(result.placement.pes()) == n_devices


@pytest.mark.parametrize("base", ["metis", "fuser"])
def test_no_k_beats_the_oracle(base):
    problem = piped(payload=400, ipt=4e5)
    result = PLACERS[f"{base}-oracle"].place(problem, THROUGHPUT)
    tries = [PLACERS[base].with_options(k=k).place(problem, THROUGHPUT).value for k in range(1, 5)]
    assert result.value == max(tries)
