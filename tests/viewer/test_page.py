"""The page in a real browser: what it says and shows after a click, a localized frame, an upload, a closed tab."""

import io
import itertools
import re
import shutil

import numpy as np
import pytest
from PIL import Image

from locus.tasks.place_graph import PlaceGraph
from locus.viewer.locating import locate_frame
from locus.viewer.picking import Hit
from locus.viewer.tree import title_of
from tests.viewer.eye import Eye, appeared, green, near, orange, photograph, visible

pytest.importorskip("viser", reason="the extra `viewer` is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
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
        places = (shutil.which(name) for name in (*BROWSERS, driver.chromium.executable_path))
        path = next(filter(None, places), None)
        if path is None:
            pytest.skip("there is no chromium to open the page in; `playwright install chromium` fetches one")
        started = driver.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE)
        yield started
        started.close()


@pytest.fixture(scope="module")
def served(known):
    from locus.viewer.app import Page
    from locus.viewer.serve import server

    with server("127.0.0.1", 0) as running:
        yield Page(running, known, PlaceGraph.build(known.world, known.seen))


@pytest.fixture
def opened(browser, served):
    """Open the page in a window of a size."""
    tabs = []

    def opened(width, height):
        tab = browser.new_page(viewport={"width": width, "height": height})
        tabs.append(tab)
        tab.set_default_timeout(PATIENCE)
        tab.goto(f"http://127.0.0.1:{served.server.get_port()}")
        tab.get_by_text("similarity").wait_for()
        return tab

    yield opened
    for tab in tabs:
        tab.close()
    served.choose(None)
    served.canvas.draw_located(None)


@pytest.fixture
def tab(opened):
    return opened(1000, 700)


@pytest.mark.parametrize("kind", ["landmark", "image", "point"])
def test_a_click_names_what_it_hit_and_lights_up_what_is_like_it(tab, served, kind):
    eye = Eye(served, tab)
    targets = {
        "landmark": served.canvas.centres[served.canvas.spheres],
        "image": [
            screen.points(np.array([[0.5, 0.5]]))[0] for screen in sorted(served.canvas.screens, key=eye.edge_on)
        ],
        "point": served.viewed.cloud.points[served.canvas.shown][::97],
    }
    point, expected = visible(eye, served, kind, [np.asarray(each, float) for each in targets[kind]])
    before = photograph(tab, eye)
    tab.mouse.click(*eye.pixel(point))
    tab.get_by_text("Lit:").wait_for()
    words = tab.inner_text("body")
    if kind == "image":  # which pixel of it is not said: half a pixel of the screen is more than one of the image
        assert f"of frame {served.viewed.names[expected.index]}." in words
        assert tab.get_by_role("button", name="Look through this camera").is_visible()
    elif kind == "landmark":
        assert f"Landmark {expected.index}, score {served.viewed.landmarks(0).score[expected.index]:.2f}" in words
    else:
        assert "Point (" in words
        assert np.linalg.norm(served.viewed.cloud.points[served.hit.index] - point) < 0.1
    lit = served.lit
    assert f"Lit: {lit.views.sum()} of 12 views, {lit.points.sum():,} points, {lit.landmarks.sum()} landmarks." in words
    assert tab.locator("img").count() > 0  # the views it is seen in
    glowing = appeared(tab, eye, before, orange)
    assert kind == "image" or near(eye, glowing, point, 12)
    tab.get_by_role("button", name="Clear").click()
    tab.get_by_text("Click a point").wait_for()
    assert served.lit is None


def test_a_frame_is_localized_and_its_camera_and_matches_are_drawn(tab, served):
    eye = Eye(served, tab)
    before = photograph(tab, eye)
    tab.get_by_role("tab", name="Localize").click()
    tab.get_by_text("a map built for this page from 11 of 12 frames").wait_for()
    tab.get_by_role("button", name="Localize this frame").click()
    tab.get_by_text("Frame 000005 was taken in room").wait_for()
    assert re.search(r"Off its recorded pose by \d\.\d cm and [01]\.\d°", tab.inner_text("body"))
    drawn = appeared(tab, eye, before, green, 500)
    located = locate_frame(served.viewed, 5)
    assert near(eye, drawn, located.location.world_from_camera[:3, 3], 4)
    middles = located.lines(served.viewed, 1.6 * served.canvas.frustum).mean(axis=1)
    assert np.mean([near(eye, drawn, middle, 2) for middle in middles]) > 0.8


def test_an_upload_is_found_or_refused_with_a_sentence(tab, served, tmp_path):
    def upload(name):
        tab.locator("input[type=file]").first.set_input_files(tmp_path / name)

    eye = Eye(served, tab)
    before = photograph(tab, eye)
    image = served.viewed.seen.frame(5).image
    tab.get_by_role("tab", name="Localize").click()
    (tmp_path / "notes.png").write_text("no image at all")
    upload("notes.png")
    tab.get_by_text("notes.png is not an image that can be read").wait_for()
    Image.fromarray(image[:, ::-1]).save(tmp_path / "elsewhere.png")
    upload("elsewhere.png")
    tab.get_by_text("elsewhere.png is not here").wait_for()
    Image.fromarray(image).save(tmp_path / "<b>there.png")
    upload("<b>there.png")
    tab.get_by_text("<b>there.png was taken in room").wait_for()
    assert "It was taken to have the lens of the scene's camera." in tab.inner_text("body")
    drawn = appeared(tab, eye, before, green, 500)
    assert near(eye, drawn, served.canvas.poses[5][:3, 3], 8)


