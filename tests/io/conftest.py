"""The readers' tests share their documents."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
