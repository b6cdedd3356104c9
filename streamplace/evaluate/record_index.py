"""Index of the results in a file, with sixteen bytes per result to fit millions into memory."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import FormatError
from streamplace.evaluate.record_file import RecordFile
from streamplace.evaluate.records import Key, Record, key_number


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Records of a file by key; records with equal keys are repetitions of one result.

    Attributes
    ----------
    numbers, starts
        Number of every record's key, ascending, and position of the record in the file.
    """

    file: RecordFile
    numbers: NDArray[np.uint64]
    starts: NDArray[np.uint64]

    @classmethod
    def of(
        cls, file: RecordFile, on_record: Callable[[Record], None] | None = None
    ) -> "RecordIndex":
        """Index the present records of a file; ``on_record`` is called with each."""
        numbers, starts = array("Q"), array("Q")
        for start, record in file.located():
            numbers.append(key_number(*record.key))
            starts.append(start)
            if on_record is not None:
                on_record(record)
        columns = np.array(numbers, np.uint64), np.array(starts, np.uint64)
        order = np.argsort(columns[0], kind="stable")
        return cls(file, columns[0][order], columns[1][order])

    @classmethod
    def empty(cls, file: RecordFile) -> "RecordIndex":
        """Index of an unreadable file."""
        return cls(file, np.empty(0, np.uint64), np.empty(0, np.uint64))

    def __len__(self) -> int:
        return len(self.numbers)

    def find(self, key: Key) -> Record | None:
        """Last record of a key; None if there is none."""
        number = np.uint64(key_number(*key))
        at = int(np.searchsorted(self.numbers, number, "right")) - 1
        if at < 0 or self.numbers[at] != number:
            return None
        try:
            record = self.file.at(int(self.starts[at]))
        except FormatError:  # the file was replaced meanwhile
            return None
        return record if record.key == key else None
