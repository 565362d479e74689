"""The graph of a room: nested, the same after its file, read by networkx, named, and asked."""

import json
from dataclasses import replace

import networkx
import numpy as np
import pytest
import torch

from locus.errors import LocusError
from locus.landmarks import LandmarkMap
from locus.landmarks.map_files import GRAPH
from locus.scenes.scene import LabelClass
from locus.tasks.naming import WordNames, crops, named_by_probe
from locus.tasks.place_graph import PlaceGraph
from locus.tasks.probe import Probe
from tests.landmarks import places
from tests.scenes import room

RADII = (0.15, 0.6, 2.5)


@pytest.fixture(scope="module")
def seen():
    return places.seen(places.scene(room.shots(10)), scales=3)


@pytest.fixture(scope="module")
def graph(seen):
    model = places.model(RADII)
    return PlaceGraph.build(LandmarkMap.build(model, seen), seen)


def test_spots_are_in_objects_or_rooms_and_objects_in_rooms(graph):
    kinds = {place.id: place.kind for place in graph.places}
    assert len(kinds) == len(graph.places)
    inside = {(place.kind, place.inside and kinds[place.inside]) for place in graph.places}
    assert inside == {("room", None), ("object", "room"), ("spot", "object"), ("spot", "room")}


def test_places_lie_in_the_room_and_are_seen_by_its_frames(graph, seen):
    low, high = (np.array(corner) for corner in room.BOXES[0][:2])
    names = {source.name for source in seen.scene.sources}
    for place in graph.places:
        assert (np.array(place.position) > low - 0.05).all()
        assert (np.array(place.position) < high + 0.05).all()
        assert names.issuperset(place.views)
        assert len(place.views) >= 2
        assert np.linalg.norm(place.embedding) == pytest.approx(1, abs=1e-3)


def test_a_spot_lies_in_the_box_of_its_object(graph):
    for place in graph.of("object"):
        half = np.array(place.extent) / 2 + RADII[0]
        for spot in graph.inside(place.id):
            assert (np.abs(np.array(spot.position) - place.position) <= half).all()


def test_the_file_holds_all_of_it(graph, tmp_path):
    graph.save(tmp_path / GRAPH)
    again = PlaceGraph.load(tmp_path)
    assert again.places == graph.places
    assert (again.edges, again.model, again.radii) == (graph.edges, graph.model, graph.radii)


def test_networkx_reads_the_file(graph, tmp_path):
    graph.save(tmp_path / GRAPH)
    read = networkx.node_link_graph(json.loads((tmp_path / GRAPH).read_text()), edges="edges")
    assert set(read) == {place.id for place in graph.places}
    within = [(a, b) for a, b, kind in read.edges(data="kind") if kind == "in"]
    tree = networkx.DiGraph(within)
    assert networkx.is_directed_acyclic_graph(tree)
    assert all(degree <= 1 for _, degree in tree.out_degree())
    spot = graph.of("spot")[0]
    assert read.nodes[spot.id]["position"] == list(spot.position)


def test_a_damaged_or_missing_file_is_refused_in_a_sentence(graph, tmp_path):
    with pytest.raises(LocusError, match="`locus map --graph` writes it"):
        PlaceGraph.load(tmp_path)
    (tmp_path / GRAPH).write_text('{"nodes": [{"id": "room 1"}], "edges": []}')
    with pytest.raises(LocusError, match="is no graph of `locus map --graph`"):
        PlaceGraph.load(tmp_path)
    for name, wrong in (("embedding", [1.0]), ("position", [0, 0, 1e999]), ("kind", "thing"), ("views", 3)):
        graph.save(tmp_path / GRAPH)
        told = json.loads((tmp_path / GRAPH).read_text())
        del told["checksum"]
        told["nodes"][0][name] = wrong
        (tmp_path / GRAPH).write_text(json.dumps(told))
        with pytest.raises(LocusError, match="or damaged"):
            PlaceGraph.load(tmp_path)
    graph.save(tmp_path / GRAPH)
    content = bytearray((tmp_path / GRAPH).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / GRAPH).write_bytes(content)
    with pytest.raises(LocusError, match="damaged"):
        PlaceGraph.load(tmp_path)


