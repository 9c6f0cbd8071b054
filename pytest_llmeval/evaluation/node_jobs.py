"""Jobs on the nodes of a Ray cluster: each place of a node has a runner of its own."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.evaluation.jobs import KINDS
from pytest_llmeval.evaluation.jobs import Job
from pytest_llmeval.evaluation.jobs import Result
from pytest_llmeval.models.ray.cluster import Cluster
from pytest_llmeval.models.ray.cluster import error_line
from pytest_llmeval.models.ray.replica import Surroundings
from pytest_llmeval.sandbox import Execution
from pytest_llmeval.sandbox import Program
from pytest_llmeval.sandbox.parallel import in_parallel
from pytest_llmeval.sandbox.swebench import TrialResult

RESOURCE = "llmeval_sandbox"
"""Resource of Ray whose amount on a node is the number of jobs that it runs at the same time."""

_START_SECONDS = 30.0  # without a further place
_CLOSE_SECONDS = 10.0
_ATTEMPTS = 2  # places that a job may cost, as a program may cost two cells of a sandbox


class Place:
    """Actor that runs one job at a time in a runner on its node."""

    def __init__(self, kind: str, settings: Settings, surroundings: Surroundings) -> None:
        """Open nothing yet."""
        self._kind, self._settings = KINDS[kind], settings
        self._runner: Any = None
        self._node = socket.gethostname()
        surroundings.adopt()

    def open(self) -> tuple[str, str, str]:
        """Open the runner; return node, identity of the runner, and the reason if it cannot be opened."""
        try:
            identity = self._kind.identity(self._settings)
            # As one of many processes, so that it uses the smallest share of its machine.
            self._runner = self._kind.open(self._settings, 1_000_000)
        except ConfigError as error:
            return self._node, "", str(error)
        return self._node, identity, ""

    def run(self, job: Job) -> Result:
        """Run a job."""
        (result,) = self._runner.run([job])
        ended: Result = replace(result, node=self._node)
        return ended

    def run_references(self, jobs: Sequence[Job]) -> list[Result]:
        """Run reference solutions, which also measures how fast the node is."""
        results = self._kind.run_references(self._runner, jobs)
        return [replace(result, node=self._node) for result in results]

    def close(self) -> None:
        """Close the runner."""
        if self._runner is not None:
            self._runner.close()


class NodeJobs:
    """Runner of jobs of a kind on all places of a cluster, like the runners of ``JobKind.open``."""

    def __init__(self, cluster: Cluster, kind: str, settings: Settings) -> None:
        """Open a runner in every place.

        Raises ConfigError, in one line, if a node cannot run such jobs or its runner differs.
        """
        self._ray = ray = cluster.connect()
        self._closed = False
        self._lock = threading.Lock()
        actor = ray.remote(Place).options(
            num_cpus=0, resources={RESOURCE: 1}, max_restarts=0, max_task_retries=0
        )
        arguments = (kind, settings, Surroundings.of_this_process())
        self._make: Callable[[], Any] = lambda: actor.remote(*arguments)
        self._identity = KINDS[kind].identity(settings)
        self._places = [self._make() for _ in range(places_of(cluster))]
        #: Host name of the node of each place.
        self._nodes: list[str] = []
        try:
            self._open_places()
        except BaseException:
            self.close()
            raise

    def _open_places(self) -> None:
        """Wait until the places are open; leave out those of nodes that are lost."""
        pending = {place.open.remote(): place for place in self._places}
        opened = []
        while pending:
            ready, _ = self._ray.wait(list(pending), timeout=_START_SECONDS)
            if not ready:
                break
            for ref in ready:
                self._nodes.append(self._check(ref))
                opened.append(pending.pop(ref))
        for place in pending.values():
            self._ray.kill(place)
        if not opened:
            raise ConfigError(
                f"no node with the resource {RESOURCE} opened a sandbox within {_START_SECONDS:g} s"
            )
        self._places = opened

    def _check(self, ref: Any) -> str:
        """Return the node of a place that was opened.

        Raises ConfigError if it was not, or if its runner differs from the one on this machine.
        """
        node: str
        try:
            node, identity, problem = self._ray.get(ref, timeout=_START_SECONDS)
        except self._ray.exceptions.RayError as error:
            raise ConfigError(f"a sandbox was not opened: {error_line(error, -1)}") from error
        if problem:
            raise ConfigError(f"{node} has the resource {RESOURCE}, but no sandbox: {problem}")
        if identity != self._identity:
            raise ConfigError(
                f"the sandbox on {node} differs from the one here: {identity}, here {self._identity}"
            )
        return node

    def run(self, jobs: Iterable[Job]) -> Iterator[Result]:
        """Run jobs, one in each place at a time; yield results as completed."""
        workers = [partial(self._run, number) for number in range(len(self._places))]
        return in_parallel(jobs, workers, self.close)

    def calibrate(self, jobs: Sequence[Program]) -> list[Execution]:
        """Run reference solutions in every place; return of each the result that is worst."""
        refs = [place.run_references.remote(jobs) for place in self._places]
        worst: dict[str, Execution] = {}
        for results in self._ray.get(refs):
            for result in results:
                if worst.setdefault(result.id, result).status == "passed":
                    worst[result.id] = result
        return list(worst.values())

    def close(self) -> None:
        """End all places, and the containers in them."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        with contextlib.suppress(Exception):  # places that have ended are no longer there to close
            refs = [place.close.remote() for place in self._places]
            self._ray.wait(refs, num_returns=len(refs), timeout=_CLOSE_SECONDS)
        for place in self._places:
            with contextlib.suppress(Exception):
                self._ray.kill(place)

    def _run(self, number: int, job: Job) -> Result:
        """Run a job in a place; if that is lost, in a new one, once."""
        problem = ""
        for _ in range(_ATTEMPTS):
            try:
                ended: Result = self._ray.get(self._places[number].run.remote(job))
            except self._ray.exceptions.RayTaskError as error:
                return _failed(job, error_line(error, -1), self._nodes[number])
            except self._ray.exceptions.RayError as error:
                problem = error_line(error, 0)
                if self._closed:
                    break
                place = self._make()
                try:
                    node = self._check(place.open.remote())
                except ConfigError as failure:
                    # Never run anything there: the sandbox may be another one.
                    problem = str(failure)
                    self._ray.kill(place)
                else:
                    self._places[number], self._nodes[number] = place, node
            else:
                return ended
        node = self._nodes[number]
        return _failed(job, f"the sandbox on {node} was lost: {problem}", node)


def places_of(cluster: Cluster) -> int:
    """Return the number of jobs that all nodes of a cluster run at the same time."""
    return int(cluster.connect().cluster_resources().get(RESOURCE, 0))


def _failed(job: Job, problem: str, node: str) -> Result:
    kind = Execution if isinstance(job, Program) else TrialResult
    return kind(job.id, "error", detail=problem, node=node)
