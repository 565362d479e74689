"""Commands that look for a region in other images: cosegment, find."""

from pathlib import Path
from typing import Annotated

import tyro

from locus.commands import options
from locus.commands.options import check_first, check_picture, network, say, some_of, write_answers
from locus.errors import LocusError
from locus.files import write_json
from locus.model.shipped import DEFAULT
from locus.scenes import Scene
from locus.scenes.load import AS_STATED
from locus.tasks.named_images import only_image, open_inputs, open_scene

Views = Annotated[int, tyro.conf.arg(help="How many images are on the sheet.")]
MaskFolder = Annotated[Path | None, tyro.conf.arg(help="A folder for masks, NAME.png (255 inside, 0 outside).")]


def cosegment(
    image: options.OneImage,
    x: Annotated[float, tyro.conf.Positional, tyro.conf.arg(metavar="X")],
    y: Annotated[float, tyro.conf.Positional, tyro.conf.arg(metavar="Y")],
    scene: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="SCENE")] = None,
    model: options.ModelName = DEFAULT,
    frames: options.Frames = ":",
    min_similarity: float | None = None,
    scale: options.Scale = 0,
    views: Views = 11,
    out: Path = Path("cosegment.png"),
    masks: MaskFolder = None,
    cache: options.Cache = None,
    reading: options.Reading = AS_STATED,
) -> int:
    """Show the spot at one pixel in every other view of a scene.

    Writes a sheet: the query with its point marked, then the views, the most similar first, each with the region that
    is similar to the pixel, and the similarity (cosine) of its best patch. --masks also gets scores.json.

    Args:
        x: The pixel, from the image's left edge.
        y: The pixel, from the image's top.
        scene: The scene to look in. By default the one that IMAGE is a frame of.
        min_similarity: The least cosine of a pixel in a region. By default 0.75, best for spots of the model's radius;
            about 0.6 is better for whole objects (docs/segment.md).
        out: The sheet.
    """
    check_picture(out, views)
    check_first(out, folders=[masks], model=model)
    if scene is None and Path(image).is_file():
        raise LocusError("name the scene to look in after the pixel: IMAGE X Y SCENE")
    searched = some_of(open_scene(image if scene is None else scene, reading)[0], frames)
    asked = only_image(image, reading)
    from locus.features.dense import scene_features
    from locus.tasks import cosegmentation
    from locus.tasks.image_features import frame_features, query_features
    from locus.tasks.instances import FoundRegion
    from locus.tasks.region_pictures import marked, write_masks, write_sheet

    least = cosegmentation.MIN_SIMILARITY if min_similarity is None else min_similarity
    height, width = asked.read().shape[:2]
    cosegmentation.check_pixel(x, y, (width, height))
    made_with = network(model)
    seen = scene_features(made_with, searched, cache, progress=True)
    known = frame_features(seen)
    query = query_features(made_with, asked, known)
    feature = cosegmentation.feature_at(cosegmentation.one_scale(query.features, scale), x, y, query.size)
    regions = cosegmentation.best_first(cosegmentation.cosegment(feature, seen, least, scale))
    others = [region for region in regions if known[region.row] is not query]
    found = [FoundRegion(known[region.row].image, region.score, region.mask) for region in others]
    write_sheet(out, marked(query.image.read(), x, y), query.image.name, found, views)
    count = sum(bool(each.mask.any()) for each in found)
    say(f"{count} of {len(found)} other views have a similar region (cosine of at least {least:g}); wrote {out}")
    if masks is not None:
        write_masks(masks, found)
        scores = {each.image.name: round(each.score, 4) for each in found}
        write_json(masks / "scores.json", {"min_similarity": least, "scale": scale, "scores": scores})
        say(f"Wrote {len(found)} masks and scores.json to {masks}")
    return 0


def find(
    image: options.OneImage,
    others: options.Images,
    model: options.ModelName = DEFAULT,
    frames: options.Frames = ":",
    box: tuple[float, float, float, float] | None = None,
    mask: Path | None = None,
    min_similarity: float | None = None,
    min_score: float | None = None,
    scale: options.Scale = 0,
    views: Views = 11,
    out: Path = Path("find.png"),
    masks: MaskFolder = None,
    json: options.JsonFile = None,
    cache: options.Cache = None,
    reading: options.Reading = AS_STATED,
) -> int:
    """Find a thing that is marked in one image in other images.

    Writes a sheet: the query with the thing marked, then the images, the best score first, each with what was found.
    docs/segment.md says what the score is. Exits with 1 if the thing is in none of the images.

    Args:
        box: Left, top, right and bottom of the thing, in pixels.
        mask: Instead of a box, a PNG of the image's size that is not 0 where the thing is.
        min_similarity: The least cosine, to one of the thing's patches, of a pixel of what is found. By default 0.65.
        min_score: In an image of a lower score the thing is not there. By default 0.7 (docs/segment.md).
        out: The sheet.
    """
    if (box is None) == (mask is None):
        raise LocusError("say what to find: --box LEFT TOP RIGHT BOTTOM, or --mask FILE.png")
    check_picture(out, views)
    check_first(out, json, folders=[masks], model=model)
    asked, inputs = only_image(image, reading), open_inputs(others, reading)
    searched = [some_of(each, frames) if isinstance(each, Scene) else each for each in inputs]
    from locus.tasks import instances
    from locus.tasks.cosegmentation import check_similarity, one_scale
    from locus.tasks.image_features import image_features, query_features
    from locus.tasks.region_pictures import MARK, outlined, write_masks, write_sheet

    least = check_similarity(instances.MIN_SIMILARITY if min_similarity is None else min_similarity)
    height, width = asked.read().shape[:2]
    if mask is not None:
        marked = instances.read_mask(mask, (width, height))
    else:
        assert box is not None
        marked = instances.box_mask(box, (width, height))
    made_with = network(model)
    known = list(image_features(made_with, searched, cache, progress=True))
    query = query_features(made_with, asked, known)
    instance = instances.instance_of(one_scale(query.features, scale), marked)
    there = instances.MIN_SCORE if min_score is None else check_similarity(min_score)
    found = instances.find_instances([each for each in known if each is not query], instance, least, scale, there)
    if not found:
        raise LocusError("there is no other image to look in")
    write_sheet(out, outlined(query.image.read(), marked, MARK, 0.2), query.image.name, found, views)
    count = sum(each.box is not None for each in found)
    best = f"the best is {found[0].image.name} (score {found[0].score:.2f})"
    say(f"Found in {count} of {len(found)} images; {best}" + ("" if count else ", which is too low: it is not there"))
    say(f"Wrote {out}")
    if masks is not None:
        write_masks(masks, found)
        say(f"Wrote {len(found)} masks to {masks}")
    rows = [{"image": each.image.name, "score": round(each.score, 4), "box": each.box} for each in found]
    thresholds = {"min_similarity": least, "min_score": there}
    write_answers(json, {"query": query.image.name, **thresholds, "scale": scale, "found": rows})
    return 0 if count else 1
