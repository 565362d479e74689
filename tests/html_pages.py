"""Pages as a browser would take them: their elements and text, and what they would fetch."""

import re
from html.parser import HTMLParser

HOSTILE = "<b id=hostile>&\"'$x_$"
"""A name that is an element, an entity, the end of an attribute or a formula wherever it is not escaped."""


class Parsed(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def fetched(page: str) -> list[str]:
    """Addresses outside the page that a browser would ask for."""
    found = [
        value
        for tag, attributes in Parsed(page).elements
        for name, value in attributes.items()
        if name in ("src", "srcset", "href", "xlink:href", "data", "action", "poster")
        and not re.match(r"data:|#", value or "")
    ]
    return found + re.findall(r"@import[^;]*|url\((?!#)[^)]*\)", page)


def assert_escaped(page: str, name: str = HOSTILE) -> None:
    """The name is there as text, and has made no element."""
    parsed = Parsed(page)
    assert name in parsed.text
    assert not [attributes for _, attributes in parsed.elements if attributes.get("id") == "hostile"]
