"""Names that every engine accepts, derived from arbitrary names."""

import re
from collections.abc import Iterable
from hashlib import sha256

from streamplace.errors import ProblemError
from streamplace.model.message_text import quoted

MAX_SLUG_LETTERS = 40
PREFIX = "dev-"
OFFER = 1000
"""Units that a device offers of its resource and of each of its tags (a judgement)."""


def slug(name: str) -> str:
    """Lower-case letters, digits and hyphens; a changed name gets a checksum.

    >>> slug("d0"), slug("rack-1"), slug("Rack 1"), slug("größe")
    ('d0', 'rack-1', 'rack-1-65bceb', 'gr-e-d353a2')
    """
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_SLUG_LETTERS].strip("-")
    return plain if plain == name else "-".join(filter(None, [plain, checksum(name)]))


def checksum(name: str) -> str:
    """Six digits, to distinguish names with equal slugs."""
    return sha256(name.encode()).hexdigest()[:6]


def resource(device: str) -> str:
    """Name of the resource that only this device offers, by which operators are pinned to it.

    It depends only on the name of the device, so a cluster is configured once for all placements.

    >>> resource("d0"), resource("dev-0")
    ('dev-d0', 'dev-0')
    """
    plain = slug(device)
    return plain if plain.startswith(PREFIX) else PREFIX + plain


def tag_resource(tag: str) -> str:
    """Name of the resource that devices with a tag offer.

    >>> tag_resource("gpu")
    'tag-gpu'
    """
    return f"tag-{slug(tag)}"


def resources(devices: Iterable[str]) -> dict[str, str]:
    """Device → the resource that only it offers; raise ProblemError for equal names."""
    names: dict[str, str] = {}
    owners: dict[str, str] = {}
    for device in devices:
        name = resource(device)
        if name in owners:
            raise ProblemError(
                f"devices {quoted(owners[name])} and {quoted(device)} would both offer the "
                f"resource {name!r}; rename one of them"
            )
        names[device], owners[name] = name, device
    return names
