"""Writes what the pages take from the registries and the schemas into the pages, and pictures.

A part of a page between ``<!-- generated: NAME ARGUMENTS -->`` and ``<!-- end -->`` is what the
function of that name in `GENERATORS` returns. ``python docs/generate.py`` writes all of them, and
`tests/test_docs.py` holds them equal.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
OF_LEARNED = ("weights", "samples")
"""Options of every learned placer, which the page explains once."""
SHARED = ("graph", "cluster", "constraints")
"""Formats whose parts stand in a problem as well."""
QUANTITY = [{"type": "number", "minimum": 0}, {"type": "string"}]
"""A number in the unit that the field names, or a text with a unit."""
PART = re.compile(r"(<!-- generated: ([\w. ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Write the generated parts of all pages, and the pictures."""
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        new = filled(text)
        if new != text:
            page.write_text(new, encoding="utf-8")
    import pictures

    for name, draw in pictures.FILES.items():
        (DOCS / "assets" / name).write_text(draw(), encoding="utf-8")


def filled(page: str) -> str:
    """Text of a page whose generated parts are those of today."""
    return PART.sub(lambda part: f"{part[1]}\n{generated(part[2])}\n{part[3]}", page)


def generated(words: str) -> str:
    """Text for the part of these words."""
    name, *arguments = words.split()
    return GENERATORS[name](*arguments).strip() + "\n"


def file_format(name: str) -> str:
    """Tables of the fields of a file format, from its JSON Schema; shared parts once."""
    from streamplace.io.schema import json_schema

    schema = json_schema(name)
    known = {_noun(part["title"]) for shared in SHARED if shared != name for part in _parts(shared)}
    parts = [part for part in _parts(name) if _noun(part["title"]) not in known]
    return "\n".join(_fields(part, first=part == schema) for part in parts)


def _parts(name: str) -> list[dict[str, Any]]:
    from streamplace.io.schema import json_schema

    schema = json_schema(name)
    return [schema, *schema.get("$defs", {}).values()]


def placers() -> str:
    """List of the registered placers and their options."""
    from streamplace.placers.registry import PLACERS

    return "".join(_placer(PLACERS[name]) for name in PLACERS)


def objectives() -> str:
    """List of the registered objectives."""
    from streamplace.objectives.registry import OBJECTIVES

    found = map(OBJECTIVES.__getitem__, OBJECTIVES)
    return _list((o.name, f"({o.sense}) {o.summary}") for o in found)


def formats() -> str:
    """List of the registered foreign formats."""
    from streamplace.io.registry import FORMATS

    return _list((name, FORMATS[name].summary) for name in FORMATS)


def exports() -> str:
    """Table of the registered exports."""
    from streamplace.engines.registry import EXPORTS

    rows = [
        (f"`{e.name}`", e.summary, f"one `{e.suffix}`" if e.suffix else "a folder", back)
        for e in map(EXPORTS.__getitem__, EXPORTS)
        for back in ["yes" if e.read else ""]
    ]
    return _table(("form", "what it is", "writes", "can be read back"), rows)


def packages() -> str:
    """Packages with numbers, from their imports: each imports only those with smaller numbers."""
    import grimp

    graph = grimp.build_graph("streamplace", "streamsim", cache_dir=None)
    unnumbered = {
        "streamsim",
        *(n for n in graph.find_children("streamplace") if graph.find_children(n)),
    }
    for name in unnumbered:
        graph.squash_module(name)
    lines, number = list[str](), 0
    while lowest := {
        n for n in unnumbered if not unnumbered & graph.find_modules_directly_imported_by(n) - {n}
    }:
        number, unnumbered = number + 1, unnumbered - lowest
        for name in sorted(lowest, reverse=True):
            about = (inspect.getdoc(importlib.import_module(name)) or "").partition("\n")[0]
            lines.insert(0, f"{number:2}  {name.rpartition('.')[2]:12}{about}")
    return "```text\n" + "\n".join(lines) + "\n```"


def names(module: str) -> str:
    """List of the public names of a package, with the first line of each docstring."""
    found = importlib.import_module(module)
    rows = [(name, _summary(getattr(found, name))) for name in sorted(dir(found))]
    return _list(row for row in rows if row[1])


def _summary(thing: Any) -> str:
    """First sentence of a docstring; nothing for what has none of its own."""
    own = inspect.isclass(thing) or inspect.isroutine(thing)
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ") if own else ""


GENERATORS: dict[str, Callable[..., str]] = {
    "file": file_format,
    "placers": placers,
    "objectives": objectives,
    "formats": formats,
    "exports": exports,
    "names": names,
    "packages": packages,
}


def _placer(placer: Any) -> str:
    explained = _parameters(inspect.getdoc(placer.function) or "")
    options = (
        (f"{name}={default}", explained[name])
        for name, default in placer.texts().items()
        if name not in OF_LEARNED
    )
    return _list([(placer.name, placer.summary)]) + _list(options, indent="    ")


def _parameters(docstring: str) -> dict[str, str]:
    """Texts of the parameters in a numpy docstring."""
    _, _, section = docstring.partition("Parameters\n----------\n")
    entries = re.split(r"^(?=\S)", section.split("\n\n")[0], flags=re.MULTILINE)
    lines = [entry.splitlines() for entry in entries if entry]
    return {
        name: " ".join(map(str.strip, text))
        for head, *text in lines
        for name in head.split(" :")[0].split(", ")
    }


def _fields(part: dict[str, Any], *, first: bool) -> str:
    required = part.get("required", [])
    rows = [
        f"- `{name}`{'' if name in required else '?'} {_kind(field)}: {field['description']}"
        for name, field in part["properties"].items()
    ]
    title = "" if first else f"**{_noun(part['title'])}**\n\n"
    about = f"{part['description']}\n\n" if "description" in part else ""
    return f"{title}{about}" + "\n".join(rows) + "\n"


def _kind(field: dict[str, Any]) -> str:
    """Type of a field in words."""
    if "$ref" in field:
        return _noun(field["$ref"])
    if "anyOf" in field:
        if field["anyOf"] == QUANTITY:
            return "quantity"
        return " or ".join(dict.fromkeys(map(_kind, field["anyOf"])))
    if "enum" in field:
        return " or ".join(f'`"{value}"`' for value in field["enum"])
    if field["type"] == "array":
        return f"list of {_kind(field['items'])}"
    if field["type"] == "object":
        return f"table of {_kind(field['additionalProperties'])}"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    word = words.get(field["type"], field["type"])
    signs = {"minimum": "≥", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = [f"{sign} {field[key]:,.12g}" for key, sign in signs.items() if key in field]
    return f"{word} {', '.join(limits)}" if limits else word


def _noun(title: str) -> str:
    return title.rsplit("/", 1)[-1].removesuffix("Json").removesuffix("Toml").lower()


def _list(rows: Iterable[tuple[str, str]], indent: str = "") -> str:
    """One line per row: the first text as code, the second as what it means."""
    return "".join(f"{indent}- `{name}`: {text}\n" for name, text in rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    text = ("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    main()
