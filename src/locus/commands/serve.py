"""The command `serve`: maps behind HTTP."""

import os
from pathlib import Path
from typing import Annotated

import tyro

from locus.commands.options import MapModel, check_first, map_and_network, network, say
from locus.errors import LocusError, to_install
from locus.model.shipped import DEFAULT
from locus.ports import bound, check_free
from locus.serve.limits import THE_LIMITS, Limits


def serve(
    map: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="MAP...", help="Folders of maps, of one model.")],
    model: MapModel = None,
    host: str = "127.0.0.1",
    port: int = 8008,
    batch: int = 8,
    limits: Annotated[Limits, tyro.conf.OmitArgPrefixes] = THE_LIMITS,
) -> int:
    """Answer over HTTP where images were taken.

    POST /localize, /retrieve, /match and /cosegment; GET /maps, /health, /metrics and /docs, which explains them. Maps
    are read again when their files change. If LOCUS_API_KEY is set, clients must send it. Needs the extra `serve`.
    docs/serve.md has a client.

    Args:
        host: The address to listen on. By default only this machine can ask; 0.0.0.0 lets everyone in.
        port: The port to listen on; 0 takes any that is free.
        batch: Images of one size that go through the network at once, at most.
    """
    key = os.environ.get("LOCUS_API_KEY")
    if key == "":
        raise LocusError("the key is empty; set LOCUS_API_KEY to a long random text, or unset it")
    if batch < 1:
        raise LocusError(f"a batch has at least one image, not {batch}")
    check_first(model=model, maps=map)
    check_free(host, port)
    try:
        from locus.serve.endpoints import app_of
    except ImportError:
        raise LocusError(f"the service needs FastAPI: {to_install('serve')}, and try again") from None
    from locus.serve.running import run
    from locus.serve.served_maps import ServedMaps
    from locus.serve.service import Service

    with bound(host, port) as taken:
        maps = ServedMaps(map, map_and_network(map[0], model)[1] if map else network(DEFAULT))
        world = maps.world
        say(f"{len(world)} landmarks of {', '.join(world.environments)}")
        taken.listen()  # who reads the next line may ask at once
        shown = f"[{host}]" if ":" in host else host
        say(f"Serving http://{shown}:{taken.getsockname()[1]}, explained at /docs; Ctrl-C stops")
        run(app_of(Service(maps, limits, batch), key), taken, limits)
    say("stopped")
    return 0
