"""A server for the page: on one port or not at all, for this machine alone unless told otherwise."""

from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING

from locus.errors import LocusError, to_install
from locus.ports import busy
from locus.viewer.strangers import guarded_sockets, limit_uploads

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
            raise LocusError(busy(host, port))
        yield running
    finally:
        with redirect_stdout(StringIO()):
            running.stop()


def check_viser() -> None:
    """Before anything that takes time: is the extra installed?"""
    try:
        import viser  # noqa: F401
    except ImportError:
        raise LocusError(f"the page needs viser: {to_install('viewer')}, and try again") from None
