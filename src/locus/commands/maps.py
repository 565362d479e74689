"""Commands about maps: map, localize, retrieve."""

from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from locus.commands import options
from locus.commands.graph import NO_GRAPH, GraphOptions
from locus.commands.options import (
    check_first,
    counted,
    frame_slice,
    maps_and_network,
    network,
    say,
    shard_of,
    some_of,
    write_answers,
)
from locus.errors import LocusError
from locus.features.images import sources
from locus.files import write_json
from locus.model.shipped import DEFAULT
from locus.progress import track
from locus.scenes.collection import find_scenes, open_scenes
from locus.scenes.load import AS_STATED
from locus.tasks.named_images import A_GUESS, calibrated, only_image, open_inputs

SECONDS = 5.0  # after which answers are written again: all of them, so not after each


def map_scenes(
    scenes: options.ScenePatterns,
    out: Path,
    model: options.ModelName = DEFAULT,
    add: options.Switch = False,
    session_of: str | None = None,
    name: str | None = None,
    most: int | None = None,
    trajectories: Path | None = None,
    graph: GraphOptions = NO_GRAPH,
    optimise: options.Switch = False,
    pose_graphs: Path | None = None,
    frames: options.Frames = ":",
    cache: options.Cache = None,
    shard: options.Shard = "0/1",
    cluster: options.Cluster = None,  # taken by locus.cli
    reading: options.Reading = AS_STATED,
) -> int:
    """Make a map of landmarks from posed RGB-D scenes.

    Each scene becomes an environment of the map, under the scene's name. The folder holds map.safetensors (all of it),
    map.json (a summary), landmarks.ply (for any mesh viewer) and, if keypoints can be found here,
    points-….safetensors, which makes poses exact. With --shard it only caches the tokens of one part of the frames; the
    same command without it then makes the map.

    Args:
        out: The map's folder.
        add: Add to the map that is there. A scene named as one of its environments adds frames to that one, if they
            fit: they are the same scene's, or are localized where their poses say.
        session_of: With --add: the scenes are other recordings of this environment of the map, each in coordinates of
            its own. Each is aligned with it and merged, or refused (docs/sessions.md).
        name: The environment's name, of a single scene, instead of the scene's own.
        most: Landmarks at most, of each environment and scale; the best are kept. By default all.
        trajectories: A folder to write ENVIRONMENT/SCENE.txt in, the poses of each scene's frames in the map, in the
            TUM benchmark's format.
        optimise: The poses come from odometry: look for loop closures, and correct the drift (docs/growing.md).
        pose_graphs: A folder to write SCENE.g2o in, odometry and loop closures, for a pose graph of your own.
    """
    chosen, part = frame_slice(frames), shard_of(shard)
    if session_of is not None and not add:
        raise LocusError("--session-of names an environment of a map that is there: --add must be given too")
    graph.check(add=add)
    check_first(folders=[out, trajectories], model=model, maps=[out] if add else [])
    opened = open_scenes(find_scenes(scenes), reading)
    if not opened:
        raise LocusError("no scene was given")
    if name is not None and (len(opened) != 1 or session_of is not None):
        raise LocusError("--name names the environment of one scene, and not that of a session; give one scene alone")
    from locus.features.cache import fill_cache
    from locus.landmarks import LandmarkMap, merge
    from locus.landmarks.map_files import ARRAYS, writing
    from locus.landmarks.merging import trajectories as trajectories_of
    from locus.scenes.fingerprint import sample_fingerprint
    from locus.scenes.trajectory import write_trajectory
    from locus.tasks.drift import DriftingScene
    from locus.tasks.placed_points import detector_or_reason
    from locus.tasks.pose_graph import optimiser, write_g2o
    from locus.tasks.sessions import check_same_world, join_session, known_environment

    if optimise:
        optimiser()  # a sentence, if it is missing, before any work is done

    if not add and (out / ARRAYS).exists():
        LandmarkMap.load(out)  # completes what a killed command had written
        raise LocusError(f"{out} holds a map already; --add adds to it, or name another folder")
    made_with = network(model)
    if part[1] > 1:
        parts = [scene[chosen] for scene in opened]
        done = fill_cache(parts, made_with.backbone, made_with.resolution, part, folder=cache, progress=True)
        say(f"{done} frames of part {shard} are in the cache")
        return 0
    with writing(out) as write:
        world = LandmarkMap.load(out) if add else None
        detector, lacking = detector_or_reason()
        for scene in opened:
            some = some_of(scene, frames, f"frames of {scene.name}")
            some, seen = replace(some, name=name or scene.name), sample_fingerprint(scene)
            if optimise or pose_graphs is not None:
                drifting = DriftingScene.of(made_with, some, cache, progress=True)
                if pose_graphs is not None:
                    write_g2o(pose_graphs / f"{scene.name}.g2o", drifting.poses, drifting.closures)
                if optimise:
                    some, sentence = drifting.corrected()
                    say(f"{scene.name}: {sentence}")
            before = {} if world is None else world.fingerprints
            how = {"most": most, "detector": detector, "cache": cache, "progress": True}
            if session_of is not None and seen in before:
                raise LocusError(f"{scene.name} is in the map already, in {before[seen]}; again it would count twice")
            if world is not None and session_of is not None:
                world, aligned = join_session(world, session_of, made_with, some, **how)
                say(f"{scene.name} was recorded {aligned.sentence}")
            elif before.get(seen, some.name) != some.name:
                raise LocusError(
                    f"{scene.name} is in the map already, as {before[seen]}; --name {before[seen]} adds to it"
                )
            elif world is not None and some.name in world.environments:
                if seen not in before:
                    check_same_world(world, some.name, made_with, some)
                world = world.add(made_with, some, environment=some.name, **how)
            else:
                if world is not None and (known := known_environment(world, made_with, some)) is not None:
                    say(f"{some.name} looks like {known}, which the map has; --session-of {known} would join the two")
                built = LandmarkMap.build(made_with, some, **how)
                world = built if world is None else merge([world, built])
            world = world.with_fingerprint(seen, session_of or some.name)
        assert world is not None
        write(world)
    if graph.graph:
        mapped = [scene[chosen] for scene in open_scenes(find_scenes(scenes), reading)]
        graph.write(out, world, made_with, mapped, cache)
    for scale, radius in enumerate(world.radii):
        say(f"{counted(int((world.landmarks.scale == scale).sum()), 'landmark')} of {radius:g} m")
    if world.points is not None:
        say(f"{world.points.count.sum()} points")
    if lacking:
        say(f"These frames were mapped {lacking}")
    if trajectories is not None:
        for (environment, name), poses in trajectories_of(world).items():
            write_trajectory(trajectories / environment / f"{name}.txt", poses)
        say(f"Wrote {trajectories}: the poses of each scene's frames")
    environments = counted(len(world.environments), "environment")
    say(f"Wrote {out}: {environments}, {len(world.frames)} frames; landmarks.ply opens in mesh viewers")
    return 0


