"""What stands in the page's 3D view: the cloud, the landmarks, the cameras, and an image that was localized."""

import numpy as np
import trimesh
import viser
import viser.transforms
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray

from locus.geometry import Camera, upwards
from locus.tasks.region_pictures import TINT, outlined
from locus.viewer.lighting import Lit
from locus.viewer.locating import LocatedImage
from locus.viewer.picking import Hit, Ray, Screen, first, hit_image, hit_point, hit_sphere
from locus.viewer.viewed import ViewedScene

FRUSTA = 80  # shown at most, spread evenly over the frames
POINT = 0.012  # metres across, of a point of the cloud
FOUND, DARK = (0, 170, 90), (90, 90, 90)
OPACITY = 0.85


class Canvas:
    """Draws on a viser server, and tells what a click on it hits. It draws what it is told; choices are the page's."""

    def __init__(self, server: viser.ViserServer, viewed: ViewedScene) -> None:
        self.scene, self.viewed = server.scene, viewed
        self.poses = np.stack([viewed.seen.frame(row).world_from_camera for row in range(len(viewed.seen))])
        self.up = upwards(self.poses)
        self.heights = viewed.cloud.points @ self.up.astype(np.float32)
        # Not the whole box: what is seen through windows lies far outside.
        low, high = np.percentile(viewed.cloud.points, (10, 90), axis=0)
        eyes = self.poses[:, :3, 3]
        low, high = np.minimum(low, eyes.min(axis=0)), np.maximum(high, eyes.max(axis=0))
        self.span = float(np.linalg.norm(high - low))
        self.frustum = float(np.clip(0.017 * self.span, 0.04, 0.4))
        count = len(viewed.seen)
        self.rows = np.unique(np.linspace(0, count - 1, min(count, FRUSTA)).round().astype(int)).tolist()
        self.screens = [Screen.of(self.camera(row), self.poses[row], self.frustum) for row in self.rows]
        self.cloud: viser.PointCloudHandle | None = None
        self.shown = np.ones(len(viewed.cloud), bool)
        self.centres, self.radii = np.zeros((0, 3), np.float32), np.zeros(0, np.float32)
        self.spheres = np.zeros(0, bool)
        self.scene.set_up_direction(self.up)
        eye, centre = viewpoint(self.up, low, high)
        server.initial_camera.position, server.initial_camera.look_at = eye, centre
        server.initial_camera.up, server.initial_camera.fov = self.up, np.radians(50)
        self.frusta = [
            self._frustum(f"/cameras/{row}", self.camera(row), self.poses[row], picture, self.frustum, DARK)
            for row, picture in zip(self.rows, viewed.pictures[self.rows], strict=True)
        ]
        self.lit_views = np.zeros(len(viewed.seen), bool)

    def draw_cloud(self, colours: UInt8[ndarray, "n 3"], shown: Bool[ndarray, " n"]) -> None:
        """The cloud's points that are shown; where they are the same as before, only their colours are sent."""
        if self.cloud is not None and np.array_equal(shown, self.shown):
            self.cloud.colors = colours[shown]
            return
        self.shown = shown
        self.cloud = self.scene.add_point_cloud(
            "/cloud",
            self.viewed.cloud.points[shown],
            colours[shown],
            point_size=POINT,
            point_shape="circle",
            point_shading="flat",
            precision="float32" if np.abs(self.viewed.cloud.points).max() > 16 else "float16",  # else 8 mm off at most
        )

    def draw_landmarks(
        self,
        centres: Float[ndarray, "m 3"],
        radii: Float[ndarray, " m"],
        colours: UInt8[ndarray, "m 3"],
        shown: Bool[ndarray, " m"],
        lit: Bool[ndarray, " m"],
    ) -> None:
        """Landmarks as spheres; lit ones in the colour of light, and solid."""
        self.centres, self.radii, self.spheres = centres, radii, shown
        if not shown.any():
            self.scene.remove_by_name("/landmarks")
            return
        ball = trimesh.creation.icosphere(subdivisions=2)
        self.scene.add_batched_meshes_simple(
            "/landmarks",
            ball.vertices,
            ball.faces,
            batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (int(shown.sum()), 1)),
            batched_positions=centres[shown],
            batched_scales=radii[shown],
            batched_colors=linear(np.where(lit[:, None], np.array(TINT, np.uint8), colours)[shown]),
            batched_opacities=np.where(lit, 1.0, OPACITY)[shown].astype(np.float32),
            opacity=1.0,
            lod="off",
            cast_shadow=False,
            receive_shadow=False,
        )

    def show_cameras(self, visible: bool) -> None:
        for handle in self.frusta:
            handle.visible = visible

    def light_cameras(self, lit: Lit | None) -> None:
        """What is lit, in the images of the cameras; images that stay dark are not sent again."""
        now = np.zeros(len(self.viewed.seen), bool) if lit is None else lit.views
        for row, handle in zip(self.rows, self.frusta, strict=True):
            if now[row] or self.lit_views[row]:
                picture = self.viewed.pictures[row]
                handle.image = picture if lit is None else outlined(picture, lit.masks[row])
                handle.color = TINT if now[row] else DARK
        self.lit_views = now

    def draw_located(self, located: LocatedImage | None) -> None:
        """The camera of an image that was localized, and its inlier matches; nothing where it was not found."""
        self.scene.remove_by_name("/found")
        if located is None or located.location.world_from_camera is None:
            return
        scale = 1.6 * self.frustum
        self._frustum("/found/camera", located.camera, located.location.world_from_camera, located.image, scale, FOUND)
        self.scene.add_line_segments(
            "/found/matches", located.lines(self.viewed, scale), FOUND, thickness=0.7, thickness_units="screen"
        )

    def hit(self, ray: Ray, *, cameras: bool) -> Hit | None:
        """What a click means: an image (its row in the features), a landmark of those drawn, or a point."""
        image = hit_image(ray, self.screens) if cameras else None
        if image is not None:
            image = Hit("image", self.rows[image.index], image.distance, image.at)
        return first(
            image,
            hit_sphere(ray, self.centres, self.radii, self.spheres),
            hit_point(ray, self.viewed.cloud.points, self.shown, POINT),
        )

    def open_at(self, server: viser.ViserServer, row: int) -> None:
        """Let the page open where a frame's camera is, looking where it looks."""
        pose, start = self.poses[row], server.initial_camera
        start.position, start.look_at, start.up = pose[:3, 3], pose[:3, 3] + pose[:3, 2], -pose[:3, 1]
        start.fov = field_of_view(self.camera(row))

    def look_through(self, client: viser.ClientHandle, row: int) -> None:
        """Put a viewer's eye where a frame's camera is."""
        pose = self.poses[row]
        with client.atomic():
            client.camera.wxyz = viser.transforms.SO3.from_matrix(pose[:3, :3]).wxyz
            client.camera.position = pose[:3, 3]
            client.camera.fov = field_of_view(self.camera(row))

    def camera(self, row: int) -> Camera:
        return self.viewed.seen.frame(row).camera

    def _frustum(
        self,
        name: str,
        camera: Camera,
        pose: Float[ndarray, "4 4"],
        image: UInt8[ndarray, "h w 3"],
        scale: float,
        colour: tuple[int, int, int],
    ) -> viser.CameraFrustumHandle:
        return self.scene.add_camera_frustum(
            name,
            fov=2 * float(np.arctan(0.5 * camera.height / camera.fy)),
            aspect=camera.width / camera.fx * camera.fy / camera.height,
            scale=scale,
            thickness=1.2,
            thickness_units="screen",
            color=colour,
            image=image,
            jpeg_quality=75,
            wxyz=viser.transforms.SO3.from_matrix(pose[:3, :3]).wxyz,
            position=pose[:3, 3],
            cast_shadow=False,
            receive_shadow=False,
        )


def field_of_view(camera: Camera) -> float:
    """Of the eye behind a camera, in radians from top to bottom: a little more than the camera sees."""
    return float(2.2 * np.arctan(0.5 * camera.height / camera.fy))


def linear(colours: UInt8[ndarray, "n 3"]) -> UInt8[ndarray, "n 3"]:
    """sRGB bytes as proportional to light, which is what viser takes the colours of batched meshes for."""
    return (255 * (colours / 255) ** 2.2).round().astype(np.uint8)


def viewpoint(
    up: Float[ndarray, " 3"], low: Float[ndarray, " 3"], high: Float[ndarray, " 3"]
) -> tuple[Float[ndarray, " 3"], Float[ndarray, " 3"]]:
    """An eye that sees a whole box from above and one of its long sides, and the box's centre."""
    centre, size = (low + high) / 2, high - low
    across = size - up * (size @ up)
    side = np.cross(up, np.eye(3)[np.abs(across).argmax()])
    side = side / max(float(np.linalg.norm(side)), 1e-9)
    return centre + float(np.linalg.norm(size)) * (0.8 * up + 0.5 * side), centre
