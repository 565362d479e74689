"""The room in the layouts of published protocols, written from their documentation and not from the readers."""

import json

import numpy as np
from scipy.spatial.transform import Rotation

from tests.scenes.layouts import FLIP, INTRINSICS, save, save_depth, save_matrix, sevenscenes_official
from tests.scenes.room import CX, CY, FX, FY, HEIGHT, WIDTH

FOUR = (FX, FY, CX - 0.5, CY - 0.5)  # whole-numbered pixel centres


def hloc_line(name, world_from_camera, *more):
    """As hloc, ACE and COLMAP write poses: the quaternion's w first, and from the world to the camera."""
    rotation = world_from_camera[:3, :3].T
    x, y, z, w = Rotation.from_matrix(rotation).as_quat()
    values = [w, x, y, z, *(-rotation @ world_from_camera[:3, 3]), *more]
    return " ".join([name, *(f"{value:.12g}" for value in values)])


def tum_line(time, world_from_camera):
    values = [*world_from_camera[:3, 3], *Rotation.from_matrix(world_from_camera[:3, :3]).as_quat()]
    return " ".join([time, *(f"{value:.12g}" for value in values)])


def seven_scenes(root, shots):
    """Sequence 2 is for testing; returns the names of its images, with what they show."""
    sevenscenes_official(root, shots)
    (root / "TrainSplit.txt").write_text("sequence1\n")
    (root / "TestSplit.txt").write_text("sequence2\n")
    return {f"seq-02/frame-{k:06d}.color.png": shot for k, shot in enumerate(shots[1::2])}


def twelve_scenes(root, shots):
    for k, shot in enumerate(shots):
        stem = root / "data" / f"frame-{k:06d}"
        save(stem.with_name(stem.name + ".color.jpg"), shot.image)
        save_depth(stem.with_name(stem.name + ".depth.png"), shot.depth, 1000)
        save_matrix(stem.with_name(stem.name + ".pose.txt"), shot.world_from_camera)
    (root / "split.txt").write_text(
        "sequence0 [frames=4]  [start=0 ; end=3]\nsequence1 [frames=8]  [start=4 ; end=11]\n"
    )
    fx, fy, cx, cy = FOUR
    matrix = f"{fx} 0 {cx} 0 0 {fy} {cy} 0 0 0 1 0 0 0 0 1"
    lines = ["m_versionNumber = 4"]
    for of in ("color", "depth"):
        lines += [
            f"m_{of}Width = {WIDTH}",
            f"m_{of}Height = {HEIGHT}",
            f"m_calibration{of.title()}Intrinsic = {matrix}",
        ]
    (root / "info.txt").write_text("\n".join(lines) + "\n")
    return {f"frame-{k:06d}.color.jpg": shot for k, shot in enumerate(shots[:4])}


def indoor_six(root, shots):
    names = []
    for k, shot in enumerate(shots):
        stem = root / "images" / f"image-{k:06d}"
        save(stem.with_name(stem.name + ".color.jpg"), shot.image)
        save_matrix(stem.with_name(stem.name + ".pose.txt"), np.linalg.inv(shot.world_from_camera)[:3])
        stem.with_name(stem.name + ".intrinsics.txt").write_text(f"{WIDTH} {HEIGHT} {FX} {CX} {CY} 0.0 {k}.jpg\n")
        names.append(f"image-{k:06d}.color.jpg")
    (root / "train.txt").write_text("\n".join(names[4:]))
    (root / "test.txt").write_text("\n".join(names[:4]))
    return dict(zip(names, shots[:4], strict=False))


def rio_ten(root, shots):
    for k, shot in enumerate(shots):
        stem = root / f"{root.name}_0{1 + k % 2}" / f"frame-{k // 2:06d}"
        save(stem.with_name(stem.name + ".color.jpg"), shot.image)
        save_depth(stem.with_name(stem.name + ".rendered.depth.png"), shot.depth, 1000)
        save_matrix(stem.with_name(stem.name + ".pose.txt"), shot.world_from_camera)
    four = " ".join(map(str, FOUR))
    (root / "intrinsics.txt").write_text(f"{root.name}_02 {four}\n")
    listed = ", ".join(map(str, FOUR))
    (root / f"{root.name}_01" / "camera.yaml").write_text(f"camera_intrinsics:\n  model: [{listed}]\n")
    return {f"{root.name}_02/frame-{k:06d}.color.jpg": shot for k, shot in enumerate(shots[1::2])}


