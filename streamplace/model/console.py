"""A console to which every text is data: names hold no markup and send nothing to the terminal."""

from rich.console import Console, HighlighterType, JustifyMethod, OverflowMethod
from rich.style import Style
from rich.text import Text

from streamplace.model.messages import printable


class DataConsole(Console):
    """Prints texts as they are, on one line, with what cannot be printed escaped.

    Styles are told apart from texts: by ``style=``, or by `titled`.
    """

    def render_str(
        self,
        text: str,
        *,
        style: str | Style = "",
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        emoji: bool | None = None,
        markup: bool | None = None,
        highlight: bool | None = None,
        highlighter: HighlighterType | None = None,
    ) -> Text:
        """Every text comes through here: lines, and the cells of tables."""
        return Text(printable(text), style=style, justify=justify, overflow=overflow)


def titled(name: str, rest: str) -> Text:
    """Line that begins with a name in bold."""
    return Text.assemble((printable(name), "bold"), printable(rest))
