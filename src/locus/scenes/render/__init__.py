"""Rendering labelled triangle scenes to posed RGB-D."""

from locus.scenes.render.any_mesh import render_mesh

__all__ = ["render_mesh"]
