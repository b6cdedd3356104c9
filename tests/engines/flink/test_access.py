"""A secured REST interface: encrypted, with certificates at both ends, and with authorization."""

import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from command_lines import settings_file
from fake_flink import ANSWERS, FakeFlink, said

from streamplace.engines.flink.rest.access import Access

TLS = Path(__file__).parent / "tls"
"""Made for these tests: who certifies, the server at 127.0.0.1, a client; for a hundred years."""
CLIENT = {"cert": str(TLS / "client.pem"), "key": str(TLS / "client.key")}
AUTHORITY = {"cacert": str(TLS / "authority.pem")}
COMMANDS = (["cluster"], ["cancel", "--job", "another"])


@pytest.fixture
def secured() -> Iterator[FakeFlink]:
    """A server that answers only those who are certified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "server.pem")
    context.load_verify_locations(TLS / "authority.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with FakeFlink(ANSWERS).served(partial(context.wrap_socket, server_side=True)) as flink:
        flink.url = flink.url.replace("http:", "https:")
        yield flink


def test_certificates_are_shown_and_checked(
    run: Callable, secured: FakeFlink, tmp_path: Path
) -> None:
    """Those of an authority of one's own."""
    files = settings_file(tmp_path, **AUTHORITY, **CLIENT)
    answer = run("flink", "cluster", "--rest", secured.url, *files)
    assert answer.status == 0, answer.err
    assert 'name = "dev-0"' in answer.out


@pytest.mark.parametrize("files", [CLIENT, AUTHORITY], ids=["unknown server", "unknown client"])
def test_who_is_not_certified_gets_nothing(
    refusal: Callable, secured: FakeFlink, files: dict[str, str], tmp_path: Path
) -> None:
    given = settings_file(tmp_path, **files)
    refused = refusal("flink", "cluster", "--rest", secured.url, *given)
    assert "no Flink answers at https://127.0.0.1" in refused
    assert secured.asked == []


@pytest.mark.parametrize(
    ("source", "text", "sent"),
    [
        ("file", "Bearer s3cret.token\n", "Bearer s3cret.token"),
        ("environment", "me:s3cret", "Basic " + b64encode(b"me:s3cret").decode()),
        ("address", "", "Basic " + b64encode(b"other:word").decode()),
    ],
)
def test_authorization_is_sent_and_never_shown(
    run: Callable,
    source: str,
    text: str,
    sent: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither by a command that succeeds nor by one that fails; it wins over the address's."""
    (tmp_path / "secret").write_text(text)
    if source == "environment":
        monkeypatch.setenv("STREAMPLACE_FLINK_AUTHORIZATION", text)
    given = ("--authorization", "secret") if source == "file" else ()
    with FakeFlink(ANSWERS).served() as flink:
        rest = flink.url.replace("//", "//other:w%6Frd@")
        told = [run("flink", *what, "--rest", rest, *given) for what in COMMANDS]
    assert [answer.status for answer in told] == [0, 2], told
    assert flink.asked
    assert {headers["Authorization"] for headers in flink.headers} == {sent}
    assert "s3cret" not in "".join(answer.out + answer.err for answer in told)
    assert "s3cret" not in repr(Access(authorization=text))


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"cacert": "none.pem"}, "none.pem: holds no certificates (PEM): No such file"),
        ({"cacert": str(TLS / "client.key")}, "client.key: holds no certificates (PEM)"),
        ({"cert": str(TLS / "client.pem")}, "client.pem: holds no certificate with its key"),
        (AUTHORITY | {"rest": "http://127.0.0.1:1"}, "certificates need an https:// address"),
        ({"key": "k.pem"}, "key is the private key of cert; give both"),
        (CLIENT | {"key": str(TLS / "locked.key")}, "its key is protected by a password"),
        ({"authorization": "none"}, "none: "),
        ({"authorization": str(TLS / "client.key")}, "write 'Bearer TOKEN' or 'NAME:PASSWORD'"),
    ],
)
def test_what_cannot_be_used_is_told(
    refusal: Callable, files: dict[str, str], told: str, tmp_path: Path
) -> None:
    """Nobody is asked for a password."""
    given = settings_file(tmp_path, **({"rest": "https://127.0.0.1:1"} | files))
    assert told in refusal("flink", "cluster", *given)


def test_a_missing_authorization_is_told(refusal: Callable) -> None:
    """A gateway answers with a page of its own."""
    page = said(b"<html><title>401 Authorization Required</title></html>", 401)
    with FakeFlink(otherwise=page).served() as flink:
        refused = refusal("flink", "cluster", "--rest", flink.url)
    assert "401 Authorization Required" in refused
    assert "; give a valid --authorization" in refused
