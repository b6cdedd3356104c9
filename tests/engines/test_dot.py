import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_deployments import DEPLOYMENTS

from streamplace.engines.registry import EXPORTS


def test_a_device_has_a_colour_of_its_own() -> None:
    """Operators of a device share it."""
    (text,) = EXPORTS["dot"].files(DEPLOYMENTS["odd names"]).values()
    colours = re.findall(r'fillcolor="([\d. ]+)"', text)
    assert len(set(colours)) == len(colours) == len(DEPLOYMENTS["odd names"].elements)


def test_what_tasks_hand_on_is_told_in_bytes() -> None:
    """A task graph has no rates."""
    (text,) = EXPORTS["dot"].files(DEPLOYMENTS["tasks"]).values()
    assert '"load" -> "left" [label="4 MB", style=dashed]' in text
    assert '"right" -> "add" [label="1 MB"]' in text


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("deployment", ["shop", "odd names"])
def test_graphviz_draws_it(written: Callable[..., Path], deployment: str) -> None:
    """With a box for each processing element."""
    file = written("dot", deployment) / "placement.dot"
    drawn = subprocess.run(["dot", "-Tsvg", str(file)], capture_output=True, check=True).stdout
    assert all(
        f"PE {element.number} on ".encode() in drawn for element in DEPLOYMENTS[deployment].elements
    )
