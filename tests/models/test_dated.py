"""Chat templates that write the current date write one and the same, and every run records it."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.models import load_model
from pytest_llmeval.models.hf.spec import parse_spec
from pytest_llmeval.models.hf.weights_fingerprint import fingerprint
from pytest_llmeval.models.hf.weights_fingerprint import template_date

pytest.importorskip("torch", reason="the extra hf is not installed")
pytest.importorskip("transformers", reason="the extra hf is not installed")

import transformers.utils.chat_template_utils as rendering

from pytest_llmeval.models.hf.encoding import Encoder
from pytest_llmeval.models.hf.loading import LoadedModel
from pytest_llmeval.models.hf.loglikelihood import ChoiceEngine
from pytest_llmeval.models.hf.weights_fingerprint import template_clock

TURNS = (
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
# As Llama 3.2 does it, as Granite and SmolLM3 do, as gpt-oss does in a macro, and with a time.
DATED = {
    "if it can": "{% if strftime_now is defined %}{% set today = strftime_now('%d %b %Y') %}"
    "{% else %}{% set today = 'never' %}{% endif %}{{ bos_token }}Today Date: {{ today }}\n",
    "in words": "{{ bos_token }}{{ \"Today's Date: \" + strftime_now('%B %d, %Y') + '.' }}\n",
    "in a macro": "{% macro system() %}Current date: {{ strftime_now('%Y-%m-%d') }}\n{% endmacro %}"
    "{{ bos_token }}{{ system() }}",
    "with a time": "{{ bos_token }}{{ strftime_now('%A %H:%M:%S.%f %j %%') }}\n",
}
SHOWN = {
    "if it can": "Today Date: 26 Jul 2024",
    "in words": "Today's Date: July 26, 2024.",
    "in a macro": "Current date: 2024-07-26",
    "with a time": "Friday 00:00:00.000000 208 %",
}
QUESTION = Request("q", Prompt("Be brief.\n\n", (), "2+2?", ""), ("A", "B"), chat=True)

SetClock = Callable[[int, int, int], None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Set the clock that transformers reads when it renders a template."""

    def set_clock(*day: int) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Clock:
                return cls(*day, 13, 14, 15, tzinfo=tz)

        monkeypatch.setattr(rendering, "datetime", Clock)

    return set_clock


def rows(tokenizer: Any, day: date | None = None) -> list[str]:
    encoder = Encoder(tokenizer, None) if day is None else Encoder(tokenizer, None, day)
    (question,), refused = encoder.encode_questions([QUESTION])
    assert not refused
    return [tokenizer.decode(row) for row in question.rows]


def rendered(tokenizer: Any) -> str:
    messages = QUESTION.prompt.messages()
    text: str = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return text


@pytest.mark.parametrize("kind", DATED)
def test_a_prompt_is_the_same_on_every_day(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch, clock: SetClock, kind: str
) -> None:
    monkeypatch.setattr(tokenizer, "chat_template", DATED[kind] + TURNS)
    clock(2025, 1, 2)
    first, by_itself = rows(tokenizer), rendered(tokenizer)
    clock(2026, 11, 30)
    assert rows(tokenizer) == first
    assert SHOWN[kind] in first[0]
    # Without being set it is another prompt, as it is for other programs, and still is outside.
    assert rendered(tokenizer) != by_itself
    assert rows(tokenizer, date(2026, 11, 30)) != first
    openings, _ = Encoder(tokenizer, None).encode_prompts(
        [Request("q", QUESTION.prompt, chat=True)]
    )
    assert SHOWN[kind] in tokenizer.decode(openings[0].tokens)


def test_log_likelihoods_are_the_same_on_every_day(
    torch: Any, llama: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch, clock: SetClock
) -> None:
    monkeypatch.setattr(tokenizer, "chat_template", DATED["in words"] + TURNS)
    logprobs = []
    for day in ((2025, 1, 2), (2026, 11, 30)):
        clock(*day)
        engine = ChoiceEngine(LoadedModel(llama, tokenizer, torch.device("cpu")))
        logprobs += [response.logprobs for response in engine.answer([QUESTION])]
    assert logprobs[0] == logprobs[1]
    other = ChoiceEngine(LoadedModel(llama, tokenizer, torch.device("cpu"), date(2026, 11, 30)))
    assert [response.logprobs for response in other.answer([QUESTION])] != logprobs[:1]


