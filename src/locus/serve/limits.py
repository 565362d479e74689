"""What a service allows."""

from dataclasses import dataclass

from locus.errors import LocusError


@dataclass(frozen=True)
class Limits:
    """What a service allows."""

    queue: int = 64
    """Images that may wait at once; more are turned away with 503."""
    megabytes: float = 32.0
    """That a request may have."""
    seconds: float = 30.0
    """That a request may take, its upload included."""

    def __post_init__(self) -> None:
        if not (self.queue >= 1 and self.megabytes > 0 and self.seconds > 0):
            raise LocusError("the limits of a service (--queue, --megabytes, --seconds) must be positive")


THE_LIMITS = Limits()