def test_the_most_similar_place_to_a_places_own_feature_is_itself(graph):
    for kind in ("room", "object", "spot"):
        place = graph.of(kind)[-1]
        found, similarity = graph.find(np.array(place.embedding, np.float32), kind)[0]
        assert found == place
        assert similarity == pytest.approx(1, abs=1e-3)
    assert [graph.scale(kind) for kind in ("spot", "object", "room")] == [0, 1, 2]


def test_what_is_not_there_is_refused(graph):
    with pytest.raises(LocusError, match="has no 'object 999'"):
        graph["object 999"]


def test_graphs_of_two_environments_keep_theirs_apart(graph):
    other = replace(graph, places=tuple(replace(place, environment="other") for place in graph.places))
    both = PlaceGraph.joined([graph, other])
    assert len({place.id for place in both.places}) == 2 * len(graph.places)
    assert {place.environment for place in both.inside("other: room 1")} == {"other"}
    assert PlaceGraph.joined([graph]) is graph


def test_a_probe_names_objects_with_its_probability(graph):
    place = graph.of("object")[0]
    weight = torch.stack([torch.tensor(place.embedding), torch.zeros(places.DIMENSION)]) * 3
    classes = (LabelClass(1, "table", "thing"), LabelClass(2, "chair", "thing"))
    probe = Probe(classes, weight, torch.zeros(2), scale=1, fingerprint=graph.model)
    named = named_by_probe(graph, probe)[place.id]
    assert named.label == "table"
    assert named.probability == pytest.approx(1 / (1 + np.exp(-3)), abs=1e-3)
    assert named_by_probe(graph, probe).of("spot") == graph.of("spot")
    with pytest.raises(LocusError, match="features of another model"):
        named_by_probe(graph, replace(probe, fingerprint="another"))
    with pytest.raises(LocusError, match="no place of a graph"):
        named_by_probe(graph, replace(probe, scale=2))


def test_a_box_is_cut_out_where_it_is_seen(graph, seen):
    """The table: its colour fills the middle of its pictures."""
    low, high, _, number = room.BOXES[1]
    middle = tuple((np.array(low) + high) / 2)
    size = tuple(np.subtract(high, low))
    table = replace(graph.of("object")[0], position=middle, extent=size, views=("000000", "000003"))
    shots = [shot for shot in room.shots(10) if shot.name in table.views]
    pictures = crops(table, seen)
    assert len(pictures) == 2
    for picture in pictures:
        height, width = picture.shape[:2]
        inside = picture[height // 2, width // 2]
        assert any((shot.image[shot.instance == number] == inside).all(axis=1).any() for shot in shots)


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """A tiny random CLIP in a folder, as transformers keeps one."""
    from transformers import CLIPConfig, CLIPModel, CLIPTokenizer

    folder = tmp_path_factory.mktemp("clip")
    letters = [*"abcdefghijklmnopqrstuvwxyz", *(f"{letter}</w>" for letter in "abcdefghijklmnopqrstuvwxyz")]
    words = {word: number for number, word in enumerate([*letters, "<|startoftext|>", "<|endoftext|>"])}
    (folder / "vocab.json").write_text(json.dumps(words))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt")).save_pretrained(folder)
    layers = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = layers | {"vocab_size": len(words), "eos_token_id": len(words) - 1, "bos_token_id": len(words) - 2}
    torch.manual_seed(0)
    vision = layers | {"image_size": 32, "patch_size": 16}
    CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)).save_pretrained(folder)
    return str(folder)


def test_a_clip_names_objects_by_the_words_it_is_given(graph, seen, clip):
    named = WordNames(clip, ["table", "chair", "lamp"]).named(graph, seen)
    labels = [(place.label, place.probability) for place in named.of("object")]
    assert {label for label, _ in labels} <= {"table", "chair", "lamp", None}
    assert all(1 / 3 <= probability <= 1 for label, probability in labels if label is not None)
    assert any(label is not None for label, _ in labels)
    assert named.of("spot") == graph.of("spot")


def test_a_clip_that_is_none_and_no_words_are_refused(clip, tmp_path):
    with pytest.raises(LocusError, match="is no CLIP that transformers can load"):
        WordNames(str(tmp_path), ["table"])
    with pytest.raises(LocusError, match="--words"):
        WordNames(clip, [])
