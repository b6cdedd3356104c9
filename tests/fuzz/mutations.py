"""Ways to spoil a valid file: its bytes, or the values, elements and tensors in its structure."""

import copy
import gzip
import json
import tomllib
from contextlib import suppress
from functools import lru_cache
from random import Random
from typing import Any
from xml.etree import ElementTree

import numpy as np
from fuzz.documents import to_json, to_toml
from fuzz.fields import changed_field, nearby
from numpy.typing import NDArray

_WORDS = (
    *"{}[]()<>\"'`=:;,.+-#/\\\n\r\t\0 ",
    *("null", "true", "NaN", "Infinity", "1e999", "9" * 500, "0x" + "f" * 5000, "-", "1.", "4096"),
    *("\\u0000", "\\ud800", "\\u", "\\x", '""', "''", '"""', "'''", "[[", "]]", "{{", "[a.b]"),
    *("a" + ".a" * 50 + "=1", "/*", "*/", "//", "->", "--", "subgraph", "strict", "node ["),
    *("<!DOCTYPE a [<!ENTITY b 'c'>]>", "&b;", "&#0;", "<![CDATA[", "]]>", "<a>", "</a>"),
    *("\ufeff", "\u202e", "\x85", "\ud800", "١", "é", "1979-05-27T07:32:00Z", "__metadata__"),
)
_NO_TEXT = (b"\xff\xfe", b"\x1f\x8b\x08", b"\x80\x04K\x01.", b"\xff" * 8, b"\xc3")
TOKENS = (*(word.encode(errors="surrogatepass") for word in _WORDS), *_NO_TEXT)
MOST_DEPTH = 200
TYPES = (np.float16, np.float32, np.float64, np.int8, np.int64, np.uint8, np.bool_)
NAMES = ("", "a", "module", "metadata", "x" * 300, "é\n")


def mutated(seeds, rng):
    """Return one of the seeds, spoiled in one to four ways."""
    content = rng.choice(seeds)
    for _ in range(1 + min(3, int(rng.expovariate(1)))):
        content = _once(content, seeds, rng)
    return content


def _once(content, seeds, rng):
    if rng.random() < 0.5 and (form := _form(content)):
        with suppress(ValueError, RecursionError, OverflowError):  # of Python's: too long, too deep
            return form(content, rng)  # type: ignore[no-any-return]
    return _scratched(content, seeds, rng)


@lru_cache(maxsize=256)
def _form(content):
    """Return what spoils the structure of a content; None where it has none that we know."""
    for form, holds in (
        (_packed, lambda: content[:2] == b"\x1f\x8b" and gzip.decompress(content)),
        (_tensors, lambda: json.loads(json.loads(_header(content))["__metadata__"]["streamplace"])),
        (_json, lambda: json.loads(content)),
        (_lines, lambda: [json.loads(line) for line in content.splitlines()]),
        (_toml_tables, lambda: tomllib.loads(content.decode())),
        (_elements, lambda: _elements(content, Random(0))),
    ):
        try:
            if holds():
                return form
        except Exception:  # whatever its parser says of it, it is not of this form
            continue
    return None


def _packed(content, rng):
    return gzip.compress(_once(gzip.decompress(content), [b""], rng), 1)


def _json(content, rng):
    return to_json(changed_field(json.loads(content), rng))


def _lines(content, rng):
    lines = content.splitlines(keepends=True)
    i, way = rng.randrange(len(lines)), rng.random()
    if way < 0.1:
        lines.insert(i, rng.choice(lines))
    elif way < 0.15:
        del lines[i]
    else:
        lines[i] = _json(lines[i], rng) + b"\n"
    return b"".join(lines)


def _toml_tables(content, rng):
    return to_toml(changed_field(tomllib.loads(content.decode()), rng))


def _elements(content, rng):
    """Return an XML document with one element or attribute that is not as it was."""
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, LookupError) as error:
        raise ValueError(str(error)) from None
    pairs = [(parent, child) for parent in root.iter() for child in parent]
    if not pairs:
        raise ValueError("no element in the root")
    parent, child = rng.choice(pairs)
    way = rng.randrange(7)
    if way == 0:
        parent.remove(child)
    elif way == 1:
        parent.append(copy.deepcopy(child))
    elif way == 2:
        _nest(child, rng)
    elif way == 3:
        root.append(copy.deepcopy(rng.choice(pairs)[0]))
    elif way == 4:
        child.text = rng.choice(("", "a", "1e999", child.text or "é"))
    elif child.attrib:
        _change_attribute(child, rng)
    return ElementTree.tostring(root)


