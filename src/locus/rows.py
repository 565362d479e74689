"""Arrays that have one row for each of the same things: how many there are, some of them, and several parts as one."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

Some = TypeVar("Some", bound="Rows")


@dataclass(frozen=True, eq=False)
class Rows:
    """A data class of arrays. Those with a row for each thing begin with the same dimension as the first of them."""

    @classmethod
    def by_row(cls) -> list[str]:
        """The names of these arrays; read off their annotations."""
        kinds: dict[str, Any] = {field.name: field.type for field in fields(cls)}
        shapes = {name: kind.dim_str.split() for name, kind in kinds.items() if hasattr(kind, "dim_str")}
        rows = next(iter(shapes.values()))[0]
        return [name for name, shape in shapes.items() if shape[0] == rows]

    def __len__(self) -> int:
        return len(getattr(self, self.by_row()[0]))

    def take(self: Some, rows: Any) -> Some:
        """Some of the rows, in the order given."""
        return replace(self, **{name: getattr(self, name)[rows] for name in self.by_row()})


def joined(parts: Sequence[Some]) -> Some:
    """All rows, one part after the other; what is not by row is as in the first part."""
    first = parts[0]
    return replace(first, **{name: np.concatenate([getattr(part, name) for part in parts]) for name in first.by_row()})
