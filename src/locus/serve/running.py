"""Running the service: on a socket, until it is told to stop, and not for clients that dawdle."""

import asyncio
import logging
import signal
import socket
from contextlib import suppress
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from locus.serve.limits import Limits

HEADERS = 10.0  # seconds that a client may take for the headers of a request
CONNECTIONS = 8  # for every place in the queue


class HurriedProtocol(H11Protocol):
    """Closes a connection whose headers are not all here in time; uvicorn itself waits for ever."""

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._hurry()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._hurry()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._rest()

    def _hurry(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._rest()
        elif self._due is None:
            self._due = self.loop.call_later(HEADERS, self.transport.close)

    def _rest(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


def run(app: FastAPI, taken: socket.socket, limits: Limits) -> None:
    """Serve on a socket until SIGINT or SIGTERM; what is being answered then is answered first."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    config = uvicorn.Config(
        app,
        http=HurriedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS * limits.queue,
        timeout_graceful_shutdown=round(limits.seconds) + 1,
    )
    # uvicorn passes the signal on when all is answered; it must end this function then, and not the program.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[taken])
    finally:
        signal.signal(signal.SIGTERM, before)
