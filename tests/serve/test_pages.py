"""Every page of the service says what the functions behind it say."""

import base64
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from locus.features.dense import scene_features
from locus.landmarks import LandmarkMap
from locus.serve import endpoints
from locus.serve.endpoints import app_of
from locus.serve.served_maps import ServedMaps
from locus.serve.service import Service
from locus.serve.uploads import Intrinsics, calibrated_upload
from locus.tasks.cosegmentation import cosegment, feature_at
from locus.tasks.frame_ranking import rank_frames
from locus.tasks.matched_pair import MatchedPair
from locus.tasks.matching import Rule
from locus.tasks.named_images import A_GUESS, CalibratedImage
from tests.landmarks import places
from tests.scenes import room
from tests.serve.conftest import INTRINSICS, depth_png, form, png


def ask(client, shot, depth=False, **fields):
    files = {"image": ("image.png", png(shot.image))} | ({"depth": ("depth.png", depth_png(shot))} if depth else {})
    return client.post("/localize", files=files, data=form(**{"intrinsics": INTRINSICS, **fields}))


def same(answer, location):
    assert answer["environment"] == location.environment
    for name in ("world_from_camera", "covariance"):
        value = getattr(location, name)
        assert answer[name] == (None if value is None else value.tolist())
    assert answer["probability"] == location.probability
    assert answer["confidence"] == location.confidence
    assert answer["reason"] == location.reason


@pytest.mark.parametrize("depth", [False, True], ids=["RGB", "RGB-D"])
def test_poses_are_those_of_the_map_to_the_bit(client, world, model, shots, depth):
    for shot in shots[:4]:
        stored = (shot.depth * 1000).round().astype(np.float32) / np.float32(1000)
        expected = world.localize(model, shot.image, places.CAMERA, stored if depth else None)
        answer = ask(client, shot, depth)
        assert answer.status_code == 200
        assert expected.here
        same(answer.json(), expected)


def test_many_at_once_get_their_own_answers(client, service, world, model, shots):
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda shot: ask(client, shot).json(), shots))
    for shot, answer in zip(shots, answers, strict=True):
        same(answer, world.localize(model, shot.image, places.CAMERA))
    assert service.waiting == 0


def test_what_needs_no_features_is_done_while_the_network_is_busy(client, service, shots, monkeypatch):
    found, forward = threading.Event(), service.model.forward

    def detect(world, image):
        found.set()
        return None

    def slow(images):
        assert found.wait(10)
        return forward(images)

    monkeypatch.setattr(endpoints, "query_keypoints", detect)
    monkeypatch.setattr(service.model, "forward", slow)
    assert ask(client, shots[0]).json()["environment"] == "room"


def test_a_calibration_of_another_image_is_doubted(client, shots):
    assert ask(client, shots[0]).json()["doubt"] == ""
    data = form(intrinsics=INTRINSICS | {"cx": 2 * room.CX, "cy": 2 * room.CY})
    answer = client.post("/localize", files={"image": png(shots[0].image)}, data=data)
    assert "the principal point is far off-centre" in answer.json()["doubt"]


def test_an_image_of_elsewhere_is_not_here_and_says_why(client):
    noise = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    answer = client.post("/localize", files={"image": png(noise)}, data=form(intrinsics=INTRINSICS)).json()
    assert answer["environment"] is answer["world_from_camera"] is answer["covariance"] is answer["probability"] is None
    assert answer["reason"].startswith("not here")


def test_a_prior_pose_confirms_or_refuses(client, shots):
    pose = shots[0].world_from_camera
    near = ask(client, shots[0], True, prior={"world_from_camera": pose.tolist(), "metres": 1.0}).json()
    assert near["environment"] == "room"
    away = pose.copy()
    away[0, 3] += 3
    off = ask(client, shots[0], True, prior={"world_from_camera": away.tolist(), "metres": 1.0}).json()
    assert off["environment"] is off["world_from_camera"] is None
    assert "from the prior pose" in off["reason"]
    away[0, 3] += 100
    nowhere = ask(client, shots[0], True, prior={"world_from_camera": away.tolist()}).json()
    assert nowhere["reason"].startswith("not here: no frame of the map was taken within")