def localize(
    images: options.Images,
    map: options.MapsFolder,
    model: options.MapModel = None,
    rgb: options.Switch = False,
    frames: options.Frames = ":",
    min_confidence: float | None = None,
    out: Path | None = None,
    json: options.JsonFile = None,
    camera: options.CameraOfFiles = A_GUESS,
    reading: options.Reading = AS_STATED,
) -> int:
    """Find where images were taken in a map, or that they were not.

    Of an index of maps, those that an image may show are opened.

    Frames of scenes bring their camera and depth, which makes the pose more exact. If the map has an environment of
    their scene's name, the answer is compared with their true pose. Exits with 1 if no image was found in the map.

    Args:
        rgb: Leave depth aside where there is some.
        min_confidence: An answer of less confidence is "not here". By default 0.18, without depth 0.14 (docs/maps.md).
        out: A trajectory to write, in the TUM benchmark's format, of the images that were found.
    """
    check_first(out, json, model=model, maps=[map])
    chosen = some_of(sources(open_inputs(images, reading)), frames, "images")
    from locus.scenes.trajectory import write_trajectory
    from locus.tasks.localize import localize as localize_image

    world, made_with = maps_and_network(map, model)
    found: dict[str, Any] = {}
    answers: dict[str, dict[str, Any]] = {}
    guessed, unusable, written = False, 0, monotonic()

    def write() -> None:
        if out is not None:
            write_trajectory(out, found)
        if json is not None:
            write_json(json, answers)

    try:
        for named in track(chosen, "localize", len(chosen)):
            if monotonic() - written > SECONDS:
                write()
                written = monotonic()
            try:
                image = calibrated(named, camera, rgb=rgb)
                location = image.trusted(
                    localize_image(
                        world, made_with, image.image, image.camera, image.depth, min_confidence=min_confidence
                    )
                )
            except LocusError as error:
                unusable += 1
                answers[named.name] = {"reason": f"could not be used: {error}"}
                say(f"{named.name}: could not be used: {error}")
                continue
            guessed |= image.guessed
            same = image.scene is not None and image.scene.name == location.environment
            answer = location.described(image.world_from_camera if same else None)
            error = answer.get("error")
            off = "" if error is None else f"; off by {error['metres']:.2f} m, {error['degrees']:.1f}°"
            answers[named.name] = answer
            stuck = f"{location.matches.stuck:.0%} of matches at the same image position"
            say(f"{named.name}: {location.sentence}, {stuck}{off}")
            if location.here:
                found[named.name] = location.world_from_camera
    finally:  # on Ctrl-C too
        write()
        files = {out: f"the poses of {len(found)}", json: f"the answers about {len(answers)}"}
        say(*(f"Wrote {file}: {what} of {len(chosen)} images" for file, what in files.items() if file is not None))
    if guessed:
        say(camera.guess)
    say(f"{len(found)} of {len(chosen)} found in the map" + (f", {unusable} could not be used" if unusable else ""))
    return 0 if found else 1


def retrieve(
    image: options.OneImage,
    map: options.MapsFolder,
    model: options.MapModel = None,
    count: int = 10,
    json: options.JsonFile = None,
    reading: options.Reading = AS_STATED,
) -> int:
    """Rank the frames of a map by how much they show of an image.

    Args:
        count: How many frames to name.
    """
    check_first(json, model=model, maps=[map])
    asked = only_image(image, reading).read()
    from locus.landmarks.map_index import MapIndex
    from locus.tasks.frame_ranking import rank_frames

    world, made_with = maps_and_network(map, model)
    features = made_with.features(asked).cpu()
    if isinstance(world, MapIndex):
        world = world.near(features)
    ranking = rank_frames(world, features, count)
    answer = ranking.described(world)
    say(*(f"{row['score']:.3f}  {row['environment']}  {row['frame']}" for row in answer["frames"]))
    say(f"{ranking.stuck:.0%} of matches at the same image position")
    write_answers(json, answer)
    return 0
