"""A server on loopback that speaks the chat completions protocol, and every way of speaking it badly.

Each request takes the next entry of `script`; the last entry repeats. What was asked is kept in `requests`.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass
class Say:
    """One answer: a completion by default, or what the other fields make of it."""

    text: str | None = ""
    status: int = 200
    finish: str = "stop"
    usage: dict[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    )
    refusal: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    """Body instead of a completion."""
    wait: float = 0.0
    """Seconds of silence before the answer."""
    hang_up: bool = False
    """Close the connection in the middle of the answer."""


class Server:
    """Serves a script until it is closed."""

    def __init__(self, *script: Say) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self._closing = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer._answer(self)

            def log_message(self, *args: object) -> None:
                """Keep quiet."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        asked = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        self.requests.append(asked)
        self.keys.append(handler.headers.get("Authorization", ""))
        say = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if handler.path != "/v1/chat/completions":
            say = Say(status=404, raw=b'{"error": {"message": "no such path"}}')
        self._closing.wait(say.wait) if say.wait else None
        body = say.raw if say.raw is not None else json.dumps(self._completion(say, asked)).encode()
        handler.send_response(say.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body) + (100 if say.hang_up else 0)))
        for name, value in say.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        try:
            handler.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            return  # the client went away first, which is what a time limit is for
        handler.close_connection = True

    @staticmethod
    def _completion(say: Say, asked: dict[str, Any]) -> dict[str, Any]:
        if say.status != 200:
            return {"error": {"message": say.text, "type": "scripted", "code": None}}
        message = {"role": "assistant", "content": say.text, "refusal": say.refusal}
        answer: dict[str, Any] = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": asked["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": say.finish, "logprobs": None}],
        }
        if say.usage is not None:
            answer["usage"] = say.usage
        return answer
