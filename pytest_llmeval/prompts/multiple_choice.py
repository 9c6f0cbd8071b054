"""Formats of multiple-choice questions, with letters or with the texts of options as answers.

Formats of lm-evaluation-harness are those of version 0.4.13.
"""

from __future__ import annotations

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.core import option_labels


def option_lines(item: Item) -> str:
    """Return the options as lines (``A. first``), each with a line break before it.

    Options are not stripped, since none of the formats with these lines strips them.
    """
    return "".join(
        f"\n{label}. {option}" for label, option in zip(labels(item), item.options, strict=True)
    )


def labels(item: Item) -> tuple[str, ...]:
    """Return the labels of the item's options, as choices whose likelihoods are compared."""
    return option_labels(len(item.options))


def whole_options(item: Item) -> tuple[str, ...]:
    """Return the texts of the item's options, as choices whose likelihoods are compared."""
    return item.options


def no_choices(_item: Item) -> tuple[str, ...]:
    """Return no choices, for formats with generated answers."""
    return ()


def no_description(_subject: str) -> str:
    """Return an empty description."""
    return ""


def _description(subject: str) -> str:
    topic = subject.replace("_", " ")
    return f"The following are multiple choice questions (with answers) about {topic}.\n\n"


def _question(item: Item) -> str:
    return f"{item.question.strip()}{option_lines(item)}\nAnswer:"


LMEVAL_MMLU = Template(
    name="lmeval-mmlu", description=_description, question=_question, choices=labels
)
"""The format of lm-eval's MMLU; the question is stripped, the options are not.

Source: the task files ``tasks/mmlu/default/*.yaml``. All 57 subjects have the same text, except for
the name of the subject.
"""


def _cloze_question(item: Item) -> str:
    return f"Question: {item.question}\nAnswer:"


CLOZE = Template(
    name="cloze", description=no_description, question=_cloze_question, choices=whole_options
)
"""The cloze format: the prompt has no options, and the likelihoods of their texts are compared.

Suitable for small models that cannot use letters yet. Source: the format of ARC in the GPT-3 paper
and in lm-evaluation-harness.
"""


def _hendrycks_description(subject: str) -> str:
    topic = "".join(f" {word}" for word in subject.split("_"))
    return f"The following are multiple choice questions (with answers) about {topic}.\n\n"


def _hendrycks_question(item: Item) -> str:
    return f"{item.question}{option_lines(item)}\nAnswer:"


HENDRYCKS = Template(
    name="hendrycks",
    description=_hendrycks_description,
    question=_hendrycks_question,
    choices=labels,
)
"""The format of the script of the MMLU paper (hendrycks/test, ``evaluate.py``).

The script puts a space before every word of the subject, so that there are two spaces between
"about" and the subject; it strips nothing. Scores published with it were measured on this text.
"""


def _commonsenseqa_question(item: Item) -> str:
    return f"Question: {item.question.strip()}{option_lines(item)}\nAnswer:"


LMEVAL_COMMONSENSEQA = Template(
    name="lmeval-commonsenseqa",
    description=no_description,
    question=_commonsenseqa_question,
    choices=labels,
)
"""The format of lm-eval's CommonsenseQA: question and lettered options; letters are compared.

Source: ``tasks/commonsense_qa/default.yaml``, for five options. The question is stripped, the
options are not. Here it supports any number of options, and is also used for benchmarks without a
published lettered format.
"""


def _include_description(subject: str) -> str:
    language = subject.replace("_", " ")
    return f"The following are multiple choice questions (with answers) in {language}.\n\n"


def _include_question(item: Item) -> str:
    return f"{item.question.strip()}{option_lines(item)}\nAnswer:"


def _lmeval_question(item: Item) -> str:
    domain = item.fields["domain"]
    if (item.subject, domain) == ("Hebrew", "Driving License"):
        domain = "Driving license"  # only in this task file
    options = "".join(
        f"\n{' ' * (label == 'D')}{label}. {option}"
        for label, option in zip(labels(item), item.options, strict=True)
    )
    return (
        f"The following is multiple-choice question about {domain}."
        f"{item.question.strip()}{options}\nAnswer:"
    )


