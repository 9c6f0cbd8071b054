"""Replies that public tools read wrongly, by the case ids of the project's collection.

Written here rather than read from there, so that the tests run everywhere.
"""

from __future__ import annotations

# id: (reply, options, the label that it settles on)
CHOICES: dict[str, tuple[str, list[str], str | None]] = {
    "a01": (
        "Lower pressure lowers the boiling point, so the kettle starts earlier.\n\n$\\boxed{\\text{B}}$",
        ["later", "earlier", "at the same time", "never"],
        "B",
    ),
    "a02": (
        "Copper has the lowest resistance of the four.\n\n**ANSWER: $C$**",
        ["iron", "lead", "copper", "tin"],
        "C",
    ),
    "a04": (
        "Both explanations fit the data.\n\nANSWER: Don't know",
        ["warm front", "cold front", "sea breeze", "inversion"],
        None,
    ),
    "a06": ("The correct answer is d.", ["1 s", "2 s", "3 s", "4 s"], "D"),
    "a08": ("The answer is iron oxide.", ["Iron", "Iron oxide", "Copper", "Zinc"], "B"),
    "a10": (
        "Actually, both readings are plausible and the passage does not settle it.",
        ["agree", "disagree", "neither", "both"],
        None,
    ),
    "a13": (
        "The shift obeys $\\boxed{\\Delta E \\gg k_B T}$, so thermal mixing is negligible.\n\n**Answer: D**",
        ["strong mixing", "weak mixing", "resonance", "no mixing"],
        "D",
    ),
    "a14": (
        "As asked, the last line has the form 'Answer: $LETTER'.\nAnswer: $B",
        ["7", "9", "11", "13"],
        "B",
    ),
    "a15": (
        "Answer: Let's work through it. The river carries silt, which rules out the first half of the list. The answer is (G).",
        [
            "opt1",
            "opt2",
            "opt3",
            "opt4",
            "opt5",
            "opt6",
            "opt7",
            "opt8",
            "opt9",
            "opt10",
            "opt11",
            "opt12",
        ],
        "G",
    ),
    "a16": (
        "选项A讲的是体积，选项B讲的是质量，都与题意不符，因此只有选项D是对的。",
        ["体积", "质量", "密度", "温度"],
        "D",
    ),
    "a18": ("The answer is A or B.", ["heat", "work", "power", "force"], None),
    "a19": ("The answer is D, certainly not A or B.", ["north", "south", "east", "west"], "D"),
    "a21": ("The net force is 4.5 N.", ["5 N", "45 N", "4.5 N", "54 N"], "C"),
    "a23": (
        "Answer: a metal is asked for, so test each one.\nTin melts too early.\nANSWER: B",
        ["sulfur", "tungsten", "tin", "iodine"],
        "B",
    ),
    "a24": (
        "The vibration and the heat both point to a worn bearing.\n\nC",
        ["misalignment", "imbalance", "bearing wear", "cavitation"],
        "C",
    ),
    "a25": (
        "**Answer:**\n\n**B) 12 cm**\n\nThe two legs are 7.2 and 9.6.",
        ["10 cm", "12 cm", "14 cm", "16 cm"],
        "B",
    ),
}

# id: (reply, gold, the number that it ends up with, whether it is right)
NUMBERS: dict[str, tuple[str, str, str | None, bool]] = {
    "b01": (
        "She clipped 40 in spring and 32 in summer. The total is 72 clips, altogether.",
        "72",
        "72",
        True,
    ),
    "b02": ("The van costs $\\boxed{\\$9{,}500}$.", "9500", "9500", True),
    "b04": ("#### $29.00", "29", "29", True),
    "b07": (
        "Step 1: read the Question again. Step 2: 4 shelves of 3 books.\n#### 12",
        "12",
        "12",
        True,
    ),
    "b08": ("So the account stands at −5 dollars.", "-5", "-5", True),
    "b09": ("The answer is 25", "5", "25", False),
    "b10": ("Out of 100 tickets, the discount is 20%.", "20", "20", True),
    "b14": (
        "#### 70000",
        "Both repairs came to 130,000-60,000=$<<130000-60000=70000>>70,000\n#### 70,000",
        "70000",
        True,
    ),
    "b15": ("The sample weighs about 1.5e3 grams.", "1500", "1500", True),
    "b16": ("After the refund she has **(42)**!", "42", "42", True),
    "b18": ("I cannot work this out without the price of a ticket.", "40", None, False),
}

# What public patterns read in the same replies: id, mmlu_pro_official, mmlu_pro_lmeval, simple_evals.
# (a02, a14: simple-evals drops `$` and `**` first, which the collection's figures left out.)
TOOLS_CHOICES: list[tuple[str, str | None, str | None, str | None]] = [
    ("a01", "B", None, None),
    ("a02", "C", None, "C"),
    ("a04", None, None, "D"),
    ("a06", None, None, None),
    ("a08", None, None, None),
    ("a10", None, None, None),
    ("a13", "D", None, "D"),
    ("a14", "B", None, "B"),
    ("a15", "G", "G", None),
    ("a16", None, None, None),
    ("a18", "A", "A", None),
    ("a19", "D", "D", None),
    ("a21", None, None, None),
    ("a23", "B", None, "a"),
    ("a24", "C", None, None),
    ("a25", "B", None, None),
]

# id, outcome under lmeval_strict, outcome under lmeval_flexible
TOOLS_NUMBERS: list[tuple[str, str, str]] = [
    ("b01", "unparsed", "correct"),
    ("b02", "unparsed", "wrong"),
    ("b04", "unparsed", "wrong"),
    ("b07", "correct", "correct"),
    ("b08", "unparsed", "wrong"),
    ("b09", "unparsed", "wrong"),
    ("b10", "unparsed", "correct"),
    ("b14", "correct", "correct"),
    ("b15", "unparsed", "wrong"),
    ("b16", "unparsed", "correct"),
    ("b18", "unparsed", "unparsed"),
]
