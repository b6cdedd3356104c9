"""``streamplace schema``: the file formats as JSON Schema."""

from pathlib import Path

import click

from streamplace.cli._command import verb
from streamplace.cli._options import common
from streamplace.cli._output import print_json, save_document


@verb("schema", "Print the JSON Schema of a file format.", "schema graph -o graph.schema.json")
@click.argument("name", metavar="graph|problem|placement|cluster|constraints|offers")
@common("Write the schema to this file instead of stdout.")
def command(name: str, as_json: bool, output: Path | None) -> None:
    """Print the JSON Schema of a file format (clusters, constraints and offers are TOML files)."""
    from streamplace.io.schema import json_schema

    schema = json_schema(name)
    if output is not None:
        save_document(schema, output)
    if output is None or as_json:
        print_json(schema)
