"""Files: read with clear errors, written completely or not at all, appended to by one process.

A lock ends with the process that holds it.
"""

import fcntl
import gzip
import json
import os
import secrets
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from streamplace.errors import FormatError, SettingError, StreamplaceError
from streamplace.io.parsing import parse_toml_text
from streamplace.model.message_text import quoted, shown

MAX_LINE_BYTES = 64 * 2**20
MAX_FILE_BYTES = 2**30
MAX_EMPTY_LINES = 2**20
MAX_TOML_BYTES = 16 * 2**20
MAX_PATH_LETTERS = 500
REMEDY = "wait until it has ended, or choose another folder"
CHUNK_BYTES = 2**20
STANDARD_OUTPUT = Path("/dev/stdout")
_READ_ERRORS = (OSError, EOFError, ValueError, zlib.error)


def file_path(path: object) -> Path:
    """Path of a file; raise SettingError for anything else."""
    if not isinstance(path, str | os.PathLike):
        raise SettingError(f"path is {quoted(path)}; it must be the path of a file")
    return Path(path)


def read_bytes(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a file of at most ``max_bytes``, unpacked if its name ends in ``.gz``."""
    content = bytearray()
    with reading(path), _open(path) as file:
        while chunk := file.read(CHUNK_BYTES):
            content += chunk
            if len(content) > max_bytes:
                raise FormatError(f"{spot(path)}: is larger than {max_bytes >> 20} MiB; split it")
    return bytes(content)


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Read numbered non-empty lines of at most 64 MiB, one after the other."""
    with reading(path), _open(path) as file:
        number = empty = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise FormatError(
                    f"{spot(path)}:{number}: the line is longer than {MAX_LINE_BYTES >> 20} MiB; "
                    "put such a graph into a .json file of its own"
                )
            if line.strip():
                yield number, line
            elif (empty := empty + 1) > MAX_EMPTY_LINES:
                raise FormatError(f"{spot(path)}:{number}: too many empty lines; remove them")


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    return parse_toml_text(read_bytes(path, MAX_TOML_BYTES), spot(path))


def check_suffix(path: Path, noun: str, *suffixes: str) -> None:
    """Raise FormatError unless the name of a file ends in one of these suffixes."""
    if not path.name.endswith(suffixes):
        raise FormatError(f"{spot(path)}: the name of {noun} must end in {' or '.join(suffixes)}")


def is_folder(path: Path) -> bool:
    """Whether a path leads to a folder; False if that cannot be determined."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises errors for too long names


def is_file(path: Path) -> bool:
    """Whether a path leads to a file; False if that cannot be determined."""
    return os.path.isfile(path)  # noqa: PTH113 - as above


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces the one at its path only if the block succeeds.

    Files whose names end in ``.gz`` are packed, without a time stamp, so that equal content gives
    equal files. A pipe or a device is written to directly, and so is standard output.
    """
    target = _target(path)
    opened = _overwriting(target) if is_special(target) else _replacing(target)
    with _write_errors(path), opened as raw, _packing(raw, path) as file:
        yield file


def write_text(path: Path, text: str) -> None:
    """Write a text file completely or not at all."""
    content = encoded(text, spot(path))
    with writing(path) as file:
        file.write(content)


def json_text(document: object) -> str:
    """Text of a JSON file that people may read."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def json_line(document: object) -> str:
    """Line of a file with one JSON document per line."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"


def write_texts(texts: Mapping[Path, str]) -> None:
    """Write text files into existing folders; all are written before the first is renamed."""
    contents = {path: encoded(text, spot(path)) for path, text in texts.items()}
    with ExitStack() as files:
        for path, content in contents.items():
            file = files.enter_context(writing(path))
            file.write(content)
            file.flush()


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, without packing it."""
    with _write_errors(path), _replacing(_target(path)) as file:
        file.write(content)


def make_folder(path: Path) -> None:
    """Create a folder and its parents if they are missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = _reason(error)
        raise FormatError(f"{spot(path)}: cannot create the folder: {reason}") from None


def user_cache() -> Path:
    """Streamplace's folder in the user's cache folder; it may be missing or read-only."""
    return _user_folder("XDG_CACHE_HOME", ".cache")


def user_state() -> Path:
    """Streamplace's folder for data that cannot be recreated; it may be missing or read-only."""
    return _user_folder("XDG_STATE_HOME", ".local/state")


def _user_folder(variable: str, usual: str) -> Path:
    named = os.environ.get(variable)
    try:
        return (Path(named) if named else Path.home() / usual) / "streamplace"
    except RuntimeError:  # a user without a home; this path never exists
        return Path(os.devnull) / "streamplace"


def encoded(text: str, where: str) -> bytes:
    """Encode a text as UTF-8; raise FormatError for lone surrogates."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        bad = shown(text[error.start : error.end])
        raise FormatError(f"{where}: {bad} is not valid Unicode; correct the text") from None


@contextmanager
def appending(path: Path, start: bytes) -> Iterator[Callable[[bytes], None]]:
    """Lock a file of lines against other processes, and yield a function that appends lines.

    An incomplete last line, as of an interrupted process, is removed; but a file with such a line
    is refused unless it begins with ``start``, as all such files do. A new file is removed if
    nothing was appended.
    """
    is_new = not path.exists()
    with _write_errors(path):
        file = path.open("a+b", buffering=0)

    def append(lines: bytes) -> None:
        with _write_errors(path):
            while lines:
                lines = lines[file.write(lines) :]

    with file:
        _lock(file, path, f"adding results to it; {REMEDY}")
        with _write_errors(path):
            _remove_torn_line(file, path, start)
        try:
            yield append
        finally:
            if is_new and not file.tell():
                path.unlink(missing_ok=True)


def _remove_torn_line(file: FileIO, path: Path, start: bytes) -> None:
    size = file.seek(0, os.SEEK_END)
    if not size:
        return
    with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        whole = content.rfind(b"\n") + 1
        beginning = content[: len(start)]
    if whole == size:
        return
    if not start.startswith(beginning):
        raise FormatError(f"{spot(path)}: does not contain such results; name another file")
    file.truncate(whole)


@contextmanager
def claim_folder(folder: Path) -> Iterator[None]:
    """Lock a folder against training by other processes."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # it cannot be locked
        yield
        return
    try:
        _lock(descriptor, folder, f"training into it; {REMEDY}")
        yield
    finally:
        os.close(descriptor)


def _lock(file: FileIO | int, path: Path, doing: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FormatError(f"{spot(path)}: another process is {doing}") from None
    except OSError:
        pass  # no locks here, as on some network file systems


@contextmanager
def located(where: str) -> Iterator[None]:
    """Prefix every error of the block with a place."""
    try:
        yield
    except StreamplaceError as error:
        raise type(error)(f"{where}: {error}") from None


def spot(path: Path) -> str:
    """Path for messages."""
    return shown(str(path), MAX_PATH_LETTERS)


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of the block into one line: why a file cannot be read."""
    try:
        yield
    except FormatError:  # a ValueError, too
        raise
    except _READ_ERRORS as error:
        raise FormatError(f"{spot(path)}: cannot be read: {_reason(error)}") from None


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    """Turn errors of the block into one line: why a file cannot be written."""
    try:
        yield
    except OSError as error:
        raise FormatError(f"{spot(path)}: cannot be written: {_reason(error)}") from None


def _target(path: Path) -> Path:
    """Resolve symbolic links, so that writing keeps them."""
    try:
        target = path
        if not is_special(path):
            with suppress(FileNotFoundError):
                path.stat()  # refuses a loop of links, which newer Pythons resolve to itself
            target = path.resolve()
        if target.is_dir():
            raise IsADirectoryError
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name
        raise FormatError(f"{spot(path)}: cannot be written: {_reason(error)}") from None
    return target


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """Open a new file in the same folder that replaces the target, with its mode, at the end."""
    temporary = target.with_name(f".streamplace-{secrets.token_hex(6)}")
    try:
        with temporary.open("xb") as raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())
            with suppress(FileNotFoundError):
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def _overwriting(target: Path) -> Iterator[BinaryIO]:
    if target == STANDARD_OUTPUT:  # opened by its name, a file would lose its earlier content
        sys.stdout.flush()
    with os.fdopen(os.dup(1), "wb") if target == STANDARD_OUTPUT else target.open("wb") as raw:
        yield raw


@contextmanager
def _packing(raw: BinaryIO, path: Path) -> Iterator[BinaryIO]:
    if path.suffix != ".gz":
        yield raw
        return
    with gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        yield cast(BinaryIO, packed)


def is_special(path: Path) -> bool:
    """Whether a path is standard output, a pipe or a device, which must not be replaced."""
    if path == STANDARD_OUTPUT:
        return True
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # opening it raises an error with the reason
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _reason(error: Exception) -> str:
    if isinstance(error, IsADirectoryError):
        return "it is a directory; name a file"
    if isinstance(error, FileNotFoundError):
        return "no such file or directory; correct the path"
    if isinstance(error, PermissionError):
        return "permission denied; change its permissions or name another file"
    if type(error) is ValueError and "embedded null" in str(error):  # Pythons differ in the words
        return "its name contains a null byte; correct the path"
    if isinstance(error, gzip.BadGzipFile | EOFError | zlib.error):
        return (
            f"it is not a complete gzip file ({shown(str(error))}); download or generate it again"
        )
    text = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return shown(text)
