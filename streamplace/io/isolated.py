"""Native code that a damaged file may crash, run in a process of its own."""

import subprocess
import sys

from streamplace.errors import FormatError
from streamplace.model.messages import shown


def isolated(code: str, content: bytes, *words: str) -> bytes:
    """Return what Python code writes that reads the content; both on standard streams.

    >>> isolated("import sys; sys.stdout.write(sys.stdin.read().upper())", b"text")
    b'TEXT'

    Raises
    ------
    FormatError
        With the last line that the code said, if it ends otherwise than well.
    """
    # -P: modules are not looked for in the working folder, which may be a stranger's
    command = [sys.executable, "-P", "-c", code, *words]
    done = subprocess.run(command, input=content, capture_output=True)
    if done.returncode:
        errors = done.stderr.decode(errors="replace").strip().splitlines() or ["it crashes"]
        raise FormatError(shown(errors[-1], 300))
    return done.stdout
