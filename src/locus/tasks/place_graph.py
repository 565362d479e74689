"""PlaceGraph: a scene as rooms, the objects in them, and the spots on these; what lies on what, and near what.

Each scale of a model answers a question of its own: which room, which object, where exactly. The file, graph.json, is
in networkx's node-link form: `networkx.node_link_graph(json.load(open("graph.json")), edges="edges")`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Float32, Int
from numpy import ndarray
from scipy.sparse import csr_matrix
from scipy.spatial import KDTree

from locus.errors import LocusError
from locus.features.dense import SceneFeatures
from locus.files import load_json, save_json
from locus.landmarks import LandmarkMap
from locus.landmarks.map_files import GRAPH
from locus.tasks.objects import Grouping, Objects
from locus.tasks.rooms import rooms
from locus.tasks.segments import bounds, membership
from locus.tasks.voxels import Voxels, voxels

Kind = Literal["room", "object", "spot"]
RADII: dict[Kind, float] = {"spot": 0.2, "object": 0.6, "room": 2.5}  # of the scale that knows each best
NEAR = 0.3  # metres between the boxes of two objects that are near each other
ON = 0.12  # metres between the top of one and the bottom of another that stands on it


@dataclass(frozen=True)
class GraphPlace:
    """A node: a room, an object or a spot."""

    id: str
    kind: Kind
    environment: str
    position: tuple[float, ...]
    """The middle of its box, metres in the environment's world; of a spot, the landmark itself."""
    extent: tuple[float, ...]
    """The size of its box along the world's axes, metres."""
    views: tuple[str, ...]
    """The frames that show it."""
    embedding: tuple[float, ...]
    """Unit length, of the model's scale nearest to its size."""
    inside: str | None
    """The id of what it lies in; None for a room."""
    label: str | None = None
    probability: float | None = None
    """That the label is right; None where there is none."""


