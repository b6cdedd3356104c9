"""A patch as a file for GitOps: a patch file, or the fields changed in a manifest that is kept.

A manifest is changed as a text, so that its comments and its order stay. Both texts are then read,
and must differ in the fields of the patch alone.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamplace.errors import FormatError
from streamplace.flink.advise.equal_pods import PREDICTED, PodPatch
from streamplace.flink.deployment import DEPLOYMENT
from streamplace.flink.operator.merge_patch import merged
from streamplace.io.files import is_file, read_bytes, spot, write_text
from streamplace.model.message_text import shown

SUFFIXES = (".yaml", ".yml")
"""Ends of the names of patches as single files."""
ADVICE = "name a new file, for a patch"
_NOTE = re.compile(r"\s*# streamplace: .*")


def is_manifest(path: Path) -> bool:
    """Whether a file exists that is no patch of streamplace."""
    return is_file(path) and PREDICTED not in _text(path)[:1000]


def check_manifest(path: Path, namespace: str, name: str) -> None:
    """Raise FormatError unless a file has the manifest of a FlinkDeployment."""
    _index(path, _documents(path, _text(path)), namespace, name)


def write_patch(patch: PodPatch, path: Path) -> None:
    """Write a patch file, or change the fields of a patch in a manifest of its resource."""
    write_text(path, patched(patch, path) if is_manifest(path) else str(patch))


def patched(patch: PodPatch, path: Path) -> str:
    """Text of a manifest with the fields of a patch changed, each with a comment."""
    import yaml

    text = before = _text(path)
    documents = _documents(path, text)
    index = _index(path, documents, patch.namespace, patch.name)
    for keys, value, _ in patch.changes:
        node = [*yaml.compose_all(text, Loader=yaml.SafeLoader)][index]
        where = _place(node, ["spec", *keys.split("/")])
        if where is None:
            raise FormatError(f"{spot(path)}: no line to change for {keys}; {ADVICE}")
        start, end, indent = where
        field = patch.value_text(value)
        if indent is not None:  # a new line before its siblings
            key = keys.rpartition("/")[2]
            line = f"{key}: {field}  # {patch.comment(keys)}\n{' ' * indent}"
            text = text[:start] + line + text[start:]
            continue
        line_end = min(
            (i for i in (text.find("\r", end), text.find("\n", end)) if i >= 0), default=len(text)
        )
        rest = _NOTE.sub("", text[end:line_end])
        text = f"{text[:start]}{field}{rest}  # {patch.comment(keys)}{text[line_end:]}"
    expected = [*documents]
    expected[index] = merged(documents[index], {"spec": patch.document["spec"]})
    if _documents(path, text) != expected or text == before:
        raise FormatError(f"{spot(path)}: its fields cannot be changed one by one; {ADVICE}")
    return text


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError:
        raise FormatError(f"{spot(path)}: is no text; {ADVICE}") from None


def _documents(path: Path, text: str) -> list[Any]:
    import yaml

    try:
        return [*yaml.safe_load_all(text)]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = shown(str(error).partition("\n")[0], 100)
        raise FormatError(f"{spot(path)}: is no YAML ({reason}); {ADVICE}") from None


def _index(path: Path, documents: Sequence[Any], namespace: str, name: str) -> int:
    """Number of the document that is the manifest of a FlinkDeployment."""
    found = []
    for number, document in enumerate(documents):
        own = document if isinstance(document, Mapping) else {}
        metadata = own.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        names = (own.get("kind"), metadata.get("name"), metadata.get("namespace", namespace))
        if names == (DEPLOYMENT, name, namespace) and isinstance(own.get("spec"), Mapping):
            found.append(number)
    if len(found) != 1:
        which = "no manifest" if not found else "several manifests"
        raise FormatError(f"{spot(path)}: has {which} of {DEPLOYMENT} {namespace}/{name}; {ADVICE}")
    return found[0]


def _place(node: Any, keys: Sequence[str]) -> tuple[int, int, int | None] | None:
    """Where the value of a field is in the text, from and to, if it is on one line.

    For a field that its block lacks: where a line for it is inserted, twice, and its indentation.
    """
    import yaml

    for number, key in enumerate(keys):
        if not isinstance(node, yaml.MappingNode) or not node.value:
            return None
        own = [value for name, value in node.value if name.value == key]
        if not own:
            start = node.value[0][0].start_mark
            is_last = number == len(keys) - 1
            return (
                (start.index, start.index, start.column)
                if is_last and not node.flow_style
                else None
            )
        node = own[-1]
    is_plain = isinstance(node, yaml.ScalarNode) and node.start_mark.line == node.end_mark.line
    return (node.start_mark.index, node.end_mark.index, None) if is_plain else None
