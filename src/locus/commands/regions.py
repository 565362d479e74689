"""Commands that look for a region in other images: cosegment, find."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape

from locus.commands.scenes import SceneOptions
from locus.errors import LocusError
from locus.model.shipped import DEFAULT


def cosegment(
    image: Annotated[str, tyro.conf.Positional],
    x: Annotated[float, tyro.conf.Positional],
    y: Annotated[float, tyro.conf.Positional],
    scene: SceneOptions,
    model: str = DEFAULT,
    threshold: float | None = None,
    scale: int = 0,
    views: int = 11,
    out: Path = Path("cosegment.png"),
    masks: Path | None = None,
    cache: Path | None = None,
) -> int:
    """Show one spot in every other view of a scene: a pixel in, regions out.

    Writes one sheet of pictures: the query with its point marked, then the views, the most similar first, each with the
    region whose features are like the pixel's, and how like (cosine).

    Args:
        image: An image file, or the name of a frame of the scene.
        x: The pixel, from the image's left edge.
        y: The pixel, from the image's top.
        scene: The scene.
        model: One that comes with LoCUS, a training run's folder, one on the Hugging Face hub, or a backbone's name.
        threshold: How like (cosine) a pixel must be. By default 0.75, best for spots of the model's radius; about 0.6
            is better for whole objects (docs/segment.md).
        scale: Which of the model's scales, counted from 0.
        views: How many views are on the sheet.
        out: The sheet.
        masks: A folder for the masks of all views, NAME.png (255 inside, 0 outside), and scores.json.
        cache: Where the frozen backbone's tokens are cached. By default ~/.cache/locus, or $LOCUS_CACHE.
    """
    from locus.features.dense import scene_features
    from locus.model import load, this_device
    from locus.tasks import cosegmentation
    from locus.tasks import region_pictures as pictures
    from locus.tasks.views import query_view, scene_views

    if views < 1:
        raise LocusError(f"the sheet needs at least one view, not {views}")
    loaded = scene.load()
    network = load(model).to(this_device())
    seen = scene_features(network, loaded, cache, progress=True)
    known = scene_views(seen)
    query = query_view(network, image, loaded, known)
    feature = cosegmentation.feature_at(cosegmentation.one_scale(query.features, scale), x, y, query.size)
    threshold = cosegmentation.THRESHOLD if threshold is None else threshold
    regions = cosegmentation.cosegment(feature, seen, threshold, scale)
    ranked = cosegmentation.best_first([region for region in regions if known[region.row] is not query])
    tiles = [pictures.captioned(pictures.marked(query.read(), x, y), f"query: {query.name}")]
    for region in ranked[:views]:
        view = known[region.row]
        caption = f"{region.score:.2f}  {view.name}" + ("" if region.mask.any() else "  (nothing)")
        tiles.append(pictures.captioned(pictures.outlined(view.read(), region.mask), caption))
    pictures.write(out, pictures.tiles(tiles))
    console = Console(soft_wrap=True)
    found = sum(bool(region.mask.any()) for region in ranked)
    console.print(
        f"In {found} of {len(ranked)} other views something is like it (cosine of at least {threshold:g}); "
        f"wrote {escape(str(out))}"
    )
    if masks is not None:
        for region in ranked:
            pictures.write_mask(masks / f"{known[region.row].name}.png", region.mask)
        scores = {known[region.row].name: round(region.score, 4) for region in ranked}
        pictures.write_json(masks / "scores.json", {"threshold": threshold, "scale": scale, "scores": scores})
        console.print(f"Wrote {len(ranked)} masks and scores.json to {escape(str(masks))}")
    return 0


def find(
    image: Annotated[str, tyro.conf.Positional],
    others: Annotated[list[str], tyro.conf.Positional, tyro.conf.arg(metavar="OTHERS")],
    model: str = DEFAULT,
    box: tuple[float, float, float, float] | None = None,
    mask: Path | None = None,
    threshold: float | None = None,
    scale: int = 0,
    views: int = 11,
    out: Path = Path("find.png"),
    masks: Path | None = None,
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
    cache: Path | None = None,
) -> int:
    """Find a thing that is marked in one image in other images.

    Writes one sheet of pictures: the query with the thing marked, then the images, the surest first, each with its
    score and what was found. docs/segment.md says what the score is.

    Args:
        image: An image file, or the name of one of the others, such as a frame of the scene.
        others: A scene; or image files, folders, patterns in quotes, videos.
        model: One that comes with LoCUS, a training run's folder, one on the Hugging Face hub, or a backbone's name.
        box: Left, top, right and bottom of the thing, in pixels.
        mask: Instead of a box, a PNG of the image's size that is not 0 where the thing is.
        threshold: How like one of the thing's patches (cosine) a pixel must be to be part of what is found. By default
            0.65.
        scale: Which of the model's scales, counted from 0.
        views: How many images are on the sheet.
        out: The sheet.
        masks: A folder for the masks of what was found, NAME.png (255 inside, 0 outside).
        json_file: A file for scores and boxes of all images.
        cache: Where the frozen backbone's tokens of a scene are cached. By default ~/.cache/locus, or $LOCUS_CACHE.
    """
    from locus.model import load, this_device
    from locus.tasks import find as finding
    from locus.tasks import region_pictures as pictures
    from locus.tasks.cosegmentation import check_threshold, one_scale
    from locus.tasks.views import only_scene, query_view
    from locus.tasks.views import views as all_views

    if (box is None) == (mask is None):
        raise LocusError("say what to find: --box LEFT TOP RIGHT BOTTOM, or --mask FILE.png")
    if views < 1:
        raise LocusError(f"the sheet needs at least one image, not {views}")
    threshold = check_threshold(finding.THRESHOLD if threshold is None else threshold)
    network = load(model).to(this_device())
    known = list(all_views(network, others, cache, progress=True))
    query = query_view(network, image, only_scene(others), known)
    if box is not None:
        marked = finding.box_mask(box, query.size)
    else:
        assert mask is not None
        marked = finding.read_mask(mask, query.size)
    instance = finding.instance_of(one_scale(query.features, scale), marked)
    by_name = {view.name: view for view in known if view is not query}
    if not by_name:
        raise LocusError("there is no other image to look in")
    found = finding.find_all(by_name.values(), instance, threshold, scale)
    asked = pictures.outlined(query.read(), marked, pictures.MARK, 0.2)
    tiles = [pictures.captioned(asked, f"query: {query.name}")]
    for each in found[:views]:
        picture = pictures.outlined(by_name[each.name].read(), each.mask)
        picture = picture if each.box is None else pictures.boxed(picture, each.box, pictures.TINT)
        tiles.append(pictures.captioned(picture, f"{each.score:.2f}  {each.name}"))
    pictures.write(out, pictures.tiles(tiles))
    console = Console(soft_wrap=True)
    best = found[0]
    console.print(f"Looked in {len(found)} images; the surest is {escape(best.name)} ({best.score:.2f})")
    console.print(f"Wrote {escape(str(out))}")
    if masks is not None:
        for each in found:
            pictures.write_mask(masks / f"{each.name}.png", each.mask)
        console.print(f"Wrote {len(found)} masks to {escape(str(masks))}")
    if json_file is not None:
        rows = [{"image": each.name, "score": round(each.score, 4), "box": each.box} for each in found]
        pictures.write_json(json_file, {"query": query.name, "threshold": threshold, "scale": scale, "found": rows})
        console.print(f"Wrote {escape(str(json_file))}")
    return 0
