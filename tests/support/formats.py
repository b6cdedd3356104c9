"""Graphs and problems in the formats of other tools."""

import json

from streamplace.io.registry import FORMATS


def read_as(format_name, file, folder, content):
    """Graph or problem of a file of these bytes, of this text, or of this document as JSON."""
    if not isinstance(content, str | bytes):
        content = json.dumps(content)
    path = folder / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (found,) = FORMATS[format_name].read(path)
    return found
