"""One question over HTTP and its answer: within a time and a size, and from nobody else."""

import base64
import re
import secrets
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from threading import Event, Timer
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from streamplace.errors import SettingError
from streamplace.model.messages import shown

MOST_BYTES = 64 * 2**20
"""An answer about the largest cluster that can be described has less."""
CHUNK = 2**16
PORTS = {"http": 80, "https": 443}


class HttpAnswer(NamedTuple):
    """Status, content, and where it says to look instead."""

    status: int
    content: bytes
    location: str | None


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server answers.

    Attributes
    ----------
    authorization
        Name and password of the address, as HTTP sends them; they are shown nowhere.
    """

    scheme: str
    host: str
    port: int
    path: str = ""
    authorization: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, url: str) -> "Address":
        """Address from a text such as ``http://localhost:8081``.

        >>> str(Address.of("https://me:secret@flink.example/api/"))
        'https://flink.example:443/api'
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        odd = not url.isascii() or not url.isprintable() or " " in url
        if odd or not host or parts.scheme not in PORTS or parts.query or parts.fragment:
            raise SettingError(f"{masked(url)} is not an address; write http://HOST:8081")
        user = parts.netloc.rpartition("@")[0]
        token = base64.b64encode(unquote(user).encode()).decode()
        port = PORTS[parts.scheme] if port is None else port
        path = parts.path.rstrip("/")
        return cls(parts.scheme, host, port, path, f"Basic {token}" if user else None)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def masked(url: str) -> str:
    """Text that should be an address, quoted, without what may be a password.

    >>> masked("ftp://me:secret@host:21"), masked("localhost:8081")
    ("'…@host:21'", "'localhost:8081'")
    """
    _, at, host = url.rpartition("@")
    return f"'{shown('…@' + host if at else url)}'"


def exchange(
    address: Address,
    context: ssl.SSLContext | None,
    method: str,
    path: str,
    body: bytes | None,
    kind: str,
    seconds: float,
) -> HttpAnswer:
    """Ask and return the answer, whatever its status; redirections are not followed.

    Parameters
    ----------
    context
        What the connection is encrypted by, if it is.

    Raises
    ------
    OSError, HTTPException, ValueError
        When there is no whole answer within the time, or a larger one than any real one.
    """
    headers = {"Connection": "close"}
    if body is not None:
        headers["Content-Type"] = kind
    if address.authorization is not None:
        headers["Authorization"] = address.authorization
    deadline = time.monotonic() + seconds
    with (
        closing(_connected(address, context, seconds)) as connection,
        _until(deadline, connection.sock),
    ):
        if isinstance(connection.sock, ssl.SSLSocket):
            connection.sock.do_handshake()
        connection.request(method, address.path + path, body, headers)
        with connection.getresponse() as answer:
            return HttpAnswer(answer.status, _content(answer), answer.headers["Location"])


def _connected(address: Address, context: ssl.SSLContext | None, seconds: float) -> HTTPConnection:
    """Connection that has not shaken hands yet, where it will be encrypted."""
    connection = HTTPConnection(address.host, address.port, timeout=seconds)
    connection.connect()
    if context is not None:
        connection.sock = context.wrap_socket(
            connection.sock, server_hostname=address.host, do_handshake_on_connect=False
        )
    return connection


@contextmanager
def _until(deadline: float, sock: socket.socket) -> Iterator[None]:
    """End the connection when the time is over, however slowly its other end drips."""
    over = Event()

    def end() -> None:
        over.set()
        with suppress(OSError):
            socket.socket.shutdown(sock, socket.SHUT_RDWR)

    timer = Timer(deadline - time.monotonic(), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, HTTPException, ValueError):
        if not over.is_set():
            raise
    finally:
        timer.cancel()
    if over.is_set():
        raise TimeoutError


def _content(answer: HTTPResponse) -> bytes:
    content = bytearray()
    while chunk := answer.read1(CHUNK):  # read() would trust the sizes that the other end tells
        content += chunk
        if len(content) > MOST_BYTES:
            raise ValueError(f"its answer is larger than {MOST_BYTES >> 20} MiB")
    if answer.length:
        raise ValueError("its answer is incomplete")
    return bytes(content)


def multipart(jar: Path) -> tuple[bytes, str]:
    """A jar as Flink takes it: the body of the request, and its content type."""
    boundary = secrets.token_hex(16)
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="jarfile"; '
        f'filename="{re.sub(r"[^A-Za-z0-9_.-]", "_", jar.name)}"\r\n'
        "Content-Type: application/x-java-archive\r\n\r\n"
    )
    body = head.encode() + jar.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
    return body, f"multipart/form-data; boundary={boundary}"