@dataclass(frozen=True, eq=False)
class PlaceGraph:
    """Rooms, objects and spots of one or several environments."""

    model: str
    """Fingerprint of the model whose features the embeddings are."""
    radii: tuple[float, ...]
    places: tuple[GraphPlace, ...]
    edges: tuple[tuple[str, str, str], ...]
    """(from, to, kind): an object `on` another, or `near` it. What lies `in` what, the places say."""

    @classmethod
    def build(cls, world: LandmarkMap, seen: SceneFeatures, *, progress: bool = False) -> "PlaceGraph":
        """The graph of a scene that is an environment of the map, under the scene's name."""
        number = world.environment_number(seen.scene.name)
        here = world.environment(number)
        surfaces = voxels(seen, progress)
        found, parts = Grouping.of(world.model).objects(surfaces, seen), rooms(surfaces, seen)
        builder = _PlaceBuilder(here, seen, surfaces)
        room_ids = builder.add("room", parts.number, [None] * parts.count)
        homes = [room_ids[room] for room in _mostly(found.number, parts.number, len(found))]
        object_ids = builder.add("object", found.number, homes)
        builder.add_spots(
            [*object_ids, *room_ids], np.where(found.number >= 0, found.number, len(found) + parts.number)
        )
        return cls(world.model, world.radii, tuple(builder.places), tuple(_relations(found, surfaces, object_ids)))

    @classmethod
    def joined(cls, graphs: "Sequence[PlaceGraph]") -> "PlaceGraph":
        """One graph of several environments; ids get the environment's name before them."""
        if len(graphs) == 1:
            return graphs[0]
        places, edges = [], []
        for graph in graphs:
            name = {place.id: f"{place.environment}: {place.id}" for place in graph.places}
            within = {None: None, **name}
            places += [replace(place, id=name[place.id], inside=within[place.inside]) for place in graph.places]
            edges += [(name[a], name[b], kind) for a, b, kind in graph.edges]
        return cls(graphs[0].model, graphs[0].radii, tuple(places), tuple(edges))

    def __getitem__(self, id: str) -> GraphPlace:
        found = next((place for place in self.places if place.id == id), None)
        if found is None:
            raise LocusError(f"the graph has no {id!r}")
        return found

    def of(self, kind: Kind) -> list[GraphPlace]:
        return [place for place in self.places if place.kind == kind]

    def inside(self, id: str | None) -> list[GraphPlace]:
        """What lies in a room or an object; of None, the rooms."""
        return [place for place in self.places if place.inside == id]

    def scale(self, kind: Kind) -> int:
        """The model's scale that answers questions about such places."""
        return scale_of(self.radii, kind)

    def find(self, feature: Float32[ndarray, " c"], kind: Kind, count: int = 1) -> list[tuple[GraphPlace, float]]:
        """The places of a kind most similar to a feature of the scale `scale(kind)`, and their similarity (cosine)."""
        offered = self.of(kind)
        if not offered:
            return []
        similarity = np.array([place.embedding for place in offered]) @ (feature / np.linalg.norm(feature))
        best = np.argsort(-similarity, kind="stable")[:count]
        return [(offered[at], float(similarity[at])) for at in best]

    def save(self, path: str | Path) -> None:
        within = [(place.id, place.inside, "in") for place in self.places if place.inside is not None]
        links = [{"source": a, "target": b, "kind": kind} for a, b, kind in (*within, *self.edges)]
        nodes = [{name: value for name, value in asdict(place).items() if name != "inside"} for place in self.places]
        stated = {"model": self.model, "radii": self.radii}
        save_json(Path(path), {"directed": True, "multigraph": False, "graph": stated, "nodes": nodes, "edges": links})

    @classmethod
    def load(cls, path: str | Path) -> "PlaceGraph":
        """From graph.json, or the folder of the map that it lies in."""
        path = Path(path) / GRAPH if Path(path).is_dir() else Path(path)
        if not path.is_file():
            raise LocusError(f"{path} does not exist; `locus map --graph` writes it")
        told = load_json(path)
        try:
            within = {edge["source"]: edge["target"] for edge in told["edges"] if edge["kind"] == "in"}
            places = tuple(_place(node, within.get(node["id"])) for node in told["nodes"])
            links = [edge for edge in told["edges"] if edge["kind"] != "in"]
            edges = tuple((str(edge["source"]), str(edge["target"]), str(edge["kind"])) for edge in links)
            if not {end for edge in (*edges, *within.items()) for end in edge[:2]} <= {place.id for place in places}:
                raise ValueError("an edge")
            if len({len(place.embedding) for place in places}) > 1:
                raise ValueError("its embeddings")
            return cls(str(told["graph"]["model"]), _finite(told["graph"]["radii"]), places, edges)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LocusError(f"{path} is no graph of `locus map --graph`, or damaged (at {error})") from None


def scale_of(radii: Sequence[float], kind: Kind) -> int:
    return int(np.abs(np.log(np.array(radii) / RADII[kind])).argmin())


def _place(node: dict[str, Any], inside: str | None) -> GraphPlace:
    """A place as a file tells it, which may tell anything."""
    if node["kind"] not in RADII:
        raise ValueError("kind")
    texts = {name: str(node[name]) for name in ("id", "kind", "environment")}
    values = {name: _finite(node[name]) for name in ("position", "extent", "embedding")}
    if len(values["position"]) != 3 or len(values["extent"]) != 3:
        raise ValueError("position")
    label, probability = node.get("label"), node.get("probability")
    return GraphPlace(
        **texts,  # ty: ignore[invalid-argument-type]
        **values,
        views=tuple(map(str, node["views"])),
        inside=inside,
        label=None if label is None else str(label),
        probability=None if probability is None else _finite([probability])[0],
    )


def _finite(values: Sequence[Any]) -> tuple[float, ...]:
    if not np.isfinite(numbers := np.array(values, np.float64)).all():
        raise ValueError("a number")
    return tuple(numbers.tolist())


