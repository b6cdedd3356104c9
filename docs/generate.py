"""Writes what the pages take from the registries and the schemas into the pages, and pictures.

A part of a page between ``<!-- generated: NAME ARGUMENTS -->`` and ``<!-- end -->`` is what the
function of that name in `GENERATORS` returns. ``python docs/generate.py`` writes all of them, and
`tests/test_docs.py` holds them equal.
"""

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
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


PASS = frozenset(("giph", "giph-task-eft", "placeto", "hdp", "hsdag", "doppler"))
RATE = frozenset(("dream", "encdec", "encdec-gnn", "pilot"))
"""Learned placers by what their shipped weights were trained for."""
LEARN = (PASS | RATE) - {"pilot"}
"""Placers that need the extra ``learn``."""
PROOFS = {"auto": "small graphs", "exact": "until the budget ends"}
DEVICES = {"encdec": "5 equal", "encdec-gnn": "5 equal", "dream": "64", "placeto": "32"}
"""Most devices; any number of any speed by default."""
MILLISECONDS = {
    **{"metis": 0.2, "metis-oracle": 1, "fuser": 0.2, "fuser-oracle": 1.2, "encdec": 4.1},
    **{"encdec-gnn": 3.9, "dream": 7.7, "pilot": 1.3, "heft": 0.4, "foresight": 0.4, "giph": 77},
    **{"giph-task-eft": 55, "placeto": 25, "hdp": 5.8, "hsdag": 2.5, "doppler": 7.1},
    "pilot-makespan": 6,
}
"""Of the tables of results."""
SEARCHES = frozenset(("anneal", "auto", "exact", "random"))


def placers() -> str:
    """Table of the registered placers, and their options."""
    from streamplace.placers.registry import PLACERS

    rows = []
    for placer in map(PLACERS.__getitem__, PLACERS):
        name = placer.name
        weights = "; weights: pass" if name in PASS else "; weights: rate" if name in RATE else ""
        question = " or ".join(placer.objectives).replace("throughput", "rate") or f"any{weights}"
        time = f"{MILLISECONDS[name]:g} ms" if name in MILLISECONDS else ""
        rows.append(
            (
                f"`{name}`",
                question.replace("makespan", "pass"),
                DEVICES.get(name, ""),
                "yes" if name in LEARN else "",
                PROOFS.get(name, ""),
                "the budget" if name in SEARCHES else time,
                placer.summary.rstrip("."),
            )
        )
    head = ("placer", "question", "devices", "`[learn]`", "proof", "time", "what it does")
    options = "".join(_placer(PLACERS[name]) for name in PLACERS)
    return f"{_table(head, rows)}\nOptions:\n\n{options}"


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
    """Public names of a package with signatures, and the first line of each docstring."""
    found = importlib.import_module(module)
    things = ((name, getattr(found, name)) for name in sorted(dir(found)))
    return _list((_signature(name, x), _summary(x)) for name, x in things if _summary(x))


MADE = frozenset(("Comparison", "DataSet", "Explanation", "Objective", "Result"))
"""Classes whose objects are answers."""


def _signature(name: str, thing: Any) -> str:
    """How a function is called, and a class made by its users, without types."""
    if name in MADE or (inspect.isclass(thing) and issubclass(thing, Exception)):
        return name
    made = getattr(thing, "of", None) if inspect.isclass(thing) else None
    made = made if inspect.ismethod(made) else None
    known = inspect.signature(made or thing)
    parameters = [
        p.replace(annotation=p.empty, default=p.default if _is_plain(p.default) else ...)
        for p in known.parameters.values()
    ]
    known = known.replace(parameters=parameters, return_annotation=known.empty)
    return f"{name}{'.of' if made else ''}{known}".replace("Ellipsis", "…")


def _is_plain(value: Any) -> bool:
    return value is inspect.Parameter.empty or isinstance(value, str | int | float | None)


