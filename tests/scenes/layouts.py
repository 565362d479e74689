"""Writes the room in each data set's own layout, from the data sets' documentation and not from the readers."""

import json
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.linalg import polar
from scipy.spatial.transform import Rotation

from tests.scenes.room import BOXES, CX, CY, FX, FY, HEIGHT, WIDTH, Shot

FLIP = np.diag([1.0, -1.0, -1.0, 1.0])
INTRINSICS = np.array([[FX, 0, CX - 0.5], [0, FY, CY - 0.5], [0, 0, 1]])  # whole-numbered pixel centres


def save(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path)


def save_depth(path: Path, depth: np.ndarray, scale: float) -> None:
    save(path, np.rint(depth * scale).astype(np.uint16))


def save_matrix(path: Path, matrix: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(path, matrix, fmt="%.17g")


def sevenscenes_official(root: Path, shots: list[Shot]) -> None:
    for k, shot in enumerate(shots):
        stem = root / f"seq-0{1 + k % 2}" / f"frame-{k // 2:06d}"
        save(stem.with_name(stem.name + ".color.png"), shot.image)
        save_depth(stem.with_name(stem.name + ".depth.png"), shot.depth, 1000)
        save_matrix(stem.with_name(stem.name + ".pose.txt"), shot.world_from_camera)
    save_matrix(root / "camera-intrinsics.txt", INTRINSICS)


def sevenscenes_flat(root: Path, shots: list[Shot]) -> None:
    for shot in shots:
        stem = root / f"frame-{shot.name}"
        save(stem.with_name(stem.name + ".color.png"), shot.image)
        save_depth(stem.with_name(stem.name + ".depth.png"), shot.depth, 1000)
        save_matrix(stem.with_name(stem.name + ".pose.txt"), shot.world_from_camera)
    save_matrix(root / "camera-intrinsics.txt", INTRINSICS)


def tum(root: Path, shots: list[Shot]) -> None:
    """Depth comes 10 ms after colour, and poses at 100 Hz; colour is taken halfway between two of them."""
    lists: dict[str, list[str]] = {"rgb": [], "depth": [], "groundtruth": []}
    for k, shot in enumerate(shots):
        time = 1000.0 + k
        save(root / f"rgb/{time:.6f}.png", shot.image)
        save_depth(root / f"depth/{time + 0.01:.6f}.png", shot.depth, 5000)
        lists["rgb"].append(f"{time:.6f} rgb/{time:.6f}.png")
        lists["depth"].append(f"{time + 0.01:.6f} depth/{time + 0.01:.6f}.png")
        turn = Rotation.from_rotvec([0.02, -0.01, 0.03])
        rotation = Rotation.from_matrix(shot.world_from_camera[:3, :3])
        for sign in (-1, 1):
            q = (rotation * (turn if sign > 0 else turn.inv())).as_quat() * sign  # q and -q are the same rotation
            t = shot.world_from_camera[:3, 3] + sign * np.array([0.01, 0.02, -0.01])
            lists["groundtruth"].append(" ".join(f"{v:.12f}" for v in [time + sign * 0.005, *t, *q]))
    for name, lines in lists.items():
        (root / f"{name}.txt").write_text("# a comment\n" + "\n".join(lines) + "\n")
    (root / "calibration.txt").write_text(f"{FX} {FY} {CX - 0.5} {CY - 0.5}\n")


def openloris(root: Path, shots: list[Shot]) -> None:
    """Names of its own, OpenCV's YAML, and poses of the robot's base, which a laser stands on and a camera on that."""
    base_from_laser = np.array([[1, 0, 0, 0.2], [0, 1, 0, 0.1], [0, 0, 1, 0.5], [0, 0, 0, 1]])
    laser_from_camera = np.array([[0, 0, 1, 0.3], [-1, 0, 0, 0], [0, -1, 0, 0.4], [0, 0, 0, 1]])
    lists: dict[str, list[str]] = {"color": [], "aligned_depth": [], "groundtruth": []}
    for k, shot in enumerate(shots):
        time = f"{1000 + k}.000000"
        save(root / f"color/{time}.png", shot.image)
        save_depth(root / f"aligned_depth/{time}.png", shot.depth, 1000)
        lists["color"].append(f"{time} color/{time}.png")
        lists["aligned_depth"].append(f"{time} aligned_depth/{time}.png")
        base = shot.world_from_camera @ np.linalg.inv(base_from_laser @ laser_from_camera)
        numbers = [*base[:3, 3], *Rotation.from_matrix(base[:3, :3]).as_quat()]
        lists["groundtruth"].append(" ".join([time, *(f"{v:.15f}" for v in numbers)]))
    for name, lines in lists.items():
        (root / f"{name}.txt").write_text("#Time data\n" + "\n".join(lines) + "\n")
    (root / "sensors.yaml").write_text(
        f"%YAML:1.0\nd400_color_optical_frame:\n   sensor_type: camera\n   width: {WIDTH}\n   height: {HEIGHT}\n"
        f"   intrinsics: {opencv_matrix([[FX, CX - 0.5, FY, CY - 0.5]])}"
        f"   distortion_coefficients: {opencv_matrix([[0.0] * 5])}"
    )
    links = {"laser": ("base_link", base_from_laser), "d400_color_optical_frame": ("laser", laser_from_camera)}
    (root / "trans_matrix.yaml").write_text(
        "%YAML:1.0\ntrans_matrix:\n"
        + "".join(
            f"   -\n      parent_frame: {parent}\n      child_frame: {child}\n      matrix: {opencv_matrix(matrix, 9)}"
            for child, (parent, matrix) in links.items()
        )
    )


def opencv_matrix(rows, indent: int = 6) -> str:
    """As OpenCV writes a matrix in YAML."""
    rows = np.array(rows, dtype=float)
    space = " " * indent
    data = ", ".join(f"{value:.16e}" for value in rows.reshape(-1))
    head = f"!!opencv-matrix\n{space}rows: {len(rows)}\n{space}cols: {rows.shape[1]}\n{space}dt: d\n"
    return f"{head}{space}data: [ {data} ]\n"


def rgbd_bonn(root: Path, shots: list[Shot]) -> None:
    """TUM's lists with poses of the markers: camera = T_ROS · pose · T_ROS · T_m, T_m's rotation made one by SciPy.

    The world is that of the poses, so the first factor is left out. Its camera is known, and another took the room.
    """
    T_m = np.eye(4)
    printed = [[1.0157, 0.1828, -0.2389], [0.0009, -0.8431, -0.6413], [-0.3009, 0.6147, -0.8085]]
    T_m[:3, :3], T_m[:3, 3] = polar(np.array(printed))[0], (0.0113, -0.0098, 0.0111)
    T_ros = np.array([[-1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1.0]])
    tum(root, shots)
    lines = []
    for k, shot in enumerate(shots):
        pose = shot.world_from_camera @ np.linalg.inv(T_ros @ T_m)
        numbers = [*pose[:3, 3], *Rotation.from_matrix(pose[:3, :3]).as_quat()]
        lines.append(" ".join([f"{1000 + k}", *(f"{v:.15f}" for v in numbers)]))
    (root / "groundtruth.txt").write_text("\n".join(lines) + "\n")


def polycam(root: Path, shots: list[Shot]) -> None:
    for k, shot in enumerate(shots):
        name = str(98 + k)  # numbers of a growing length
        save(root / f"keyframes/corrected_images/{name}.jpg", shot.image)
        save(root / f"keyframes/images/{name}.jpg", 255 - shot.image)
        save_depth(root / f"keyframes/depth/{name}.png", shot.depth, 1000)
        save(root / f"keyframes/confidence/{name}.png", np.full(shot.depth.shape, 54, np.uint8))
        pose = shot.world_from_camera @ FLIP
        camera = {"fx": FX, "fy": FY, "cx": CX, "cy": CY, "width": WIDTH, "height": HEIGHT, "blur_score": 80.0}
        camera |= {f"t_{row}{column}": pose[row, column] for row in range(3) for column in range(4)}
        for folder, content in (("corrected_cameras", camera), ("cameras", camera | {"t_03": 100.0})):
            file = root / f"keyframes/{folder}/{name}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(content))


def scannet(root: Path, shots: list[Shot]) -> None:
    for k, shot in enumerate(shots):
        save(root / f"color/{k}.jpg", shot.image)
        save_depth(root / f"depth/{k}.png", shot.depth, 1000)
        save(root / f"label-filt/{k}.png", shot.semantic.astype(np.uint16))
        save(root / f"instance-filt/{k}.png", shot.instance.astype(np.uint8))
        save_matrix(root / f"pose/{k}.txt", shot.world_from_camera)
    four = np.eye(4)
    four[:3, :3] = INTRINSICS
    save_matrix(root / "intrinsic/intrinsic_color.txt", four)
    save_matrix(root / "intrinsic/intrinsic_depth.txt", four)


def replica(root: Path, shots: list[Shot]) -> None:
    for k, shot in enumerate(shots):
        save(root / f"results/frame{k:06d}.jpg", shot.image)
        save_depth(root / f"results/depth{k:06d}.png", shot.depth, 6553.5)
    save_matrix(root / "traj.txt", np.array([shot.world_from_camera.reshape(-1) for shot in shots]))
    camera = {"w": WIDTH, "h": HEIGHT, "fx": FX, "fy": FY, "cx": CX - 0.5, "cy": CY - 0.5, "scale": 6553.5}
    (root.parent / "cam_params.json").write_text(json.dumps({"camera": camera}))


def nerfstudio(root: Path, shots: list[Shot]) -> Path:
    frames = []
    for shot in shots:
        save(root / f"images/{shot.name}.png", shot.image)
        save_depth(root / f"depth/{shot.name}.png", shot.depth, 1000)
        matrix = (shot.world_from_camera @ FLIP).tolist()
        frames.append({"file_path": f"./images/{shot.name}.png", "depth_file_path": f"depth/{shot.name}.png"})
        frames[-1]["transform_matrix"] = matrix
    content = {"camera_model": "OPENCV", "fl_x": FX, "fl_y": FY, "cx": CX, "cy": CY, "w": WIDTH, "h": HEIGHT}
    (root / "transforms.json").write_text(json.dumps(content | {"frames": frames}))
    return root


def colmap(root: Path, shots: list[Shot]) -> None:
    """A text model by hand: quaternion w first, camera_from_world."""
    images = []
    for k, shot in enumerate(shots):
        save(root / f"images/{shot.name}.png", shot.image)
        dense = root / f"stereo/depth_maps/{shot.name}.png.geometric.bin"
        dense.parent.mkdir(parents=True, exist_ok=True)
        dense.write_bytes(f"{WIDTH}&{HEIGHT}&1&".encode() + shot.depth.astype("<f4").tobytes())
        inverse = np.linalg.inv(shot.world_from_camera)
        x, y, z, w = Rotation.from_matrix(inverse[:3, :3]).as_quat()
        numbers = " ".join(f"{v:.17g}" for v in (w, x, y, z, *inverse[:3, 3]))
        images.append(f"{k + 1} {numbers} 1 {shot.name}.png\n\n")
    model = root / "sparse/0"
    model.mkdir(parents=True)
    (model / "cameras.txt").write_text(f"1 PINHOLE {WIDTH} {HEIGHT} {FX} {FY} {CX} {CY}\n")
    (model / "images.txt").write_text("".join(images))
    (model / "points3D.txt").write_text("")


def taskonomy(root: Path, shots: list[Shot]) -> None:
    """The format has no principal point and one focal length, so the room is shot by another camera (see the test)."""
    for k, shot in enumerate(shots):
        stem = f"point_{k}_view_0_domain"
        save(root / f"rgb/{stem}_rgb.png", shot.image)
        save_depth(root / f"depth_zbuffer/{stem}_depth_zbuffer.png", shot.depth, 512)
        pose = shot.world_from_camera @ FLIP
        info = {
            "camera_location": pose[:3, 3].tolist(),
            "camera_rotation_final": Rotation.from_matrix(pose[:3, :3]).as_euler("xyz").tolist(),
            "field_of_view_rads": 2 * np.arctan(WIDTH / 2 / FX),
        }
        file = root / f"point_info/{stem}_point_info.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(info))


def matterport(root: Path, shots: list[Shot]) -> None:
    lines = [f"dataset matterport\nn_images {len(shots)}"]
    lines += ["depth_directory undistorted_depth_images\ncolor_directory undistorted_color_images\n"]
    lines += [f"intrinsics_matrix {FX} 0 {CX} 0 {FY} {HEIGHT - CY} 0 0 1"]
    for k, shot in enumerate(shots):
        save(root / f"undistorted_color_images/pano_i{k}_0.jpg", shot.image)
        save_depth(root / f"undistorted_depth_images/pano_d{k}_0.png", shot.depth, 4000)
        matrix = " ".join(f"{v:.17g}" for v in (shot.world_from_camera @ FLIP).reshape(-1))
        lines.append(f"scan pano_d{k}_0.png pano_i{k}_0.jpg {matrix}")
    parameters = root / "undistorted_camera_parameters/house.conf"
    parameters.parent.mkdir(parents=True)
    parameters.write_text("\n".join(lines) + "\n")
    _matterport_segmentation(root / "house_segmentations")


def _matterport_segmentation(folder: Path) -> None:
    """Each box a mesh of its own object, but for the room's floor, which is an object of its own class."""
    house = ["C 0 1 wall 1 wall 0 0 0 0 0", "C 1 2 floor 2 floor 0 0 0 0 0", "C 2 3 dining#chair 5 chair 0 0 0 0 0"]
    house += ["C 3 4 table 7 table 0 0 0 0 0", "C 4 5 junk 41 unlabeled 0 0 0 0 0"]
    category = {1: 0, 2: 1, 5: 2, 7: 3}
    vertices, faces = [], []
    for index, (low, high, label, _) in enumerate(BOXES):
        start = len(vertices)
        corners = np.array([low, high])
        vertices += [(corners[i, 0], corners[j, 1], corners[k, 2]) for i in (0, 1) for j in (0, 1) for k in (0, 1)]
        for quad in ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5)):
            is_floor = index == 0 and quad == (0, 2, 6, 4)
            number = 10 if is_floor else index
            for a, b, c in ((0, 1, 2), (0, 2, 3)):
                faces.append((start + quad[a], start + quad[b], start + quad[c], 500 + number))
        house.append(f"O {index} 0 {category[label]} 0 0 0 1 0 0 0 1 0 1 1 1 0 0 0 0 0 0 0 0")
        house.append(f"E {index} {index} {500 + index} 1 0 0 0 0 0 0 1 1 1 0 0 0 0 0")
    house.append("O 4 0 1 0 0 0 1 0 0 0 1 0 1 1 1 0 0 0 0 0 0 0 0")
    house.append("E 4 4 510 1 0 0 0 0 0 0 1 1 1 0 0 0 0 0")
    folder.mkdir()
    (folder / "house.house").write_text("\n".join(["ASCII 1.0", *house]) + "\n")
    _save_ply(folder / "house.ply", vertices, faces)


