"""XML whose elements are dropped, doubled, nested and changed."""

import copy
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
