"""Images of instances, from an engine with a registry of ours, and from one that fails."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import docker
import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox.docker import connect
from pytest_llmeval.sandbox.swebench.images import Image
from pytest_llmeval.sandbox.swebench.images import ImageProvider
from pytest_llmeval.sandbox.swebench.images import Missing
from pytest_llmeval.sandbox.swebench.images import MissingImages
from support.image_registry import ImageRegistry
from support.image_registry import image_registry

_ROW = "swebench/sweb.eval.x86_64.mini_1776_calc-7:latest"


class _Engine:
    """An engine whose images take a gigabyte each, and whose pulls go as `pulls` have it."""

    def __init__(
        self, *pulls: Any, architecture: str = "x86_64", image_arch: str = "amd64"
    ) -> None:
        self.pulls = list(pulls)
        self.image_arch = image_arch
        self.here: list[str] = []
        self.events: list[str] = []
        self.images = self
        self.api = self
        self._architecture = architecture

    def info(self) -> dict[str, str]:
        return {"Architecture": self._architecture, "DockerRootDir": "/no/such/folder"}

    def get(self, reference: str) -> Any:
        if reference not in self.here:
            raise docker.errors.ImageNotFound("no such image")
        attributes = {"Architecture": self.image_arch, "RepoDigests": [], "Size": 1_000_000_000}
        return SimpleNamespace(id=f"sha256:{reference}", attrs=attributes)

    def pull(self, repository: str, tag: str, stream: bool, decode: bool) -> Iterator[Any]:
        assert stream
        assert decode
        self.events.append(f"pull {repository}")
        outcome = self.pulls.pop(0) if self.pulls else None
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is not None:
            yield {"status": "Pulling"}
            yield {"error": outcome}
            return
        self.here.append(f"{repository}:{tag}")
        yield {"status": "Downloaded"}

    def remove(self, reference: str) -> None:
        self.events.append(f"remove {reference.rpartition(':')[0]}")
        self.here.remove(reference)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were waited for registries, without waiting."""
    waits: list[float] = []

    monkeypatch.setattr(ImageProvider, "_wait", lambda self, seconds: waits.append(seconds))
    return waits


def _refusal(status: int, text: str, **headers: str) -> docker.errors.APIError:
    response = SimpleNamespace(status_code=status, headers=headers, url="", reason=text)
    return docker.errors.APIError(text, response=response, explanation=text)


def test_an_image_that_is_here_is_not_pulled() -> None:
    engine = _Engine()
    engine.here = [_ROW]
    image = ImageProvider(engine).obtain(_ROW)
    assert image == Image(_ROW, f"sha256:{_ROW}", "amd64", f"sha256:{_ROW}")
    assert engine.events == []


@pytest.mark.parametrize(
    ("refusals", "seconds"),
    [
        (["toomanyrequests: You have reached your pull rate limit."], [4.0]),
        (["toomanyrequests: retry-after: 2.5s, allowed: 44000/minute"], [2.5]),
        (["toomanyrequests: retry-after: 301.8µs, allowed: 44000/minute"], [301.8e-6]),
        ([_refusal(429, "slow down", **{"Retry-After": "17"})], [17.0]),
        (
            [_refusal(503, "unavailable"), "received unexpected HTTP status: 502 Bad Gateway"],
            [4, 8],
        ),
        (["net/http: TLS handshake timeout"], [4.0]),
    ],
    ids=["429", "go", "micro", "header", "50x", "timeout"],
)
def test_a_refused_pull_is_repeated(waits: list[float], refusals: Any, seconds: Any) -> None:
    engine = _Engine(*refusals)
    assert isinstance(ImageProvider(engine).obtain(_ROW), Image)
    assert waits == pytest.approx(seconds)


def test_a_registry_that_refuses_for_long_is_given_up(waits: list[float]) -> None:
    engine = _Engine(*["toomanyrequests: rate limit"] * 20)
    missing = ImageProvider(engine).obtain(_ROW)
    assert isinstance(missing, Missing)
    assert "rate limit (6 attempts" in missing.reason
    assert waits == [4, 8, 16, 32, 64]
    engine = _Engine(_refusal(429, "no", **{"Retry-After": "21600"}))
    missing = ImageProvider(engine).obtain(_ROW)
    assert isinstance(missing, Missing)
    assert missing.reason.endswith("(1 attempts, the next after 21600 s)")
    assert len(waits) == 5


