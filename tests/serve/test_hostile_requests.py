"""Whatever strangers send is answered with 4xx and one sentence, and the service goes on."""

import io
import json
import struct
import threading
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from starlette.testclient import TestClient

from locus.serve.endpoints import app_of
from locus.serve.limits import Limits
from locus.serve.served_maps import ServedMaps
from locus.serve.service import Service
from tests.serve.conftest import INTRINSICS, depth_png, form, png


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that claims to be this large."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def jpeg(shot) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(shot.image).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def files(shot) -> dict[str, bytes]:
    whole = jpeg(shot)
    return {
        "is not a JPEG, PNG, WebP or TIFF file": b"MZ this is a program",
        "image is not a JPEG": b"",
        "%!PS is not": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 80 60\n",
        "million are allowed": bomb(5000, 5000),
        "million pixels and is refused": bomb(60000, 60000),
        "image is damaged or cut short": whole[: len(whole) // 2],
        "is not an image that can be read": b"\xff\xd8\xff" + b"\0" * 50,
        "is too small": png(np.zeros((8, 8, 3), np.uint8)),
        "image is not an image": b"RIFF\0\0\0\0WEBP" + b"junk" * 10,
    }


@pytest.mark.parametrize("number", range(9))
def test_files_that_are_no_images(client, shots, number):
    sentence, content = list(files(shots[0]).items())[number]
    answer = client.post("/localize", files={"image": content}, data=form(intrinsics=INTRINSICS))
    assert answer.status_code == 422
    if not sentence.startswith("%"):
        assert sentence in answer.json()["detail"]
    assert client.post("/retrieve", files={"image": content}).status_code == 422
    assert client.get("/health").json()["waiting"] == 0


WRONG = {
    "finite": {**INTRINSICS, "fx": float("nan")},
    "finite number": {**INTRINSICS, "k1": float("inf")},
    "focal length must be positive": {**INTRINSICS, "fx": -1},
    "Extra inputs": {**INTRINSICS, "skew": 1},
    "Field required": {"fx": 1},
    "valid number": {**INTRINSICS, "fx": "wide"},
    "Invalid JSON": "{fx: 3",
    "valid dictionary": [1, 2, 3],
    "positive and sensible": {**INTRINSICS, "width": 10**9, "height": 1},
    "greater than 0": {**INTRINSICS, "width": -5},
    "recursion": "[" * 100_000,
}


@pytest.mark.parametrize("sentence", WRONG)
def test_cameras_that_are_none(client, shots, sentence):
    answer = client.post("/localize", files={"image": png(shots[0].image)}, data=form(intrinsics=WRONG[sentence]))
    assert answer.status_code in (400, 422)
    assert sentence in answer.json()["detail"]


@pytest.mark.parametrize(
    "prior",
    [
        {"world_from_camera": [[1, 0], [0, 1]]},
        {"world_from_camera": np.zeros((4, 4)).tolist()},
        {"world_from_camera": np.diag([1, 1, -1, 1]).tolist()},
        {"world_from_camera": np.full((4, 4), np.nan).tolist()},
        {"world_from_camera": np.eye(4).tolist(), "metres": -1},
        {"world_from_camera": np.eye(4).tolist(), "environment": "elsewhere"},
        [],
    ],
)
def test_poses_that_are_none(client, shots, prior):
    fields = form(intrinsics=INTRINSICS, prior=prior)
    answer = client.post("/localize", files={"image": png(shots[0].image)}, data=fields)
    assert answer.status_code == 422
    assert answer.json()["detail"]


def test_depth_that_does_not_fit_or_is_no_depth(client, shots):
    for depth, fields, sentence in (
        (png(shots[0].image), {}, "a depth map has one channel"),
        (png(np.ones((60, 60), np.uint16)), {}, "another aspect ratio"),
        (depth_png(shots[0])[:100], {}, "cut short"),
        (depth_png(shots[0]), {"depth_scale": "0"}, "depth scale must be positive"),
        (depth_png(shots[0]), {"depth_scale": "nan"}, "depth scale must be positive"),
    ):
        sent = {"image": png(shots[0].image), "depth": depth}
        answer = client.post("/localize", files=sent, data=form(intrinsics=INTRINSICS, **fields))
        assert answer.status_code == 422
        assert sentence in answer.json()["detail"]


def test_images_that_would_keep_the_network_busy_are_refused(client):
    for size in ((3500, 3500), (32, 400_000)):
        answer = client.post("/retrieve", files={"image": png(np.zeros((*size, 3), np.uint8))})
        assert answer.status_code == 422
        assert "16384 are allowed" in answer.json()["detail"]


def test_forms_that_are_none(client):
    for options in (
        {"content": b"nonsense", "headers": {"content-type": "multipart/form-data"}},
        {"content": b"--x\r\nhalf a", "headers": {"content-type": "multipart/form-data; boundary=x"}},
        {"json": {"image": "text"}},
        {"data": {"image": "text", "intrinsics": json.dumps(INTRINSICS)}},
        {},
    ):
        answer = client.post("/localize", **options)
        assert answer.status_code in (400, 422)
        assert isinstance(answer.json()["detail"], str)


def test_what_was_sent_in_a_wrong_way_is_told_how_to_send_it(client):
    text = client.post("/localize", data={"image": "photo.jpg", "intrinsics": json.dumps(INTRINSICS)})
    assert "image: a file is expected, not text; with curl, -F NAME=@FILE" in text.json()["detail"]
    for method, path, code in (("GET", "/localize", 405), ("POST", "/locate", 404)):
        answer = client.request(method, path)
        assert answer.status_code == code
        assert answer.json()["detail"] == f"there is no {method} {path}; /docs lists what there is"


def test_other_pages_refuse_what_they_cannot_use(client, shots):
    image = png(shots[0].image)
    pair = {"image_a": image, "image_b": image}
    assert client.post("/match", files=pair, data={"rule": "magic"}).status_code == 422
    for fields in ({"x": "900", "y": "1"}, {"x": "nan", "y": "1"}, {"x": "1", "y": "1", "scale": "7"}, {"x": "1"}):
        answer = client.post("/cosegment", files={"image": image, "others": image}, data=fields)
        assert answer.status_code == 422
    answer = client.post(
        "/cosegment", files={"image": image, "others": image}, data={"x": "1", "y": "1", "min_similarity": "7"}
    )
    assert "between -1 and 1" in answer.json()["detail"]
    many = [("image", image), *(("others", image) for _ in range(17))]
    assert "16 images at once" in client.post("/cosegment", files=many, data={"x": "1", "y": "1"}).json()["detail"]
    assert client.post("/retrieve", files={"image": image}, data={"count": "0"}).status_code == 422


def test_too_many_bytes_are_refused_whether_announced_or_not(model, map_folder):
    limits = Limits(megabytes=0.05)
    with TestClient(app_of(Service(ServedMaps([map_folder], model), limits))) as client:
        large = b"\x89PNG\r\n\x1a\n" + bytes(200_000)
        announced = client.post("/retrieve", files={"image": large})
        pieces = (piece for piece in [b"--x\r\n", *([bytes(10_000)] * 20)])
        streamed = client.post("/retrieve", content=pieces, headers={"content-type": "multipart/form-data; boundary=x"})
        for answer in (announced, streamed):
            assert answer.status_code == 413
            assert answer.json()["detail"] == "the request is larger than 0.05 MB"
        assert client.get("/health").status_code == 200


NAMES = st.sampled_from(["fx", "fy", "cx", "cy", "k1", "width", "x"])
VALUES = st.recursive(st.none() | st.floats() | st.text(), lambda part: st.lists(part) | st.dictionaries(NAMES, part))
BYTES = st.binary(max_size=200)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    intrinsics=st.text() | VALUES.map(json.dumps),
    image=BYTES | BYTES.map(lambda data: b"\xff\xd8\xff" + data),
)
def test_nothing_that_is_sent_is_a_bug(client, intrinsics, image):
    answer = client.post("/localize", files={"image": image}, data={"intrinsics": intrinsics})
    assert 400 <= answer.status_code < 500
    assert answer.json()["detail"]


def test_an_answer_that_takes_too_long_is_given_up(model, map_folder, shots, monkeypatch):
    going, real = threading.Event(), model.forward

    def slow(images):
        going.wait(20)
        return real(images)

    monkeypatch.setattr(model, "forward", slow)
    with TestClient(app_of(Service(ServedMaps([map_folder], model), Limits(seconds=0.5)))) as client:
        answer = client.post("/retrieve", files={"image": png(shots[0].image)})
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert "there was no answer after 0.5 seconds" in answer.json()["detail"]
        assert client.get("/health").json()["waiting"] == 0
        going.set()
        assert client.post("/retrieve", files={"image": png(shots[0].image)}).status_code == 200
