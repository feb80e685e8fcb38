"""Strong entity tags for JSON reads, so that a client that polls transfers nothing while nothing changes."""

from __future__ import annotations

import hashlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class EntityTags:
    """ASGI middleware: a hash of the body as `ETag` on GET answers, 304 where `If-None-Match` names it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hold a JSON answer back until its hash is known; anything else passes as it comes."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        parts: list[bytes] = []
        plain = False

        async def hold(message: Message) -> None:
            nonlocal start, plain
            if message["type"] == "http.response.start":
                headers = Headers(raw=message["headers"])
                plain = message["status"] == 200 and headers.get("content-type", "").startswith("application/json")
                start = message
                if not plain:
                    await send(message)
                return
            if not plain or start is None:
                await send(message)
                return
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                await self._finish(scope, start, b"".join(parts), send)

        await self._app(scope, receive, hold)

    @staticmethod
    async def _finish(scope: Scope, start: Message, body: bytes, send: Send) -> None:
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        asked = Headers(scope=scope).get("if-none-match", "")
        headers = MutableHeaders(raw=start["headers"])
        headers["ETag"] = tag
        if {item.strip().removeprefix("W/") for item in asked.split(",")} & {tag, "*"}:
            start["status"] = 304
            body = b""
            del headers["content-length"]
        await send(start)
        await send({"type": "http.response.body", "body": body})
