"""CSV: one operator per row, for spreadsheets, data frames and scripts."""

import csv
import io
from collections.abc import Iterable, Iterator

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import export
from streamplace.engines.text import quoted_csv, unique, unquoted_csv
from streamplace.errors import FormatError
from streamplace.io.files import located
from streamplace.io.parsing import decoded

COLUMNS = ("operator", "pe", "device", "requires", "colocate", "exlocate")


def read_csv(content: bytes, where: str) -> dict[str, str]:
    """Operator → device from a table; other columns are ignored."""
    text = decoded(content, where)
    with located(where):
        try:
            # some spreadsheets write semicolons or tabs instead of commas
            header = text.partition("\n")[0]
            mark = next((mark for mark in ";\t" if mark in header and "," not in header), ",")
            rows = csv.DictReader(io.StringIO(text, newline=""), strict=True, delimiter=mark)
            names = rows.fieldnames or ()
            if [names.count(name) for name in ("operator", "device")] != [1, 1]:
                raise FormatError("has no columns operator and device; add a first row of names")
            return unique((_text(row["operator"]), _text(row["device"])) for row in rows)
        except csv.Error as error:
            raise FormatError(f"is not valid CSV: {error}; correct or export it again") from None


def _text(cell: str | None) -> str | None:
    return None if cell is None else unquoted_csv(cell)


@export("csv", suffix=".csv", read=read_csv)
def as_csv(deployment: Deployment) -> str:
    """Table of operators: PE, device, required tags and groups, for spreadsheets and scripts."""
    return "".join(map(_line, [COLUMNS, *_rows(deployment)]))


def _line(cells: Iterable[str | int]) -> str:
    return ",".join(quoted_csv(str(cell)) for cell in cells) + "\n"


def _rows(deployment: Deployment) -> Iterator[tuple[str | int, ...]]:
    operators = deployment.unit_problem.graph.operators
    groups = deployment.memberships()
    element = {name: e for e in deployment.elements for name in e.operators}
    for name, tags in zip(operators.name, operators.requires, strict=True):
        yield (
            name,
            element[name].number,
            element[name].device,
            ";".join(sorted(tags)),
            *groups[name],
        )
