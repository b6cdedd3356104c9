"""Access to a Flink's REST interface: its address, certificates and authorization.

Redirections are not followed, and no proxy is used.
"""

import base64
import os
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from streamplace.errors import SettingError, StreamplaceError
from streamplace.io.extras import extra
from streamplace.io.files import read_bytes, spot
from streamplace.model.message_text import shown

if TYPE_CHECKING:
    import httpx

IDLE_SECONDS = 2.0
"""Time for which an idle connection is kept; servers and gateways keep it longer."""
PORTS = {"http": 80, "https": 443}
AUTHORIZATION = "STREAMPLACE_FLINK_AUTHORIZATION"
"""Environment variable that contains the same text as an authorization file."""


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
    # File that it was read from, and is read from again, because tokens expire.
    authorized_by: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of connections."""
        if self.key is not None and self.certificate is None:
            raise SettingError("key is the private key of cert; give both")
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


def read_authorization(path: Path | None, variable: str = AUTHORIZATION) -> str | None:
    """Authorization from a file, or from an environment variable if no file is named.

    It is ``Bearer TOKEN`` or ``NAME:PASSWORD``.
    """
    if path is not None:
        return _authorization(read_bytes(path), spot(path))
    text = os.environ.get(variable)
    return None if text is None else _authorization(os.fsencode(text), f"${variable}")


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


def plain_address(url: str) -> str:
    """Address of a server, with its port and without a slash at the end.

    >>> plain_address("https://flink.example/api/")
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
    if "@" in parts.netloc:  # printed commands and journals would lack it
        raise SettingError(
            f"{masked(url)} has a name or a password before its host; give --authorization FILE"
        )
    place = f"[{host}]" if ":" in host else host
    port = PORTS[parts.scheme] if port is None else port
    return f"{parts.scheme}://{place}:{port}{parts.path.rstrip('/')}"


def masked(url: str) -> str:
    """Quote a text that should be an address, without a possible password.

    >>> masked("ftp://me:secret@host:21"), masked("localhost:8081")
    ("'…@host:21'", "'localhost:8081'")
    """
    _, at, host = url.rpartition("@")
    return f"'{shown('…@' + host if at else url)}'"


def http_client(address: str, access: Access) -> "httpx.Client":
    """Client of a server, which keeps a connection for a moment between two requests."""
    extra("httpx", "flink")
    import httpx

    is_encrypted = address.startswith("https:")
    if not is_encrypted and any((access.authorities, access.certificate, access.key)):
        raise SettingError(f"{address} is not encrypted; certificates need an https:// address")
    latest = access.authorization

    def authorized(request: httpx.Request) -> httpx.Request:
        nonlocal latest
        if access.authorized_by is not None:
            with suppress(StreamplaceError):  # it is being replaced
                latest = read_authorization(access.authorized_by)
        if latest:
            request.headers["Authorization"] = latest
        return request

    return httpx.Client(
        auth=authorized,
        limits=httpx.Limits(keepalive_expiry=IDLE_SECONDS),
        trust_env=False,
        verify=access.context() if is_encrypted else False,
    )
