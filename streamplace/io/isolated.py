"""Native code that a damaged file may crash, run in a separate process."""

import subprocess
import sys

from streamplace.errors import FormatError
from streamplace.model.messages import shown


def isolated(code: str, content: bytes, *words: str) -> bytes:
    """Run Python code that reads the content from standard input, and return its output.

    >>> isolated("import sys; sys.stdout.write(sys.stdin.read().upper())", b"text")
    b'TEXT'

    Raises
    ------
    FormatError
        With the last line of its errors, if it fails.
    """
    # -P: no modules from the working folder, which may be untrusted
    command = [sys.executable, "-P", "-c", code, *words]
    done = subprocess.run(command, input=content, capture_output=True)
    if done.returncode:
        errors = done.stderr.decode(errors="replace").strip().splitlines() or ["it crashes"]
        raise FormatError(shown(errors[-1], 300))
    return done.stdout