@pytest.mark.parametrize(
    "complaint",
    [
        "manifest for swebench/x:latest not found: manifest unknown",
        "pull access denied for x, repository does not exist",
        "no matching manifest for linux/amd64 in the manifest list entries",
    ],
)
def test_an_image_that_does_not_exist_is_missing_at_once(
    waits: list[float], complaint: str
) -> None:
    missing = ImageProvider(_Engine(complaint)).obtain(_ROW)
    assert missing == Missing(f"image {_ROW} is not pulled: {complaint}")
    assert waits == []


def test_another_architecture_is_missing_and_not_emulated() -> None:
    engine = _Engine(architecture="aarch64")
    missing = ImageProvider(engine).obtain(_ROW)
    assert missing == Missing(f"image {_ROW} is for amd64, and this engine runs arm64")
    assert engine.here == []
    engine.here = [_ROW]  # Here before: it stays.
    assert isinstance(ImageProvider(engine, pull=False).obtain(_ROW), Missing)
    assert engine.here == [_ROW]


def test_a_full_disk_takes_the_place_of_unused_images(waits: list[float]) -> None:
    full = "write /var/lib/docker/tmp/x: no space left on device"
    engine = _Engine(None, full, None, full)
    provider = ImageProvider(engine)
    first = provider.obtain("a:1")
    assert isinstance(first, Image)
    provider.release(first)
    assert isinstance(provider.obtain("b:1"), Image)
    assert engine.events == ["pull a", "pull b", "remove a", "pull b"]
    # What is in use is not removed.
    missing = provider.obtain("c:1")
    assert missing == Missing(f"image c:1 is not pulled: {full}")
    assert engine.here == ["b:1"]


def test_a_disk_without_room_refuses_a_pull() -> None:
    engine = _Engine()
    provider = ImageProvider(engine, free_gb=20, free_space=lambda: 12.34)
    assert provider.obtain("a:1") == Missing(
        "image a:1 is not pulled: 12.3 GB are free on the engine's disk, and 20 GB are kept"
    )
    assert engine.events == []


def test_images_of_the_run_are_removed_within_their_space() -> None:
    engine = _Engine()
    engine.here = ["before:1"]
    provider = ImageProvider(engine, images_gb=2)
    for name in ("a:1", "b:1", "before:1", "a:1", "c:1", "d:1"):
        image = provider.obtain(name)
        assert isinstance(image, Image)
        provider.release(image)
    removed = [event for event in engine.events if event.startswith("remove")]
    # b was unused longest when c came, although a had come first.
    assert removed == ["remove b", "remove a"]
    assert engine.here == ["before:1", "c:1", "d:1"]


def test_a_pull_waits_for_images_in_use() -> None:
    engine = _Engine()
    provider = ImageProvider(engine, images_gb=1)
    first = provider.obtain("a:1")
    assert isinstance(first, Image)
    obtained: list[Any] = []
    thread = threading.Thread(target=lambda: obtained.append(provider.obtain("b:1")))
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    provider.release(first)
    thread.join(10)
    assert isinstance(obtained[0], Image)
    assert engine.here == ["b:1"]
    # And gives up when all is closed.
    thread = threading.Thread(target=lambda: obtained.append(provider.obtain("c:1")))
    thread.start()
    provider.close()
    thread.join(10)
    assert obtained[1] == Missing("image c:1 is not pulled: closed")


def test_nothing_is_pulled_before_it_is_wanted() -> None:
    engine = _Engine()
    ensured = ImageProvider(engine).ensure(["a:1", "b:1", "c:1"], lambda name: name)
    assert engine.events == []
    assert next(ensured)[0] == "a:1"
    assert engine.events == ["pull a"]


def test_an_engine_that_fails_is_no_exception() -> None:
    engine = _Engine()
    engine.get = lambda reference: (_ for _ in ()).throw(OSError(111, "Connection refused"))  # type: ignore[assignment,method-assign]
    assert ImageProvider(engine).obtain("a:1") == Missing("image a:1: Connection refused")


