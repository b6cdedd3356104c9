"""Verbs that list objectives and placers, and print schemas of file formats."""

from streamplace.settings.option import argument
from streamplace.settings.verb import SILENT, Listing, Progress, Verb, Written


class ListObjectives(Verb):
    """List the objectives for --objective and --require, including those of other packages."""

    def run(self, progress: Progress = SILENT) -> Listing:
        """List them."""
        from streamplace.display.report import Report, Sheet
        from streamplace.objectives.registry import OBJECTIVES

        rows = [OBJECTIVES[name] for name in OBJECTIVES]
        head = ("objective", "best", "unit", "what it is")
        table = tuple((row.name, row.sense, row.unit, row.summary) for row in rows)
        keys = ("name", "sense", "unit", "summary")
        return Listing(
            lambda: Report((Sheet(head, table),)),
            lambda: [dict(zip(keys, row, strict=True)) for row in table],
        )


class ListPlacers(Verb):
    """List the placers, including those of other packages."""

    def run(self, progress: Progress = SILENT) -> Listing:
        """List them; with details, also their options."""
        from streamplace.display.report import Brief, Detail, Names, Report, Sheet
        from streamplace.placers.registry import PLACERS

        rows = [PLACERS[name] for name in PLACERS]
        streams = [row for row in rows if not row.objectives or "throughput" in row.objectives]
        tasks = ", ".join(row.name for row in rows if row not in streams)
        lines = tuple((row.name, Names((row.summary,), lines=1)) for row in streams)
        table = tuple(
            (row.name, row.summary, ", ".join(f"{key}={text}" for key, text in row.texts().items()))
            for row in rows
        )
        report = Report(
            (
                Brief(Sheet(("placer", "what it does"), lines)),
                Brief(f"For task graphs alone: {tasks}. With -v all are described."),
                Detail(Sheet(("placer", "what it does", "options"), table)),
            )
        )
        return Listing(
            lambda: report,
            lambda: [
                {"name": row.name, "summary": row.summary, "options": row.texts()} for row in rows
            ],
        )


class PrintSchema(Verb):
    """Print the JSON Schema of a file format (clusters, constraints and offers are TOML files)."""

    name_of_format: str = argument(
        is_file=False, word="graph|problem|placement|cluster|constraints|offers"
    )

    def run(self, progress: Progress = SILENT) -> Written:
        """Make the schema."""
        from streamplace.io.files import json_text
        from streamplace.io.schema import json_schema

        schema = json_schema(self.name_of_format)
        return Written(schema, text=json_text(schema))
