"""Elements of pages."""

from html.parser import HTMLParser


class Elements(HTMLParser):
    """Elements of a page with their attributes, and the texts of some of them."""

    def __init__(self, page):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        """Note an element."""
        given = dict(attrs)
        self.elements.append((tag, given))
        self._open = f"{tag}#{given['id']}" if given.get("id") else tag

    def handle_data(self, data):
        """Note the text of the element that began last."""
        self.texts[self._open] = self.texts.get(self._open, "") + data
