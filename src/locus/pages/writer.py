"""The one writer of pages: the templates beside it, filled in, every text escaped, pictures inside the page."""

import base64
import io
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from PIL import Image

from locus.files import atomic
from locus.pages.pictures import Picture


def write(path: Path, template: str, **values: Any) -> Path:
    """Write a page to `path`, whole or not at all."""
    page = render(template, **values)
    with atomic(path) as file:
        file.write_text(page, encoding="utf-8")
    return path


def render(template: str, **values: Any) -> str:
    """A page as text: `template` names a file of templates/ without its .html, `values` is all that it shows."""
    return _environment().get_template(f"{template}.html").render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("locus.pages"),
        autoescape=True,
        undefined=StrictUndefined,  # a misspelt value fails, and does not leave a gap
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["jpeg"] = _jpeg
    return environment


def _jpeg(picture: Picture) -> str:
    """The picture as an address that holds all of it."""
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(buffer, "JPEG", quality=88)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
