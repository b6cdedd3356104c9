"""Console of rich that treats every text as data: for bars and spinners."""

from rich.console import Console, HighlighterType, JustifyMethod, OverflowMethod
from rich.style import Style
from rich.text import Text

from streamplace.model.message_text import printable


class DataConsole(Console):
    """Prints texts literally, on one line, with unprintable characters escaped.

    Styles are given apart from texts, by ``style=`` or `titled`.
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
        """Make data of a text; lines and table cells come through here."""
        return Text(printable(text), style=style, justify=justify, overflow=overflow)
