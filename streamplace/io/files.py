"""Files: read with clear errors, written whole or not at all."""

import gzip
import os
import tempfile
import tomllib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from streamplace.errors import FormatError

LONGEST_LINE = 64 * 2**20
LARGEST_FILE = 4 * 2**30
_READ_ERRORS = (OSError, EOFError, zlib.error)


def read_bytes(path: Path) -> bytes:
    """Content of a file, unpacked if its name ends in ``.gz``."""
    with _reading(path), _open(path) as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise FormatError(f"{path}: is larger than {LARGEST_FILE >> 30} GiB")
    return content


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered non-empty lines, streamed; a line may be 64 MiB long at most."""
    with _reading(path), _open(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise FormatError(
                    f"{path}:{number}: the line is longer than {LONGEST_LINE >> 20} MiB; "
                    "put such a graph into a .json file of its own"
                )
            if line.strip():
                yield number, line


def read_toml(path: Path) -> dict[str, Any]:
    """Content of a TOML file."""
    try:
        return tomllib.loads(read_bytes(path).decode())
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FormatError(f"{path}: is not valid TOML: {error}") from None


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears under its name only when the block ends well.

    Names that end in ``.gz`` are packed, without a time stamp, so that equal content gives equal
    files.
    """
    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {_reason(error)}") from None
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with writing(path) as file:
        file.write(text.encode())


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except _READ_ERRORS as error:
        raise FormatError(f"{path}: cannot be read: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, IsADirectoryError):
        return "it is a directory; name a file"
    if isinstance(error, FileNotFoundError):
        return "no such file or directory"
    if isinstance(error, gzip.BadGzipFile | EOFError | zlib.error):
        return f"it is not a whole gzip file ({error})"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