def test_templates() -> None:
    provider = ImageProvider(
        _Engine(), ["official", "epoch", "reg.example:5000/{id_1776}-{arch}:{tag}"]
    )
    assert provider.references("swebench/sweb.eval.x86_64.django_1776_django-11099:v2") == [
        "swebench/sweb.eval.x86_64.django_1776_django-11099:v2",
        "ghcr.io/epoch-research/swe-bench.eval.x86_64.django__django-11099:latest",
        "reg.example:5000/django_1776_django-11099-x86_64:v2",
    ]
    assert provider.references("mine:1") == ["mine:1"]
    arm = ImageProvider(_Engine(architecture="aarch64"), ["epoch"])
    assert arm.references(_ROW) == [
        "ghcr.io/epoch-research/swe-bench.eval.arm64.mini__calc-7:latest"
    ]
    assert isinstance(arm.obtain("mine:1"), Missing)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("epoc", "images 'epoc'"),
        ("x/{instance}", "no field 'instance'"),
        ("x/{id", "images 'x/{id': "),
        ("x/{}", "no field ''"),
    ],
)
def test_a_wrong_template_is_one_line(template: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ImageProvider(_Engine(), [template])
    assert "\n" not in str(caught.value)
    assert message in str(caught.value)


def test_what_a_run_would_pull() -> None:
    engine = _Engine()
    engine.here = ["a:1"]
    names = ["a:1", "b:1", "b:1", "c:1"]
    assert ImageProvider(engine).missing(names) == MissingImages(3, 2, pytest.approx(0.8))
    private = ImageProvider(engine, ["reg.example/{id}"])
    assert private.missing([_ROW]) == MissingImages(1, 1, None)
    assert engine.events == []


# The same with a real engine, and a registry on this machine.


@pytest.fixture
def registry() -> Iterator[ImageRegistry]:
    with image_registry() as registry:
        yield registry


@pytest.fixture
def client() -> Iterator[Any]:
    try:
        client = connect()
    except ConfigError as error:
        if os.environ.get("LLMEVAL_REQUIRE_SANDBOX"):
            pytest.fail(f"LLMEVAL_REQUIRE_SANDBOX is set, and {error}", pytrace=False)
        pytest.skip(str(error))
    yield client
    client.close()


@pytest.fixture
def provider(client: Any, registry: ImageRegistry) -> Iterator[ImageProvider]:
    """Images of the registry only."""
    yield ImageProvider(client, [f"{registry.address}/{{id}}:{{tag}}"], free_gb=0)
    for image in client.images.list():
        for tag in image.tags:
            if tag.startswith(registry.address):
                client.images.remove(tag)


_CALC = "swebench/sweb.eval.x86_64.mini_1776_calc-1:latest"


def _architecture(client: Any) -> str:
    machine = client.info()["Architecture"]
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def test_an_engine_pulls_once(
    client: Any, provider: ImageProvider, registry: ImageRegistry
) -> None:
    reference = registry.add("mini__calc-1", architecture=_architecture(client))
    assert provider.missing([_CALC]) == MissingImages(1, 1, None)
    assert registry.requests == []
    image = provider.obtain(_CALC)
    assert isinstance(image, Image)
    assert image.reference == reference
    assert image.digest == registry.digests[reference]
    assert image.id != image.digest
    assert provider.find(_CALC) == image
    assert provider.missing([_CALC]) == MissingImages(1, 0, None)
    requests = list(registry.requests)
    assert provider.obtain(_CALC) == image
    assert registry.requests == requests


def test_an_engine_is_refused_and_pulls_again(
    client: Any, provider: ImageProvider, registry: ImageRegistry, waits: list[float]
) -> None:
    registry.add("mini__calc-1", architecture=_architecture(client))
    # The engine itself makes a second request where the first is refused.
    registry.answers = [
        *[(429, "retry-after: 1.5s, allowed: 44000/minute")] * 2,
        *[(429, "You have reached your pull rate limit.")] * 2,
        *[(503, "unavailable")] * 2,
    ]
    assert isinstance(provider.obtain(_CALC), Image)
    assert waits == [1.5, 8.0, 16.0]
    assert registry.answers == []


def test_an_engine_has_no_such_image(provider: ImageProvider, registry: ImageRegistry) -> None:
    missing = provider.obtain(_CALC)
    assert isinstance(missing, Missing)
    assert missing.reason.startswith(f"image {registry.address}/mini__calc-1:latest is not pulled")
    assert "unknown" in missing.reason


def test_an_engine_pulls_another_architecture_and_gives_it_back(
    client: Any, provider: ImageProvider, registry: ImageRegistry
) -> None:
    other = "arm64" if _architecture(client) == "amd64" else "amd64"
    reference = registry.add("mini__calc-1", architecture=other)
    missing = provider.obtain(_CALC)
    assert isinstance(missing, Missing)
    assert reference in missing.reason
    assert reference not in [tag for image in client.images.list() for tag in image.tags]
