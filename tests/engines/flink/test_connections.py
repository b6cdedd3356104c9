"""Connections to a Flink, or to a gateway, that keeps them open for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread

import pytest
from fake_flink import FakeFlink

from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.transport import Request

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"jobs": []}'


class KeepingServer(ThreadingTCPServer):
    """Answers requests over a connection until it breaks it off instead of answering.

    Attributes
    ----------
    answers
        Number of requests of each connection that are answered.
    connections
        Methods of the requests of each connection.
    """

    daemon_threads = True

    def __init__(self, answers: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = answers
        self.connections: list[list[str]] = []

    @property
    def rest(self) -> Rest:
        """A client of this server."""
        return Rest(f"http://127.0.0.1:{self.server_address[1]}")


class _Handler(StreamRequestHandler):
    server: KeepingServer

    def handle(self) -> None:
        methods: list[str] = []
        self.server.connections.append(methods)
        while line := self.rfile.readline():
            while self.rfile.readline().strip():  # none of the requests has a body
                pass
            methods.append(line.split()[0].decode())
            if len(methods) > self.server.answers:
                return
            self.wfile.write(ANSWER)


@contextmanager
def keeping_server(answers: int) -> Iterator[KeepingServer]:
    """Serve on this machine while the block runs."""
    with KeepingServer(answers) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_queries_share_a_connection() -> None:
    """Also those of the client that is patient."""
    with keeping_server(100) as server:
        rest = server.rest
        for client in (rest, rest.patient(1.0, print), rest):
            assert client.jobs() == {}
    assert server.connections == [["GET"] * 3]


def test_a_query_is_sent_again_if_its_idle_connection_was_broken_off() -> None:
    """Once, over a new connection, without patience."""
    with keeping_server(1) as server:
        rest = server.rest
        assert rest.jobs() == rest.jobs() == {}
    assert server.connections == [["GET", "GET"], ["GET"]]


def test_a_query_over_a_new_connection_is_sent_once() -> None:
    with keeping_server(0) as server, pytest.raises(NoAnswer, match="no Flink answers at http"):
        server.rest.jobs()
    assert server.connections == [["GET"]]


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
def test_what_changes_something_is_sent_once_over_a_connection_of_its_own(method: str) -> None:
    """Whether it was received cannot be told once its connection is broken off."""
    with keeping_server(1) as server:
        rest = server.rest
        rest.jobs()
        rest._ask(Request(method, "/jars/x", 9.0))
        server.answers = 0
        with pytest.raises(NoAnswer):
            rest._ask(Request(method, "/jars/x", 9.0))
    assert server.connections == [["GET"], [method], [method]]


def test_a_jar_is_uploaded_as_a_form(tmp_path: Path) -> None:
    """Under a name without characters that have a meaning in requests; it may be sent again."""
    jar = tmp_path / 'a "b".jar'
    jar.write_bytes(b"\0jar" * 100_000)
    with FakeFlink({"POST /jars/upload": {"filename": "/tmp/flink/x_a.jar"}}).served() as flink:
        assert Rest(flink.url).upload(jar) == "x_a.jar"
    (headers,) = flink.headers
    assert headers["Content-Type"].startswith("multipart/form-data; boundary=")
    assert int(headers["Content-Length"]) > jar.stat().st_size


def test_the_path_of_a_request_is_sent_as_it_is() -> None:
    """An id of two dots is no step up."""
    flink = FakeFlink({"GET /api/jobs/..": {}})
    with flink.served(), pytest.raises(FlinkError, match="not one of Flink's REST API"):
        Rest(f"{flink.url}/api/").get("/jobs/..")
    assert flink.asked == [("GET /api/jobs/..", None)]
