"""What a training has written about its epochs."""

import json
from pathlib import Path
from typing import Any


def history(folder: Path) -> list[dict[str, Any]]:
    """Everything about every epoch but the time it took."""
    rows = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]
