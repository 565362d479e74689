"""Commands about maps: map, localize, retrieve."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape

from locus.errors import LocusError
from locus.files import atomic
from locus.geometry import pose_error
from locus.model.shipped import DEFAULT
from locus.progress import track

if TYPE_CHECKING:  # they take seconds to import, which --help need not
    from locus.commands.views import View
    from locus.tasks.localize import Location


def map_scenes(
    scenes: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SCENE...")],
    out: Path,
    model: str = DEFAULT,
    add: tyro.conf.FlagCreatePairsOff[bool] = False,
    most: int | None = None,
    frames: str = ":",
    cache: Path | None = None,
) -> int:
    """Make a map of landmarks, at every scale of a model, from posed RGB-D scenes.

    Each scene becomes a place of the map, under the scene's name. The folder holds map.safetensors (all of it),
    map.json (what is in it, to read) and landmarks.ply (for any mesh viewer).

    Args:
        scenes: Folders of scenes, globs, or .txt files that list folders.
        model: One that comes with LoCUS, a training run's folder, one on the Hugging Face hub, or a backbone's name.
        out: The map's folder.
        add: Add to the map that is there: a scene named as one of its places brings that place further frames.
        most: Landmarks at most, of each place and scale; the best are kept. By default all that are a radius apart.
        frames: Use only these frames of each scene, START:STOP or START:STOP:STEP, counted from 0.
        cache: Where the backbone's tokens are cached. By default ~/.cache/locus, or $LOCUS_CACHE.
    """
    from locus.features.dense import scene_features
    from locus.landmarks import LandmarkMap, merge
    from locus.model import load, this_device
    from locus.scenes.collection import find_scenes, open_scenes

    chosen = _slice(frames)
    world = LandmarkMap.load(out) if add else None
    if not add and (out / "map.safetensors").exists():
        raise LocusError(f"{out} holds a map already; --add adds to it, or name another folder")
    network = load(model).to(this_device())
    for scene in open_scenes(find_scenes(scenes)):
        seen = scene_features(network, scene, cache, progress=True)
        seen = seen.take(range(len(seen))[chosen])
        if not len(seen):
            raise LocusError(f"--frames {frames} leaves none of the {len(scene)} frames of {scene.name}")
        if world is not None and scene.name in world.environments:
            world = world.add(network, seen, environment=scene.name, most=most, progress=True)
        else:
            place = LandmarkMap.build(network, seen, most=most, progress=True)
            world = place if world is None else merge([world, place])
    if world is None:
        raise LocusError("no scene was given")
    world.save(out)
    console = Console(soft_wrap=True, highlight=False)
    for scale, radius in enumerate(world.radii):
        count = int((world.landmarks.scale == scale).sum())
        console.print(f"{count} landmarks of {radius:g} m")
    places = f"{len(world.environments)} place{'s' if len(world.environments) > 1 else ''}"
    console.print(escape(f"Wrote {out}: {places}, {len(world.frames)} frames; landmarks.ply opens in mesh viewers"))
    return 0


def localize(
    images: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="IMAGE...")],
    map: Path,
    model: str = DEFAULT,
    rgb: tyro.conf.FlagCreatePairsOff[bool] = False,
    camera: tuple[float, float, float, float] | None = None,
    fov: float = 60.0,
    frames: str = ":",
    threshold: float | None = None,
    out: Path | None = None,
    json: Path | None = None,
) -> int:
    """Find where images were taken: in which place of a map, and at which pose; or that they were not taken there.

    Frames of scenes bring their camera and depth, which makes the pose more exact; their true pose, if they were taken
    in the map's world, is compared with what is found. Exits with 1 if no image was found in the map.

    Args:
        images: Image files, folders, patterns in quotes, videos, scenes, or single frames as SCENE:NAME.
        map: The map's folder.
        model: The model the map was made with.
        rgb: Leave depth aside where there is some.
        camera: fx fy cx cy of image files, in pixels; the centre of the top-left pixel is (0.5, 0.5).
        fov: Where an image file has no --camera, it is guessed to have this horizontal field of view, in degrees.
        frames: Use only these of the images, START:STOP or START:STOP:STEP, counted from 0.
        threshold: The least confidence of an answer. By default as measured on generated houses (docs/maps.md).
        out: A trajectory to write, in the TUM benchmark's format, of the images that were found.
        json: A file to write with every answer, for machines.
    """
    if not 1 <= fov < 180:
        raise LocusError(f"a field of view is at least 1 and less than 180 degrees, not {fov:g}")
    from locus.commands.views import open_views
    from locus.landmarks import LandmarkMap
    from locus.model import load, this_device
    from locus.scenes.trajectory import write_trajectory
    from locus.tasks.localize import localize as localize_image

    world = LandmarkMap.load(map)
    network = load(model).to(this_device())
    world.check(network)
    views = open_views(images, camera, fov)
    names = list(views)[_slice(frames)]
    if not names:
        raise LocusError(f"--frames {frames} leaves none of the {len(views)} images")
    console = Console(soft_wrap=True, highlight=False)
    found: dict[str, Any] = {}
    answers: dict[str, Any] = {}
    guessed = False
    for name in track(names, "localize", len(names)):
        try:
            view = views[name]()
        except LocusError as error:
            console.print(escape(f"{name}: could not be read: {error}"))
            answers[name] = {"reason": f"could not be read: {error}"}
            continue
        guessed |= view.guessed
        depth = None if rgb else view.depth
        location = localize_image(world, network, view.image, view.camera, depth, threshold=threshold)
        answers[name] = _answer(location, view)
        console.print(escape(f"{name}: {_sentence(location, answers[name])}"))
        if location.here:
            found[name] = location.world_from_camera
    if guessed:
        console.print(f"The camera is a guess, {fov:g}° wide; give --camera fx fy cx cy if you know it")
    console.print(f"{len(found)} of {len(names)} found in the map")
    if out is not None:
        write_trajectory(out, found)
        console.print(escape(f"Wrote {out}"))
    if json is not None:
        with atomic(json) as file:
            file.write_text(jsonlib.dumps(answers, indent=1) + "\n")
        console.print(escape(f"Wrote {json}"))
    return 0 if found else 1


def _answer(location: "Location", view: "View") -> dict[str, Any]:
    """What is known of an image, for machines; with the error of the pose, where the true one is known."""
    answer: dict[str, Any] = {
        "place": location.environment,
        "confidence": round(location.confidence, 4),
        "matches": len(location.matches),
        "inliers": int(location.inliers.sum()),
        "at the same image position": round(location.matches.stuck, 4),
        "reason": location.reason,
    }
    if location.world_from_camera is not None:
        answer["world_from_camera"] = location.world_from_camera.tolist()
        if view.world_from_camera is not None and view.world is not None and view.world.name == location.environment:
            metres, degrees = pose_error(location.world_from_camera, view.world_from_camera)
            answer["error"] = {"metres": round(metres, 4), "degrees": round(degrees, 3)}
    return answer


def _sentence(location: "Location", answer: dict[str, Any]) -> str:
    stuck = f"{location.matches.stuck:.0%} of matches at the same image position"
    if location.world_from_camera is None:
        return f"{location.reason} ({stuck})"
    x, y, z = location.world_from_camera[:3, 3]
    agree = f"{answer['inliers']} of {answer['matches']} matches agree, confidence {location.confidence:.2f}, {stuck}"
    error = answer.get("error")
    off = "" if error is None else f"; off by {error['metres']:.2f} m, {error['degrees']:.1f}°"
    return f"in {location.environment} at ({x:.2f}, {y:.2f}, {z:.2f}) m: {agree}{off}"


def retrieve(
    image: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="IMAGE")],
    map: Path,
    model: str = DEFAULT,
    count: int = 10,
    json: Path | None = None,
) -> int:
    """Rank the frames of a map by how much they show of what an image shows.

    Args:
        image: An image file, or a frame of a scene, SCENE:NAME or SCENE:NUMBER.
        map: The map's folder.
        model: The model the map was made with.
        count: How many frames to name.
        json: A file to write with the ranking, for machines.
    """
    from locus.commands.views import open_view
    from locus.landmarks import LandmarkMap
    from locus.model import load, this_device
    from locus.tasks.frame_ranking import rank_frames

    world = LandmarkMap.load(map)
    network = load(model).to(this_device())
    world.check(network)
    ranking = rank_frames(world, network.features(open_view(image, None, 60.0).image).cpu(), count)
    console = Console(soft_wrap=True, highlight=False)
    rows = [
        {
            "place": world.environments[world.frames.environment[frame]],
            "frame": world.frame_names[frame],
            "score": round(float(score), 4),
        }
        for frame, score in zip(ranking.frame, ranking.score, strict=True)
    ]
    for row in rows:
        console.print(escape(f"{row['score']:.3f}  {row['place']}  {row['frame']}"))
    console.print(f"{ranking.stuck:.0%} of matches at the same image position")
    if json is not None:
        answer = {"at the same image position": round(ranking.stuck, 4), "frames": rows}
        with atomic(json) as file:
            file.write_text(jsonlib.dumps(answer, indent=1) + "\n")
        console.print(escape(f"Wrote {json}"))
    return 0


def _slice(text: str) -> slice:
    """START:STOP or START:STOP:STEP, as Python's."""
    try:
        parts = [int(part) if part else None for part in text.split(":")]
        chosen = slice(*parts)
        if len(parts) < 2 or chosen.step == 0:
            raise ValueError
    except (ValueError, TypeError):
        raise LocusError(f"frames are START:STOP or START:STOP:STEP, such as 0:40 or ::2, not {text!r}") from None
    return chosen
