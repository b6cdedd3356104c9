"""What commands do when nobody can read what they print."""

import subprocess
import sys
from pathlib import Path

import pytest

STREAMPLACE = f"{sys.executable} -m streamplace"
FULL = "error: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("ending", "status", "told"),
    [
        (">&- 2>&-", 0, ""),  # as in a service that was started without any
        ("> /dev/full", 2, FULL),
        ("| true; exit ${PIPESTATUS[0]}", 141, ""),
    ],
    ids=["closed", "full", "a reader that has gone"],
)
@pytest.mark.parametrize("words", ["placers --json", "placers", "place --help"])
def test_a_stdout_that_takes_nothing_is_told_in_one_line_at_most(
    words: str, ending: str, status: int, told: str
) -> None:
    """Of documents, of tables and of help."""
    command = ["bash", "-c", f"{STREAMPLACE} {words} {ending}"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (status, "", told)