def _nest(element, rng):
    for _ in range(rng.choice((1, 2, MOST_DEPTH))):
        inner = copy.copy(element)
        element[:] = [inner]


def _change_attribute(element, rng):
    name = rng.choice(sorted(element.attrib))
    value = element.attrib.pop(name)
    if rng.random() < 0.6:
        element.attrib[name] = rng.choice(("", "0", "-1", "1e999", str(nearby(value, rng))))


def _header(content):
    return content[8 : 8 + int.from_bytes(content[:8], "little")]


def _tensors(content, rng):
    """Spoil the header of a safetensors file, the document in it, or a tensor."""
    if rng.random() < 0.3:
        return _changed_tensors(content, rng)
    header = json.loads(_header(content))
    data = content[8 + len(_header(content)) :]
    if rng.random() < 0.6:
        document = json.loads(header["__metadata__"]["streamplace"])
        text = to_json(changed_field(document, rng)).decode(errors="replace")
        header["__metadata__"]["streamplace"] = text
    elif rng.random() < 0.7:
        header = changed_field(header, rng)
    else:
        noise = rng.choice((b"\xff" * 8, b"\0\0\xc0\x7f", b"\0" * 8, rng.randbytes(8)))
        at = rng.randrange(len(data) + 1)
        data = data[:at] + noise + data[at + len(noise) :]
    told = to_json(header)
    return len(told).to_bytes(8, "little") + told + data


def _changed_tensors(content, rng):
    """Return a valid safetensors file with the same document and one other tensor."""
    from safetensors import SafetensorError
    from safetensors.numpy import load, save

    try:
        arrays: dict[str, NDArray[Any]] = load(content)
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    metadata = json.loads(_header(content))["__metadata__"]
    if not arrays:
        return save({"a": np.zeros(1, np.float32)}, metadata)
    name = rng.choice(sorted(arrays))
    way = rng.randrange(5)
    if way == 0:
        del arrays[name]
    elif way == 1:
        arrays[rng.choice((*NAMES, f"{name}.a", name[:-1]))] = arrays.pop(name)
    elif way == 2:
        arrays[rng.choice((*NAMES, *arrays))] = arrays[name]
    else:
        arrays[name] = _changed_array(arrays[name], rng)
    return save({key: np.ascontiguousarray(a) for key, a in arrays.items()}, metadata)


def _changed_array(array, rng):
    """Another type, another shape, or other values in it."""
    if rng.random() < 0.3:
        return np.nan_to_num(array).astype(rng.choice(TYPES))
    if rng.random() < 0.3:
        factor = rng.choice((0, -1, 1e6, 1e30, 1e-30))
        with np.errstate(all="ignore"):
            return np.nan_to_num(array * factor).astype(array.dtype)
    shapes = (
        array.ravel(),
        array.T,
        array[None],
        array[..., None],
        array[:0] if array.ndim else array.reshape(1),
        array[:-1] if array.ndim else array.reshape(1, 1),
        np.concatenate([array, array]) if array.ndim else np.zeros((0, 0), array.dtype),
        np.zeros((), array.dtype),
        np.zeros((3, 0, 5), array.dtype),
    )
    return rng.choice(shapes)


def _scratched(content, seeds, rng):
    """Return bytes flipped, inserted, overwritten, cut off, removed, doubled or spliced."""
    size = len(content)
    a, b = sorted((rng.randrange(size + 1), rng.randrange(size + 1)))
    if rng.random() < 0.8:  # mostly little of it
        b = min(size, a + rng.randrange(12))
    token = rng.choice(TOKENS) if rng.random() < 0.7 else rng.randbytes(rng.randint(1, 4))
    way = rng.randrange(8)
    if way == 0 and a < size:
        return content[:a] + bytes([content[a] ^ (1 << rng.randrange(8))]) + content[a + 1 :]
    if way == 1:
        return content[:a]
    if way == 2:
        return content[:a] + content[b:]
    if way == 3:
        return content[:b] + content[a:]
    if way == 4:
        other = rng.choice(seeds)
        return content[:a] + other[rng.randrange(len(other) + 1) :]
    if way == 5:
        return content[:a] + token * rng.choice((2, 3, 50, 2000)) + content[a:]
    return content[:a] + token + content[b if way == 6 else a :]
