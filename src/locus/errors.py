"""The errors a user can meet. Each message says what is wrong, where, and what to do about it."""

LONGEST = 2000  # characters of a message


class LocusError(Exception):
    """Something the user can put right; the command line prints it as one sentence and exits with code 2.

    The message is one line of bounded length, whatever a library or a file has put into it.
    """

    def __init__(self, message: object) -> None:
        line = "".join(each if each.isprintable() else " " for each in str(message))
        super().__init__(line if len(line) <= LONGEST else f"{line[:LONGEST]}…")


class SceneError(LocusError):
    """A scene that cannot be opened."""


class FrameError(LocusError):
    """One frame that cannot be used; the rest of its scene may be sound."""


class WeightsError(LocusError):
    """Weights of a network that cannot be had, or a weight file that cannot be read."""


class DamagedError(LocusError):
    """A file whose content is not what was written."""