INCLUDE = Template(
    name="include", description=_include_description, question=_include_question, choices=labels
)
"""A lettered format of this package for INCLUDE."""

LMEVAL_INCLUDE = Template(
    name="lmeval-include", description=no_description, question=_lmeval_question, choices=labels
)
"""The format of lm-eval's INCLUDE, with its two errors.

Source: the task files ``tasks/include/default``. In all of them a folded line of YAML adds a space
before ``D.``, and the description lacks a line break before the question. The description depends
on the domain, which is a field of the item here, so it is part of the question (in a chat, lm-eval
sends it as system message). The few-shot variants are not reproduced, because they select shots
from the scored split.
"""


CMMLU_SUBJECTS = {
    "agronomy": "农学",
    "anatomy": "解剖学",
    "ancient_chinese": "古汉语",
    "arts": "艺术学",
    "astronomy": "天文学",
    "business_ethics": "商业伦理",
    "chinese_civil_service_exam": "中国公务员考试",
    "chinese_driving_rule": "中国驾驶规则",
    "chinese_food_culture": "中国饮食文化",
    "chinese_foreign_policy": "中国外交政策",
    "chinese_history": "中国历史",
    "chinese_literature": "中国文学",
    "chinese_teacher_qualification": "中国教师资格",
    "clinical_knowledge": "临床知识",
    "college_actuarial_science": "大学精算学",
    "college_education": "大学教育学",
    "college_engineering_hydrology": "大学工程水文学",
    "college_law": "大学法律",
    "college_mathematics": "大学数学",
    "college_medical_statistics": "大学医学统计",
    "college_medicine": "大学医学",
    "computer_science": "计算机科学",
    "computer_security": "计算机安全",
    "conceptual_physics": "概念物理学",
    "construction_project_management": "建设工程管理",
    "economics": "经济学",
    "education": "教育学",
    "electrical_engineering": "电气工程",
    "elementary_chinese": "小学语文",
    "elementary_commonsense": "小学常识",
    "elementary_information_and_technology": "小学信息技术",
    "elementary_mathematics": "初等数学",
    "ethnology": "民族学",
    "food_science": "食品科学",
    "genetics": "遗传学",
    "global_facts": "全球事实",
    "high_school_biology": "高中生物",
    "high_school_chemistry": "高中化学",
    "high_school_geography": "高中地理",
    "high_school_mathematics": "高中数学",
    "high_school_physics": "高中物理学",
    "high_school_politics": "高中政治",
    "human_sexuality": "人类性行为",
    "international_law": "国际法学",
    "journalism": "新闻学",
    "jurisprudence": "法理学",
    "legal_and_moral_basis": "法律与道德基础",
    "logical": "逻辑学",
    "machine_learning": "机器学习",
    "management": "管理学",
    "marketing": "市场营销",
    "marxist_theory": "马克思主义理论",
    "modern_chinese": "现代汉语",
    "nutrition": "营养学",
    "philosophy": "哲学",
    "professional_accounting": "专业会计",
    "professional_law": "专业法学",
    "professional_medicine": "专业医学",
    "professional_psychology": "专业心理学",
    "public_relations": "公共关系",
    "security_study": "安全研究",
    "sociology": "社会学",
    "sports_science": "体育学",
    "traditional_chinese_medicine": "中医中药",
    "virology": "病毒学",
    "world_history": "世界历史",
    "world_religions": "世界宗教",
}
"""Subject → its name in the description."""


def _cmmlu_description(subject: str) -> str:
    topic = CMMLU_SUBJECTS.get(subject, subject)
    return f"以下是关于{topic}的单项选择题，请直接给出正确答案的选项。\n\n"


def _cmmlu_question(item: Item) -> str:
    return f"{item.question.strip()}{option_lines(item)}\n答案："


LMEVAL_CMMLU = Template(
    name="lmeval-cmmlu", description=_cmmlu_description, question=_cmmlu_question, choices=labels
)
"""The format of lm-eval's CMMLU, in Chinese; the question is stripped, the options are not.

Sources: Li et al. (2023); ``tasks/cmmlu`` for the text and the names of the subjects.
"""
