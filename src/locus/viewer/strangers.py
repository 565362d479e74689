"""Who may talk to the page, and how much they may send: any web page can open a socket to this machine."""

import ipaddress
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import viser
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

MESSAGE = 2**21  # bytes of one message; a part of an uploaded file, the largest there is, has a quarter of it
UPLOAD = 2**26  # bytes of an uploaded image
PARTS = 256  # of an upload; the page sends half a megabyte in each
AT_ONCE = 4  # uploads under way, of all visitors together
UPLOADS = 1000  # until the server is started again: of each, viser keeps a note
VISITORS = 32  # at the same time


@contextmanager
def guarded_sockets(host: str) -> Generator[None, None, None]:
    """A server that is started meanwhile answers its own page only, and takes no long messages."""
    from websockets.asyncio import server

    serve: Any = server.serve
    visitors: set[Any] = set()

    def guarded(handler: Callable[..., Any], *address: Any, process_request: Callable[..., Any], **options: Any) -> Any:
        async def counted(connection: "ServerConnection") -> None:
            visitors.add(connection)
            try:
                await handler(connection)
            finally:
                visitors.discard(connection)

        def answer(connection: "ServerConnection", request: "Request") -> "Response | None":
            if not is_own(request.headers.get_all("Origin"), request.headers.get_all("Host"), host):
                return connection.respond(HTTPStatus.FORBIDDEN, "another web page may not use this one\n")
            if len(visitors) >= VISITORS:
                return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "too many visitors; close a tab\n")
            return process_request(connection, request)

        return serve(counted, *address, **{**options, "process_request": answer, "max_size": MESSAGE})

    server.serve = guarded  # ty: ignore[invalid-assignment]  viser has no place to ask for it
    try:
        yield
    finally:
        server.serve = serve


def is_own(origins: list[str], hosts: list[str], listening: str) -> bool:
    """Whether a request comes from the server's own page, or from no page at all.

    A browser names the page that asks (Origin) and the server it believes to ask (Host). They must be the same, and the
    server's name must be one that nobody else can give to this machine: a stranger's name can be made to lead here.
    """
    if not origins:
        return True
    if len(origins) != 1 or len(hosts) != 1:
        return False
    try:
        origin, asked = urlsplit(origins[0]), urlsplit(f"//{hosts[0]}")
        name = asked.hostname or ""
        if origin.scheme not in ("http", "https") or origin.netloc.lower() != asked.netloc.lower():
            return False
    except ValueError:
        return False
    return name in {"localhost", listening.lower(), socket.gethostname().lower()} or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def limit_uploads(running: "viser.ViserServer") -> None:
    """Refuse files too large, too many at once, and more than was announced; and leave the page on this machine."""
    from viser import _messages as messages

    handlers = running._websock_server._incoming_handlers
    for message in (messages.ShareUrlRequest, messages.ShareUrlDisconnect):  # to publish it on a stranger's server
        handlers.pop(message, None)
    under_way = running.gui._current_file_upload_states
    connected, begun = running._websock_server._client_state_from_id, 0

    (start,), (go_on,) = handlers[messages.FileTransferStartUpload], handlers[messages.FileTransferPart]

    def may_start(client: Any, message: Any) -> None:
        nonlocal begun
        for transfer in [each for each, state in under_way.items() if state["client_id"] not in connected]:
            del under_way[transfer]  # viser keeps those of clients that left before they had said who they are
        small = 0 < message.size_bytes <= UPLOAD and 0 < message.part_count <= PARTS
        if small and len(under_way) < AT_ONCE and begun < UPLOADS and message.transfer_uuid not in under_way:
            begun += 1
            start(client, message)
        elif visitor := running.get_clients().get(client):
            why = "Wait for other uploads, or start the viewer again." if small else "An image may have up to 67 MB."
            visitor.add_notification("The image was not taken", why)

    def is_announced(client: Any, message: Any) -> None:
        state = under_way.get(message.transfer_uuid)
        if state is not None and state["transferred_bytes"] + len(message.content) > state["total_bytes"]:
            under_way.pop(message.transfer_uuid)
        elif state is not None:
            go_on(client, message)

    handlers[messages.FileTransferStartUpload] = [may_start]
    handlers[messages.FileTransferPart] = [is_announced]
