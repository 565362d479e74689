"""The command `eval`."""

from collections.abc import Callable


def evaluate_tasks() -> Callable[..., int]:
    """Make the paper's tables, for any methods, on any posed data."""
    # What a benchmark can be told is part of it, and importing those takes seconds.
    from locus.commands.benchmarks import evaluate

    return evaluate
