"""LoCUS: features that know places."""

__version__ = "0.1.0"
