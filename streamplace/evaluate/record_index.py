"""Where known results stand in a file: sixteen bytes each, so that a million need no memory."""

from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import FormatError
from streamplace.evaluate.record_file import RecordFile
from streamplace.evaluate.records import Key, Record, numbered


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Records of a file by what makes a record a repetition of another.

    Attributes
    ----------
    hashes, starts
        Of every record, the hash of its key, ascending, and the byte at which it begins.
    """

    file: RecordFile
    hashes: NDArray[np.uint64]
    starts: NDArray[np.uint64]

    @classmethod
    def of(cls, file: RecordFile) -> "RecordIndex":
        """Records that are in a file by now."""
        hashes, starts = array("Q"), array("Q")
        for start, record in file.located():
            hashes.append(numbered(*record.key))
            starts.append(start)
        columns = np.array(hashes, np.uint64), np.array(starts, np.uint64)
        order = np.argsort(columns[0], kind="stable")
        return cls(file, columns[0][order], columns[1][order])

    @classmethod
    def none(cls, file: RecordFile) -> "RecordIndex":
        """Nothing, of a file that cannot be read."""
        return cls(file, np.empty(0, np.uint64), np.empty(0, np.uint64))

    def __len__(self) -> int:
        return len(self.hashes)

    def find(self, key: Key) -> Record | None:
        """Last record of a key, None where there is none."""
        wanted = np.uint64(numbered(*key))
        at = int(np.searchsorted(self.hashes, wanted, "right")) - 1
        if at < 0 or self.hashes[at] != wanted:
            return None
        try:
            record = self.file.at(int(self.starts[at]))
        except FormatError:  # the file was replaced meanwhile
            return None
        return record if record.key == key else None
