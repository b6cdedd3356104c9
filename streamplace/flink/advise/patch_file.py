"""A patch as a file for GitOps: a patch file, or changed fields in an existing manifest.

A manifest is changed as text, so that its comments and its order stay. Both texts are then parsed,
and must differ only in the fields of the patch.
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
"""Suffixes of patches as single files."""
ADVICE = "name a new file for the patch"
_NOTE = re.compile(r"\s*# streamplace: .*")


def is_manifest(path: Path) -> bool:
    """Whether a file exists that is not a patch by streamplace."""
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
            end_of_line = "\r\n" if "\r\n" in before else "\n"
            line = f"{key}: {field}  # {patch.comment(keys)}{end_of_line}{' ' * indent}"
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
        raise FormatError(f"{spot(path)}: is not UTF-8 text; {ADVICE}") from None


def _documents(path: Path, text: str) -> list[Any]:
    import yaml

    try:
        return [*yaml.safe_load_all(text)]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = shown(str(error).partition("\n")[0], 100)
        raise FormatError(f"{spot(path)}: is not valid YAML ({reason}); {ADVICE}") from None


def _index(path: Path, documents: Sequence[Any], namespace: str, name: str) -> int:
    """Number of the document that is the manifest of a FlinkDeployment."""
    manifests = []
    for number, document in enumerate(documents):
        fields = document if isinstance(document, Mapping) else {}
        metadata = fields.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        names = (fields.get("kind"), metadata.get("name"), metadata.get("namespace", namespace))
        if names == (DEPLOYMENT, name, namespace) and isinstance(fields.get("spec"), Mapping):
            manifests.append(number)
    if len(manifests) != 1:
        which = "several manifests" if manifests else "no manifest"
        raise FormatError(f"{spot(path)}: has {which} of {DEPLOYMENT} {namespace}/{name}; {ADVICE}")
    return manifests[0]


def _place(node: Any, keys: Sequence[str]) -> tuple[int, int, int | None] | None:
    """Start and end of the value of a field in the text, and None; None unless it is on one line.

    If a block lacks the field: start and end of an empty place for its line, and the indentation.
    """
    import yaml

    for number, key in enumerate(keys):
        if not isinstance(node, yaml.MappingNode) or not node.value:
            return None
        values = [value for name, value in node.value if name.value == key]
        if not values:
            start = node.value[0][0].start_mark
            can_insert = number == len(keys) - 1 and not node.flow_style
            return (start.index, start.index, start.column) if can_insert else None
        node = values[-1]
    is_plain = isinstance(node, yaml.ScalarNode) and node.start_mark.line == node.end_mark.line
    return (node.start_mark.index, node.end_mark.index, None) if is_plain else None
