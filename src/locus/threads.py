"""Work done by a few threads ahead of whoever uses its results."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int, ahead: int
) -> Generator[Result, None, None]:
    """The result of `work` on each item, in the items' order; never more than `ahead` of them wait to be taken."""
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="locus")
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) == ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
