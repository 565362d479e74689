"""What the service counts and measures, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """One registry a service, so that two in one process do not add up."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "locus_requests", "Requests, by path and status of the answer", ["path", "status"], registry=registry
        )
        self.seconds = Histogram(
            "locus_request_seconds",
            "From a request's headers to its answer",
            ["path"],
            registry=registry,
            buckets=SECONDS,
        )
        self.waiting = Gauge("locus_images_waiting", "Images admitted and not answered yet", registry=registry)
        self.batch = Histogram(
            "locus_batch_images", "Images in one pass of the network", registry=registry, buckets=(1, 2, 4, 8, 16, 32)
        )
        self.network = Counter("locus_network_seconds", "Time in the network", registry=registry)
        self.answering = Counter("locus_answering_seconds", "Time in what follows the network", registry=registry)
        self.reloads = Counter(
            "locus_map_reloads", "Maps read again, or not because they are damaged", ["result"], registry=registry
        )
        self.landmarks = Gauge("locus_landmarks", "Landmarks in all maps", registry=registry)

    def passed(self, images: int, seconds: float) -> None:
        """One pass of the network."""
        self.batch.observe(images)
        self.network.inc(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)
