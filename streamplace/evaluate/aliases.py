"""Check of the placers' aliases in a file of results: each must name one placer."""

from collections.abc import Iterable
from pathlib import Path

from streamplace.errors import SettingError
from streamplace.evaluate.records import Record
from streamplace.io.files import spot
from streamplace.model.messages import quoted
from streamplace.placers.named import AliasedPlacer


class SavedAliases:
    """Aliases in a file of results, compared with those of a comparison.

    Parameters
    ----------
    placers
        Placers of the comparison.
    path
        File of the results, for messages.
    """

    def __init__(self, placers: Iterable[AliasedPlacer], path: Path) -> None:
        self._specs = {alias: spec for alias, spec in placers if alias is not None}
        self._path = path
        self._saved: set[str] = set()

    def check(self, record: Record) -> None:
        """Raise SettingError if a saved record has an alias that now names another placer."""
        if record.alias is None or record.alias not in self._specs:
            return
        if record.placer != self._specs[record.alias]:
            raise SettingError(
                f"{spot(self._path)}: the alias {quoted(record.alias)} stands for "
                f"{quoted(record.placer)} in these results, not for "
                f"{quoted(self._specs[record.alias])}; choose another alias or another folder"
            )
        self._saved.add(record.alias)

    def is_new(self, record: Record) -> bool:
        """Whether a record has an alias that is in no saved record."""
        return record.alias is not None and record.alias not in self._saved
