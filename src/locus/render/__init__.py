"""Rendering labelled triangle meshes to posed RGB-D. Needs the extra `houses`."""

from typing import TYPE_CHECKING

from locus.lazy import attach

if TYPE_CHECKING:
    from locus.render.any_mesh import render_mesh
    from locus.render.camera_settings import MeshSettings

__all__ = ["MeshSettings", "render_mesh"]

__getattr__ = attach(__name__, {"MeshSettings": "camera_settings", "render_mesh": "any_mesh"})
