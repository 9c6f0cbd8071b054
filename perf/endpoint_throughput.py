"""Items per second from an endpoint: this plugin, lm-eval and a bare loop over the SDK, in one run.

    python perf/endpoint_throughput.py [--items 2000] [--rounds 3]

One stand-in server (``tests/support/endpoint_server.py``) with 50 ms latency, 64 requests in flight, MMLU
prompts without shots. *Letters*: lm-eval's ``local-completions`` sends an echo request for every
option, we read the letters from the top_logprobs of one token; the bare loop sends the same
request as we do and reads nothing. *Generation*: lm-eval's ``local-chat-completions`` against
text of 16 tokens by chat. Each tool runs in a fresh process; timed is the answering alone, after
one request that connects (ours: from the first request put in to the last response taken out).
The best of the rounds counts, tools taking turns. Needs lm-eval with its extra ``api`` in the
same environment, and the data under LLMEVAL_DATA or ``../shared/data``.

Status 1: letters below 3 times lm-eval's speed, generation below lm-eval's, or either below 80 % of
the bare loop's.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peer import data
from peer import stand_in_server

IN_FLIGHT = 64
LATENCY = 0.05
LETTERS = "ABCD"
TASKS = ("letters", "generation")
TOOLS = ("ours", "lm-eval", "bare loop")


def main() -> int:
    """Run all tools in turn, or one of them where this program calls itself."""
    parser = argparse.ArgumentParser(description="endpoint throughput against lm-eval")
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", choices=[*PARTS, "tokenizer"], help=argparse.SUPPRESS)
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--tokenizer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part == "tokenizer":
        save_tokenizer(options.tokenizer)
        return 0
    if options.part:
        seconds = PARTS[options.part](options, prompts(options.items))
        print(json.dumps({"seconds": seconds}))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        options.tokenizer = Path(folder) / "tokenizer"
        call_self(options, "tokenizer", "letters", "")
        return compare(options)


def compare(options: argparse.Namespace) -> int:
    """Print items per second of every tool at both tasks, and the ratios that matter."""
    best: dict[tuple[str, str], float] = {}
    for _ in range(options.rounds):
        for task in TASKS:
            for tool in TOOLS:
                with stand_in_server({"latency": LATENCY}) as url:
                    seconds = call_self(options, tool, task, url)
                best[tool, task] = max(best.get((tool, task), 0.0), options.items / seconds)
    print(
        f"{options.items} items, {IN_FLIGHT} in flight, {LATENCY * 1000:.0f} ms; items per second"
    )
    print(f"{'':12}{'letters':>12}{'generation':>12}")
    for tool in TOOLS:
        print(f"{tool:12}" + "".join(f"{best[tool, task]:12.0f}" for task in TASKS))
    failed = False
    for task, least in (("letters", 3.0), ("generation", 1.0)):
        ours = best["ours", task]
        ratio, share = ours / best["lm-eval", task], ours / best["bare loop", task]
        failed |= ratio < least or share < 0.8
        print(f"{task}: {ratio:.2f} times lm-eval (bound {least:g}), {share:.0%} of the bare loop")
    return 1 if failed else 0


# --- the tools: seconds for answering all prompts


def ours(options: argparse.Namespace, texts: list[str]) -> float:
    """Return an endpoint model, from requests put in to responses taken out."""
    from pytest_llmeval.core import Decoding
    from pytest_llmeval.core import Prompt
    from pytest_llmeval.core import Request
    from pytest_llmeval.models.openai import open_model

    letters = options.task == "letters"
    model = open_model(
        "stand-in?choices=top_logprobs" if letters else "stand-in",
        base_url=options.url,
        max_concurrency=IN_FLIGHT,
    )
    requests = [
        Request(
            f"item-{number}",
            Prompt("", (), text),
            choices=tuple(LETTERS) if letters else (),
            decoding=Decoding(max_tokens=16, stop=("\n\n",)),
        )
        for number, text in enumerate(texts)
    ]
    list(model.answer(requests[:1]))
    gc.freeze()  # as the plugin does after collection
    started = time.perf_counter()
    responses = list(model.answer(requests))
    seconds = time.perf_counter() - started
    model.close()
    check(len(responses), sum(response.error is None for response in responses), len(texts))
    return seconds


def lm_eval(options: argparse.Namespace, texts: list[str]) -> float:
    """lm-eval's own client, as ``--model local-completions`` and ``local-chat-completions``."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.openai_completions import LocalChatCompletion
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    if options.task == "letters":
        model = LocalCompletionsAPI(
            base_url=f"{options.url}/completions",
            model="stand-in",
            tokenizer_backend="huggingface",
            tokenizer=str(options.tokenizer),
            num_concurrent=IN_FLIGHT,
        )
        requests = [
            Instance("loglikelihood", {}, (text, f" {letter}"), index)
            for text in texts
            for index, letter in enumerate(LETTERS)
        ]
        started = time.perf_counter()
        answers = model.loglikelihood(requests)
    else:
        model = LocalChatCompletion(
            base_url=f"{options.url}/chat/completions", model="stand-in", num_concurrent=IN_FLIGHT
        )
        settings = {"until": ["\n\n"], "max_gen_toks": 16, "temperature": 0, "do_sample": False}
        requests = [
            Instance(
                "generate_until",
                {},
                (model.apply_chat_template([{"role": "user", "content": text}]), settings),
                0,
            )
            for text in texts
        ]
        started = time.perf_counter()
        answers = model.generate_until(requests)
    seconds = time.perf_counter() - started
    check(len(answers), sum(answer is not None for answer in answers), len(requests))
    return seconds


