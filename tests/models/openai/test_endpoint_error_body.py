"""Error bodies as servers send them: who is at fault, and which parameter is named.

Bodies are those of public bug reports, which are named, shortened. The SDK hands on what is under
``error``, or the whole body where there is no such key.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_llmeval.models.openai import faults
from pytest_llmeval.models.openai.error_body import read_error
from pytest_llmeval.models.openai.faults import Fault

AZURE = {
    "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management"
    " policy. Please modify your prompt and retry.",
    "type": None,
    "param": "prompt",
    "code": "content_filter",
    "status": 400,
    "innererror": {
        "code": "ResponsibleAIPolicyViolation",
        "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
    },
}
FLAGGED = {
    "message": "Invalid prompt: your prompt was flagged as potentially violating our usage policy."
    " Please try again with a different prompt: https://platform.openai.com/docs/guides/reasoning",
    "type": "invalid_request_error",
    "param": None,
    "code": "invalid_prompt",
}


def of(status: int, body: Any) -> Fault:
    return faults.status_fault(status, body, {})


def openai_error(message: str, **fields: Any) -> dict[str, Any]:
    return {"message": message, "type": "invalid_request_error", "param": None, **fields}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, AZURE),  # compl-ai/compl-ai#20
        (400, {"error": AZURE}),
        (400, {**AZURE, "message": "no words that tell"}),
        (400, {"code": None, "message": "filtered", "innererror": AZURE["innererror"]}),
        # LiteLLM wraps it and puts the code elsewhere (BerriAI/litellm#16231).
        (
            400,
            {
                "message": "litellm.BadRequestError: litellm.ContentPolicyViolationError: AzureException",
                "type": None,
                "code": "400",
                "provider_specific_fields": {"innererror": AZURE["innererror"]},
            },
        ),
        # OpenRouter puts the provider's body into a string.
        (
            400,
            {
                "code": 400,
                "message": "Provider returned error",
                "metadata": {"raw": json.dumps({"error": AZURE}), "provider_name": "Azure"},
            },
        ),
        (
            403,
            {"code": 403, "message": "m requires moderation. Your input was flagged for violence."},
        ),
        (400, FLAGGED),  # BeehiveInnovations/pal-mcp-server#178
        (
            400,
            openai_error(
                "Invalid prompt: we've limited access to this content for safety reasons."
            ),
        ),
        (400, openai_error("no words", code="content_policy_violation")),
        (400, openai_error("no words", code="moderation_blocked")),
        # Alibaba: camel-ai/owl#432, QwenLM/qwen-code#2905.
        (400, openai_error("Input data may contain inappropriate content.")),
        (400, openai_error("…", code="data_inspection_failed", type="data_inspection_failed")),
        (400, "<400> InternalError.Algo.DataInspectionFailed: Input text data may contain"),
        # DeepSeek: 666ghj/BettaFish#108, deepseek-ai/DeepSeek-V2#30.
        (400, openai_error("Content Exists Risk", code="invalid_request_error")),
        (400, {"detail": "Content Exists Risk"}),
        (400, openai_error("input contains sensitive words: [x]", code="sensitive_words_detected")),
        (400, openai_error("The request was rejected because it was considered high risk")),
        # xAI has 403 and a text; Anthropic blocks what was generated.
        (403, "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"),
        (400, openai_error("Output blocked by content filtering policy")),
        (400, {"error": "The request was blocked by a guardrail"}),
    ],
)
def test_filtered_content_is_a_reply_without_text(status: int, body: Any) -> None:
    fault = of(status, body)
    assert (fault.finish_reason, fault.retryable) == ("content_filter", False)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, FLAGGED),
        (403, "Your account has been suspended for violating our usage policies."),
        (403, openai_error("Your organization was banned: content policy", code="forbidden")),
        (
            404,
            {"message": "No endpoints found matching your guardrail restrictions and data policy."},
        ),
        (400, openai_error("The guardrail identifier provided in the request does not exist.")),
        (400, openai_error("Invalid value for 'temperature'")),
        (403, "<!DOCTYPE html><html><p>Blocked by the content filter of this network</p></html>"),
        (429, openai_error("moderation rate limit reached: requests blocked")),
        (503, openai_error("the content filter is blocked by an outage")),
    ],
)
def test_errors_about_user_or_server_are_no_reply(status: int, body: Any) -> None:
    assert of(status, body).finish_reason is None


@pytest.mark.parametrize(
    "error", [AZURE, {"code": 403, "message": "your input was flagged"}, {"code": "content_filter"}]
)
def test_a_filter_under_a_status_of_success(error: Any) -> None:
    assert faults.body_fault(error).finish_reason == "content_filter"


def test_a_token_limit_that_reasoning_used_up_is_a_truncated_reply() -> None:
    body = openai_error(
        "Could not finish the message because max_tokens or model output limit was reached. Please try"
        " again with higher max_tokens.",
        code=None,
    )
    assert of(400, body).finish_reason == "length"


TPM = "for gpt-4o in organization org-x on tokens per min (TPM):"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        # OpenAI: DrShushen/climb#13. Groq: assafelovic/gpt-researcher#985.
        (
            429,
            f"Request too large {TPM} Limit 30000, Requested 30601. The input or output tokens must be",
        ),
        (
            413,
            "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 14368",
        ),
        (
            429,
            f"Rate limit reached {TPM} Limit 6000, Used 5034, Requested 7000. Please try again in 9s.",
        ),
        (429, f"Rate limit reached {TPM} Limit: 30,000, Requested: 31,012"),
        (429, "Request too large for this tier"),
        (413, "Request body too large for gpt-4o model. Max size: 8000 tokens."),  # GitHub Models
        (413, "Request exceeds the maximum size"),  # Anthropic
        (413, ""),
    ],
)
def test_a_request_that_exceeds_a_limit_by_itself_is_not_tried_again(
    status: int, message: str
) -> None:
    fault = of(status, {"message": message, "type": "tokens", "code": "rate_limit_exceeded"})
    assert (fault.retryable, fault.item_specific) == (False, True)
    assert fault.message.startswith("the request is too large: the server answered ")
    assert message[:40] in fault.message


@pytest.mark.parametrize(
    "message",
    [
        f"Rate limit reached {TPM} Limit 30000, Used 29937, Requested 385. Please try again in 644ms.",
        f"Rate limit reached {TPM} Limit 30000, Used 29000, Requested 2000.",
        # What is requested is below the limit; the sum alone exceeds it (microsoft/graphrag#757).
        "on tokens per minute (TPM): Limit 30000, Used 73124, Requested 1877. Please try again in 1m3s",
        "Rate limit reached on requests per min (RPM): Limit 3, Used 3, Requested 1.",
        # Anthropic (FoundationAgents/OpenManus#746) words it as if it were the request.
        "This request would exceed the rate limit for your organization of 20,000 input tokens per"
        " minute. Please reduce the prompt length or the maximum tokens requested, or try again later.",
        "TokenUsage per minute limit exceeded - too many tokens processed.",
        # Google words a limit by the minute like an exhausted quota (continuedev/continue#11926).
        "You exceeded your current quota, please check your plan and billing details. * Quota exceeded"
        " for metric: generate_content_free_tier_requests, limit: 10 Please retry in 17.30897372s.",
    ],
)
def test_an_ordinary_rate_limit_is_tried_again(message: str) -> None:
    fault = of(429, {"message": message, "code": "rate_limit_exceeded"})
    assert (fault.retryable, fault.item_specific, fault.overload) == (True, False, True)


def test_a_limit_of_nothing_is_an_exhausted_quota() -> None:
    message = "Quota exceeded for metric: free_tier_requests, limit: 0 Please retry in 17.3s."
    fault = of(429, [{"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED"}}])
    assert not fault.retryable
    assert fault.message.startswith("quota exhausted: ")


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum prompt length is 131072 but the request contains 200000 tokens",  # xAI
        "The input token count (40000) exceeds the maximum number of tokens allowed (32768).",  # Google
        "input length and `max_tokens` exceed context limit: 198000 + 20000 > 200000",  # Anthropic
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",  # SGLang
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",  # Mistral
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000",  # TGI
    ],
)
def test_a_prompt_beyond_the_context_is_the_items_own(message: str) -> None:
    fault = of(400, {"message": message})
    assert (fault.retryable, fault.item_specific) == (False, True)
    assert fault.message.startswith("the prompt is too long: ")


# --- names

SENT = (
    "n",
    "stop",
    "top_p",
    "seed",
    "temperature",
    "max_tokens",
    "top_k",
    "logprobs",
    "top_logprobs",
)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        # A field for it decides, whatever the text mentions.
        (openai_error("Unsupported parameter: 'n' is fine", param="top_p"), ["top_p"]),
        (openai_error("stop and n", param="messages[0].role"), []),
        (openai_error("bad", param="body.top_p"), ["top_p"]),
        (
            {
                "detail": [
                    {"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs"}
                ]
            },
            ["seed"],
        ),
        # Mistral (crewAIInc/crewAI#60) and its proxy (mistralai/platform-docs-public#7).
        (
            {"message": {"detail": [{"loc": ["body", "n"], "msg": "Extra inputs", "input": 1}]}},
            ["n"],
        ),
        ({"message": '{"detail":[{"loc":["body","top_k"],"msg":"Extra inputs"}]}'}, ["top_k"]),
        # vLLM: vllm-project/vllm#3657. A missing field is not the whole request that is shown.
        (
            {"message": "[{'type': 'extra_forbidden', 'loc': ('body', 'top_k'), 'input': 20}]"},
            ["top_k"],
        ),
        (
            {
                "message": "[{'type': 'missing', 'loc': ('body', 'prompt'), 'input': {'top_p': 1, 'n': 2}}]"
            },
            [],
        ),
        ({"message": "n must be 1 when using greedy sampling, got 4."}, ["n"]),
        ({"message": "Invalid n value (currently only n = 1 is supported)"}, ["n"]),
        ({"message": "'n' : number must be at most 1"}, ["n"]),  # Groq
        ("Only one completion choice is allowed", ["n"]),  # llama.cpp
        ({"detail": "Unsupported parameter: top_p"}, ["top_p"]),  # ChatGPTNextWeb/NextChat#6774
        ("Input validation error: `top_p` must be > 0.0 and < 1.0", ["top_p"]),  # TGI
        (
            "`temperature` and `top_p` cannot both be specified",
            ["temperature", "top_p"],
        ),  # Anthropic
        ("temperature: range: 0..1", ["temperature"]),
        ("the model does not support the stopSequences parameter. Remove it", ["stop"]),  # Google
        ("stop: Extra inputs are not permitted", ["stop"]),
        ("Too many stop sequences", ["stop"]),
        ("Unrecognized request argument supplied: top_k", ["top_k"]),
        ("Please remove 'logprobs'/'top_logprobs' from your request", ["logprobs", "top_logprobs"]),
        (
            "5 is greater than the maximum of 1 - 'logprobs'",
            ["logprobs"],
        ),  # stanford-crfm/helm#2325
        # No names: an English word, a line break, a hyphen, another parameter.
        ("Please stop sending so many requests", []),
        ("bad item\\n in an n-gram", []),
        ("Unknown parameter: 'frequency_penalty'", []),
        ("no such model", []),
        (None, []),
    ],
)
def test_the_parameters_that_an_error_names(body: Any, names: list[str]) -> None:
    assert list(read_error(body).faulty_parameters(SENT)) == names


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        (openai_error("x", code="unsupported_parameter"), True),
        (
            openai_error(
                "'temperature' does not support 0 with this model.", code="unsupported_value"
            ),
            False,
        ),
        ("Gaudi doesn't support logprobs. Please remove 'logprobs' from your request", True),
        ("Unrecognized request argument supplied: top_k", True),
        ("top_logprobs must be at most 5", False),
        ("Requested sample logprobs of 20, which is greater than max allowed: 5", False),
        ("top_logprobs of more than 5 is not supported", False),
    ],
)
def test_a_name_is_refused_or_a_value(body: Any, refused: bool) -> None:
    assert read_error(body).refuses_parameter is refused


def test_every_text_of_a_body_is_in_the_message_once() -> None:
    wrapped = {"message": "Provider returned error", "metadata": {"raw": '{"message": "too hot"}'}}
    assert read_error(wrapped).message == "too hot"
    detail = {
        "detail": [{"loc": ["body", "seed"], "msg": "Extra inputs", "input": "Q: secret prompt"}]
    }
    assert read_error(detail).message == "body.seed; Extra inputs"
    assert read_error({"error": {"message": "twice", "detail": "twice"}}).message == "twice"


@pytest.mark.parametrize(
    "body", [None, 7, [], {}, [[[]]], {"error": None}, {"message": 3}, "", "[" * 9999]
)
def test_a_body_without_a_text_is_an_error_without_one(body: Any) -> None:
    assert isinstance(read_error(body).message, str)
    assert of(404, body).message.startswith("the server answered 404")
