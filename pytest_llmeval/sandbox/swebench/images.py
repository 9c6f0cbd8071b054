"""Images of instances: here, or pulled while others are in use, within the space there is."""

from __future__ import annotations

import re
import shutil
import string
import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import TypeVar

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.sandbox.docker import docker_package
from pytest_llmeval.sandbox.docker import reason

_Input = TypeVar("_Input")

TEMPLATES = {
    "official": "{image}",
    "epoch": "ghcr.io/epoch-research/swe-bench.eval.{arch}.{id}:latest",
}
"""Templates by name. Epoch's images are smaller (30 GiB for Verified, https://epoch.ai)."""

FIELDS = ("image", "id", "id_1776", "arch", "tag")
"""Fields of a template: the row's reference as it is, the instance's id (`django__django-11099`),
the same as the official names have it (`django_1776_django-11099`), the engine's architecture
(`x86_64`, `arm64`), and the tag of the row's reference."""

_GIGABYTES = {"{image}": 0.4, TEMPLATES["epoch"]: 0.064}
"""Gigabytes that an image takes on average: 130 to 240 GB and 30 GiB for the 500 of Verified."""

_NAME = re.compile(r"sweb\.eval\.(?P<arch>x86_64|arm64)\.(?P<id>[^:@]+)(?::(?P<tag>[^@]+))?$")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The engine's names of machines, by which it does not name the architecture of an image."""

_PULLS = 6
"""Pulls of one image at most."""
_PATIENCE = 900.0
"""Seconds that the waiting between pulls of an image may take together."""
_FIRST_WAIT = 4.0
_AGAIN = re.compile(
    r"toomanyrequests|too many requests|\b(?:429|500|502|503|504)\b|timeout|timed out|"
    r"connection (?:reset|refused)|unexpected EOF|temporary failure",
    re.IGNORECASE,
)
_RETRY_AFTER = re.compile(r"retry-after:\s*(?P<number>[\d.]+)\s*(?P<unit>[a-zµμ]*)", re.IGNORECASE)
_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "m": 60.0, "h": 3600.0}
_ENGINE_FAILS = 500
_FULL = "no space left on device"


@dataclass(frozen=True, slots=True)
class Image:
    """An image that the engine has."""

    reference: str
    digest: str
    """The registry's digest; the image's id where it comes from no registry."""
    arch: str
    """As the engine writes it: amd64, arm64."""
    id: str


@dataclass(frozen=True, slots=True)
class Missing:
    """An image that cannot be had."""

    reason: str
    """One line."""


@dataclass(frozen=True, slots=True)
class MissingImages:
    """What a run would pull."""

    images: int
    """Different images of the run."""
    missing: int
    """Those that are not here."""
    gigabytes: float | None
    """Space that the missing take, by the averages published; None for other registries."""


