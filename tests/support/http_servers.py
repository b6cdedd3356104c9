"""HTTP servers on this machine that last as long as a block."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def as_it_is(connection: socket.socket) -> socket.socket:
    """Leave a connection as it is."""
    return connection


@contextmanager
def http_server(
    answer: Callable[[BaseHTTPRequestHandler], None],
    connected: Callable[[socket.socket], socket.socket] = as_it_is,
) -> Iterator[str]:
    """Address of a server that answers every request in this way while the block runs.

    Connections are used as ``connected`` returns them; one that breaks is no error.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        do_POST = do_PATCH = do_DELETE = do_GET

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    class Server(ThreadingHTTPServer):
        def process_request_thread(self, request: Any, client_address: Any) -> None:
            with request, suppress(OSError):
                super().process_request_thread(connected(request), client_address)

        def handle_error(self, request: Any, client_address: Any) -> None:
            if not isinstance(sys.exception(), OSError):
                super().handle_error(request, client_address)

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
