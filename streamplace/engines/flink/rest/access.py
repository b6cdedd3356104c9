"""Access to a secured REST interface: trusted certificates and the user's credentials."""

import base64
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from streamplace.errors import SettingError
from streamplace.io.files import read_bytes, spot
from streamplace.model.messages import shown

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
