"""The command align."""

from pathlib import Path
from typing import Annotated

import tyro

from locus.commands import options
from locus.commands.options import check_first, map_and_network, network, say, some_of, write_answers
from locus.model.shipped import DEFAULT
from locus.scenes.load import AS_STATED


def align(
    a: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="A")],
    b: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="B")],
    model: options.MapModel = None,
    frames: options.Frames = ":",
    queries: int = 40,
    scale: options.Switch = False,
    trajectory: Path | None = None,
    json: options.JsonFile = None,
    cache: options.Cache = None,
    reading: options.Reading = AS_STATED,
) -> int:
    """Find the motion between two recordings of one environment.

    Frames of B are localized in A. The motion that most of them agree on is printed, with its error; if too few agree,
    that is said, and the exit code is 2.

    Args:
        a: A map's folder, or a posed RGB-D scene, of which a map is made.
        b: A posed scene in coordinates of its own. Frames without depth are localized by colour alone.
        frames: Use only these frames of B, START:STOP or START:STOP:STEP, counted from 0.
        queries: Frames of B that are localized, spread evenly over it.
        scale: Find the length of B's unit too. B's depth is not used then.
        trajectory: A file to write with the poses of all frames of B in A's coordinates, in the TUM benchmark's format.
    """
    check_first(trajectory, json, model=model)
    session = some_of(reading.load(b), frames)
    first = None if (a / "map.safetensors").exists() else reading.load(a)
    from locus.features.dense import scene_features
    from locus.landmarks import LandmarkMap
    from locus.scenes.trajectory import write_trajectory
    from locus.tasks.placed_points import detector_or_reason
    from locus.tasks.sessions import align_session

    if first is None:
        world, made_with = map_and_network(a, model)
    else:
        made_with = network(model or DEFAULT)
        detector, lacking = detector_or_reason()
        if lacking:
            say(f"{a} was mapped {lacking}")
        seen = scene_features(made_with, first, cache, progress=True)
        world = LandmarkMap.build(made_with, seen, detector=detector, progress=True)
    aligned = align_session(world, made_with, session, queries=queries, scale=scale, progress=True)
    say(f"{session.name} was recorded {aligned.sentence}", "a_from_b:")
    say(*("  " + " ".join(f"{value:10.6f}" for value in row) for row in aligned.agreement.a_from_b))
    write_answers(json, aligned.described())
    if trajectory is not None:
        write_trajectory(trajectory, aligned.trajectory(session))
        say(f"Wrote {trajectory}")
    return 0
