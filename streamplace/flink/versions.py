"""Versions of Flink: the downloaded, the oldest supported, and that of a running Flink."""

import re

from streamplace.flink.rest.client import Refusal, Rest

DOWNLOADED = "2.3.0"
"""Version of the downloaded libraries; all tests run with it."""
OLDEST = "1.19"
"""Oldest version of a local cluster."""


def version_text(rest: Rest) -> str:
    """Version of a running Flink, in words if a gateway hides it."""
    try:
        return str(rest.get("/config")["flink-version"])
    except Refusal:
        return "of an unknown version"


def version_of(rest: Rest) -> tuple[int, int]:
    """Major and minor version of a running Flink; (0, 0) if unknown."""
    version = re.match(r"(\d+)\.(\d+)", version_text(rest))
    return (int(version[1]), int(version[2])) if version is not None else (0, 0)
