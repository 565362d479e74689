"""The pages of the service: what each takes, and what it answers."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import FastAPI, File, Form, HTTPException, Request, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import Json

from locus import __version__
from locus.errors import LocusError
from locus.serve import answers
from locus.serve.guard import Guard
from locus.serve.openapi_page import openapi_page
from locus.serve.service import Service
from locus.serve.uploads import Intrinsics, PriorPose, calibrated_upload
from locus.tasks.cosegmentation import MIN_SIMILARITY
from locus.tasks.frame_ranking import rank_frames
from locus.tasks.placed_points import query_keypoints

EVERY = 1.0  # seconds between two looks at the maps' files
OTHERS = 16  # images that a spot is looked for in at once

NO_FILE = r"Value error, Expected UploadFile, received: <class '\w+'>"  # FastAPI's words

log = logging.getLogger("locus.serve")

ImageFile = Annotated[UploadFile, File(description="JPEG, PNG, WebP or TIFF.")]
DepthFile = Annotated[UploadFile | None, File(description="PNG or TIFF of one channel, 0 where unknown.")]
DepthScale = Annotated[float, Form(description="Units of depth per metre: 1000 for millimetres.")]
Calibration = Annotated[Json[Intrinsics], Form(description="JSON, as below.")]
Guessed = Annotated[Json[Intrinsics] | None, Form(description="JSON, as below; without it, a guess 60° wide.")]
Environment = Annotated[str | None, Form(description="Look in this environment alone. By default in all.")]


def app_of(service: Service, key: str | None = None) -> FastAPI:
    """The service as an ASGI application, which closes it when it ends; clients must send the key, if there is one."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
        watching = asyncio.create_task(_watch(service))
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.to_thread(service.close)

    app = FastAPI(
        title="LoCUS", version=__version__, description=__doc__ or "", lifespan=lifespan, docs_url=None, redoc_url=None
    )

    @app.post("/localize", response_model=answers.PoseAnswer)
    async def localize(
        image: ImageFile,
        intrinsics: Calibration,
        depth: DepthFile = None,
        depth_scale: DepthScale = 1000.0,
        prior: Annotated[
            Json[PriorPose] | None, Form(description="Where the image was probably taken: JSON, as below.")
        ] = None,
        environment: Environment = None,
        min_confidence: Annotated[float | None, Form(description="Less is no answer: docs/maps.md.")] = None,
    ) -> dict[str, Any]:
        """Where an image was taken, or that it was taken elsewhere."""
        world, near = service.part(environment), None if prior is None else prior.prior()
        files = await _read(image, depth)
        with service.admitted(1):
            return await service.answer(
                lambda: [calibrated_upload("image", files[0], intrinsics, files[1], depth_scale)],
                lambda images, features, keypoints: service.localized(
                    world, images[0], features[0], keypoints, near, min_confidence
                ),
                lambda images: query_keypoints(world, images[0].image),
            )

    @app.post("/retrieve", response_model=answers.Retrieved)
    async def retrieve(
        image: ImageFile,
        count: Annotated[int, Form(ge=1, le=1000, description="Of frames.")] = 10,
        environment: Environment = None,
    ) -> dict[str, Any]:
        """The frames of the maps that show most of what an image shows."""
        world = service.part(environment)
        (file,) = await _read(image)
        with service.admitted(1):
            return await service.answer(
                lambda: [calibrated_upload("image", file)],
                lambda images, features: rank_frames(world, features[0], count).described(world),
            )

    @app.post("/match", response_model=answers.Matched)
    async def match(
        image_a: ImageFile,
        image_b: ImageFile,
        intrinsics_a: Guessed = None,
        intrinsics_b: Guessed = None,
        depth_a: DepthFile = None,
        depth_b: DepthFile = None,
        depth_scale: DepthScale = 1000.0,
        rule: Annotated[Literal["points", "mutual", "paper"], Form(description="docs/matching.md.")] = "points",
    ) -> dict[str, Any]:
        """What two images share, and how the camera moved between them."""
        a, b, of_a, of_b = await _read(image_a, image_b, depth_a, depth_b)
        with service.admitted(2):
            return await service.answer(
                lambda: [
                    calibrated_upload("image_a", a, intrinsics_a, of_a, depth_scale),
                    calibrated_upload("image_b", b, intrinsics_b, of_b, depth_scale),
                ],
                lambda images, features: service.matched(images, features, rule),
            )

    @app.post("/cosegment", response_model=answers.Cosegmented)
    async def cosegment(
        image: ImageFile,
        others: Annotated[list[UploadFile], File(description=f"Up to {OTHERS} images to look in.")],
        x: Annotated[float, Form(description="The pixel, from the image's left edge.")],
        y: Annotated[float, Form(description="The pixel, from the image's top.")],
        min_similarity: Annotated[float, Form(description="The least cosine of a pixel.")] = MIN_SIMILARITY,
        scale: Annotated[int, Form(description="Which of the model's scales, counted from 0.")] = 0,
    ) -> dict[str, Any]:
        """The spot at one pixel of an image, in other images."""
        if len(others) > OTHERS:
            raise HTTPException(422, f"a spot is looked for in {OTHERS} images at once, not in {len(others)}")
        files = await _read(image, *others)
        names = ["image", *(other.filename or f"others {row}" for row, other in enumerate(others))]
        with service.admitted(len(files)):
            return await service.answer(
                lambda: [calibrated_upload(name, file) for name, file in zip(names, files, strict=True)],
                lambda images, features: service.cosegmented(images, features, (x, y), min_similarity, scale),
            )

    @app.get("/maps")
    def maps() -> answers.Maps:
        """The maps that are served."""
        rows = [
            answers.ServedMap(
                folder=folder.name,
                environments=list(world.environments),
                landmarks=len(world),
                frames=len(world.frames),
                points=0 if world.points is None else int(world.points.count.sum()),
            )
            for folder, world in service.maps.loaded.items()
        ]
        radii, problem = list(service.model.radii), service.maps.problem
        return answers.Maps(model=service.model.name, radii=radii, maps=rows, problem=problem)

    @app.get("/health")
    def health(response: Response) -> answers.Health:
        """Whether the service is well: 503 if it is not."""
        well = service.batcher.alive
        response.status_code = 200 if well else 503
        status, problem = "ok" if well else "the network's thread has ended", service.maps.problem
        return answers.Health(status=status, waiting=service.waiting, problem=problem)

    @app.get("/metrics", response_class=Response)
    def metrics() -> Response:
        """For Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/docs", response_class=HTMLResponse)
    def page() -> HTMLResponse:
        """All of this, for people."""
        return HTMLResponse(openapi_page(app.openapi(), {"intrinsics": Intrinsics, "prior": PriorPose}))

    @app.exception_handler(LocusError)
    async def refused(request: Request, error: LocusError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        wrong = [f"{'.'.join(map(str, each['loc'][1:])) or 'the request'}: {each['msg']}" for each in error.errors()]
        sentence = re.sub(NO_FILE, "a file is expected, not text; with curl, -F NAME=@FILE", "; ".join(wrong[:3]))
        return JSONResponse({"detail": sentence}, 422)

    @app.exception_handler(404)
    @app.exception_handler(405)
    async def elsewhere(request: Request, error: HTTPException) -> JSONResponse:
        sentence = f"there is no {request.method} {request.url.path}; /docs lists what there is"
        return JSONResponse({"detail": sentence}, error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def bug(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": "this is a bug; the service's log says more"}, 500)

    app.add_middleware(Guard, service.limits, key, service.metrics, frozenset(app.openapi()["paths"]))
    return app


async def _read(*files: UploadFile | None) -> Sequence[Any]:
    """The bytes of files, None of those that were not sent."""
    return [None if file is None else await file.read() for file in files]


async def _watch(service: Service) -> None:
    """Serve maps as they are on disk."""
    while True:
        await asyncio.sleep(EVERY)
        try:
            fresh = await asyncio.to_thread(service.maps.refresh)
        except Exception:  # the old maps are served on, whatever it is
            log.exception("a map cannot be read")
            fresh = False
        if fresh is None:
            continue
        service.metrics.reloads.labels("served" if fresh else "refused").inc()
        service.metrics.landmarks.set(len(service.maps.world))
        log.warning("A map has changed: %s", service.maps.problem or "the new one is served")
