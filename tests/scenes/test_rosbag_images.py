"""Images in messages, in every encoding, against what was encoded."""

import contextlib
import struct
from io import BytesIO
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from rosbags.typesys import Stores, get_typestore

import locus
from locus.errors import FrameError, LocusError
from locus.scenes.formats.rosbag_images import RAW, colour_image, depth_image, image_head
from tests.scenes import bags, room

RANDOM = np.random.default_rng(3)
RGB = RANDOM.integers(0, 256, (6, 8, 3), np.uint8)
GREY16 = RANDOM.integers(0, 2**16, (6, 8), np.uint16)


def raw(encoding: str, pixels: np.ndarray, **other: object) -> SimpleNamespace:
    data = np.frombuffer(np.ascontiguousarray(pixels).tobytes(), np.uint8)
    fields = {"height": len(pixels), "width": pixels.shape[1], "step": pixels[0].nbytes, "is_bigendian": 0}
    return SimpleNamespace(encoding=encoding, data=data, **(fields | other))


def packed(format: str, data: bytes) -> SimpleNamespace:
    return SimpleNamespace(format=format, data=np.frombuffer(data, np.uint8))


def file(pixels: np.ndarray, kind: str) -> bytes:
    stream = BytesIO()
    Image.fromarray(pixels).save(stream, kind, quality=95)
    return stream.getvalue()


def grey(values: np.ndarray) -> np.ndarray:
    return np.repeat(values[..., None], 3, axis=-1)


OPAQUE = np.full((6, 8, 1), 255, np.uint8)
ENCODED = {
    "rgb8": (RGB, RGB),
    "bgr8": (RGB[..., ::-1], RGB),
    "8UC3": (RGB[..., ::-1], RGB),
    "rgba8": (np.concatenate([RGB, OPAQUE], -1), RGB),
    "bgra8": (np.concatenate([RGB[..., ::-1], OPAQUE], -1), RGB),
    "mono8": (RGB[..., 0], grey(RGB[..., 0])),
    "8UC1": (RGB[..., 0], grey(RGB[..., 0])),
    "mono16": (GREY16, grey((GREY16 >> 8).astype(np.uint8))),
}


@pytest.mark.parametrize("encoding", ENCODED)
def test_raw_colour_is_exact_with_and_without_padded_rows(encoding):
    stored, expected = ENCODED[encoding]
    np.testing.assert_array_equal(colour_image(raw(encoding, stored), "it"), expected)
    rows = np.frombuffer(np.ascontiguousarray(stored).tobytes(), np.uint8).reshape(6, -1)
    wide = np.pad(rows, ((0, 0), (0, 5)), constant_values=99)
    message = raw(encoding, stored, step=wide.shape[1])
    message.data = wide.ravel()
    np.testing.assert_array_equal(colour_image(message, "it"), expected)


def test_numbers_of_either_byte_order_are_the_same():
    message = raw("mono16", GREY16.astype(">u2"), is_bigendian=1)
    np.testing.assert_array_equal(colour_image(message, "it"), ENCODED["mono16"][1])
    metres = RANDOM.random((6, 8)).astype(np.float32)
    message = raw("32FC1", metres.astype(">f4"), is_bigendian=1)
    np.testing.assert_array_equal(depth_image(message, "it"), metres)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("pattern", ["rggb", "bggr", "gbrg", "grbg"])
def test_a_bayer_pattern_names_its_first_four_pixels(pattern, bits):
    colour = {"r": 200, "g": 120, "b": 40}
    mosaic = np.empty((8, 10), np.uint16)
    for k, letter in enumerate(pattern):
        mosaic[k // 2 :: 2, k % 2 :: 2] = colour[letter]
    stored = mosaic.astype(np.uint8) if bits == 8 else mosaic << 8
    image = colour_image(raw(f"bayer_{pattern}{bits}", stored), "it")
    np.testing.assert_array_equal(image, np.broadcast_to(np.uint8([200, 120, 40]), (8, 10, 3)))


def test_compressed_colour_is_exact_as_png_and_near_as_jpeg():
    np.testing.assert_array_equal(colour_image(packed("png", file(RGB, "PNG")), "it"), RGB)
    smooth = cv2.resize(RGB, (64, 48), interpolation=cv2.INTER_CUBIC)
    image = colour_image(packed("rgb8; jpeg compressed bgr8", file(smooth, "JPEG")), "it")
    assert np.abs(image.astype(int) - smooth).mean() < 8


def test_depth_in_millimetres_raw_and_compressed():
    depth = GREY16.copy()
    depth[0, :2] = 0, 65535
    expected = np.where(depth == 65535, 0, depth)
    np.testing.assert_array_equal(depth_image(raw("16UC1", depth), "it"), expected)
    png = file(depth, "PNG")
    np.testing.assert_array_equal(depth_image(packed("16UC1; png compressed ", png), "it"), expected)
    header = struct.pack("<iff", 0, 0.0, 0.0)
    np.testing.assert_array_equal(depth_image(packed("16UC1; compressedDepth", header + png), "it"), expected)


def test_compressed_depth_in_metres_is_within_its_quantisation():
    """Stored is a / depth + b, with a and b from the transport's quantisation 100 and largest depth 10 m."""
    depth = np.linspace(0.3, 9.9, 48, dtype=np.float32).reshape(6, 8)
    a = 100 * 101.0
    b = 1 - a / 10
    stored = (a / depth + b).astype(np.uint16)
    stored[0, 0] = 0
    message = packed("32FC1; compressedDepth png", struct.pack("<iff", 0, a, b) + file(stored, "PNG"))
    read = depth_image(message, "it")
    assert read.dtype == np.float32
    assert read[0, 0] == 0
    step = depth**2 / a  # what one step of the stored number is worth
    assert (np.abs(read - depth) <= 1.1 * step).ravel()[1:].all()


def test_rvl_is_refused_in_one_sentence():
    with pytest.raises(LocusError, match="RVL"):
        depth_image(packed("16UC1; compressedDepth rvl", b"\0" * 50), "it")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (raw("rgb8", RGB, step=10), "rows of 10 bytes"),
        (raw("rgb8", RGB, height=7), "holds 144 bytes"),
        (raw("rgb8", RGB, width=2**31, step=2**32 - 1), "claims 2147483648×6 pixels"),
        (raw("rgb8", RGB, width=0), "claims 0×6 pixels"),
        (raw("yuv422", RGB), "yuv422"),
        (packed("jpeg", b"no picture"), "not an image"),
        (packed("jpeg", file(RGB, "JPEG")[:-200]), "damaged or cut short|not an image"),
    ],
)
def test_colour_that_is_not_what_it_claims_is_one_sentence(message, said):
    with pytest.raises(LocusError, match=said):
        colour_image(message, "it")


