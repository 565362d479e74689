"""The command match: what two images share, and how the camera moved between them."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro
from jaxtyping import Float
from numpy import ndarray
from PIL import Image
from rich.console import Console
from rich.markup import escape

from locus.commands.views import View, open_view
from locus.errors import LocusError
from locus.files import atomic
from locus.geometry import invert, pose_error
from locus.model.shipped import DEFAULT

if TYPE_CHECKING:  # they take a second to import, which --help need not
    from locus.tasks.matching import Matches
    from locus.tasks.relative_pose import RelativePose


def match(
    a: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="A")],
    b: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="B")],
    model: str = DEFAULT,
    rule: Literal["mutual", "paper"] = "mutual",
    solver: Literal["poselib", "opencv", "3d-3d"] | None = None,
    camera: tuple[float, float, float, float] | None = None,
    fov: float = 60.0,
    layer: int | None = None,
    out: Path | None = None,
    json: Path | None = None,
) -> int:
    """Find what two images share, and how the camera moved between them.

    An image is a file, or a frame of a scene: SCENE:NAME or SCENE:NUMBER, counted from 0. Frames bring their camera and
    depth, so the motion is in metres; that of two frames of one scene is compared with the true one. Prints how many
    matches sit at the same image position: features that know where in the image they are give such matches whatever
    is seen. docs/matching.md says what the figures mean. Exits with 1 if there is no pose.

    Args:
        a: The first image.
        b: The second image.
        model: One that comes with LoCUS, a training run's folder, one on the Hugging Face hub, or a backbone's name.
        rule: mutual: each the other's nearest, placed finer than a patch; paper: by score and continuity, the top 100.
        solver: 3d-3d aligns points and needs depth for both; poselib and opencv need none. By default 3d-3d if it can.
        camera: fx fy cx cy of image files, in pixels; the centre of the top-left pixel is (0.5, 0.5).
        fov: Where an image file has no --camera, it is guessed to have this horizontal field of view, in degrees.
        layer: How many blocks of a bare backbone are run. By default all.
        out: A picture to write: the images beside one another, with lines between matches.
        json: A file to write with matches and pose, for machines.
    """
    if not 1 <= fov < 180:
        raise LocusError(f"a field of view is at least 1 and less than 180 degrees, not {fov:g}")
    if out is not None and out.suffix.lower() not in Image.registered_extensions():
        raise LocusError(f"{out} does not say what kind of picture it is; end its name in .png or .jpg")
    views = open_view(a, camera, fov), open_view(b, camera, fov)
    if camera is not None:
        _check_camera(views)

    from locus.model import load, this_device
    from locus.tasks.match_picture import match_picture
    from locus.tasks.matching import PAPER, Rule
    from locus.tasks.matching import match as match_features
    from locus.tasks.relative_pose import points_at, relative_pose

    network = load(model, layer).to(this_device())
    finest_first = np.argsort(network.radii).tolist()
    features_a, features_b = (network.features(view.image)[finest_first] for view in views)
    size_a, size_b = ((view.camera.width, view.camera.height) for view in views)
    matches = match_features(features_a, features_b, size_a, size_b, PAPER if rule == "paper" else Rule())
    points_a, points_b = (
        None if view.depth is None else points_at(view.depth, view.camera, pixels)
        for view, pixels in zip(views, (matches.pixels_a, matches.pixels_b), strict=True)
    )
    pose = relative_pose(matches, views[0].camera, views[1].camera, points_a, points_b, solver)

    console = Console(soft_wrap=True, highlight=False)
    console.print(escape(f"{views[0].name} and {views[1].name}, {network.name}"))
    for sentence in _report(views, matches, pose, fov):
        console.print(escape(sentence))
    if out is not None:
        inliers = None if pose.b_from_a is None else pose.inliers
        picture = match_picture(views[0].image, views[1].image, matches, inliers)
        with atomic(out) as file:
            Image.fromarray(picture).save(file, Image.registered_extensions()[out.suffix.lower()])
        lines = "bright by score" if inliers is None else "green: agrees with the pose, red: does not"
        console.print(f"Wrote {escape(str(out))} ({lines})")
    if json is not None:
        with atomic(json) as file:
            file.write_text(jsonlib.dumps(_described(views, matches, pose, network.name), indent=1) + "\n")
        console.print(f"Wrote {escape(str(json))}")
    return 1 if pose.b_from_a is None else 0


def _check_camera(views: tuple[View, View]) -> None:
    """--camera is for image files, all of one camera."""
    files = [view for view in views if view.world is None]
    if not files:
        raise LocusError("--camera is for image files; frames of a scene have their own camera")
    if len({(view.camera.width, view.camera.height) for view in files}) > 1:
        raise LocusError("--camera is for one size of image, and these two differ; resize one, or leave it to --fov")


def _report(views: tuple[View, View], matches: "Matches", pose: "RelativePose", fov: float) -> list[str]:
    sentences = []
    if any(view.guessed for view in views):
        sentences.append(f"camera: a guess, {fov:g}° wide; give --camera fx fy cx cy if you know it")
    sentences.append(f"matches: {len(matches)}")
    if len(matches):
        sentences[-1] += f"; {matches.stuck:.0%} at the same image position (stuck there, or the camera hardly moved)"
    if pose.b_from_a is None:
        return [*sentences, f"no pose: {pose.reason}"]
    agreeing = f"{pose.inliers.sum()} of {len(matches)} matches agree, confidence {pose.confidence:.2f}"
    sentences.append(f"pose by {pose.solver}: {agreeing}")
    sentences.append(f"  B sees A's camera turned by {pose_error(np.eye(4), pose.b_from_a)[1]:.1f}°, {_moved(pose)}")
    if pose.reason:
        sentences.append(f"  mind: {pose.reason}")
    errors = _errors(views, pose)
    if errors is not None:
        off = [f"{errors['rotation_degrees']:.1f}°"]
        if "direction_degrees" in errors:
            off.append(f"{errors['direction_degrees']:.1f}° in the direction gone")
        if "translation_metres" in errors:
            off.append(f"{errors['translation_metres']:.2f} m")
        sentences.append(f"off the true pose by {', '.join(off)}")
    return sentences


def _moved(pose: "RelativePose") -> str:
    """Where camera A is, seen from B."""
    assert pose.b_from_a is not None
    if not pose.direction_known:
        return "the direction of the translation is not known"
    x, y, z = pose.b_from_a[:3, 3]
    if pose.metric:
        return f"at {x:.2f} {y:.2f} {z:.2f} m (right, down, forward)"
    return f"in the direction {x:.2f} {y:.2f} {z:.2f} (right, down, forward), how far is not known"


def _truth(views: tuple[View, View]) -> Float[ndarray, "4 4"] | None:
    a, b = views
    if a.world_from_camera is None or b.world_from_camera is None or a.world != b.world:
        return None
    return invert(b.world_from_camera) @ a.world_from_camera


def _errors(views: tuple[View, View], pose: "RelativePose") -> dict[str, float] | None:
    """Against the true pose, if it is known."""
    truth = _truth(views)
    if truth is None or pose.b_from_a is None:
        return None
    metres, degrees = pose_error(pose.b_from_a, truth)
    errors = {"rotation_degrees": degrees}
    if pose.metric:
        errors["translation_metres"] = metres
    lengths = np.linalg.norm(pose.b_from_a[:3, 3]) * np.linalg.norm(truth[:3, 3])
    if pose.direction_known and lengths > 1e-9:
        cosine = pose.b_from_a[:3, 3] @ truth[:3, 3] / lengths
        errors["direction_degrees"] = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    return errors


def _described(views: tuple[View, View], matches: "Matches", pose: "RelativePose", model: str) -> dict[str, Any]:
    truth = _truth(views)
    return {
        "model": model,
        "images": [
            {"name": view.name, "size": [view.camera.width, view.camera.height], "camera_guessed": view.guessed}
            | {name: getattr(view.camera, name) for name in ("fx", "fy", "cx", "cy")}
            for view in views
        ],
        "matches": {
            "pixels_a": matches.pixels_a.tolist(),
            "pixels_b": matches.pixels_b.tolist(),
            "patches_a": matches.patches_a.tolist(),
            "patches_b": matches.patches_b.tolist(),
            "scores": matches.scores.tolist(),
            "inliers": pose.inliers.tolist(),
            "stuck": matches.stuck if len(matches) else None,
        },
        "pose": {
            "b_from_a": None if pose.b_from_a is None else pose.b_from_a.tolist(),
            "solver": pose.solver,
            "confidence": pose.confidence,
            "metric": pose.metric,
            "direction_known": pose.direction_known,
            "reason": pose.reason,
            "alternative": None if pose.alternative is None else pose.alternative.tolist(),
        },
        "true_b_from_a": None if truth is None else truth.tolist(),
        "errors": _errors(views, pose),
    }
