"""Pictures of regions and labels: tinted, outlined, with captions, many on one sheet."""

import colorsys
from collections.abc import Sequence
from itertools import compress
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import Bool, Float, Int, Num, UInt8
from numpy import ndarray
from PIL import Image, ImageDraw, ImageFont

from locus.files import atomic
from locus.pages.pictures import Picture, resized, sheet
from locus.scenes.scene import LabelClass
from locus.tasks.instances import FoundRegion

Colour = tuple[int, int, int]

TINT: Colour = (255, 120, 0)
MARK: Colour = (0, 90, 255)
TILE = 320  # pixels across, of a picture on a sheet
CAPTION = 20  # pixels high
LEGEND = 18  # pixels high, a line


def outlined(image: Picture, mask: Bool[ndarray, "h w"], colour: Colour = TINT, strength: float = 0.45) -> Picture:
    """An image with a region tinted and its rim drawn."""
    if not mask.any():
        return image.copy()
    picture = image.astype(np.float32)
    picture[mask] = (1 - strength) * picture[mask] + strength * np.array(colour, np.float32)
    picture = picture.round().astype(np.uint8)
    rims = cv2.findContours(mask.astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)[0]
    return cv2.drawContours(picture, rims, -1, colour, max(1, round(image.shape[1] / 320)), cv2.LINE_AA)


def marked(image: Picture, x: float, y: float) -> Picture:
    """An image with a point of it marked: a ring, so that what is inside can be seen."""
    picture, unit = image.copy(), max(1, round(image.shape[1] / 320))
    for colour, thick in (((255, 255, 255), 4 * unit), (MARK, 2 * unit)):
        cv2.circle(picture, (int(x), int(y)), 12 * unit, colour, thick, cv2.LINE_AA)
    return picture


def boxed(image: Picture, box: tuple[int, int, int, int]) -> Picture:
    """An image with a box drawn."""
    x0, y0, x1, y1 = box
    width = max(1, round(image.shape[1] / 200))
    return cv2.rectangle(image.copy(), (x0, y0), (x1 - 1, y1 - 1), TINT, width, cv2.LINE_AA)


def captioned(picture: Picture, text: str, width: int = TILE) -> Picture:
    """A picture at a sheet's width, a line of text above; what does not fit is cut at the front, where folders are."""
    small = resized(picture, width)
    font = ImageFont.load_default(13)
    while len(text) > 1 and font.getlength(text) > width - 8:
        text = "…" + text.lstrip("…")[1:]
    strip = Image.new("RGB", (width, CAPTION), (255, 255, 255))
    ImageDraw.Draw(strip).text((4, 2), text, fill=(20, 20, 20), font=font)
    return np.concatenate([np.asarray(strip), small])


def tiles(pictures: Sequence[Picture], columns: int = 4) -> Picture:
    """Pictures on one sheet, row by row."""
    return sheet([pictures[first : first + columns] for first in range(0, len(pictures), columns)], gap=6)


def write_sheet(out: Path, query: Picture, name: str, found: Sequence[FoundRegion], views: int) -> None:
    """The query, then the images of the first regions found, each with its score."""
    shown = [captioned(query, f"query: {name}")]
    for each in found[:views]:
        picture = outlined(each.image.read(), each.mask)
        if each.box is not None:
            picture = boxed(picture, each.box)
        caption = f"{each.score:.2f}  {each.image.name}" + ("" if each.mask.any() else "  (nothing)")
        shown.append(captioned(picture, caption))
    write(out, tiles(shown))


def write_masks(folder: Path, found: Sequence[FoundRegion]) -> None:
    """NAME.png for each image: 255 inside the region, 0 outside."""
    for each in found:
        write(folder / f"{each.image.name}.png", each.mask.astype(np.uint8) * 255)


