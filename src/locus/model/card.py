"""The page that goes with a model on the Hugging Face hub."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

CARD = """---
library_name: locus-features
license: mit
tags:
- locus
- place-recognition
- robotics
pipeline_tag: image-feature-extraction
---
# LoCUS features: {radii}

Patch features that are the same for the same spot in the world, whatever the viewpoint. RGB image in; one map of
{dimension}-dimensional unit-length features per scale out.

| | |
|---|---|
| scales | {radii} |
| backbone | `{backbone}`, layer {layer}, frozen, weights {backbone_fingerprint} (not in this repository) |
| head | {head} (in this repository) |
| shorter side of an image | {resolution} |

```python
import locus
model = locus.LoCUS.from_pretrained("{place}"{option})
features = model.features(image)  # H×W×3 bytes to (scales, rows, columns, {dimension})
```
{remark}"""

REMARK = """
The backbone was a folder on the machine where this was learned: `backbone=` says where the same weights are on yours.
"""


def card(config: Mapping[str, Any], dimension: int) -> str:
    """The text, from a model's configuration."""
    own = Path(config["backbone"]).is_dir()
    metres = [f"{radius:g} m" for radius in config["radii"]]
    resolution = config["resolution"]
    facts = dict(config) | {
        "radii": metres[0] if len(metres) == 1 else f"{', '.join(metres[:-1])} and {metres[-1]}",
        "backbone": Path(config["backbone"]).name if own else config["backbone"],
        "dimension": dimension,
        "resolution": "as it is" if resolution is None else f"{resolution} pixels",
        "place": "this folder, or its name on the hub",
        "option": ', backbone="folder of the backbone"' if own else "",
        "remark": REMARK if own else "",
    }
    return CARD.format(**facts)
