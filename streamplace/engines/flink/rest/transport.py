"""One HTTP request and its answer, without redirections, and access to a secured interface.

Time and size of the answer are limited. Access is by trusted certificates and the user's
credentials.
"""

import base64
import os
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
from streamplace.io.files import read_bytes, spot
from streamplace.model.messages import shown

MOST_BYTES = 64 * 2**20
"""Maximum size of an answer; that about the largest supported cluster is smaller."""
CHUNK = 2**16
PORTS = {"http": 80, "https": 443}
AUTHORIZATION = "STREAMPLACE_FLINK_AUTHORIZATION"
"""Environment variable that contains the same text as an authorization file."""
LARGEST_FILE = 2**16


@dataclass(frozen=True, slots=True)
class Access:
    """How the server and the user are authenticated."""

    # Certificates that the server's is checked against, instead of the system's.
    authorities: Path | None = None
    # Files of the client's certificate and private key; the former may contain both.
    certificate: Path | None = None
    key: Path | None = None
    # Value of the HTTP header; it is never displayed.
    authorization: str | None = field(default=None, repr=False)

    @property
    def is_for_https(self) -> bool:
        """Whether any setting concerns encryption."""
        return any((self.authorities, self.certificate, self.key))

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of connections."""
        if self.key is not None and self.certificate is None:
            raise SettingError("--key is the private key of --cert; give both")
        try:
            context = ssl.create_default_context(cafile=self.authorities)
        except OSError as error:
            raise _unreadable(self.authorities, "certificates", error) from None
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, _no_password)
            except OSError as error:
                raise _unreadable(self.certificate, "certificate with its key", error) from None
        return context


def read_authorization(path: Path | None) -> str | None:
    """Authorization from a file, or from the environment if no file is named.

    It is ``Bearer TOKEN`` or ``NAME:PASSWORD``.
    """
    if path is not None:
        return _authorization(read_bytes(path, LARGEST_FILE), spot(path))
    text = os.environ.get(AUTHORIZATION)
    return None if text is None else _authorization(os.fsencode(text), f"${AUTHORIZATION}")


def _authorization(text: bytes, where: str) -> str:
    """Value of the HTTP header ``Authorization``.

    >>> _authorization(b"me:secret", "file"), _authorization(b"Bearer abc", "file")
    ('Basic bWU6c2VjcmV0', 'Bearer abc')
    """
    words = text.strip()
    if words.startswith(b"Bearer ") and words.isascii() and words.decode().isprintable():
        return words.decode()
    if b":" in words and b"\n" not in words:
        return f"Basic {base64.b64encode(words).decode()}"
    raise SettingError(f"{where}: is not an authorization; write 'Bearer TOKEN' or 'NAME:PASSWORD'")


def _unreadable(path: Path | None, what: str, error: OSError) -> SettingError:
    reason = shown(error.strerror or str(error) or "its key needs a password", 200)
    return SettingError(f"{path}: holds no {what} (PEM): {reason}")


def _no_password() -> str:
    raise OSError("its key is protected by a password; use a key without one")


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
        f'filename="{plain_name(jar.name)}"\r\n'
        "Content-Type: application/x-java-archive\r\n\r\n"
    )
    body = head.encode() + jar.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
    return body, f"multipart/form-data; boundary={boundary}"


def plain_name(name: str) -> str:
    """Name of a file without characters that have a meaning in requests."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)
