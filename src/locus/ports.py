"""Ports to listen on: free ones, or one sentence about what is wrong with them."""

import socket
from errno import EADDRNOTAVAIL

from locus.errors import LocusError


def bound(host: str, port: int) -> socket.socket:
    """A socket at an address of this machine, which nobody else can take any more; port 0 takes a free one."""
    if not 0 <= port < 65536:
        raise LocusError(f"a port is a number from 0 to 65535, not {port}")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        taken = socket.socket(family, socket.SOCK_STREAM)
        try:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind((host, port))
        except OSError:
            taken.close()
            raise
    except PermissionError:
        raise LocusError(f"port {port} is reserved for the system; give a --port above 1023") from None
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno == EADDRNOTAVAIL:
            raise LocusError(f"{host} is no address of this machine; leave --host out for this machine alone") from None
        raise LocusError(busy(host, port)) from None
    return taken


def check_free(host: str, port: int) -> None:
    """Before anything that takes time: is the port free?"""
    bound(host, port).close()


def busy(host: str, port: int) -> str:
    return f"port {port} of {host} is in use, by another program perhaps; give another --port, or 0 for any free one"
