"""The errors a user can meet. Each message says what is wrong, where, and what to do about it."""


class LocusError(Exception):
    """Something the user can put right; the command line prints it as one sentence and exits with code 2."""


class SceneError(LocusError):
    """A scene that cannot be opened."""


class FrameError(LocusError):
    """One frame that cannot be used; the rest of its scene may be sound."""


class WeightsError(LocusError):
    """Weights of a network that cannot be had, or a weight file that cannot be read."""


class DamagedError(LocusError):
    """A file whose content is not what was written."""