def commands() -> str:
    """All commands with their options and keys of settings files; what several share once."""
    import click

    from streamplace.cli.main import cli

    rows = dict(_commands(cli, click.Context(cli, info_name="streamplace")))
    families = {name: rows.pop(name) for name in [*rows] if name.startswith("generate ")}
    (_, of_all), *others = families.values()
    common = [pair for pair in of_all if all(pair in own for _, own in others)]
    rows["generate FAMILY"] = ("Generate benchmark graphs or problems of a family", common)
    rows = dict(sorted(rows.items()))
    times = Counter(pair for _, options in rows.values() for pair in set(options))
    shared = sorted(pair for pair, number in times.items() if number > 1)
    users = {pair: tuple(name for name in rows if pair in rows[name][1]) for pair in shared}
    first = {own: next(pair for pair in shared if users[pair] == own) for own in users.values()}
    lines = ["**Shared by several commands**", ""]
    for own, leader in first.items():
        group = [pair for pair in shared if users[pair] == own]
        lines += [f"- {row}: {text}" for row, text in group[:1]]
        lines += [f"    - {row}: {text}" for row, text in group if (row, text) != leader]
    for name, (about, options) in rows.items():
        lines += ["", f"**`streamplace {name}`** {about}", ""]
        lines += [f"- {row}: {text}" for row, text in options if (row, text) not in shared]
        lines += _names([pair for pair in options if pair in first.values()], "")
        if name == "generate FAMILY":
            for family, (_, own) in families.items():
                words = f"`{family.split()[1]}`: "
                lines += _names([pair for pair in own if pair not in common], words)
    return "\n".join(lines)


Rows = list[tuple[str, str]]


def _names(options: Rows, words: str) -> list[str]:
    """One line with the names of options, if there are any."""
    names = (row.split("`")[1].split(", ")[-1].split()[0].rstrip("…") for row, _ in options)
    return [f"- {words}{' '.join(f'`{name}`' for name in names)}"] if options else []


def _commands(group: Any, context: Any, path: str = "") -> Iterator[tuple[str, tuple[str, Rows]]]:
    import click

    for name in group.list_commands(context):
        command = group.get_command(context, name)
        own = f"{path} {name}".strip()
        if isinstance(command, click.Group):
            yield from _commands(command, click.Context(command, context, name), own)
            continue
        arguments = " ".join(
            p.make_metavar(context) for p in command.params if isinstance(p, click.Argument)
        )
        options = [_option(p) for p in command.params if isinstance(p, click.Option)]
        settings = getattr(command, "settings", None)
        keys = [] if settings is None else [
            (f"key `{o.key_of(field)}{f' = {o.value}' if o.value else ''}`", o.help.rstrip("."))
            for field, o in settings.options().items()
            if not o.words
        ]  # fmt: skip
        about = command.get_short_help_str(300)
        yield f"{own} {arguments}".strip(), (about, [*filter(None, options), *keys])


def _option(option: Any) -> tuple[str, str] | None:
    """Words of an option and what it means; nothing for those that almost all commands have."""
    if option.name in ("settings_file", "as_json", "verbose") or not option.help:
        return None
    value = f" {option.metavar}" if option.metavar and not option.is_flag else ""
    meaning, _, default = option.help.partition("  [default: ")
    text = meaning.partition(". ")[0].rstrip(".") + (f" ({default[:-1]})" if default else "")
    many = "…" if option.multiple else ""
    return f"`{', '.join(option.opts)}{value}{many}`", text


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
    "commands": commands,
}


def _placer(placer: Any) -> str:
    explained = _parameters(inspect.getdoc(placer.function) or "")
    texts = placer.texts()
    return _list(
        (f"{placer.name}:{name}={default}", explained[name].partition(". ")[0].rstrip("."))
        for name, default in texts.items()
        if name not in OF_LEARNED
    )


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
    text = part.get("description", "").partition("\n")[0]
    about = f"{text}\n\n" if text else ""
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
    words = {"string": "text", "integer": "integer", "boolean": "true/false"}
    word = words.get(field["type"], field["type"])
    signs = {"minimum": "≥", "exclusiveMaximum": "<"}
    limits = [f"{sign}{field[key]:,.12g}" for key, sign in signs.items() if key in field]
    return f"{word} {', '.join(limits)}" if limits else word


def _noun(title: str) -> str:
    return title.rsplit("/", 1)[-1].removesuffix("Json").removesuffix("Toml").lower()


def _list(rows: Iterable[tuple[str, str]], indent: str = "") -> str:
    """One line per row: the first text as code, the second as what it means."""
    return "".join(f"{indent}- `{name}`: {text}\n" for name, text in rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    text = (f"|{'|'.join(cell.replace('|', chr(92) + '|') for cell in line)}|" for line in lines)
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    main()
