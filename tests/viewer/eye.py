"""What a browser shows of the page: where its camera is, and the colours of its pixels."""

import io

import numpy as np
from PIL import Image

from locus.viewer.picking import Ray


class Eye:
    """Where the browser's camera is, by its own account, and which pixel of the page shows a point of the world."""

    def __init__(self, served, tab):
        for _ in range(600):  # it tells the server where it is a moment after the page is there
            clients = served.server.get_clients()
            if clients and max(clients.values(), key=lambda c: c.client_id).camera.update_timestamp > 0:
                break
            tab.wait_for_timeout(100)
        self.camera = max(served.server.get_clients().values(), key=lambda client: client.client_id).camera
        self.canvas = max((c.bounding_box() for c in tab.locator("canvas").all()), key=lambda b: b["width"])

    def ray(self, point):
        return Ray.of(tuple(self.camera.position), tuple(point - self.camera.position))

    def edge_on(self, screen):
        """0 for an image that faces the eye, 1 for one whose edge does."""
        away = screen.world_from_camera[:3, 3] - self.camera.position
        return 1 - abs(screen.world_from_camera[:3, 2] @ away) / np.linalg.norm(away)

    def pixel(self, point):
        from scipy.spatial.transform import Rotation

        turn = Rotation.from_quat(np.roll(self.camera.wxyz, -1)).as_matrix()
        x, y, z = (point - self.camera.position) @ turn
        focal = self.canvas["height"] / 2 / np.tan(self.camera.fov / 2)
        middle = (self.canvas["x"] + self.canvas["width"] / 2, self.canvas["y"] + self.canvas["height"] / 2)
        return middle[0] + focal * x / z, middle[1] + focal * y / z


def visible(eye, served, kind, points):
    """The first of some points that is on the page and that nothing hides, and what a click on it must hit."""
    for point in points:
        (x, y), canvas = eye.pixel(point), eye.canvas
        inside = 20 < x - canvas["x"] < canvas["width"] - 20 and 20 < y - canvas["y"] < canvas["height"] - 20
        hit = served.canvas.hit(eye.ray(point), cameras=True)
        if inside and hit is not None and hit.kind == kind:
            return point, hit
    raise AssertionError(f"no {kind} can be seen")


def orange(picture):
    """Where a picture of the page has the colour of light, paler on a sphere."""
    red, green, blue = np.moveaxis(picture.astype(int), -1, 0)
    return (red > 200) & (red > green + 30) & (green > blue + 40)


def green(picture):
    """Where it has the colour of what was localized."""
    red, green, blue = np.moveaxis(picture.astype(int), -1, 0)
    return (green > red + 60) & (green > blue + 40)


def photograph(tab, eye):
    return np.asarray(Image.open(io.BytesIO(tab.screenshot(clip=eye.canvas))).convert("RGB"))


def appeared(tab, eye, before, colour, least=20):
    """The pixels of the 3D view that have a colour now and had not before, as soon as there are so many."""
    for _ in range(30):
        now = colour(photograph(tab, eye)) & ~colour(before)
        if now.sum() >= least:
            return now
        tab.wait_for_timeout(500)
    raise AssertionError(f"nothing {colour.__name__} has appeared")


def near(eye, pixels, point, reach):
    """Whether one of the pixels is so close to where a point of the world is seen."""
    x, y = np.subtract(eye.pixel(point), (eye.canvas["x"], eye.canvas["y"])).round().astype(int)
    return pixels[max(0, y - reach) : y + reach + 1, max(0, x - reach) : x + reach + 1].any()