LOCALIZATION = {"7scenes": seven_scenes, "12scenes": twelve_scenes, "indoor6": indoor_six, "rio10": rio_ten}
assert INTRINSICS[0, 2] == FOUR[2]


def scannet_room(root, shots):
    """The images of one recording as ScanNet's exporter numbers them, every fifteenth."""
    for k, shot in enumerate(shots):
        save(root / "scene0707_00" / "color" / f"{15 * k}.jpg", shot.image)
        save_matrix(root / "scene0707_00" / "pose" / f"{15 * k}.txt", shot.world_from_camera)


def superglue_list(root, shots, pairs):
    """Intrinsics are for 1296×968 pixels, whatever the images' size."""
    scannet_room(root, shots)
    matrix = INTRINSICS * np.array([[1296 / WIDTH], [968 / HEIGHT], [1]])
    calibration = " ".join(map(str, matrix.ravel()))
    lines = []
    for a, b in pairs:
        motion = np.linalg.inv(shots[b].world_from_camera) @ shots[a].world_from_camera
        names = " ".join(f"scene0707_00_frame-{15 * k:06d}.jpg" for k in (a, b))
        lines.append(f"{names} 0 0 {calibration} {calibration} {' '.join(map(str, motion.ravel()))}")
    (root / "scannet_test_pairs_with_gt.txt").write_text("\n".join(lines))
    return [tuple(f"scene0707_00_frame-{15 * k:06d}.jpg" for k in pair) for pair in pairs]


def loftr_archive(root, shots, pairs):
    """Intrinsics are for 640×480 pixels; motions are those of the poses."""
    scannet_room(root, shots)
    rows = [(707, 0, 15 * a, 15 * b) for a, b in pairs]
    np.savez(root / "test.npz", name=np.array(rows, np.uint16), rel_pose=np.zeros((len(rows), 12)))
    np.savez(root / "intrinsics.npz", scene0707_00=INTRINSICS * np.array([[640 / WIDTH], [480 / HEIGHT], [1]]))
    return [tuple(f"scene0707_00/{15 * k}" for k in pair) for pair in pairs]


def glue_factory_list(root, shots, pairs):
    """Intrinsics are COLMAP's, which count from the image's corner."""
    matrix = f"{FX} 0 {CX} 0 {FY} {CY} 0 0 1"
    lines = []
    for k, shot in enumerate(shots):
        save(root / "images" / "0015" / f"{k}.jpg", shot.image)
    for a, b in pairs:
        motion = np.linalg.inv(shots[b].world_from_camera) @ shots[a].world_from_camera
        values = " ".join(map(str, [*motion[:3, :3].ravel(), *motion[:3, 3]]))
        lines.append(f"0015/{a}.jpg 0015/{b}.jpg {matrix} {matrix} {values}")
    (root / "pairs_calibrated.txt").write_text("\n".join(lines))
    return [(f"0015/{a}.jpg", f"0015/{b}.jpg") for a, b in pairs]


PAIRS = {
    "superglue": ("scannet1500", superglue_list),
    "loftr": ("scannet1500", loftr_archive),
    "glue-factory": ("megadepth1500", glue_factory_list),
}


def sparse_planes(root, shots, pairs):
    """Cameras of Habitat: y up, looking along -z; the authors' own folders stand in the names of files."""
    for k, shot in enumerate(shots):
        save(root / "rgb" / "house" / f"{k}.png", shot.image)

    def said(pose):
        x, y, z, w = Rotation.from_matrix(pose[:3, :3]).as_quat()
        return {"position": pose[:3, 3].tolist(), "rotation": [w, x, y, z]}

    def side(k):
        camera = said(shots[k].world_from_camera @ FLIP)
        return {"file_name": f"/Pool1/somebody/rgb/house/{k}.png", "image_id": str(k), "camera": camera}

    data = []
    for a, b in pairs:
        motion = np.linalg.inv(shots[b].world_from_camera) @ shots[a].world_from_camera
        data.append({"0": side(a), "1": side(b), "rel_pose": said(FLIP @ motion @ FLIP), "gt_corrs": []})
    file = root / "mp3d_planercnn_json" / "cached_set_test.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"info": "", "categories": [], "data": data}))
    return [(f"house/{a}.png", f"house/{b}.png") for a, b in pairs]


PAIRS["sparse planes"] = ("sparseplanes", sparse_planes)