def test_a_template_without_a_date_is_unaffected(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed = "{% if not date_string is defined %}{% set date_string = '26 Jul 2024' %}{% endif %}"
    for text in ("", fixed + "{{ date_string }}\n"):
        monkeypatch.setattr(tokenizer, "chat_template", text + TURNS)
        expected = rendered(tokenizer)
        for day in (None, date(2026, 11, 30)):
            assert [row.removeprefix("<s>")[:-1] for row in rows(tokenizer, day)] == [expected] * 2


def test_random_parts_of_a_template_are_repeatable(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jinja's filter ``random`` and its function ``lipsum``; the caller's numbers go on as before."""
    monkeypatch.setattr(
        tokenizer, "chat_template", "{{ range(99999) | random }} {{ lipsum(1) }}" + TURNS
    )
    random.seed(1)
    expected = random.random(), random.random()
    random.seed(1)
    first = rows(tokenizer), random.random()
    second = rows(tokenizer), random.random()
    assert first[0] == second[0]
    assert (first[1], second[1]) == expected
    assert rendered(tokenizer) != rendered(tokenizer)


def test_the_clock_goes_on_after_a_template_that_fails() -> None:
    before = rendering.datetime
    with pytest.raises(ZeroDivisionError), template_clock(date(2024, 7, 26)):
        raise ZeroDivisionError
    assert rendering.datetime is before


def test_a_clock_that_cannot_be_set_is_an_error(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release of transformers that reads it elsewhere; only templates with a date need it."""

    class Elsewhere:
        bos_token_id, chat_template = 0, DATED["in words"] + TURNS

        def __call__(self, *args: Any, **options: Any) -> Any:
            return tokenizer(*args, **options)

        def apply_chat_template(self, messages: Any, **options: Any) -> str:
            return "2025-01-02" if "chat_template" in options else "[user]Hello[assistant]"

    with pytest.raises(ModelError, match="returns '2025-01-02' instead of 2024-07-26"):
        Encoder(Elsewhere(), None).encode_questions([QUESTION])
    monkeypatch.setattr(Elsewhere, "chat_template", TURNS)
    assert Encoder(Elsewhere(), None).encode_questions([QUESTION])[0]


# --- what a run records


def of(path: Path | str, options: str = "") -> tuple[str, str]:
    spec = parse_spec(f"{path}?device=cpu{options}")
    return fingerprint(spec), template_date(spec)


@pytest.mark.parametrize(
    "name",
    [
        "tokenizer_config.json",
        "chat_template.jinja",
        "chat_template.json",
        "additional_chat_templates/tool_use.jinja",
    ],
)
def test_the_date_is_part_of_the_fingerprint_where_it_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("{{ messages }}")
    plain = of(tmp_path)
    assert plain[1] == ""
    assert of(tmp_path, "&date=2026-11-30") == plain
    file.write_text("{{ strftime_now('%Y') }}")
    dated = of(tmp_path)
    assert dated[1] == "2024-07-26"
    assert of(tmp_path, "&date=2024-07-26") == dated
    other = of(tmp_path, "&date=2026-11-30")
    assert other[1] == "2026-11-30"
    assert len({plain[0], dated[0], other[0]}) == 3


def test_the_date_of_a_gguf_file(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF" + b"\0" * 1000 + b"{{ messages }}")
    assert of(file, "&date=2026-11-30") == of(file)
    file.write_bytes(b"GGUF" + b"\0" * 1000 + b"{{ strftime_now('%Y') }}")
    assert of(file)[1] == "2024-07-26"
    assert of(file, "&date=2026-11-30")[0] != of(file)[0]


def test_the_date_of_a_hub_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not cached yet may read a date: a date that was chosen is another model."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    assert of("org/model")[1] == "2024-07-26"
    assert of("org/model")[0] != of("org/model", "&date=2026-11-30")[0]
    commit = "a" * 40
    files = tmp_path / "models--org--model" / "snapshots" / commit
    files.mkdir(parents=True)
    (files / "config.json").write_text("{}")
    cached = f"&revision={commit}"
    assert of("org/model", cached)[1] == ""
    assert of("org/model", cached) == of("org/model", f"{cached}&date=2026-11-30")
    (files / "chat_template.jinja").write_text("{{ strftime_now('%Y') }}")
    assert of("org/model", f"{cached}&date=2026-11-30")[1] == "2026-11-30"


def test_the_date_of_the_spec_is_what_a_loaded_model_reads(
    folder: Path,
    tokenizer: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: SetClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    copy = tmp_path / "dated"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    (copy / "chat_template.jinja").write_text(DATED["in words"] + TURNS)
    clock(2026, 11, 30)
    text = Request("t", QUESTION.prompt, chat=True, decoding=Decoding(max_tokens=2))

    def answers(options: str, path: Path = copy) -> dict[str, Any]:
        model = load_model(f"hf:{path}?device=cpu{options}")
        return {
            response.id: (response.logprobs, response.text)
            for response in model.answer([QUESTION, text])
        }

    default = answers("")
    assert answers("&date=2024-07-26") == default
    assert answers("&date=2026-11-30")["q"] != default["q"]
    assert load_model(f"hf:{copy}").template_date == "2024-07-26"  # type: ignore[attr-defined]
    assert not caplog.records
    answers("&date=2026-11-30", folder)
    assert "date has no effect" in caplog.text
