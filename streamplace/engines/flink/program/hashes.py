"""Ids that Flink gives to operators without a uid: Murmur3 of their position in the graph."""

import re
import struct
from collections.abc import Sequence
from functools import cache

_ID = re.compile(r"[0-9a-f]{32}")
_UNDO_37 = pow(37, -1, 256)
_MASK = 2**64 - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


@cache
def place_hash(place: int, chained: int) -> bytes:
    """Hash of an operator's position and the number of its chained outputs.

    >>> place_hash(0, 1).hex()
    'cbc357ccb763df2852fee8c4fc7d55f2'
    """
    return murmur3(struct.pack("<i", place) * (chained + 1))


def id_bytes(text: str) -> bytes:
    """Bytes of an id; empty if the text is not an id.

    >>> len(id_bytes("cbc357ccb763df2852fee8c4fc7d55f2")), id_bytes("v0")
    (16, b'')
    """
    return bytes.fromhex(text) if _ID.fullmatch(text) else b""


def unmixed(mixed: bytes, inputs: Sequence[bytes]) -> bytes:
    """Hash of an operator's position, from its id and those of its inputs, in order.

    It inverts Flink's mixing of each byte: ``own = own * 37 ^ input``.

    >>> own, one, other = 5, 7, 9
    >>> mixed = (own * 37 ^ one) * 37 & 255 ^ other
    >>> unmixed(bytes([mixed]), [bytes([one]), bytes([other])])[0]
    5
    """
    for other in reversed(inputs):
        mixed = bytes((a ^ b) * _UNDO_37 & 255 for a, b in zip(mixed, other, strict=False))
    return mixed


def murmur3(text: bytes) -> bytes:
    """128-bit Murmur3 with seed 0."""
    h1 = h2 = 0
    whole = len(text) // 16 * 16
    for k1, k2 in struct.iter_unpack("<QQ", text[:whole]):
        h1 ^= _spread(k1, _C1, 31, _C2)
        h1 = ((_turned(h1, 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 ^= _spread(k2, _C2, 33, _C1)
        h2 = ((_turned(h2, 31) + h1) * 5 + 0x38495AB5) & _MASK
    k1, k2 = struct.unpack("<QQ", text[whole:].ljust(16, b"\0"))
    h1 ^= _spread(k1, _C1, 31, _C2) ^ len(text)
    h2 ^= _spread(k2, _C2, 33, _C1) ^ len(text)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _scrambled(h1), _scrambled(h2)
    h1 = (h1 + h2) & _MASK
    return struct.pack("<QQ", h1, (h2 + h1) & _MASK)


def _spread(k: int, first: int, bits: int, second: int) -> int:
    return _turned(k * first & _MASK, bits) * second & _MASK


def _turned(h: int, bits: int) -> int:
    return (h << bits | h >> 64 - bits) & _MASK


def _scrambled(h: int) -> int:
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & _MASK
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return h ^ h >> 33