class ImageProvider:
    """Finds images of instances with the engine of `client`, and pulls those that are not here.

    `templates` are tried in this order, first all locally: a name of `TEMPLATES`, or a reference
    with `FIELDS` in braces. A pull must leave `free_gb` on the engine's disk, and the images that
    this provider pulled must not take more than `images_gb`; for that, those not in use are
    removed again, the longest unused first. Images that were here before are never removed.
    """

    def __init__(
        self,
        client: Any,
        templates: Sequence[str] = ("official",),
        *,
        pull: bool = True,
        free_gb: float = 20.0,
        images_gb: float | None = None,
        free_space: Callable[[], float | None] | None = None,
    ) -> None:
        self._client = client
        self._templates = [_template(text) for text in templates]
        self._pull_allowed = pull
        self._free_gb = free_gb
        self._images_gb = images_gb
        engine = client.info()
        self._arch = _architecture(engine.get("Architecture", ""))
        self._free = free_space or _free_space(engine.get("DockerRootDir", ""))
        self._pulled: dict[str, float] = {}
        """Gigabytes of the images that this provider pulled, the longest unused first."""
        self._in_use: dict[str, int] = {}
        self._changed = threading.Condition()
        self._stopped = threading.Event()

    def references(self, image: str) -> list[str]:
        """Return references at which an instance's image may be, given that of its row."""
        name = _NAME.search(image)
        id_1776 = name["id"] if name else ""
        values = {
            "image": image,
            "id": id_1776.replace("_1776_", "__"),
            "id_1776": id_1776,
            "arch": {"amd64": "x86_64"}.get(self._arch, self._arch),
            "tag": (name["tag"] if name else None) or "latest",
        }
        # A row's reference of another form fills no other field than the first.
        usable = [text for text in self._templates if name or text == "{image}"]
        return [text.format_map(values) for text in usable]

    def find(self, image: str) -> Image | Missing:
        """Return the image of a row's reference `image`, if it is here."""
        references = self.references(image)
        if not references:
            return Missing(f"image {image}: its name has no instance id to fill the templates with")
        wrong = None
        for reference in references:
            local = self._local(reference)
            if isinstance(local, Image):
                return local
            wrong = wrong or local
        return wrong or Missing(f"no image {' or '.join(references)} here")

    def ensure(
        self, inputs: Iterable[_Input], image_of: Callable[[_Input], str]
    ) -> Iterator[tuple[_Input, Image | Missing]]:
        """Each of `inputs` with its image, which is pulled where it is not here.

        Nothing is pulled before the caller takes the next: the caller decides how far ahead. An
        image is in use until `release`.
        """
        for value in inputs:
            yield value, self.obtain(image_of(value))

    def obtain(self, image: str) -> Image | Missing:
        """Return the image of a row's reference, pulled if necessary, in use until `release`."""
        docker = docker_package()
        try:
            obtained = self._obtained(image)
        except (docker.errors.DockerException, OSError) as error:
            return Missing(f"image {image}: {reason(error)}")
        if isinstance(obtained, Image):
            with self._changed:
                self._in_use[obtained.reference] = self._in_use.get(obtained.reference, 0) + 1
                if obtained.reference in self._pulled:
                    self._pulled[obtained.reference] = self._pulled.pop(obtained.reference)
        return obtained

    def release(self, image: Image) -> None:
        """Allow to remove an image again."""
        with self._changed:
            self._in_use[image.reference] -= 1
            self._changed.notify_all()

    def missing(self, images: Iterable[str]) -> MissingImages:
        """Return what a run with these references of rows would pull; no registry is queried."""
        different = dict.fromkeys(images)
        missing = sum(isinstance(self.find(image), Missing) for image in different)
        average = _GIGABYTES.get(self._templates[0])
        return MissingImages(
            len(different), missing, None if average is None else average * missing
        )

    def close(self) -> None:
        """Give up waiting for registries and for space."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()

    def _obtained(self, image: str) -> Image | Missing:
        local = self.find(image)
        references = self.references(image)
        if isinstance(local, Image) or not references:
            return local
        if not self._pull_allowed:
            return Missing(f"{local.reason}, and images are not pulled")
        reasons = []
        for reference in references:
            pulled = self._pulled_from(reference)
            if isinstance(pulled, Image):
                return pulled
            reasons.append(pulled.reason)
        return Missing("; ".join(reasons))

    def _local(self, reference: str) -> Image | Missing | None:
        docker = docker_package()
        try:
            image = self._client.images.get(reference)
        except docker.errors.ImageNotFound:
            return None
        arch = image.attrs.get("Architecture", "")
        if arch != self._arch:
            # Emulated, tests take other times and other paths.
            return Missing(f"image {reference} is for {arch}, and this engine runs {self._arch}")
        repository = _without_tag(reference)
        digests = [name for name in image.attrs.get("RepoDigests") or () if "@" in name]
        own = [name for name in digests if name.startswith(f"{repository}@")]
        digest = (own or digests or [f"@{image.id}"])[0].partition("@")[2]
        return Image(reference, digest, arch, image.id)

    def _pulled_from(self, reference: str) -> Image | Missing:
        waited = 0.0
        for attempt in range(_PULLS):
            refused = self._make_room()
            if refused is not None:
                return Missing(f"image {reference} is not pulled: {refused}")
            complaint, wait = self._pull(reference)
            if complaint is None:
                break
            if _FULL in complaint and self._remove_unused():
                continue
            if not _AGAIN.search(complaint):
                return Missing(f"image {reference} is not pulled: {complaint}")
            wait = _FIRST_WAIT * 2**attempt if wait is None else wait
            waited += wait
            if attempt == _PULLS - 1 or waited > _PATIENCE or self._wait(wait):
                return Missing(
                    f"image {reference} is not pulled: {complaint}"
                    f" ({attempt + 1} attempts, the next after {wait:.0f} s)"
                )
        pulled = self._local(reference)
        if isinstance(pulled, Image):
            size = self._client.images.get(reference).attrs.get("Size", 0) / 1e9
            with self._changed:
                self._pulled[reference] = size
            return pulled
        if pulled is not None:
            self._client.images.remove(reference)
        return pulled or Missing(f"image {reference} is not here after its pull")

    def _wait(self, seconds: float) -> bool:
        """Wait, or return True at once where this was closed."""
        return self._stopped.wait(seconds)

    def _pull(self, reference: str) -> tuple[str | None, float | None]:
        """Why a pull failed, None if it did not, and the seconds that the registry wants."""
        docker = docker_package()
        repository = _without_tag(reference)
        tag = reference[len(repository) + 1 :] or "latest"
        wait = None
        try:
            lines = self._client.api.pull(repository, tag=tag, stream=True, decode=True)
            complaints = [str(line["error"]) for line in lines if "error" in line]
        except (docker.errors.APIError, OSError) as error:
            complaints = [reason(error)]
            response = getattr(error, "response", None)
            # An engine passes on a registry's refusal as its own 500, with the text of the refusal.
            if response is not None and response.status_code != _ENGINE_FAILS:
                complaints = [f"{response.status_code}: {complaints[0]}"]
                wait = _seconds(response.headers.get("Retry-After", ""))
        if not complaints:
            return None, None
        wanted = _RETRY_AFTER.search(complaints[-1])
        if wanted is not None:
            wait = float(wanted["number"]) * _UNITS.get(wanted["unit"].lower(), 1.0)
        return complaints[-1], wait

    def _make_room(self) -> str | None:
        """Remove unused images until there is room for a pull; why not, where there is none."""
        while True:
            lack = self._lack()
            if lack is None:
                return None
            if self._remove_unused():
                continue
            with self._changed:
                if self._stopped.is_set():
                    return "closed"
                if not any(self._in_use.get(reference) for reference in self._pulled):
                    return lack
                self._changed.wait(timeout=1.0)

    def _lack(self) -> str | None:
        free = self._free()
        if free is not None and free < self._free_gb:
            return f"{free:.1f} GB are free on the engine's disk, and {self._free_gb:g} GB are kept"
        with self._changed:
            taken = sum(self._pulled.values())
        if self._images_gb is not None and taken >= self._images_gb:
            return f"the pulled images take {taken:.1f} GB of {self._images_gb:g} GB"
        return None

    def _remove_unused(self) -> bool:
        """Remove the image that was pulled here and has been unused longest; False without one."""
        docker = docker_package()
        with self._changed:
            unused = [name for name in self._pulled if not self._in_use.get(name)]
            if not unused:
                return False
            del self._pulled[unused[0]]
        try:
            self._client.images.remove(unused[0])
        except docker.errors.APIError:
            # Another program uses it: it is not ours any more, and takes no room of ours.
            return self._remove_unused()
        return True


def _template(text: str) -> str:
    """Return the template named `text`, or `text` itself; `ConfigError` for unknown fields."""
    if "{" not in text:
        if text not in TEMPLATES:
            raise ConfigError(
                f"images {text!r}{suggestion(text, TEMPLATES)}: give a name of these or a "
                f"reference with fields, as {TEMPLATES['epoch']!r}"
            )
        return TEMPLATES[text]
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise ConfigError(f"images {text!r}: {error}") from None
    for name in names:
        if name not in FIELDS:
            raise ConfigError(f"images {text!r}: no field {name!r}{suggestion(name, FIELDS)}")
    return text


def _architecture(machine: str) -> str:
    return _ARCHITECTURES.get(machine, machine)


def _free_space(folder: str) -> Callable[[], float | None]:
    """Gigabytes free where the engine keeps images; None for an engine on another machine."""
    return lambda: shutil.disk_usage(folder).free / 1e9 if Path(folder).is_dir() else None


def _without_tag(reference: str) -> str:
    name, colon, tag = reference.rpartition(":")
    return name if colon and "/" not in tag else reference


def _seconds(text: str) -> float | None:
    return float(text) if text.strip().isdecimal() else None
