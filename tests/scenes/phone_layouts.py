"""Writes the room as phones and data sets taken with them store it, from the formats' documentation."""

import io
import json
import struct
import zipfile
import zlib
from pathlib import Path

import cv2
import lz4.block
import lzfse
import numpy as np
import OpenEXR
from PIL import Image
from scipy.spatial.transform import Rotation

from tests.scenes.layouts import FLIP, INTRINSICS, save, save_depth
from tests.scenes.room import CX, CY, FX, FY, HEIGHT, WIDTH, Shot

UNSURE = (slice(10, 20), slice(30, 50))  # where LiDAR has low confidence, and its depth is wrong


def with_unsure(depth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(depth with a wrong part, the confidence that says so: 0, 1 and 2)."""
    wrong, confidence = depth.copy(), np.full(depth.shape, 2, np.uint8)
    wrong[UNSURE], confidence[UNSURE], confidence[40:] = 9.0, 0, 1
    return wrong, confidence


def without_unsure(shots: list[Shot]) -> list[Shot]:
    """What a reader should give back."""
    for shot in (expected := [Shot(**vars(shot)) for shot in shots]):
        shot.depth = shot.depth.copy()
        shot.depth[UNSURE] = 0
    return expected


def jpeg(image: np.ndarray) -> bytes:
    Image.fromarray(image).save(stream := io.BytesIO(), "jpeg", quality=95)
    return stream.getvalue()


def record3d_metadata(shots: list[Shot]) -> dict:
    """K column by column, quaternions x y z w before positions, ARKit's axes (y up, z backward)."""
    poses = [shot.world_from_camera @ FLIP for shot in shots]
    rows = [[*Rotation.from_matrix(pose[:3, :3]).as_quat(), *pose[:3, 3]] for pose in poses]
    matrix = INTRINSICS.T.reshape(-1).tolist()
    return {"w": WIDTH, "h": HEIGHT, "dw": WIDTH, "dh": HEIGHT, "fps": 60, "K": matrix, "poses": rows}


def r3d(file: Path, shots: list[Shot]) -> None:
    metadata = record3d_metadata(shots)
    metadata["perFrameIntrinsicCoeffs"] = [[FX, FY, CX - 0.5, CY - 0.5]] * len(shots)
    metadata["K"] = (np.array(metadata["K"]) * 2).tolist()  # what each frame says of itself goes before
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("metadata", json.dumps(metadata))
        for number, shot in enumerate(shots):
            depth, confidence = with_unsure(shot.depth)
            archive.writestr(f"rgbd/{number}.jpg", jpeg(shot.image))
            archive.writestr(f"rgbd/{number}.depth", lzfse.compress(depth.astype("<f4").tobytes()))
            archive.writestr(f"rgbd/{number}.conf", lzfse.compress(confidence.tobytes()))


def record3d_export(root: Path, shots: list[Shot]) -> None:
    for number, shot in enumerate(shots):
        save(root / f"EXR_RGBD/rgb/{number}.jpg", shot.image)
        save_exr(root / f"EXR_RGBD/depth/{number}.exr", shot.depth)
    (root / "EXR_RGBD/metadata.json").write_text(json.dumps(record3d_metadata(shots)))


def save_exr(file: Path, depth: np.ndarray) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    OpenEXR.File(header, {"R": depth.astype(np.float32)}).write(str(file))


def save_video(file: Path, shots: list[Shot], rate: float = 30.0) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    writer = cv2.VideoWriter(str(file), cv2.VideoWriter_fourcc(*"mp4v"), rate, (WIDTH, HEIGHT))
    for shot in shots:
        writer.write(cv2.cvtColor(shot.image, cv2.COLOR_RGB2BGR))
    writer.release()


def strayscanner(root: Path, shots: list[Shot], per_frame: bool = True) -> None:
    """Poses have OpenCV's axes; intrinsics are in the table in newer recordings, in a matrix in older ones."""
    save_video(root / "rgb.mp4", shots)
    lines = ["timestamp, frame, x, y, z, qx, qy, qz, qw" + ", fx, fy, cx, cy" * per_frame]
    for number, shot in enumerate(shots):
        depth, confidence = with_unsure(shot.depth)
        save_depth(root / f"depth/{number:06d}.png", depth, 1000)
        save(root / f"confidence/{number:06d}.png", confidence)
        quaternion = Rotation.from_matrix(shot.world_from_camera[:3, :3]).as_quat()
        values = [*shot.world_from_camera[:3, 3], *quaternion, *([FX, FY, CX - 0.5, CY - 0.5] if per_frame else [])]
        lines.append(f"{9000 + number / 60:.6f}, {number:06d}, " + ", ".join(f"{value:.15f}" for value in values))
    (root / "odometry.csv").write_text("\n".join(lines) + "\n")
    np.savetxt(root / "camera_matrix.csv", INTRINSICS * (3 if per_frame else 1), delimiter=",")
    (root / "imu.csv").write_text("timestamp, a_x, a_y, a_z, alpha_x, alpha_y, alpha_z\n")


def video(file: Path, shots: list[Shot], times: list[str] | None = None, rate: float = 30.0) -> None:
    """Every tenth frame is a shot; the trajectory has the times given, or those of the shots in seconds."""
    save_video(file, [shots[number // 10] for number in range(10 * len(shots))], rate)
    lines = ["# time tx ty tz qx qy qz qw"]
    for number, shot in enumerate(shots):
        time = times[number] if times else f"{number * 10 / rate:.6f}"
        quaternion = Rotation.from_matrix(shot.world_from_camera[:3, :3]).as_quat()
        lines.append(" ".join([time, *(f"{value:.15f}" for value in (*shot.world_from_camera[:3, 3], *quaternion))]))
    file.with_suffix(".txt").write_text("\n".join(lines) + "\n")
    file.with_suffix(".calibration.txt").write_text(f"{FX} {FY} {CX - 0.5} {CY - 0.5}\n")


def arkitscenes(root: Path, shots: list[Shot]) -> None:
    """A trajectory of camera_from_world, ten poses a second; images come in the middle between two."""
    trajectory = []
    for number, shot in enumerate(shots):
        time, name = 3414.25 + number, f"41048190_{3414.25 + number:.3f}"
        depth, confidence = with_unsure(shot.depth)
        save(root / f"lowres_wide/{name}.png", shot.image)
        save_depth(root / f"lowres_depth/{name}.png", depth, 1000)
        save(root / f"confidence/{name}.png", confidence)
        camera = root / f"lowres_wide_intrinsics/41048190_{time + 0.001:.3f}.pincam"  # rounded another way
        camera.parent.mkdir(parents=True, exist_ok=True)
        camera.write_text(f"{WIDTH} {HEIGHT} {FX} {FY} {CX - 0.5} {CY - 0.5}")
        turn = Rotation.from_rotvec([0.02, -0.01, 0.03])
        for sign in (-1, 1):
            rotation = Rotation.from_matrix(shot.world_from_camera[:3, :3]) * (turn if sign > 0 else turn.inv())
            position = shot.world_from_camera[:3, 3] + sign * np.array([0.01, 0.02, -0.01])
            other_way = rotation.inv()
            values = [time + sign * 0.05, *other_way.as_rotvec(), *-other_way.apply(position)]
            trajectory.append(" ".join(f"{value:.15f}" for value in values))
    (root / "lowres_wide.traj").write_text("\n".join(trajectory) + "\n")


def sens(file: Path, shots: list[Shot], frames: int | None = None) -> None:
    """Version 4: sensor's name, four 4×4 matrices, kinds of compression, sizes, unit, frames."""
    four = np.eye(4)
    four[:3, :3] = INTRINSICS
    matrices = np.stack([four, np.eye(4), four, np.eye(4)])  # colour: intrinsic, extrinsic; depth: the same
    name = b"StructureSensor"
    parts = [struct.pack("<IQ", 4, len(name)), name, matrices.astype("<f4").tobytes()]
    parts += [struct.pack("<iiIIIIf", 2, 1, WIDTH, HEIGHT, WIDTH, HEIGHT, 1000.0)]  # jpeg, zlib_ushort
    parts += [struct.pack("<Q", len(shots) if frames is None else frames)]
    for number, shot in enumerate(shots):
        colour = jpeg(shot.image)
        depth = zlib.compress(np.rint(shot.depth * 1000).astype("<u2").tobytes())
        parts += [shot.world_from_camera.astype("<f4").tobytes(), struct.pack("<QQ", number * 33, number * 33 + 4)]
        parts += [struct.pack("<QQ", len(colour), len(depth)), colour, depth]
    file.write_bytes(b"".join(parts) + struct.pack("<Q", 0))  # no readings of the IMU


def scannetpp(root: Path, shots: list[Shot], packed: str = "lz4") -> None:
    """Depth maps of 256×192, each after its length: 16-bit millimetres by LZ4, or metres by zlib without a header."""
    save_video(root / "iphone/rgb.mkv", shots, 60.0)
    table, depths = {}, []
    for number, shot in enumerate(shots):
        pose = shot.world_from_camera.tolist()
        table[f"frame_{number:06d}"] = {
            "timestamp": number / 60,
            "aligned_pose": pose,
            "intrinsic": INTRINSICS.tolist(),
        }
        table[f"frame_{number:06d}"] |= {"pose": np.eye(4).tolist(), "imu": {}}
        y, x = np.arange(192) * HEIGHT // 192, np.arange(256) * WIDTH // 256
        depth = shot.depth[np.ix_(y, x)]
        if packed == "lz4":
            data = lz4.block.compress(np.rint(depth * 1000).astype("<u2").tobytes(), store_size=False)
        else:
            stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            data = stream.compress(depth.astype("<f4").tobytes()) + stream.flush()
        depths.append(struct.pack("<I", len(data)) + data)
    (root / "iphone/depth.bin").write_bytes(b"".join(depths))
    (root / "iphone/pose_intrinsic_imu.json").write_text(json.dumps(table))
