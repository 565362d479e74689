"""Pages: what LoCUS shows a person in a browser, each a single file in one look that needs nothing from outside."""

from locus.pages.writer import render, write

__all__ = ["render", "write"]
