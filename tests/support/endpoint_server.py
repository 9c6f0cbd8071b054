"""A stand-in for an OpenAI-compatible server: real HTTP on loopback, and the same answer always.

In a test: ``with serve(Script(latency=0.05)) as server: …``. As a program, for other processes (in
the folder ``tests``): ``python -m support.endpoint_server '{"latency": 0.05}'`` prints its address
and serves until its standard input is closed.

What is answered depends on the prompt and the seed alone, so a run with faults can be compared
with one without. Which requests fail depends on the prompt and on how often it has been asked, not
on the order of requests.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import socket
import ssl
import struct
import sys
import threading
import time
from collections import Counter
from collections import deque
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field
from datetime import UTC
from datetime import datetime
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

from support.echo_forms import FORMS
from support.echo_forms import REFUSALS
from support.echo_forms import Prompt as EchoPrompt
from support.endpoint_bodies import Body
from support.endpoint_bodies import chance
from support.endpoint_bodies import envelope
from support.endpoint_bodies import error
from support.endpoint_bodies import letter_logprobs
from support.endpoint_bodies import prompt_text
from support.endpoint_bodies import prompts
from support.endpoint_bodies import right_letter
from support.endpoint_bodies import thought_and_said

HANG, RESET, GARBAGE, TORN = "hang", "reset", "garbage", "torn"


@dataclass(frozen=True)
class Script:
    """How the server behaves.

    ``latency``: seconds before an answer, or before those to prompts with ``late``. ``faults``: share of requests by fault: an HTTP status,
    ``"429 after"`` (with Retry-After), ``hang``, ``reset``, ``garbage``, ``torn`` (JSON that breaks
    off). ``replies``: a mark that stands in the prompt → what the requests with it get, one after
    the other, the last for ever: an answer's JSON, a fault, or ``[status, JSON, headers]``.
    ``ban``: more than so many requests within so many seconds, and everything is refused from
    then on. ``capacity``: requests at a time, others get 429; ``parallel``: requests at a time,
    others wait. ``top_logprobs``: the most that may be asked for. ``echo``: which server's echo it
    returns (``echo_forms``). ``key``: what must be sent.
    ``refuses``: parameter → status and error body for a request that has it at any value but that of
    ``accepts``. ``reasoning``: what a chat thinks before its answers, which begin with blank lines;
    stop strings end thoughts, too, as on vLLM (vllm-project/vllm#52393).
    """

    latency: float = 0.0
    late: str = ""
    faults: Mapping[str, float] = field(default_factory=dict)
    retry_after: str = "0.2"
    replies: Mapping[str, list[Any]] = field(default_factory=dict)
    ban: tuple[int, float] | None = None
    capacity: int | None = None
    parallel: int | None = None
    top_logprobs: int = 20
    echo: str = "openai"
    several: bool = True
    tokens_field: str = "max_tokens"
    spelled: tuple[str, ...] = ("{}", " {}")
    opening: str = ""
    key: str | None = None
    refuses: Mapping[str, tuple[int, Any]] = field(default_factory=dict)
    accepts: Mapping[str, Any] = field(default_factory=dict)
    reasoning: str = ""


class Server:
    """The server's memory: what it was asked, and how it answers."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.url = ""
        self.bodies: list[Body] = []
        self.arrivals: list[float] = []
        self.answered = 0
        self.banned = False
        self.most_at_once = 0
        self.keys: set[str] = set()
        #: The header lines of every request.
        self.headers: list[str] = []
        self.attempts: Counter[str] = Counter()
        self.sent_faults: Counter[str] = Counter()
        self._busy = 0
        self._recent: deque[float] = deque()
        self._queue: deque[Callable[[], None]] = deque()

    def stats(self) -> Body:
        """Figures for other processes (``GET /stats``)."""
        return {
            "requests": len(self.arrivals),
            "answered": self.answered,
            "banned": self.banned,
            "most_at_once": self.most_at_once,
            "faults": dict(self.sent_faults),
        }

    def busiest(self, seconds: float) -> int:
        """The most requests that arrived within so many seconds."""
        window: deque[float] = deque()
        most = 0
        for arrival in self.arrivals:
            window.append(arrival)
            while window[0] <= arrival - seconds:
                window.popleft()
            most = max(most, len(window))
        return most

    # --- one request

    def take(self, connection: Connection, path: str, headers: str, raw: bytes) -> None:
        """Answer one request on its connection, now or later."""
        if path == "/stats":
            connection.reply(200, self.stats())
            return
        now = time.monotonic()
        self.arrivals.append(now)
        match = re.search(r"^authorization: bearer (.*)$", headers, re.IGNORECASE | re.MULTILINE)
        key = match.group(1).strip() if match else ""
        self.keys.add(key)
        self.headers.append(headers)
        if self._bans(now):
            connection.reply(403, error("banned: too many requests", "banned"))
            return
        if self.script.key is not None and key != self.script.key:
            # As thoughtless as a server can be: it repeats the key.
            connection.reply(401, error(f"Incorrect API key provided: {key}", "invalid_api_key"))
            return
        body = json.loads(raw) if raw else {}
        self.bodies.append(body)
        if self.script.capacity is not None and self._busy >= self.script.capacity:
            self.sent_faults["429"] += 1
            connection.reply(429, error("too many at once", "rate_limit_exceeded"))
            return
        self._busy += 1
        self.most_at_once = max(self.most_at_once, self._busy)
        self._queue.append(lambda: self._serve(connection, path, body))
        self._start_queued()

    def _start_queued(self) -> None:
        while self._queue and (
            self.script.parallel is None or self._busy - len(self._queue) < self.script.parallel
        ):
            self._queue.popleft()()

    def _bans(self, now: float) -> bool:
        if self.script.ban is not None:
            most, seconds = self.script.ban
            self._recent.append(now)
            while self._recent[0] <= now - seconds:
                self._recent.popleft()
            self.banned = self.banned or len(self._recent) > most
        return self.banned

    def _serve(self, connection: Connection, path: str, body: Body) -> None:
        act = self._act(path, body)

        def finish() -> None:
            act(connection)
            self._busy -= 1
            self._start_queued()

        late = self.script.late
        if self.script.latency and (not late or late in prompt_text(body)):
            asyncio.get_running_loop().call_later(self.script.latency, finish)
        else:
            finish()

    def _act(self, path: str, body: Body) -> Callable[[Connection], None]:
        text = prompt_text(body)
        if text:
            self.attempts[text] += 1
        for mark, replies in self.script.replies.items():
            if mark in text:
                return self._scripted(
                    replies[min(self.attempts[text], len(replies)) - 1], path, body
                )
        fault = self._fault(text)
        if fault is not None:
            return self._scripted(fault, path, body)
        return lambda connection: self._answer(connection, path, body)

    def _fault(self, text: str) -> str | None:
        at = chance(f"{self.attempts[text]} {text}")
        for name, share in self.script.faults.items():
            if at < share:
                return name
            at -= share
        return None

    def _scripted(self, what: Any, path: str, body: Body) -> Callable[[Connection], None]:
        if isinstance(what, dict):
            self.answered += 1
            return lambda connection: connection.reply(200, what)
        if isinstance(what, list | tuple):
            return lambda connection: connection.reply(what[0], what[1], *what[2:])
        self.sent_faults[what] += 1
        if what == HANG:
            return lambda connection: None
        if what == RESET:
            return lambda connection: connection.reset()
        if what == GARBAGE:
            return lambda connection: connection.raw(200, b"<html>upstream is away</html>")
        if what == TORN:
            whole = json.dumps(self.answer(path, body)).encode()
            return lambda connection: connection.raw(200, whole[: len(whole) // 2])
        headers = {}
        if what == "429 after":
            wait = self.script.retry_after
            if wait == "date":
                wait = format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)
            headers = {"Retry-After": wait}
        status = int(what.split()[0])
        return lambda connection: connection.reply(status, error("try again", None), headers)

    def _answer(self, connection: Connection, path: str, body: Body) -> None:
        for name, (status, refused) in self.script.refuses.items():
            accepted = name in self.script.accepts and body.get(name) == self.script.accepts[name]
            if name in body and not accepted:
                connection.reply(status, refused)
                return
        refusal = self._refusal(path, body)
        if refusal:
            connection.reply(400, error(*refusal))
            return
        if body.get("echo") and self.script.echo in REFUSALS:
            status, message = REFUSALS[self.script.echo]
            connection.reply(status, error(message, None))
            return
        self.answered += 1
        connection.reply(200, self.answer(path, body))

    def _refusal(self, path: str, body: Body) -> tuple[str, str] | None:
        script = self.script
        if "max_tokens" in body and script.tokens_field != "max_tokens":
            message = (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
                " 'max_completion_tokens' instead."
            )
            return message, "unsupported_parameter"
        chat = path.endswith("/chat/completions")
        requested = body.get("top_logprobs") if chat else body.get("logprobs")
        if requested and int(requested) > script.top_logprobs:
            most = script.top_logprobs
            return (
                f"Requested sample logprobs of {requested}, which is greater than max allowed: {most}",
                "invalid_value",
            )
        return None

    # --- answers

    def answer(self, path: str, body: Body) -> Body:
        """The answer's JSON."""
        if path.endswith("/chat/completions"):
            return self._chat(body)
        return self._completions(body)

    def _chat(self, body: Body) -> Body:
        text = prompt_text(body)
        choices = []
        for index in range(self._several(body)):
            reply = said_text(text, body, index, self.script)
            message: Body = {"role": "assistant", "content": reply}
            if self.script.reasoning:
                message = thought_and_said(self.script.reasoning, reply, body)
            choice: Body = {"index": index, "message": message, "finish_reason": "stop"}
            if body.get("logprobs"):
                top = [
                    {"token": token, "logprob": value, "bytes": list(token.encode())}
                    for token, value in self._top(text, body["top_logprobs"])
                ]
                choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
                choice["finish_reason"] = "length"
            choices.append(choice)
        return envelope("chat.completion", body, choices, text)

    def _completions(self, body: Body) -> Body:
        choices: list[Body] = []
        for prompt in prompts(body):
            text = prompt if isinstance(prompt, str) else " ".join(map(str, prompt))
            for index in range(self._several(body)):
                choice: Body = {"index": len(choices), "finish_reason": "stop"}
                if body.get("echo"):
                    echo = (
                        EchoPrompt.of(prompt)
                        if isinstance(prompt, str)
                        else EchoPrompt([str(token).encode() for token in prompt])
                    )
                    choice["text"] = text + echo.generated.decode()
                    form = FORMS.get(self.script.echo, FORMS["openai"])
                    choice["logprobs"] = form(echo)
                else:
                    choice["text"] = said_text(text, body, index, self.script)
                    if body.get("logprobs"):
                        top = self._top(text, body["logprobs"])
                        choice["text"] = top[0][0]
                        choice["logprobs"] = {
                            "tokens": [top[0][0]],
                            "token_logprobs": [top[0][1]],
                            "top_logprobs": [dict(top)],
                            "text_offset": [len(text)],
                        }
                choices.append(choice)
        if body.get("echo") and self.script.echo == "another_order":
            for choice, index in zip(choices, range(len(choices))[::-1], strict=True):
                choice["index"] = index
        return envelope("text_completion", body, choices, prompt_text(body))

    def _several(self, body: Body) -> int:
        return int(body.get("n") or 1) if self.script.several else 1

    def _top(self, text: str, count: int) -> list[tuple[str, float]]:
        letters = list(letter_logprobs(text, self.script.spelled).items())
        if self.script.opening:  # most likely, the answer begins with words
            letters = [(token, value + math.log(0.1)) for token, value in letters]
            letters.insert(0, (self.script.opening, math.log(0.9)))
        fill = [(f"word{number}", -12.0 - number) for number in range(count)]
        return sorted(letters + fill, key=lambda pair: -pair[1])[:count]


def said_text(text: str, body: Body, index: int, script: Script) -> str:
    """The generated text for a prompt; drawn anew for every seed and index when sampled."""
    drawn = f"{text} {body.get('seed')} {index}" if body.get("temperature") else text
    reply = f"{script.opening}The answer is ({right_letter(drawn)})."
    for stop in body.get("stop") or ():
        reply = reply.split(stop)[0]
    return reply


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, as much of it as clients use."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].decode("latin-1")
            size = re.search(r"^content-length: *(\d+)", head, re.IGNORECASE | re.MULTILINE)
            length = int(size.group(1)) if size else 0
            if len(self._buffer) < end + 4 + length:
                return
            raw = self._buffer[end + 4 : end + 4 + length]
            self._buffer = self._buffer[end + 4 + length :]
            self._server.take(self, head.split(" ", 2)[1], head.replace("\r", ""), raw)

    def reply(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        """Send a value as JSON."""
        self.raw(status, json.dumps(value).encode(), headers)

    def raw(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send these bytes and call them JSON."""
        more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        head = (
            f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n{more}\r\n"
        )
        if not self._transport.is_closing():
            self._transport.write(head.encode() + content)

    def reset(self) -> None:
        """Break the connection so that the other side sees a reset."""
        link = self._transport.get_extra_info("socket")
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()


async def _listen(server: Server, tls: ssl.SSLContext | None = None) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(
        lambda: Connection(server), "127.0.0.1", 0, backlog=1024, ssl=tls
    )
    server.url = (
        f"{'https' if tls else 'http'}://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    )
    return listening


@contextmanager
def serve(script: Script | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server in a thread of this process; with a TLS context at an ``https`` address."""
    server = Server(script or Script())
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    listening = asyncio.run_coroutine_threadsafe(_listen(server, tls), loop).result()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(listening.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def main() -> None:
    """Serve until standard input is closed; the address is the first line of the output."""
    given = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    server = Server(Script(**given))

    async def run() -> None:
        await _listen(server)
        print(server.url, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

    asyncio.run(run())


if __name__ == "__main__":
    main()