def test_a_dropped_image_is_found(tab, served):
    file = io.BytesIO()
    Image.fromarray(served.viewed.seen.frame(5).image).save(file, "png")
    tab.get_by_role("tab", name="Localize").click()
    held = tab.evaluate_handle(
        """bytes => {
            const held = new DataTransfer();
            held.items.add(new File([new Uint8Array(bytes)], "dropped.png", {type: "image/png"}));
            return held;
        }""",
        list(file.getvalue()),
    )
    tab.get_by_text("or drop one here").dispatch_event("drop", {"dataTransfer": held})
    answer = tab.get_by_text("dropped.png was taken in room")
    answer.wait_for()
    assert answer.is_visible()


# Every text, image and field of the page: its box, and whether something it is in cuts it off.
BOXES = """() => {
    const found = [];
    const add = (element, rect, what) => {
        if (!rect.width || !rect.height || !element.checkVisibility({visibilityProperty: true})) return;
        let cut = element.tagName === "INPUT" && element.scrollWidth > element.clientWidth + 1;
        for (let outer = element; outer !== document.body; outer = outer.parentElement) {
            const frame = outer.getBoundingClientRect();
            if (getComputedStyle(outer).overflow !== "visible" && frame.width && (rect.left < frame.left - 1 ||
                rect.right > frame.right + 1 || rect.top < frame.top - 1 || rect.bottom > frame.bottom + 1)) cut = true;
        }
        found.push({what, cut, left: rect.left, top: rect.top, right: rect.right, bottom: rect.bottom});
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const range = document.createRange();
        range.selectNodeContents(texts.currentNode);
        if (texts.currentNode.data.trim())
            add(texts.currentNode.parentElement, range.getBoundingClientRect(), texts.currentNode.data);
    }
    for (const each of document.querySelectorAll("img, input")) add(each, each.getBoundingClientRect(), each.outerHTML);
    return found;
}"""


@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080)])
def test_nothing_of_the_panel_overlaps_or_is_cut(opened, served, tmp_path, size):
    served.choose(Hit("image", 4, 1.0, (0.5, 0.5)))  # the panel at its fullest
    tab = opened(*size)
    eye = Eye(served, tab)
    tab.get_by_text("Lit:").wait_for()
    for name, last in (("Show", "landmarks shown"), ("Localize", "Frame 000005 was taken")):
        tab.get_by_role("tab", name=name).click()
        if name == "Localize":
            tab.get_by_role("button", name="Localize this frame").click()
        tab.get_by_text(last).wait_for()
        tab.screenshot(path=tmp_path / f"{name}.png")
        boxes = [box for box in tab.evaluate(BOXES) if box["left"] >= eye.canvas["x"] + eye.canvas["width"]]
        assert len(boxes) > 10
        for box in boxes:
            assert not box["cut"], box
            assert box["right"] <= size[0], box
            assert box["bottom"] <= size[1], box
        for one, other in itertools.combinations(boxes, 2):
            across = min(one["right"], other["right"]) - max(one["left"], other["left"])
            down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
            assert min(across, down) <= 1, (one, other)


def test_a_closed_tab_changes_nothing_for_the_next(opened, served):
    opened(1000, 700).close()
    served.choose(Hit("image", 4, 1.0, (0.5, 0.5)))
    said = opened(1000, 700).get_by_text("Pixel (40, 30) of frame 000004")
    said.wait_for()
    assert said.is_visible()


def red(picture):
    """Where it has the colour of what is gone."""
    red, green, blue = np.moveaxis(picture.astype(int), -1, 0)
    return (red > green + 90) & (red > blue + 90)


@pytest.mark.slow
def test_changes_are_drawn_listed_and_hidden(tab, served):
    from locus.viewer.shown_changes import ShownChange, show_changes

    eye = Eye(served, tab)
    before = photograph(tab, eye)
    spot = np.random.default_rng(0).uniform(-0.2, 0.2, (200, 3)).astype(np.float32)
    was, now = spot + np.float32([-0.8, 0, 1.9]), spot + np.float32([0.8, 0, 1.9])
    show_changes(served.server, [ShownChange("1. moved (0.97): <i>here</i>", was, now)])
    tab.get_by_text("1. moved (0.97): <i>here</i>").wait_for()
    assert near(eye, appeared(tab, eye, before, red, 100), was.mean(axis=0), 12)
    assert near(eye, appeared(tab, eye, before, green, 100), now.mean(axis=0), 12)
    tab.get_by_role("checkbox", name="changes").uncheck()
    for _ in range(30):
        if not (red(photograph(tab, eye)) & ~red(before)).any():
            break
        tab.wait_for_timeout(500)
    assert not (red(photograph(tab, eye)) & ~red(before)).any()


def test_a_click_in_the_tree_boxes_the_object_and_lists_its_spots(served, tab):
    eye = Eye(served, tab)
    graph = served.tree.graph
    place = max(graph.of("object"), key=lambda each: len(graph.inside(each.id)))
    tab.get_by_role("tab", name="Graph").click()
    tab.get_by_role("button", name=title_of(graph["room 1"])).wait_for()
    before = photograph(tab, eye)
    tab.get_by_role("button", name=title_of(place), exact=True).click()
    tab.get_by_text(f"seen in {len(place.views)} frames, in {place.inside}.").wait_for()
    assert appeared(tab, eye, before, orange).any()
    spot = max(graph.inside(place.id), key=lambda each: len(each.views))
    tab.get_by_text("Spots on it").click()
    tab.get_by_role("button", name=spot.id, exact=True).click()
    tab.get_by_text(f"seen in {len(spot.views)} frames, in {place.id}.").wait_for()
