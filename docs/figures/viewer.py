"""The picture of the viewer: a spot on a thing clicked, a frame localized, seen from above.

    python docs/figures/viewer.py SCENE --model RUN [--map MAP] [--cache DIR] [--out docs/figures/viewer.png]

Needs playwright, and chromium on the PATH or fetched by `playwright install chromium`; no GPU.
"""

import argparse
import shutil
import time
from pathlib import Path

import numpy as np
import viser
from playwright.sync_api import Page as Tab
from playwright.sync_api import sync_playwright

from locus import LandmarkMap, load_scene
from locus.demo import spot
from locus.model import load
from locus.viewer.app import Page
from locus.viewer.canvas import Canvas
from locus.viewer.locating import locate_frame
from locus.viewer.picking import Hit
from locus.viewer.serve import server
from locus.viewer.viewed import ViewedScene

WIDTH, HEIGHT = 1280, 800
AWAY = 6.0  # metres from what is looked at, or more: a room or two
PATIENCE = 240_000  # milliseconds
SETTLED = 10_000  # milliseconds, after which everything is drawn, without a GPU too
FLAGS = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--no-sandbox"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene")
    parser.add_argument("--model", required=True)
    parser.add_argument("--map", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".png"))
    arguments = parser.parse_args()
    world = LandmarkMap.load(arguments.map) if arguments.map else None
    viewed = ViewedScene.open(load(arguments.model), load_scene(arguments.scene), world, arguments.cache, progress=True)
    with server("127.0.0.1", 0) as running, sync_playwright() as driver:
        page = Page(running, viewed)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS, timeout=PATIENCE)
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        tab.set_default_timeout(PATIENCE)
        tab.goto(f"http://127.0.0.1:{running.get_port()}")
        tab.get_by_text("Click a point").wait_for()
        print(photograph(page, tab, arguments.out))
        browser.close()


def photograph(page: Page, tab: Tab, out: Path) -> str:
    """Click, localize, and take the picture; what the page says of the frame."""
    viewed = page.viewed
    assert viewed.world is not None, viewed.about_map
    chosen = spot.choose(viewed.world, viewed.seen)
    camera = viewed.seen.frame(chosen.row).camera
    page.choose(Hit("image", chosen.row, 0.0, (chosen.x / camera.width, chosen.y / camera.height)))
    best = max(viewed.left_out, key=lambda row: locate_frame(viewed, row).location.confidence)
    ends = np.stack([viewed.world.landmarks.position[chosen.landmark], page.canvas.poses[best][:3, 3]])
    page.panel.frame.value = viewed.names[best]
    tab.get_by_role("tab", name="Localize").click()
    tab.get_by_role("button", name="Localize this frame").click()
    answer = tab.get_by_text(f"Frame {viewed.names[best]} ")
    answer.wait_for()
    look_at(page.canvas, client(page), ends)
    for close in tab.locator(".mantine-Notification-closeButton").all():  # viser's, of the missing GPU
        close.click()
    tab.wait_for_timeout(SETTLED)
    tab.screenshot(path=out)
    return answer.inner_text()


def client(page: Page) -> viser.ClientHandle:
    """The browser, once it has told where its camera is."""
    while not any(each.camera.update_timestamp > 0 for each in page.server.get_clients().values()):
        time.sleep(0.1)
    return next(iter(page.server.get_clients().values()))


def look_at(canvas: Canvas, viewer: viser.ClientHandle, ends: np.ndarray) -> None:
    """See both ends, from above, where walls hide little of a room, and from the side that the page opens on."""
    eye = np.asarray(viewer.camera.position) - np.asarray(viewer.camera.look_at)
    side = eye - canvas.up * (eye @ canvas.up)
    towards = 0.95 * canvas.up + 0.3 * side / np.linalg.norm(side)
    away = max(AWAY, 1.5 * float(np.linalg.norm(ends[1] - ends[0])))
    with viewer.atomic():
        viewer.camera.position = ends.mean(axis=0) + away * towards
        viewer.camera.look_at = ends.mean(axis=0)


if __name__ == "__main__":
    main()
