"""Links to files outside `docs/` are plain words on the built site, which does not hold them."""

import re
from typing import Any

LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+)[^)\s]*\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Unlink what lies outside (called by mkdocs)."""
    depth = page.file.src_uri.count("/")
    return LINK.sub(lambda x: x[1] if x[2].count("/") > depth else x[0], markdown)