def label_colours(classes: Sequence[LabelClass]) -> UInt8[ndarray, "k 3"]:
    """A colour for each class: things in strong ones, as far apart as so many can be, stuff in pale ones."""
    golden = 0.618033988749895  # of the circle of hues: each next one falls into the largest gap
    steps = [(0.95, 0.95), (0.6, 0.95), (0.9, 0.6)]
    things, stuff, colours = 0, 0, np.zeros((len(classes), 3))
    for row, label in enumerate(classes):
        if label.kind == "thing":
            colours[row] = colorsys.hsv_to_rgb((0.08 + things * golden) % 1, *steps[things // 2 % 3])
            things += 1
        else:
            colours[row] = colorsys.hsv_to_rgb((0.6 + stuff * golden) % 1, 0.18, 0.85)
            stuff += 1
    return (colours * 255).round().astype(np.uint8)


def label_picture(image: Picture, labels: Int[ndarray, "h w"], colours: UInt8[ndarray, "k 3"]) -> Picture:
    """An image, grey, tinted by the ids of its labels (id 1 is the first colour); unlabelled stays grey."""
    grey = np.repeat(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=-1).astype(np.float32)
    tint = np.concatenate([np.zeros((1, 3), np.uint8), colours])[labels].astype(np.float32)
    known = (labels > 0)[..., None]
    return np.where(known, 0.35 * grey + 0.65 * tint, 0.8 * grey).round().astype(np.uint8)


def with_legend(picture: Picture, classes: Sequence[LabelClass], labels: Int[ndarray, "..."]) -> Picture:
    """A picture, and below it the classes that labels show, beside their colours, in as many lines as it takes."""
    font, width = ImageFont.load_default(13), picture.shape[1]
    shown = np.isin([label.id for label in classes], labels)
    named = list(compress(zip(classes, label_colours(classes), strict=True), shown))
    places, x, line = [], 4, 0
    for label, _ in named:
        length = int(font.getlength(label.name)) + 30
        if x > 4 and x + length > width:
            x, line = 4, line + 1
        places.append((x, line * LEGEND))
        x += length
    canvas = Image.new("RGB", (width, (line + 1) * LEGEND + 4), (255, 255, 255))
    draw = ImageDraw.Draw(canvas)
    for (label, colour), (left, top) in zip(named, places, strict=True):
        draw.rectangle([left, top + 4, left + 12, top + 16], fill=tuple(colour.tolist()))
        draw.text((left + 16, top + 2), label.name, fill=(20, 20, 20), font=font)
    return np.concatenate([picture, np.asarray(canvas)])


def points_picture(
    points: Float[ndarray, "n 3"], colours: UInt8[ndarray, "n 3"], up: Float[ndarray, " 3"], width: int = 960
) -> Picture:
    """Coloured points of a place, seen from high above and a little from the side."""
    away = np.cross(up, np.eye(3)[np.abs(up).argmin()])
    away = away / np.linalg.norm(away)
    right = np.cross(away, up)
    x, depth, height = points @ right, points @ away, points @ up
    y = -(0.85 * depth + 0.53 * height)  # the sine and the cosine of looking down at 58 degrees
    low, span = np.array([x.min(), y.min()]), max(float(np.ptp(x)), 1e-6)
    scale = (width - 40) / span
    canvas = np.full((round(float(np.ptp(y)) * scale) + 40, width, 3), 255, np.uint8)
    places = (np.stack([x, y], axis=1) - low) * scale + 20
    radius = max(3, round(0.06 * scale))
    for row in np.lexsort((height, -depth)):  # far ones first, so that near ones cover them
        cv2.circle(canvas, places[row].astype(int).tolist(), radius, colours[row].tolist(), -1, cv2.LINE_AA)
    return canvas


def write(path: Path, picture: Num[ndarray, "..."]) -> None:
    """A picture or a map of labels as a PNG, or a JPEG if that is its name; whole or not at all."""
    with atomic(path) as file:
        Image.fromarray(picture).save(file, "JPEG" if path.suffix.lower() in (".jpg", ".jpeg") else "PNG")
