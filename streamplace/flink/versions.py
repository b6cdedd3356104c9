"""Versions of Flink: the downloaded one, the oldest that is supported, and a running one's."""

import re

from streamplace.flink.rest.client import Refusal, Rest

DOWNLOADED = "2.3.0"
"""Version of the libraries that are downloaded, and with which everything is tested."""
OLDEST = "1.19"
"""Oldest version of a local cluster."""


def version_text(rest: Rest) -> str:
    """Version of a running Flink in words, which a gateway may hide."""
    try:
        return str(rest.get("/config")["flink-version"])
    except Refusal:
        return "of an unknown version"


def version_of(rest: Rest) -> tuple[int, int]:
    """Major and minor version of a running Flink; (0, 0) if it does not say."""
    version = re.match(r"(\d+)\.(\d+)", version_text(rest))
    return (int(version[1]), int(version[2])) if version is not None else (0, 0)
