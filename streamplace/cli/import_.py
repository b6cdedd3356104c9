"""``streamplace import``: graphs from foreign formats."""

from pathlib import Path

import click

from streamplace.cli._command import GroupedCommand
from streamplace.cli._options import FILE, GRAPHS, common
from streamplace.cli._output import print_json, progress, say
from streamplace.errors import SettingError


class Import(GroupedCommand):
    """The command, with an option for every option of a registered reader."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Parameters of the command and options of the readers, which are loaded at this point."""
        from streamplace.io.registry import reader_options

        source, *others = super().get_params(ctx)
        options = [
            click.Option([f"--{name}"], is_flag=True, help=about)
            for name, about in reader_options().items()
        ]
        return [source, *others[:1], *options, *others[1:]]


@click.command(
    "import",
    cls=Import,
    short_help="Read graphs in the format of another tool.",
    epilog="Example: streamplace import dream published/ -o published.jsonl.gz",
)
@click.argument("format_name", metavar="FORMAT")
@click.argument("source", type=FILE)
@common(
    "Where to write: .json for one graph, .jsonl or .jsonl.gz for a data set.",
    suffixes=GRAPHS,
    is_needed=True,
)
def command(format_name: str, source: Path, as_json: bool, output: Path, **options: bool) -> None:
    """Read SOURCE, a file or a folder in FORMAT (such as dream), and write native graphs.

    A PyTorch model (torch) is named as package.module:function instead.
    """
    from streamplace.io.lines import LINES
    from streamplace.io.problems import write_problem, write_problems
    from streamplace.io.registry import FORMATS

    chosen = [name for name, is_set in options.items() if is_set]
    graphs = FORMATS[format_name].with_options(chosen).read(source)
    if output.name.endswith(LINES):
        with progress(f"importing {source}") as tick:
            count = write_problems(tick.over(graphs), output)
    else:
        first = next(graphs)
        if next(graphs, None) is not None:
            raise SettingError(f"{source} holds several graphs; write them to a .jsonl.gz file")
        write_problem(first, output)
        count = 1
    if as_json:
        print_json({"graphs": count, "output": str(output)})
    else:
        say(f"{count} graph{'s' if count != 1 else ''} → {output}")
