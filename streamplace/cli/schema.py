"""``streamplace schema``: the file formats as JSON Schema."""

import click

from streamplace.cli._command import verb
from streamplace.cli._options import with_json
from streamplace.cli._output import print_json


@verb("schema", "Print the JSON Schema of a file format.", "schema graph > graph.schema.json")
@click.argument("name", metavar="graph|problem|placement|cluster|constraints|offers")
@with_json
def command(name: str, as_json: bool) -> None:
    """Print the JSON Schema of a file format (clusters, constraints and offers are TOML files)."""
    from streamplace.io.schema import json_schema

    print_json(json_schema(name))
