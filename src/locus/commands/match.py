"""The command match: what two images share, and how the camera moved between them."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from locus.commands import options
from locus.commands.options import check_first, check_picture, network, say, write_answers
from locus.errors import LocusError
from locus.model.shipped import DEFAULT
from locus.scenes.load import AS_STATED
from locus.tasks.named_images import A_GUESS, CalibratedImage, calibrated, only_image


def match(
    a: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="A")],
    b: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="B")],
    model: options.ModelName = DEFAULT,
    rule: Literal["points", "mutual", "paper"] = "points",
    rgb: options.Switch = False,
    min_probability: float | None = None,
    layer: options.Layer = None,
    out: Path | None = None,
    json: options.JsonFile = None,
    camera: options.CameraOfFiles = A_GUESS,
    reading: options.Reading = AS_STATED,
) -> int:
    """Match two images, and find how the camera moved between them.

    Frames of scenes bring their camera and depth, so the motion is in metres; that of two frames of one scene is
    compared with the true one. Without depth, how far the camera moved is not known. docs/matching.md says what the
    figures mean. Exits with 1 if there is no pose.

    Args:
        a: An image file, or a frame of a scene: SCENE:NAME or SCENE:NUMBER.
        b: The second image, the same way.
        rule: points: keypoints, by a network that knows their places; mutual: patches that are each other's nearest,
            placed finer than a patch; paper: patches by score and continuity, the top 100.
        rgb: Leave depth aside where there is some.
        min_probability: A pose that is less likely right is none. By default what leaves one in twenty pairs of images
            that share nothing an answer (docs/evaluation.md); 0 takes all.
        out: A picture to write, .png or .jpg: the images beside one another, with lines between matches.
    """
    if out is not None:
        check_picture(out)
    check_first(out, json, model=model)
    images = [calibrated(only_image(word, reading), camera, rgb=rgb) for word in (a, b)]
    if camera.camera is not None:
        _check_camera(images)
    from locus.tasks.match_picture import match_picture
    from locus.tasks.matched_pair import MatchedPair
    from locus.tasks.matching import PAPER, Rule
    from locus.tasks.placed_points import available
    from locus.tasks.region_pictures import write

    made_with = network(model, layer)
    if rule == "points" and (why := available()):
        say(f"Keypoints are not available, so patches are matched: {why}")
        rule = "mutual"
    rules = {"points": None, "mutual": Rule(), "paper": PAPER}
    pair = MatchedPair.of(made_with, *images, rules[rule], min_probability)
    by = " and XFeat keypoints" if rule == "points" else ""
    say(f"{a} and {b}, {made_with.name}{by}", *([camera.guess] if any(each.guessed for each in images) else []))
    say(*pair.sentences)
    found = pair.pose.b_from_a is not None
    if out is not None:
        write(out, match_picture(pair.a.image, pair.b.image, pair.matches, pair.pose.inliers if found else None))
        say(f"Wrote {out} ({'green: agrees with the pose, red: does not' if found else 'bright by score'})")
    write_answers(json, {"model": made_with.name, **pair.described()})
    return 0 if found else 1


def _check_camera(images: list[CalibratedImage]) -> None:
    """--camera is for image files, all of one camera."""
    sizes = {image.size for image in images if image.scene is None}
    if not sizes:
        raise LocusError("--camera is for image files; frames of a scene have their own camera")
    if len(sizes) > 1:
        raise LocusError("--camera is for one size of image, and these two differ; resize one, or leave it to --fov")