class _PlaceBuilder:
    """Collects the places of one environment."""

    def __init__(self, world: LandmarkMap, seen: SceneFeatures, surfaces: Voxels) -> None:
        self.world, self.seen, self.surfaces = world, seen, surfaces
        self.names = [seen.scene.sources[index].name for index in seen.indices]
        self.places: list[GraphPlace] = []

    def add(self, kind: Kind, number: Int[ndarray, " voxels"], inside: Sequence[str | None]) -> list[str]:
        """Places that are groups of voxels."""
        if not len(inside):
            return []
        members = membership(number)
        low, high = bounds(self.surfaces.position, members)
        embedding = self.surfaces.shown(self.seen.features[scale_of(self.world.radii, kind)], members)
        frames = csr_matrix(members @ self.surfaces.frames)
        views = [[self.names[at] for at in sorted(frames[row].indices)] for row in range(len(inside))]
        return self._put(kind, (low + high) / 2, high - low, views, embedding, inside)

    def add_spots(self, homes: Sequence[str], number: Int[ndarray, " voxels"]) -> None:
        """The map's landmarks of the finest scale, each in what the nearest voxel is of."""
        landmarks = self.world.landmarks
        rows = np.flatnonzero(landmarks.scale == scale_of(self.world.radii, "spot"))
        position = landmarks.position[rows].astype(np.float64)
        nearest = KDTree(self.surfaces.position).query(position)[1]
        extent = np.repeat(2 * landmarks.radius[rows, None], 3, axis=1)
        shown = csr_matrix(self.world.sightings.T)
        views = [[self.world.frame_names[frame] for frame in sorted(shown[row].indices)] for row in rows]
        inside = [homes[number[voxel]] for voxel in nearest]
        self._put("spot", position, extent, views, landmarks.embedding[rows], inside)

    def _put(
        self,
        kind: Kind,
        position: Float[ndarray, "k 3"],
        extent: Float[ndarray, "k 3"],
        views: Sequence[Sequence[str]],
        embedding: Float[ndarray, "k c"],
        inside: Sequence[str | None],
    ) -> list[str]:
        ids = [f"{kind} {number}" for number in range(1, len(inside) + 1)]
        for row, id in enumerate(ids):
            numbers = (tuple(each[row].round(4).tolist()) for each in (position, extent, embedding))
            where, size, feature = numbers
            environment = self.world.environments[0]
            self.places.append(GraphPlace(id, kind, environment, where, size, tuple(views[row]), feature, inside[row]))
        return ids


def _mostly(number: Int[ndarray, " n"], homes: Int[ndarray, " n"], count: int) -> list[int]:
    """The home that most rows of each group have."""
    votes = np.zeros((count + 1, int(homes.max(initial=0)) + 1))
    np.add.at(votes, (number, homes), 1)
    return votes[:-1].argmax(axis=1).tolist()


def _relations(found: Objects, surfaces: Voxels, ids: Sequence[str]) -> list[tuple[str, str, str]]:
    """Which objects stand on others, and which are near each other, by their boxes; up is the last axis here."""
    if not len(found):
        return []
    turn = np.linalg.svd(surfaces.up[None])[2][[1, 2, 0]]
    turn[2] *= np.sign(turn[2] @ surfaces.up)
    low, high = bounds(surfaces.position @ turn.T, membership(found.number))
    gaps = np.maximum(0, np.maximum(low[:, None] - high[None], low[None] - high[:, None]))  # (k, k, 3)
    above = (np.abs(low[:, None, 2] - high[None, :, 2]) <= ON) & (gaps[..., :2] == 0).all(axis=-1)
    close = np.linalg.norm(gaps, axis=-1) <= NEAR
    relations = [(ids[a], ids[b], "on") for a, b in np.argwhere(above) if a != b]
    return relations + [(ids[a], ids[b], "near") for a, b in np.argwhere(np.triu(close & ~above & ~above.T, 1))]
