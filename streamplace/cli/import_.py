"""``streamplace import``: graphs from foreign formats."""

from pathlib import Path

import click

from streamplace.cli._options import FILE, common
from streamplace.cli._output import print_json, progress, say
from streamplace.errors import SettingError


@click.command(
    "import",
    epilog="Example: streamplace import dream published/ -o published.jsonl.gz",
)
@click.argument("format_name", metavar="FORMAT")
@click.argument("source", type=FILE)
@click.option(
    "--measure", is_flag=True, help="Take the seconds that operators need on this CPU (torch)."
)
@click.option(
    "--blocks", is_flag=True, help="Colocate what a device map cannot take apart (torch)."
)
@click.option(
    "--chains",
    is_flag=True,
    help="Colocate what only feeds one operator with no other input (onnx, openvino).",
)
@common("Where to write: .json for one graph, .jsonl or .jsonl.gz for a data set.")
def command(
    format_name: str,
    source: Path,
    measure: bool,
    blocks: bool,
    chains: bool,
    as_json: bool,
    seed: int,
    output: Path | None,
) -> None:
    """Read SOURCE, a file or a folder in FORMAT (such as dream), and write native graphs.

    A PyTorch model (torch) is named as package.module:function instead.
    """
    from streamplace.io.problems import write_all_known, write_known
    from streamplace.io.registry import FORMATS

    if output is None:
        raise SettingError("where should the graphs go? Give -o FILE.json or -o FILE.jsonl.gz")
    given = {"measure": measure, "blocks": blocks, "chains": chains}
    asked = [name for name, wanted in given.items() if wanted]
    known = FORMATS[format_name].with_options(asked).read(source)
    if output.name.endswith((".jsonl", ".jsonl.gz")):
        with progress(f"importing {source}") as tick:
            count = write_all_known(tick.over(known), output)
    else:
        first = next(known)
        if next(known, None) is not None:
            raise SettingError(f"{source} holds several graphs; write them to a .jsonl.gz file")
        write_known(first, output)
        count = 1
    if as_json:
        print_json({"graphs": count, "output": str(output)})
    else:
        say(f"{count} graph{'s' if count != 1 else ''} → {output}")