def test_a_lens_is_straightened_as_opencv_does(shots):
    lens = {"k1": -0.2, "k2": 0.05, "p1": 0.01, "p2": -0.005, "k3": 0.01}
    read = calibrated_upload("image", png(shots[0].image), Intrinsics(**INTRINSICS, **lens))
    matrix = np.array([[room.FX, 0, room.CX - 0.5], [0, room.FY, room.CY - 0.5], [0, 0, 1]])
    expected = cv2.undistort(shots[0].image, matrix, np.array([lens[name] for name in ("k1", "k2", "p1", "p2", "k3")]))
    assert np.abs(read.image.astype(int) - expected).max() <= 3  # both round, each in its own place
    assert np.abs(read.image.astype(int) - shots[0].image).max() > 20


def test_a_calibration_of_another_size_is_carried_to_the_image(client, shots):
    twice = {name: 2 * value for name, value in INTRINSICS.items()} | {"width": 160, "height": 120}
    assert ask(client, shots[0], intrinsics=twice).json() == ask(client, shots[0]).json()
    refused = ask(client, shots[0], intrinsics=twice | {"width": 200})
    assert (refused.status_code, "another aspect ratio" in refused.json()["detail"]) == (422, True)


def test_frames_are_ranked_as_the_map_ranks_them(client, world, model, shots):
    answer = client.post("/retrieve", files={"image": png(shots[3].image)}, data={"count": "5"}).json()
    assert answer == rank_frames(world, model.features(shots[3].image), 5).described(world)
    assert answer["frames"][0]["frame"] == "000003"


def test_two_images_are_matched_as_elsewhere(client, model, shots):
    a, b = shots[:2]
    files = {"image_a": png(a.image), "image_b": png(b.image), "depth_a": depth_png(a)}
    answer = client.post("/match", files=files, data=form(intrinsics_a=INTRINSICS, rule="mutual")).json()
    images = [
        CalibratedImage("image_a", a.image, places.CAMERA, depth=(a.depth * 1000).round().astype(np.float32) / 1000),
        CalibratedImage("image_b", b.image, A_GUESS.of(80, 60), guessed=True),
    ]
    expected = MatchedPair.of(model, *images, Rule()).described()
    assert answer["matches"] == expected["matches"]
    assert answer["pose"] == expected["pose"]
    assert [image["camera_guessed"] for image in answer["images"]] == [False, True]


def test_a_spot_is_found_in_other_images(client, model, shots, tmp_path):
    files = [("image", ("q.png", png(shots[0].image)))]
    files += [("others", (f"{shot.name}.png", png(shot.image))) for shot in shots[1:4]]
    answer = client.post("/cosegment", files=files, data={"x": "40", "y": "30", "min_similarity": "0.9"}).json()
    seen = scene_features(model, places.scene(shots[1:4]), tmp_path)
    seen = replace(seen, features=torch.stack([model.features(shot.image) for shot in shots[1:4]], dim=1))
    query = feature_at(model.features(shots[0].image)[0], 40, 30, (80, 60))
    for found, shot, region in zip(answer["found"], shots[1:4], cosegment(query, seen, 0.9), strict=True):
        mask = np.array(Image.open(io.BytesIO(base64.b64decode(found["mask"]))))
        assert found["name"] == f"{shot.name}.png"
        assert found["score"] == pytest.approx(region.score, abs=1e-6)
        assert np.array_equal(mask == 255, region.mask)


