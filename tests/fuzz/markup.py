"""XML whose elements, and tables whose columns, are dropped, doubled, nested and swapped."""

import copy
import csv
import io
from random import Random
from xml.etree import ElementTree

from fuzz.fields import nearby

MOST_DEPTH = 200


def changed_elements(content: bytes, rng: Random) -> bytes:
    """Return an XML document with one element or attribute that is not as it was.

    Raises
    ------
    ValueError
        Where the content is none.
    """
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, LookupError) as error:
        raise ValueError(str(error)) from None
    pairs = [(parent, child) for parent in root.iter() for child in parent]
    if not pairs:
        raise ValueError("no element in the root")
    parent, child = rng.choice(pairs)
    way = rng.randrange(7)
    if way == 0:
        parent.remove(child)
    elif way == 1:
        parent.append(copy.deepcopy(child))
    elif way == 2:
        _nest(child, rng)
    elif way == 3:
        root.append(copy.deepcopy(rng.choice(pairs)[0]))
    elif way == 4:
        child.text = rng.choice(("", "a", "1e999", child.text or "é"))
    elif child.attrib:
        _change_attribute(child, rng)
    return ElementTree.tostring(root)


def _nest(element: ElementTree.Element, rng: Random) -> None:
    for _ in range(rng.choice((1, 2, MOST_DEPTH))):
        inner = copy.copy(element)
        element[:] = [inner]


def _change_attribute(element: ElementTree.Element, rng: Random) -> None:
    name = rng.choice(sorted(element.attrib))
    value = element.attrib.pop(name)
    if rng.random() < 0.6:
        element.attrib[name] = rng.choice(("", "0", "-1", "1e999", str(nearby(value, rng))))


def changed_columns(content: bytes, rng: Random) -> bytes:
    """Return a table in CSV with one cell, row or column that is not as it was.

    Raises
    ------
    ValueError
        Where the content is none.
    """
    try:
        rows = [row for row in csv.reader(io.StringIO(content.decode())) if row]
    except csv.Error as error:
        raise ValueError(str(error)) from None
    if len(rows) < 2 or len(rows[0]) < 2:
        raise ValueError("no table")
    row, column, way = rng.randrange(len(rows)), rng.randrange(len(rows[0])), rng.randrange(6)
    if way == 0:
        rows.insert(rng.randrange(len(rows) + 1), rows[row])
    elif way == 1:
        del rows[row]
    elif way == 2:
        rows = [line[:column] + line[column + 1 :] for line in rows]
    elif way == 3:
        rows = [[*line, *line[column : column + 1]] for line in rows]
    elif way == 4:
        rows[row] = rows[row][::-1]
    else:
        rows[row] = [str(nearby(cell, rng)) for cell in rows[row]]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
