"""What the reference pages show, read from the registries, the schemas and the command line.

A page holds ``<!-- generated: NAME ARGUMENTS -->``; while the site is built, the function of that
name in `GENERATORS` puts its text there. Nothing generated is stored, so nothing goes stale.
"""

import html
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

BLOCK = re.compile(
    r'<div class="([^"]*\bhighlight)">(<pre>.*?<code>)(.*?)(</code></pre>)', re.DOTALL
)
PROMPT = re.compile(
    r'^(<span class="gp">(?:\$|&gt;|&gt;&gt;&gt;|\.\.\.) ?</span>)(.*)$', re.MULTILINE
)
TAG = re.compile(r"<[^>]*>")
PLACEHOLDER = re.compile(r"<!-- generated: ([\w. ]+) -->")
WIDTH = 90
NOTEBOOK_STYLE = "<style>.notebook .md-typeset__scrollwrap { margin: 0 }</style>"
"""Tables in outputs are as wide as the outputs."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill the placeholders of a page (called by mkdocs)."""
    return PLACEHOLDER.sub(lambda found: generated(found[1]), markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Mark the commands of sessions, and let the button copy these alone (called by mkdocs)."""
    return BLOCK.sub(_session, content)


def _session(block: re.Match[str]) -> str:
    """A block of code; that of a session with its commands marked, and to be copied."""
    kind, begin, code, end = block.groups()
    commands = [html.unescape(TAG.sub("", line[2])) for line in PROMPT.finditer(code)]
    if not commands:
        return block[0]
    marked = PROMPT.sub(r'\1<span class="command">\2</span>', code)
    text = html.escape("\n".join(commands))
    return f'<div class="{kind}" data-copy="{text}">{begin}{marked}{end}'


def generated(words: str) -> str:
    """Text for the placeholder of these words."""
    name, *arguments = words.split()
    return GENERATORS[name](*arguments)


def command_line() -> str:
    """Every command with its help, as ``--help`` prints it."""
    from streamplace.cli.main import cli

    root = click.Context(cli, info_name="streamplace", **cli.context_settings)
    return "\n".join(_sections(cli, root))


def file_format(name: str) -> str:
    """Tables of the fields of a file format, from its JSON Schema."""
    from streamplace.io.schema import json_schema

    schema = json_schema(name)
    parts = [schema, *schema.get("$defs", {}).values()]
    return "\n".join(_fields(part, first=part is schema) for part in parts)


def placers() -> str:
    """Every registered placer: what it does, and its options."""
    from streamplace.placers.registry import PLACERS

    return "\n".join(_placer(PLACERS[name]) for name in PLACERS)


def objectives() -> str:
    """Table of the registered objectives."""
    from streamplace.objectives.registry import OBJECTIVES

    rows = [(f"`{o.name}`", o.sense, o.summary) for o in map(OBJECTIVES.__getitem__, OBJECTIVES)]
    return _table(("objective", "sense", "what it is"), rows)


def formats() -> str:
    """Table of the registered foreign formats."""
    from streamplace.io.registry import FORMATS

    rows = [(f"`{name}`", FORMATS[name].summary) for name in FORMATS]
    return _table(("format", "what it is"), rows)


def exports() -> str:
    """Table of the registered exports."""
    from streamplace.engines.registry import EXPORTS

    rows = [
        (f"`{e.name}`", e.summary, f"one `{e.suffix}`" if e.suffix else "a folder", back)
        for e in map(EXPORTS.__getitem__, EXPORTS)
        for back in ["yes" if e.read else ""]
    ]
    return _table(("form", "what it is", "writes", "can be read back"), rows)


def families() -> str:
    """Every registered family and its parameters."""
    from streamplace.families.parameters import options
    from streamplace.families.registry import FAMILIES

    sections = []
    for family in map(FAMILIES.__getitem__, FAMILIES):
        rows = [
            (f"`{o.name}`", o.type.__name__, "" if o.default is None else f"`{o.default}`", o.help)
            for o in options(family.parameters)
        ]
        table = _table(("parameter", "type", "default", "meaning"), rows)
        sections.append(f"### `{family.name}`\n\n{family.summary}\n\n{table}")
    return "\n".join(sections)


def fields(module: str, name: str) -> str:
    """Table of the fields of a class whose source explains them in comments."""
    source = inspect.getsource(getattr(importlib.import_module(module), name))
    found = re.findall(r"^    (\w+): (.+?)  # (.+)$", source, re.MULTILINE)
    rows = ((f"`{field}`", f"`{kind}`", about) for field, kind, about in found)
    return _table(("field", "type", "shape and meaning"), rows)


def example(name: str) -> str:
    """Text of an example that the tests run."""
    file = Path(__file__).parents[1] / "examples" / f"{name}.py"
    return f"```python\n{file.read_text(encoding='utf-8')}```"


def notebook(name: str) -> str:
    """Cells of a notebook, with what they show."""
    file = Path(__file__).parent / "notebooks" / f"{name}.ipynb"
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join([*(part for cell in cells for part in _cell(cell)), NOTEBOOK_STYLE])


GENERATORS: dict[str, Callable[..., str]] = {
    "cli": command_line,
    "file": file_format,
    "placers": placers,
    "objectives": objectives,
    "formats": formats,
    "exports": exports,
    "families": families,
    "fields": fields,
    "example": example,
    "notebook": notebook,
}


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    """Text of a cell; code with its outputs."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        if "text" in output:
            yield _plain("".join(output["text"]))
            continue
        for kind, lines in output["data"].items():
            text = "".join(lines)
            yield _plain(text) if kind == "text/plain" else _framed(text)


def _framed(text: str) -> str:
    return f'<div class="notebook">\n{text}\n</div>'


def _plain(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    context.terminal_width = context.max_content_width = WIDTH
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _sections(child, click.Context(child, parent=context, info_name=name))


def _placer(placer: Any) -> str:
    explained = _parameters(inspect.getdoc(placer.function) or "")
    rows = [
        (f"`{name}`", f"`{default}`", explained.get(name, ""))
        for name, default in placer.texts().items()
    ]
    table = _table(("option", "default", "meaning"), rows) if rows else ""
    return f"## `{placer.name}`\n\n{placer.summary}\n\n{table}"


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
        (f"`{name}`", _kind(field), "yes" if name in required else "", field.get("description", ""))
        for name, field in part["properties"].items()
    ]
    table = _table(("field", "type", "required", "meaning"), rows)
    title = "" if first else f"**{_noun(part['title'])}**\n\n"
    about = f"{part['description']}\n\n" if "description" in part else ""
    return f"{title}{about}{table}"


def _kind(field: dict[str, Any]) -> str:
    """Type of a field in words."""
    if "$ref" in field:
        return _noun(field["$ref"])
    if "anyOf" in field:
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


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    text = ("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return "\n".join(text) + "\n"
