"""One command as many parts on a Ray cluster: each is the same command with --shard, run by a worker that is free."""

import io
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from locus.errors import LocusError, to_install
from locus.progress import track

PARTS = 4  # for each processor of the cluster, so that a slow part does not keep the others waiting
ATTEMPTS = 5  # at a part whose worker is lost
PASSED_ON = ("LOCUS_", "HF_")  # beginnings of environment variables that workers need


def spread(run: Callable[[list[str]], int], words: Sequence[str], address: str) -> None:
    """Do all parts of a command on a cluster: `auto`, the one of this machine, begun if there is none; or an address.

    `run` is what runs a command line, there too. Workers need LoCUS, and a file system that all of them see.
    """
    shared = [word for word in words if word != "--preview"]  # which needs the whole
    ray = _connected(address)
    try:
        parts = PARTS * max(1, int(ray.cluster_resources().get("CPU", 1)))
        task = ray.remote(num_cpus=1, max_retries=ATTEMPTS)(_part)
        under_way = [
            task.remote(run, [*shared, "--shard", f"{number}/{parts}"], str(Path.cwd())) for number in range(parts)
        ]
        for code, said in track(_finished(ray, under_way), f"{words[0]} on the cluster", parts):
            if code:
                raise LocusError(said.strip().removeprefix("locus: ") or f"a part ended with code {code}")
    finally:
        ray.shutdown()


def without(words: Sequence[str], option: str) -> list[str]:
    """A command line without an option and its value."""
    kept = [word for word in words if not word.startswith(f"{option}=")]
    if option in kept:
        at = kept.index(option)
        del kept[at : at + 2]
    return kept


def _connected(address: str) -> Any:
    try:
        import ray
    except ImportError:
        raise LocusError(f"--cluster needs Ray: {to_install('cluster')}, and try again") from None
    passed = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    how: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "runtime_env": {"env_vars": passed}}
    if address != "auto":
        _reach(address)
    try:
        ray.init(address=address, **how)
    except ConnectionError:
        if address != "auto":
            raise
        ray.init(include_dashboard=False, **how)
    return ray


def _reach(address: str) -> None:
    """Ray itself waits for minutes where nobody listens."""
    try:
        place = urlsplit(address if "://" in address else f"//{address}")
        socket.create_connection((place.hostname or "", place.port or 6379), timeout=10).close()
    except (OSError, ValueError) as error:
        raise LocusError(f"there is no Ray cluster at {address}; `ray status` says where one is") from error


def _finished(ray: Any, under_way: list[Any]) -> Iterator[tuple[int, str]]:
    """What parts gave, in the order in which they end."""
    while under_way:
        done, under_way = ray.wait(under_way)
        try:
            yield ray.get(done[0])
        except ray.exceptions.RayError as error:
            raise LocusError(f"a part was lost {ATTEMPTS + 1} times: {str(error).splitlines()[0]}") from error


def _part(run: Callable[[list[str]], int], words: list[str], folder: str) -> tuple[int, str]:
    """In a worker: one part, and what it had to say if it went wrong."""
    os.chdir(folder)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
        return run(words), said.getvalue()
