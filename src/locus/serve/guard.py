"""What every request must keep to, before the service sees it: the key, so many bytes, so many seconds."""

import asyncio
import hmac
import time

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from locus.serve.instruments import Metrics
from locus.serve.limits import Limits

OPEN = ("/health",)  # without the key: whoever starts services must see whether one is well


class Guard:
    """ASGI middleware that holds every request to the limits, and counts it."""

    def __init__(self, app: ASGIApp, limits: Limits, key: str | None, metrics: Metrics, paths: frozenset[str]) -> None:
        """`key` is what clients must send as `Authorization: Bearer KEY`; None if nothing."""
        self.app, self.limits, self.key, self.metrics, self.paths = app, limits, key, metrics, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in self.paths else "other"
        start, status, received = time.perf_counter(), 0, 0
        whole = False

        async def counted() -> Message:
            """Bytes beyond the limit are read and forgotten, so that the client is there to read the answer."""
            nonlocal received, whole
            while True:
                message = await receive()
                received += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if received <= most:
                    return message
                if whole:
                    raise HTTPException(413, f"the request is larger than {self.limits.megabytes:g} MB")

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        most = self.limits.megabytes * 1e6
        try:
            if not self._allowed(scope):
                headers = {"WWW-Authenticate": "Bearer"}
                await _said(401, "send the service's key as the header Authorization: Bearer KEY", headers)(
                    scope, receive, noted
                )
            else:
                await asyncio.wait_for(self.app(scope, counted, noted), self.limits.seconds)
        except asyncio.TimeoutError:
            if status:
                raise  # the answer has begun: all that is left is to close the connection
            late = "there was no answer" if whole else "the request was not all here"
            sentence = f"{late} after {self.limits.seconds:g} seconds; try again"
            headers = {"Connection": "close"} | ({"Retry-After": "1"} if whole else {})
            await _said(503 if whole else 408, sentence, headers)(scope, receive, noted)
        finally:
            self.metrics.requests.labels(path, status or "none").inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - start)

    def _allowed(self, scope: Scope) -> bool:
        if self.key is None or scope["path"] in OPEN:
            return True
        sent = dict(scope["headers"]).get(b"authorization", b"")
        return hmac.compare_digest(sent, f"Bearer {self.key}".encode())


def _said(status: int, sentence: str, headers: dict[str, str]) -> JSONResponse:
    return JSONResponse({"detail": sentence}, status, headers)