def _save_ply(path: Path, vertices: list, faces: list) -> None:
    header = ["ply", "format binary_little_endian 1.0", f"element vertex {len(vertices)}"]
    header += [f"property float {axis}" for axis in "xyz"] + [f"element face {len(faces)}"]
    header += ["property list uchar int vertex_indices", "property int material_id", "end_header\n"]
    rows = np.zeros(len(faces), [("n", "u1"), ("corners", "<i4", 3), ("segment", "<i4")])
    rows["n"], rows["corners"], rows["segment"] = 3, [f[:3] for f in faces], [f[3] for f in faces]
    path.write_bytes("\n".join(header).encode() + np.array(vertices, "<f4").tobytes() + rows.tobytes())


def matterport_regions(root: Path) -> None:
    """The same mesh as a region's own file, region 0, as text."""
    import trimesh

    whole = root / "house_segmentations/house.ply"
    mesh = trimesh.load(whole, process=False)
    segments = mesh.metadata["_ply_raw"]["face"]["data"]["material_id"].reshape(-1)
    header = ["ply", "format ascii 1.0", f"element vertex {len(mesh.vertices)}"]
    header += [f"property float {axis}" for axis in "xyz"] + [f"element face {len(mesh.faces)}"]
    header += ["property list uchar int vertex_indices", "property int face_material", "end_header"]
    body = [" ".join(f"{v:g}" for v in vertex) for vertex in mesh.vertices]
    body += [f"3 {a} {b} {c} {segment}" for (a, b, c), segment in zip(mesh.faces, segments, strict=True)]
    folder = root / "region_segmentations"
    folder.mkdir()
    (folder / "region0.ply").write_text("\n".join(header + body) + "\n")
    whole.unlink()


def edit(folder, change) -> None:
    """Change the JSON of a scene in place."""
    file = folder / "transforms.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
