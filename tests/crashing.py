"""A process that is gone at its n-th operation on files: what it had written stays, and nothing is tidied up."""

import io
import os
import traceback
from collections.abc import Callable
from unittest import mock

OPERATIONS = ("open", "fsync", "replace", "rename", "unlink", "mkdir", "rmdir")
GONE = 77


class _Counter:
    def __init__(self, fatal: int) -> None:
        self.left = fatal

    def step(self) -> bool:
        """Whether the operation that is about to begin is the last."""
        self.left -= 1
        return self.left < 0

    def counted(self, operation: Callable) -> Callable:
        def run(*arguments, **options):
            if self.step():
                os._exit(GONE)
            return operation(*arguments, **options)

        return run


def _counted_file(counter: _Counter) -> type[io.FileIO]:
    class CountedFile(io.FileIO):
        def write(self, data):
            if counter.step():  # the last write is done by half
                super().write(bytes(memoryview(data).cast("B")[: memoryview(data).nbytes // 2]))
                os._exit(GONE)
            return super().write(data)

        def truncate(self, size=None):
            if counter.step():
                os._exit(GONE)
            return super().truncate(size)

    return CountedFile


def _opener(counter: _Counter, real: Callable) -> Callable:
    kind = _counted_file(counter)

    def opened(file, mode="r", buffering=-1, *arguments, **options):
        if not set(mode) & set("wa+x") or "t" in mode or "b" not in mode:
            return real(file, mode, buffering, *arguments, **options)
        raw = kind(file, mode.replace("b", ""))
        if buffering == 0:
            return raw
        return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

    return opened


def crashed(fatal: int, action: Callable[[], object]) -> bool:
    """Run an action in a process of its own that is gone at the operation of this number, from 0; whether it was."""
    if child := os.fork():
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, GONE), f"operation {fatal}: exit code {code}"
        return code == GONE
    try:
        counter = _Counter(fatal)
        with mock.patch.object(io, "open", _opener(counter, io.open)):
            for name in OPERATIONS:
                setattr(os, name, counter.counted(getattr(os, name)))
            action()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
