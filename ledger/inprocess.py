"""The HTTP client's transport straight into the application: same routes, same errors, no socket."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.types import ASGIApp


class InProcessTransport(httpx.BaseTransport):
    """Runs an ASGI application on one event loop in a thread of its own; safe to share between threads."""

    def __init__(self, app: ASGIApp, *, on_close: Callable[[], None]) -> None:
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=("inprocess", 0))
        self._manager = start_blocking_portal()
        self._portal: BlockingPortal = self._manager.__enter__()
        self._on_close = on_close

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request to the application and read its whole answer."""
        return self._portal.call(self._handle, request, request.read())

    async def _handle(self, request: httpx.Request, content: bytes) -> httpx.Response:
        inner = httpx.Request(request.method, request.url, headers=request.headers, content=content)
        answer = await self._transport.handle_async_request(inner)
        body = await answer.aread()
        return httpx.Response(answer.status_code, headers=answer.headers, content=body, request=request)

    def close(self) -> None:
        """Stop the loop, then let go of what the application holds."""
        self._manager.__exit__(None, None, None)
        self._on_close()

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()
