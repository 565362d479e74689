"""A server for the page: on one port or not at all, for this machine alone unless told otherwise."""

import socket
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from errno import EADDRNOTAVAIL
from io import StringIO
from typing import TYPE_CHECKING

from locus.errors import LocusError
from locus.viewer.guard import guarded_sockets, limit_uploads

if TYPE_CHECKING:
    import viser


@contextmanager
def server(host: str, port: int) -> Generator["viser.ViserServer", None, None]:
    """A viser server, stopped at the end. Port 0 takes a free one."""
    import viser

    with redirect_stdout(StringIO()), guarded_sockets(host):  # viser prints a box of its own
        running = viser.ViserServer(host, port, verbose=False)
    try:
        limit_uploads(running)
        if port and running.get_port() != port:  # taken in between: viser goes on to the next
            raise LocusError(_busy(host, port))
        yield running
    finally:
        with redirect_stdout(StringIO()):
            running.stop()


def check_viser() -> None:
    """Before anything that takes time: is the extra installed?"""
    try:
        import viser  # noqa: F401
    except ImportError:
        raise LocusError("the page needs viser: pip install 'locus-features[viewer]', and try again") from None


def check_free(host: str, port: int) -> None:
    """Before anything that takes time: is the port free?"""
    if not 0 <= port < 65536:
        raise LocusError(f"a port is a number from 0 to 65535, not {port}")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except PermissionError:
        raise LocusError(f"port {port} is reserved for the system; give a --port above 1023") from None
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno == EADDRNOTAVAIL:
            raise LocusError(f"{host} is no address of this machine; leave --host out for this machine alone") from None
        raise LocusError(_busy(host, port)) from None


def _busy(host: str, port: int) -> str:
    return f"port {port} of {host} is in use, by another viewer perhaps; give another --port, or 0 for any free one"