def bare_loop(options: argparse.Namespace, texts: list[str]) -> float:
    """As many calls of the SDK at once as allowed, and nothing else."""
    import openai

    more: dict[str, Any] = {"max_tokens": 16, "stop": ["\n\n"]}
    if options.task == "letters":
        more = {"max_tokens": 1, "logprobs": True, "top_logprobs": 20}

    async def run() -> float:
        client = openai.AsyncOpenAI(
            api_key="none",
            base_url=options.url,
            max_retries=0,
            http_client=openai.DefaultAioHttpClient(),
        )
        allowed = asyncio.Semaphore(IN_FLIGHT)

        async def answer(text: str) -> Any:
            async with allowed:
                messages: Any = [{"role": "user", "content": text}]
                return await client.chat.completions.create(
                    model="stand-in", messages=messages, temperature=0, **more
                )

        await answer(texts[0])
        started = time.perf_counter()
        answers = await asyncio.gather(*(answer(text) for text in texts))
        seconds = time.perf_counter() - started
        await client.close()
        check(len(answers), sum(bool(answer.choices) for answer in answers), len(texts))
        return seconds

    return asyncio.run(run())


def check(given: int, good: int, requested: int) -> None:
    """Return a tool that answered less is not faster."""
    if not given == good == requested:
        raise SystemExit(f"{good} good answers of {given} to {requested} requests")


PARTS: dict[str, Callable[[argparse.Namespace, list[str]], float]] = {
    "ours": ours,
    "lm-eval": lm_eval,
    "bare loop": bare_loop,
}


# --- what they share


def prompts(count: int) -> list[str]:
    """Return the prompts of the first MMLU items, without shots."""
    from dataclasses import replace

    from pytest_llmeval.catalog import mmlu

    benchmark = mmlu()
    dataset = benchmark.source(data("mmlu"))
    protocol = replace(benchmark.protocols[0], shots=0)
    return [protocol.render(item, ()).text for item in dataset.items[:count]]


def save_tokenizer(folder: Path) -> None:
    """Return the demo model's tokenizer, which lm-eval needs to count a context's tokens."""
    from pytest_llmeval.models import demo
    from pytest_llmeval.models.hf.loading import load
    from pytest_llmeval.models.hf.spec import parse_spec

    path = demo.weights()
    if path is None:
        raise SystemExit(f"no demo model; {demo.INSTALL}")
    load(parse_spec(f"{path}?device=cpu&dtype=float32")).tokenizer.save_pretrained(folder)


def call_self(options: argparse.Namespace, part: str, task: str, url: str) -> float:
    """Run one part in a fresh process; the seconds that it measured."""
    command = [
        *(sys.executable, str(Path(__file__).resolve()), "--part", part, "--task", task),
        *("--url", url, "--items", str(options.items), "--tokenizer", str(options.tokenizer)),
    ]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout[-6000:], done.stderr[-6000:], sep="\n")
        raise SystemExit(f"{part} failed with status {done.returncode}")
    if part == "tokenizer":
        return 0.0
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


if __name__ == "__main__":
    raise SystemExit(main())
