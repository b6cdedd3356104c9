"""One HTTP request and its answer, with limits for time and size and without redirections."""

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
"""Maximum size of an answer; that about the largest supported cluster is smaller."""
CHUNK = 2**16
PORTS = {"http": 80, "https": 443}


class HttpAnswer(NamedTuple):
    """Status, content, and target of a redirection."""

    status: int
    content: bytes
    location: str | None


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a server."""

    scheme: str
    host: str
    port: int
    path: str = ""
    # Name and password of the address, as HTTP sends them; they are never displayed.
    authorization: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, url: str) -> "Address":
        """Parse a text such as ``http://localhost:8081``.

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
    """Quote a text that should be an address, without what may be a password.

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
    """Send a request and return the answer, whatever its status; do not follow redirections.

    ``context``: TLS context, if the connection is encrypted.

    An OSError, HTTPException or ValueError says that there is no complete answer within the time,
    or that it is too large.
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
    """Open a connection; an encrypted one has not performed its handshake yet."""
    connection = HTTPConnection(address.host, address.port, timeout=seconds)
    connection.connect()
    if context is not None:
        connection.sock = context.wrap_socket(
            connection.sock, server_hostname=address.host, do_handshake_on_connect=False
        )
    return connection


@contextmanager
def _until(deadline: float, sock: socket.socket) -> Iterator[None]:
    """End the connection at the deadline, even if the server still sends data slowly."""
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
    while chunk := answer.read1(CHUNK):  # read() would trust the sizes that the server claims
        content += chunk
        if len(content) > MOST_BYTES:
            raise ValueError(f"its answer is larger than {MOST_BYTES >> 20} MiB")
    if answer.length:
        raise ValueError("its answer is incomplete")
    return bytes(content)


def multipart(jar: Path) -> tuple[bytes, str]:
    """Body and content type of the request that uploads a jar."""
    boundary = secrets.token_hex(16)
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="jarfile"; '
        f'filename="{re.sub(r"[^A-Za-z0-9_.-]", "_", jar.name)}"\r\n'
        "Content-Type: application/x-java-archive\r\n\r\n"
    )
    body = head.encode() + jar.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
    return body, f"multipart/form-data; boundary={boundary}"
