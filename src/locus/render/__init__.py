"""Rendering labelled triangle scenes to posed RGB-D. Needs the extra `houses`."""

from locus.scenes.rays import mesh_library

mesh_library("rendering")  # before anything of it is imported, so that what is missing is told in a sentence

from locus.render.any_mesh import render_mesh  # noqa: E402

__all__ = ["render_mesh"]
