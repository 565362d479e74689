"""The options of `locus map` that make a graph of rooms, objects and spots."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from locus.commands.options import Switch, counted, say
from locus.errors import LocusError
from locus.scenes import Scene

if TYPE_CHECKING:
    from locus.landmarks import LandmarkMap
    from locus.model import LoCUS


@dataclass(frozen=True)
class _GraphOptions:
    graph: Switch = False
    """Also write graph.json to the map's folder: rooms, the objects in them and the spots on these (docs/graph.md)."""
    probe: Path | None = None
    """With --graph: a probe of `locus segment fit` that names objects or, if it is of the finest scale, spots."""
    clip: str | None = None
    """With --graph: a CLIP of transformers, by name or folder, that names objects by one of --words."""
    words: tuple[str, ...] = ()
    """What CLIP may call an object."""

    def check(self, *, add: bool) -> None:
        """Before anything that takes time: do the options fit together?"""
        if not self.graph and (self.probe is not None or self.clip is not None or self.words):
            raise LocusError("--probe, --clip and --words name the objects of a graph: --graph must be given too")
        if self.graph and add:
            raise LocusError("a graph is made of all frames of a map at once: leave --add out, and name all scenes")
        if self.words and self.clip is None:
            raise LocusError("--words are compared with pictures by a CLIP: name one with --clip")

    def write(self, out: Path, world: "LandmarkMap", model: "LoCUS", scenes: list[Scene], cache: Path | None) -> None:
        """graph.json of a map, beside it."""
        from locus.features.dense import scene_features
        from locus.landmarks.map_files import GRAPH
        from locus.tasks.naming import WordNames, named_by_probe
        from locus.tasks.place_graph import PlaceGraph
        from locus.tasks.probe import Probe

        probe = None if self.probe is None else Probe.load(self.probe)
        words = None if self.clip is None else WordNames(self.clip, self.words)
        graphs = []
        for scene in scenes:
            seen = scene_features(model, scene, cache, progress=True)
            graph = PlaceGraph.build(world, seen, progress=True)
            graphs.append(graph if words is None else words.named(graph, seen))
        graph = PlaceGraph.joined(graphs)
        graph = graph if probe is None else named_by_probe(graph, probe)
        graph.save(out / GRAPH)
        counts = ", ".join(counted(len(graph.of(kind)), kind) for kind in ("room", "object", "spot"))
        say(f"Wrote {out / GRAPH}: {counts}")


GraphOptions = Annotated[_GraphOptions, tyro.conf.OmitArgPrefixes]
NO_GRAPH = _GraphOptions()
