"""A service with scripted replies, for tests of the SDK's requests."""

import json
import threading
import unittest
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from roomd import Client

Reply = tuple[int, dict[str, str], str]
ROOM = {"room_id": "a"}


def ok(value: Any) -> Reply:
    return 200, {"Content-Type": "application/json"}, json.dumps(value)


def problem(status: int, code: str, retryable: bool, **headers: str) -> Reply:
    told = {"status": status, "code": code, "retryable": retryable, "detail": f"{code}.", "hint": None}
    return status, {"Content-Type": "application/problem+json", **headers}, json.dumps(told)


def lines(*events: dict[str, Any]) -> Reply:
    return 200, {"Content-Type": "application/x-ndjson"}, "".join(f"{json.dumps(event)}\n" for event in events)


def out(seq: int, text: str = "") -> dict[str, Any]:
    return {"type": "stdout", "seq": seq, "data_b64": text}


class ScriptedService(unittest.TestCase):
    def setUp(self) -> None:
        self.replies: list[Reply] = []
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.methods: list[str] = []
        case = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = b"" if "Transfer-Encoding" in self.headers else self.rfile.read(self.length())
                case.asked.append((self.path, dict(self.headers), body))
                case.methods.append(self.command)
                # A chunked body is not read, and its connection is closed.
                self.close_connection = self.close_connection or "Transfer-Encoding" in self.headers
                if not case.replies:
                    self.close_connection = True
                    return
                status, headers, text = case.replies.pop(0)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(text)), **headers}.items():
                    self.send_header(name, value)
                # A client that has aborted the call reads no answer.
                with suppress(ConnectionError):
                    self.end_headers()
                    self.wfile.write(text.encode())

            def length(self) -> int:
                return int(self.headers.get("Content-Length", 0))

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        self.client = Client(f"http://127.0.0.1:{server.server_port}/below", "key-1")
        for end in (server.server_close, serving.join, server.shutdown, self.client.close):
            self.addCleanup(end)

    def sent(self) -> list[dict[str, Any]]:
        """The JSON bodies of the requests."""
        return [json.loads(body or b"{}") for _, _, body in self.asked]
