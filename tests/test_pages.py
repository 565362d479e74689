"""The writer of pages: texts escaped, pictures inside, nothing from outside; and the pictures of all of them."""

import base64
import io
import re
from importlib.resources import files

import numpy as np
import pytest
from jinja2 import UndefinedError
from PIL import Image

from locus import pages
from locus.errors import LocusError
from locus.pages.pictures import ramp, resized, sheet
from tests.html_pages import HOSTILE, Parsed, assert_escaped, fetched

PICTURE = np.full((20, 30, 3), (200, 30, 90), np.uint8)
VALUES = {
    "benchmark": HOSTILE,
    "tables": [],
    "failures": {HOSTILE: HOSTILE},
    "figures": [(HOSTILE, "<svg></svg>")],
    "pictures": [(HOSTILE, PICTURE)],
    "protocol": [(HOSTILE, HOSTILE)],
}


def test_every_template_is_part_of_the_package():
    names = {file.name for file in files("locus.pages").joinpath("templates").iterdir()}
    assert names >= {"base.html", "parts.html", "style.css", "inspection.html", "evaluation.html", "demo.html"}


def test_names_are_escaped_wherever_they_stand():
    page = pages.render("evaluation", **VALUES)
    assert_escaped(page)
    image = next(attributes for tag, attributes in Parsed(page).elements if tag == "img")
    assert image["alt"] == HOSTILE  # it does not end the attribute


def test_the_same_values_are_the_same_bytes():
    assert pages.render("evaluation", **VALUES) == pages.render("evaluation", **VALUES)


def test_a_picture_is_inside_the_page():
    page = pages.render("evaluation", **VALUES)
    assert fetched(page) == []
    data = re.search(r'src="data:image/jpeg;base64,([^"]+)" width="30" height="20"', page)
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(data[1]))))
    assert shown.shape == PICTURE.shape
    assert np.abs(shown.astype(int) - PICTURE).max() < 10


def test_what_is_fetched_is_noticed():
    assert fetched("<img src='http://x/a.png'><link href=//x><style>@import 'y';</style><a style='b: url(z)'>") == [
        "http://x/a.png",
        "//x",
        "@import 'y'",
        "url(z)",
    ]


def test_a_value_that_is_missing_fails():
    with pytest.raises(UndefinedError, match="protocol"):
        pages.render("evaluation", **{name: value for name, value in VALUES.items() if name != "protocol"})


def test_a_page_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LocusError, match=r"page\.html cannot be written: File exists \(.*file\)"):
        pages.write(tmp_path / "file" / "page.html", "evaluation", **VALUES)


@pytest.mark.parametrize(("size", "shown"), [((60, 90), (20, 30)), ((10, 15), (20, 30)), ((3000, 1), (90, 30))])
def test_a_resized_picture_keeps_its_shape_but_is_never_very_tall(size, shown):
    assert resized(np.zeros((*size, 3), np.uint8), 30).shape == (*shown, 3)


def test_a_ramp_goes_from_dark_blue_to_yellow():
    low, high = ramp(np.array([[-1.0, 9.0]]), 0.0, 1.0)[0].astype(int)
    assert low[2] > low[0]
    assert high[0] > 200 > 100 > high[2]
    assert (ramp(np.array([[np.nan]]), 0.0, 1.0)[0, 0] == low).all()


def test_a_sheet_holds_every_picture():
    row = [np.full((10, 12, 3), value, np.uint8) for value in (10, 20)]
    drawn = sheet([row, row[:1]], gap=2)
    assert drawn.shape == (22, 26, 3)
    assert (drawn[:10, :12] == 10).all()
    assert (drawn[:10, 14:] == 20).all()
    assert (drawn[12:, :12] == 10).all()
    assert (drawn[12:, 12:] == 255).all()


def test_a_sheet_may_have_no_gap():
    picture = np.full((4, 6, 3), 7, np.uint8)
    drawn = sheet([[picture, picture], [picture, picture]], gap=0)
    assert drawn.shape == (8, 12, 3)
    assert (drawn == 7).all()
