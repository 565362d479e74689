"""The page in a real browser: what it says and shows after a click, an upload, a closed tab."""

import shutil

import numpy as np
import pytest
from PIL import Image

from locus.viewer.picking import Ray

pytest.importorskip("viser", reason="the extra `viewer` is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to open the page in")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--use-angle=swiftshader",  # WebGL without a GPU
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 240_000  # milliseconds: it draws without a GPU, on machines that are shared


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=PATIENCE)
        yield started
        started.close()


@pytest.fixture(scope="module")
def served(place):
    from locus.viewer.page import Page
    from locus.viewer.serve import server

    with server("127.0.0.1", 0) as running:
        yield Page(running, place)


@pytest.fixture
def tab(browser, served):
    served.choose(None)
    opened = browser.new_page(viewport={"width": 1000, "height": 700})
    opened.set_default_timeout(PATIENCE)
    opened.goto(f"http://127.0.0.1:{served.server.get_port()}")
    opened.get_by_text("Click a point").wait_for()
    yield opened
    opened.close()


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
        hit = served.stage.hit(eye.ray(point), cameras=True)
        if inside and hit is not None and hit.kind == kind:
            return point, hit
    raise AssertionError(f"no {kind} can be seen")


@pytest.mark.parametrize("kind", ["landmark", "image", "point"])
def test_a_click_names_what_it_hit_and_says_what_lights_up(tab, served, kind):
    eye = Eye(served, tab)
    targets = {
        "landmark": served.stage.centres[served.stage.spheres],
        "image": [screen.points(np.array([[0.5, 0.5]]))[0] for screen in sorted(served.stage.screens, key=eye.edge_on)],
        "point": served.place.cloud.points[served.stage.shown][::97],
    }
    point, expected = visible(eye, served, kind, [np.asarray(each, float) for each in targets[kind]])
    tab.mouse.click(*eye.pixel(point))
    tab.get_by_text("Lit:").wait_for()
    words = tab.inner_text("body")
    if kind == "image":  # which pixel of it is not said: half a pixel of the screen is more than one of the image
        assert f"of frame {served.place.names[expected.index]}." in words
        assert tab.get_by_role("button", name="Look through this camera").is_visible()
    elif kind == "landmark":
        assert f"Landmark {expected.index}, score {served.place.landmarks(0).score[expected.index]:.2f}" in words
    else:
        assert "Point (" in words
        assert np.linalg.norm(served.place.cloud.points[served.hit.index] - point) < 0.1
    lit = served.lit
    assert f"Lit: {lit.views.sum()} of 12 views, {lit.points.sum():,} points, {lit.landmarks.sum()} landmarks." in words
    assert lit.points.any()
    assert tab.locator("img").count() > 0  # the views it is seen in
    tab.get_by_role("button", name="Clear").click()
    tab.get_by_text("Click a point").wait_for()
    assert served.lit is None


def test_an_upload_is_localized_or_refused_with_a_sentence(tab, served, tmp_path):
    tab.get_by_role("tab", name="Localize").click()
    tab.get_by_text("a map built for this page from 11 of 12 frames").wait_for()
    tab.get_by_role("button", name="Localize this frame").click()
    tab.get_by_text("Frame 000005").last.wait_for()
    (tmp_path / "notes.png").write_text("no image at all")
    tab.locator("input[type=file]").first.set_input_files(tmp_path / "notes.png")
    tab.get_by_text("notes.png is not an image that can be read").wait_for()
    Image.fromarray(served.place.seen.frame(2).image).save(tmp_path / "<b>there.png")
    tab.locator("input[type=file]").first.set_input_files(tmp_path / "<b>there.png")
    tab.get_by_text("It was taken to have the lens of the scene's camera.").wait_for()
    assert "<b>there.png" in tab.inner_text("body")


def test_a_closed_tab_changes_nothing_for_the_next(browser, served):
    from locus.viewer.picking import Hit

    first = browser.new_page()
    first.goto(f"http://127.0.0.1:{served.server.get_port()}", timeout=PATIENCE)
    first.close()
    served.choose(Hit("image", 4, 1.0, (0.5, 0.5)))
    second = browser.new_page()
    second.goto(f"http://127.0.0.1:{served.server.get_port()}", timeout=PATIENCE)
    said = second.get_by_text("Pixel (40, 30) of frame 000004")
    said.wait_for(timeout=PATIENCE)
    assert said.is_visible()
    second.close()
