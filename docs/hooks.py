"""Puts files outside `docs/` to which pages link on the built site, and corrects the links.

README, CONTRIBUTING and READMEs beside the code are pages in the navigation; programs are copied as
they are. A link to what is neither becomes plain words.
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
PAGES = {
    "README.md": "results/overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "sim/README.md": "reference/streamsim.md",
    "streamplace/papers/README.md": "results/differences.md",
    "streamplace/flink/README.md": "explanation/flink.md",
    "streamplace/flink/pin/README.md": "explanation/pinning.md",
    "streamplace/planning/README.md": "explanation/plans.md",
    "streamplace/learn/README.md": "explanation/training.md",
}
"""Pages outside `docs/`, and where they are on the site."""
COPIED = frozenset({".py", ".java", ".cff", ".json", ".toml"})


def on_files(files: Any, config: Any) -> Any:
    """Add the pages, and the files to which pages link (called by mkdocs)."""
    from mkdocs.structure.files import File

    texts = {page.src_uri: page.content_string for page in files.documentation_pages()}
    for source, place in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=text))
        texts[place] = text
    for place, text in texts.items():
        for match in LINK.finditer(text):
            source = _source(place, match[2])
            copied = _copied(source)
            if copied and files.get_file_from_path(copied) is None:
                file = File.generated(config, copied, abs_src_path=str(ROOT / source))
                files.append(file)
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Correct the links of a page (called by mkdocs)."""
    place = page.file.src_uri

    def corrected(match: re.Match[str]) -> str:
        source = _source(place, match[2])
        target = source.removeprefix("docs/") if source.startswith("docs/") else ""
        target = PAGES.get(source) or target or _copied(source)
        if not target:
            return match[1]
        link = os.path.relpath(target, PurePosixPath(place).parent)
        return f"[{match[1]}]({link}{match[3] or ''})"

    return LINK.sub(corrected, markdown)


def _source(place: str, link: str) -> str:
    """File of the repository to which a page of the site links."""
    source = {to: at for at, to in PAGES.items()}.get(place, f"docs/{place}")
    return os.path.normpath(PurePosixPath(source).parent / link)


def _copied(source: str) -> str:
    """Place on the site of a file that is copied; empty for all others."""
    is_copied = not source.startswith("docs/") and PurePosixPath(source).suffix in COPIED
    return source if is_copied and (ROOT / source).is_file() else ""