def test_a_small_file_of_many_pixels_is_refused():
    Image.MAX_IMAGE_PIXELS, limit = None, Image.MAX_IMAGE_PIXELS
    try:
        bomb = file(np.zeros((11000, 10000), np.uint8), "PNG")
    finally:
        Image.MAX_IMAGE_PIXELS = limit
    assert len(bomb) < 200_000
    for message, read in ((packed("png", bomb), colour_image), (packed("16UC1; png compressed", bomb), depth_image)):
        with pytest.raises(LocusError, match="100 million pixels"):
            read(message, "it")


@settings(max_examples=60, deadline=None)
@given(frame=st.text(st.characters(codec="ascii", exclude_characters="/\0"), max_size=20), stamp=st.integers(0, 2**60))
@pytest.mark.parametrize("store", [Stores.ROS1_NOETIC, Stores.ROS2_HUMBLE])
def test_the_head_of_a_message_is_what_rosbags_wrote(store, frame, stamp):
    types = (known := get_typestore(store)).types
    time = types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
    ros1 = store == Stores.ROS1_NOETIC
    header = types["std_msgs/msg/Header"](**({"seq": 7} if ros1 else {}), stamp=time, frame_id=frame)
    message = types["sensor_msgs/msg/Image"](header, 6, 8, "rgb8", 0, 24, RGB.ravel())
    data = bytes(known.serialize_ros1(message, RAW) if ros1 else known.serialize_cdr(message, RAW))
    head = image_head(data[:200], RAW, not ros1)
    assert (head.stamp, head.frame, head.encoding, head.size) == (stamp, frame, "rgb8", (8, 6))


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=80), is_ros2=st.booleans())
def test_any_bytes_give_a_head_or_one_sentence(data, is_ros2):
    with contextlib.suppress(LocusError):
        head = image_head(data, RAW, is_ros2)
        assert len(head.frame) + len(head.encoding) <= len(data)


def test_float_depth_with_nan_and_infinity_is_unknown_there(tmp_path):
    shots = room.shots(3)
    depth = shots[0].depth.astype(np.float32)
    depth[0, :4] = np.nan, np.inf, -np.inf, -1
    with bags.BagFile(tmp_path, "mcap") as bag:
        bags.colour(bag, shots)
        bags.tree(bag, shots)
        for k in range(3):
            bag.image("/camera/aligned_depth_to_color/image_raw", bags.stamp_of(k), bags.OPTICAL, "32FC1", depth)
    frame = locus.load_scene(bag.path)[0]
    assert (frame.depth[0, :4] == 0).all()
    np.testing.assert_allclose(frame.depth[1:], shots[0].depth[1:], rtol=1e-6)


def test_an_image_that_cannot_be_read_is_one_frame_of_many(tmp_path):
    shots = room.shots(3)
    with bags.BagFile(tmp_path, "ros1") as bag:
        bags.colour(bag, shots[:2])
        bags.depth(bag, shots)
        bags.tree(bag, shots)
        bag.image("/camera/color/image_raw", bags.stamp_of(2), bags.OPTICAL, "rgb8", shots[2].image, height=100_000)
    scene = locus.load_scene(bag.path)
    np.testing.assert_array_equal(scene[0].image, shots[0].image)
    with pytest.raises(FrameError, match=r"frame 1700000000\.323456789: .*80×100000 pixels in rows of 240 bytes"):
        scene[2].image  # noqa: B018
