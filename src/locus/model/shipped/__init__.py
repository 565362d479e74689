"""Models that come with the package: a folder each, as `locus export RUN --hub FOLDER --half` writes it."""

from pathlib import Path

MODELS = {config.parent.name: config.parent for config in sorted(Path(__file__).parent.glob("*/config.json"))}
DEFAULT = "locus-small"
