"""Connection to an endpoint through the SDK: one HTTP request, whose every failure is a `Fault`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote
from urllib.parse import urlsplit
from urllib.request import getproxies

from pytest_llmeval.models.openai import faults
from pytest_llmeval.models.openai import payloads
from pytest_llmeval.models.openai.faults import Fault
from pytest_llmeval.models.openai.faults import RequestFailedError
from pytest_llmeval.models.openai.faults import connection_fault
from pytest_llmeval.models.openai.payloads import Call
from pytest_llmeval.models.openai.spec import EndpointSpec
from pytest_llmeval.models.openai.spec import Secret


class EndpointConnection:
    """Connection to the server of a model; all coroutines run in one event loop.

    ``timeout``: seconds for the SDK's own time-outs. Proxies and certificates are those of the
    environment (``HTTPS_PROXY``, ``NO_PROXY``, ``SSL_CERT_FILE``).
    """

    def __init__(
        self, spec: EndpointSpec, key: Secret, headers: Mapping[str, Secret], timeout: float
    ) -> None:
        self._spec = spec
        self._key = key
        self._headers = headers
        self._secrets = (key, *headers.values(), *proxy_passwords())
        self._timeout = timeout
        self._sdk: Any = None

    async def close(self) -> None:
        """Close all connections."""
        if self._sdk is not None:
            await self._sdk.close()
            self._sdk = None

    async def post(self, call: Call, seconds: float) -> dict[str, Any]:
        """Send a call; return the reply if it has the format of completions.

        Raises RequestFailedError, also after ``seconds``. No message has a secret.
        """
        import openai  # slow to import

        if self._sdk is None:
            self._sdk = self._connect()
        fault: Fault
        try:
            # The SDK's own timeout restarts with every chunk of a response.
            async with asyncio.timeout(seconds):
                data = await self._sdk.post(call.path, cast_to=object, body=call.body)
            if isinstance(data, dict) and data.get("error") and not data.get("choices"):
                fault = faults.body_fault(data["error"])
            else:
                return payloads.check_reply(data)
        except RequestFailedError as failed:
            fault = failed.fault
        except TimeoutError:
            fault = faults.timeout_fault(round(seconds, 1))
        except openai.APIStatusError as error:
            fault = faults.status_fault(error.status_code, error.body, error.response.headers)
        except ValueError as error:
            fault = faults.unreadable_fault(f"{type(error).__name__}: {error}")
        except Exception as error:
            origin = _origin(error)
            timed_out = isinstance(origin, TimeoutError) or "Timeout" in type(origin).__name__
            fault = (
                faults.timeout_fault(round(seconds, 1)) if timed_out else connection_fault(origin)
            )
        # Outside the except clauses, so that the exception does not refer to objects of the SDK.
        raise RequestFailedError(fault.redacted(*self._secrets))

    def _connect(self) -> Any:
        import openai

        http_client = None
        if hasattr(openai, "DefaultAioHttpClient"):
            try:
                # About twice as fast as httpx with many requests in flight.
                http_client = openai.DefaultAioHttpClient()
            except RuntimeError:  # its package is not installed
                http_client = None
        return openai.AsyncOpenAI(
            # The SDK requires a key; servers without authentication ignore it.
            api_key=self._key.reveal() or "none",
            base_url=self._spec.base_url,
            timeout=self._timeout,
            max_retries=0,
            default_headers={name: value.reveal() for name, value in self._headers.items()},
            http_client=http_client,
        )


def proxy_passwords() -> list[Secret]:
    """Return the passwords in the proxies of the environment, which errors of the client repeat."""
    passwords = []
    for url in getproxies().values():
        try:
            password = urlsplit(url).password or ""
        except ValueError:
            continue
        passwords += [Secret(text) for text in {password, unquote(password)}]
    return passwords


def _origin(error: BaseException) -> BaseException:
    """Return the first cause of an exception (a refused connection may end up as a timeout)."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