def test_several_maps_are_one_and_an_environment_can_be_asked_for(model, world, shots, tmp_path):
    folders = [world.save(tmp_path / "a"), replace(world, environments=("hall",)).save(tmp_path / "b")]
    with TestClient(app_of(Service(ServedMaps(folders, model)))) as client:
        listed = client.get("/maps").json()
        assert [(each["folder"], each["environments"]) for each in listed["maps"]] == [("a", ["room"]), ("b", ["hall"])]
        for name in ("room", "hall"):
            answer = ask(client, shots[0], environment=name).json()
            assert answer["environment"] == name
        assert ask(client, shots[0]).json()["environment"] in ("room", "hall")


def test_what_is_counted_can_be_read_by_prometheus(client, shots, world):
    for _ in range(3):
        ask(client, shots[0])
    client.get("/nowhere")
    values = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }
    assert values["locus_requests_total", ("path", "/localize"), ("status", "200")] == 3
    assert values["locus_requests_total", ("path", "other"), ("status", "404")] == 1
    assert values["locus_batch_images_count",] == 3
    assert values["locus_landmarks",] == len(world)
    assert values["locus_images_waiting",] == 0
    assert values["locus_network_seconds_total",] > 0
    assert values["locus_answering_seconds_total",] > 0


def test_the_page_names_every_path_and_field_and_needs_nothing_from_outside(client):
    page, schema = client.get("/docs").text, client.get("/openapi.json").json()
    for path in schema["paths"]:
        assert f" {path}</h2>" in page
    for name in (
        "intrinsics",
        "depth_scale",
        "prior",
        "min_similarity",
        "covariance",
        "reason",
        "k6",
        "world_from_camera",
    ):
        assert f"<dt>{name}</dt>" in page
    assert "<dd></dd>" not in page
    assert "http://" not in page
    assert "https://" not in page


def test_it_says_that_it_is_well_or_not(client, service):
    assert client.get("/health").json() == {"status": "ok", "waiting": 0, "problem": ""}
    service.batcher.close()
    assert client.get("/health").status_code == 503


def test_without_the_key_only_the_health_is_told(model, map_folder, shots):
    with TestClient(app_of(Service(ServedMaps([map_folder], model)), "correct horse")) as client:
        assert client.get("/health").status_code == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "correct horse"}):
            refused = client.get("/maps", headers=headers)
            assert refused.status_code == 401
            assert "Authorization: Bearer KEY" in refused.json()["detail"]
            assert client.post("/localize", files={"image": b""}, headers=headers).status_code == 401
        client.headers["Authorization"] = "Bearer correct horse"
        assert client.get("/maps").status_code == 200
        assert ask(client, shots[0]).status_code == 200


def test_when_the_queue_is_full_it_says_when_to_come_back(client, service, shots):
    service.waiting = service.limits.queue
    refused = ask(client, shots[0])
    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) >= 1
    assert "64 images wait already" in refused.json()["detail"]
    service.waiting = 0
    assert ask(client, shots[0]).status_code == 200


def test_a_changed_map_is_served_and_a_damaged_one_is_not(map_folder, model, world):
    maps = ServedMaps([map_folder], model)
    assert maps.refresh() is None
    replace(world, environments=("hall",)).save(map_folder)
    assert maps.refresh() is None  # it may still be changing
    assert maps.refresh() is True
    before = maps.world
    assert before.environments == ("hall",)
    (map_folder / "map.safetensors").write_bytes(b"half a map")
    assert [maps.refresh(), maps.refresh(), maps.refresh()] == [None, False, None]
    assert maps.world is before
    assert "is not a whole map file" in maps.problem
    world.save(map_folder)
    assert [maps.refresh(), maps.refresh()] == [None, True]
    assert (maps.world.environments, maps.problem) == (("room",), "")


def test_a_map_of_another_model_is_not_served(map_folder, model, world):
    maps = ServedMaps([map_folder], model)
    replace(world, model="another").save(map_folder)
    assert [maps.refresh(), maps.refresh()] == [None, False]
    assert "build the map again" in maps.problem
    assert isinstance(maps.world, LandmarkMap)
    assert maps.world.model == model.fingerprint
