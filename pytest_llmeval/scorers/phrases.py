"""How replies announce, deny and hedge an answer: the patterns behind ``extract_choice``.

All of them are used on windows of bounded width around a label or an announcing word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pytest_llmeval.scorers.languages import ANSWER_WORDS
from pytest_llmeval.scorers.languages import ANSWER_WORDS_UNSPACED
from pytest_llmeval.scorers.languages import COPULAS
from pytest_llmeval.scorers.languages import NEGATIONS
from pytest_llmeval.scorers.languages import OPTION_WORDS
from pytest_llmeval.scorers.wording import any_of
from pytest_llmeval.scorers.wording import literal
from pytest_llmeval.scorers.wording import without_markup

How = Literal["colon", "copula", "loose"]


NEGATED_LETTER = re.compile(r"[~¬]\s?\w(?!\w)")
FENCE = re.compile(r"\s*(?:```|~~~)\w*\s*")
# What may be short for "Answer:" and is also the label of an option.
SHORT_ANSWER = re.compile(r"[\s*_]{0,4}A[*_]{0,2}[:：][*_]{0,2}")
LABELLED_LINE = re.compile(
    r"[\s*_(\[（【#$>]{0,8}(\w)[*_]{0,2}[)\].:：）】、．]{1,2}[*_]{0,2}(?=\s|$|[^\x00-\x7f])"
)

# What ends where, in scripts whose vowel signs are no letters to `re`.
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f"
    "\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
)
_LATIN = "A-Za-z0-9_\u00b5\u00c0-\u024f\u0370-\u052f"
_CLAUSE_END = r"(?=[*_`$\"'’”}\])>\s]{0,6}(?:[)\],;:!?}。，、）」】।]|\.(?!\w)|\n|$|</|\\\)))"


def label_pattern(labels: str, small: str, forms: Mapping[str, str]) -> re.Pattern[str]:
    """The pattern of a label that stands by itself.

    A capital is one that is no part of a word; a small letter (``small``) counts only where a
    clause ends behind it. The other ``forms`` are letters of other scripts.
    """
    alone = (
        rf"(?<![{_LATIN}].)(?<![A-Za-z]['’].)(?<![A-Za-z]\..)(?<![a-z]-.)(?<![~¬].)"
        rf"(?![{_LATIN}]|['’](?!d[iıuü]r|t[iıuü]r)\w|[-–]\w|\.[A-Za-z]\b|\.\d|\ ?[=^+#])"
    )
    rest = [form for form in forms if form not in labels and form not in small]
    unspaced = [form for form in rest if "\u3000" <= form <= "\ud7ff"]
    spaced = [form for form in rest if form not in unspaced]
    parts = [rf"[{re.escape(labels)}]{alone}"]
    if small:
        parts.append(rf"[{re.escape(small)}](?!\s?[{_LATIN}]){alone}{_CLAUSE_END}")
    if spaced:
        parts.append(
            rf"[{re.escape(''.join(spaced))}](?<![^\W_].)(?<![{_MARKS}].)(?![^\W_]|[{_MARKS}])"
        )
    if unspaced:
        parts.append(
            rf"[{re.escape(''.join(unspaced))}](?![^\W_])"
            rf"|[{re.escape(''.join(unspaced))}](?=です|である|입니다|이다|项|項)"
        )
    every = re.escape("".join(forms))
    return re.compile(rf"(?=[{every}])(?:{'|'.join(parts)})", re.DOTALL)


_WORD = r"[^\s.:;!?。，、；！？¶]+"
_NO = rf"(?!(?:{any_of(NEGATIONS)})(?!\S))"
# A dash directly before a number or a lone letter is a minus; so are those in "is -x", "is - 5".
_DASH = r"[–—-]+(?![–—\d.\\√∞-]|\$[\d\\]|[a-z]\b)"
_COPULA = (
    rf"(?:(?<!\w)(?:{any_of(COPULAS)})(?!\w)|[:：=→]+|{_DASH})"
    r"(?: ?(?:[:：=→]+|[–—-]+(?!\S| \.?\d)))?"
)
_MILD = (
    r"(?:,|clearly|definitely|probably|likely|most|more|very|therefore|thus|hence|indeed|then"
    r"|also|still|just"
    r"|simply|actually|now|certainly|obviously|surely|apparently|perhaps|possibly|maybe|best"
    r"|either|between"
    r"|the|that|it|it's|it’s|is|be|to|in|by|as|of|follows?|given|represented|described|stated|shown"
    r"|correct|right|final|answer|number|one|only|single|following|none other than|answer choice"
    r"|my|would|must|should"
    r"|la|le|l'option|el|die|der|das|den|il|lo|de|nämlich|wohl|donc|bien|por tanto|alors"
    rf"|(?:[ao] )?(?:{any_of(OPTION_WORDS)}))"
)
_TAIL = rf"(?: ?(?:{_MILD}(?![\w'’])|¶)){{0,7}} ?[:：]?(?: ¶)? ?$"
_CJK_NO = r"(?:(?![不非没沒未别別])[^\s.;!?。；！？])"
# Between the word and the label stands no other: "答案是A和B", "答案选A，因为B".
_CJK_GAP = rf"(?:(?!(?<![a-z])[a-z](?![a-z])){_CJK_NO})"
_CJK_STOP = r"(?<![不别別没沒未勿可误誤])"
_LONGER_CJK = any_of(word for word in ANSWER_WORDS_UNSPACED if word not in "选選")
_UNSPACED = rf"{_CJK_STOP}(?:{_LONGER_CJK}|[选選](?![项項择擇択]))"
_ONE = (
    rf"(?:(?:correct|right|best|only|appropriate|accurate|suitable|true|valid|final|remaining"
    rf"|likely|logical)"
    rf" (?:one|statement|response|solution|conclusion|reason|explanation)|solution|conclusion"
    rf"|response|selection"
    rf"|my (?:pick|guess|choice|selection|vote)|{any_of(OPTION_WORDS)})"
)
_ANNOUNCED = re.compile(
    # the answer … is (most likely) …; answer: …
    rf"(?P<noun>(?<!\w)(?:{any_of(ANSWER_WORDS)})(?!\w)"
    rf"(?: {_NO}{_WORD}){{0,9}}? ?(?P<link>{_COPULA}){_TAIL}"
    rf"|(?:{_UNSPACED}){_CJK_GAP}{{0,12}}? ?$"
    rf"|(?<!\w)(?<!each )(?<!every )(?<!any )"
    rf"(?<!following )(?<!other )(?<!possible ){_ONE}(?!\w)"
    rf"(?: {_NO}{_WORD}){{0,6}}? ?(?:{_COPULA}){_TAIL})"
    # the answer B
    rf"|(?P<next>(?<!\w)(?:{any_of(ANSWER_WORDS)})(?: (?:{any_of(OPTION_WORDS)}))?(?: ¶)? ?$)"
    # I choose …
    rf"|(?P<verb>(?<!\w)(?:i|we|i'd|i'll|i’d|i’ll|i'm|i’m|let's|let’s|so|therefore|thus|hence"
    rf"|must|should|would|will)"
    rf"(?: {_NO}[a-z'’]+){{0,3}}? (?:choose|chose|chosen|pick|picked|select|selected|go with"
    rf"|going with|went with"
    rf"|opt for|settle on|vote for|say|guess|conclude|go for){_TAIL}"
    rf"|(?:^|[.!?,:;] )(?:so |then |therefore )?(?:choose|pick|select|choosing|go with){_TAIL})"
    # it must be …; therefore …
    rf"|(?P<loose>(?<!\w)(?:it|that|this|which)(?:['’]s| is| must be| has to be| should be"
    rf"| would be| can only be){_TAIL}"
    rf"|(?<!\w)(?:therefore|thus|hence|(?<=[.!?:] )so|^so|consequently|accordingly|in conclusion"
    rf"|leaves|leaving|leaves us with"
    rf"|leaving us with|only){_TAIL})"
)
_UNSURE = re.compile(
    r"(?<!\w)(?:if|whether|unless|suppose|supposing|assume|assuming|doubt|wonder"
    r"|(?:don't|don’t|do not|cannot|can't|can’t|couldn't|could not|wouldn't|would not) (?:think"
    r"|believe|say|know|conclude|confirm)"
    r"|(?:not|isn't|isn’t) (?:that|the case|true|sure|certain|clear|obvious|claiming|saying)"
    r"|(?:false|wrong|incorrect|untrue|mistake|misconception) (?:that|to))"
    r"(?: (?!but(?!\w))[^\s.,:;!?]+){0,3} ?$"
)
# What others say, or what was thought before: "many think that the answer is", "I thought it was".
_OTHERS = "students|people|readers|many|some|most|others|everyone|they"
_HELD = (
    rf"(?<!\w)(?:(?:{_OTHERS}|one|you)"
    r"(?: (?:may|might|could|would|will|often|commonly|initially|mistakenly|wrongly|incorrectly"
    r"|first|also|be|tempted|inclined|to)){0,4}"
    r" (?:think|thought|say|said|believe|believed|assume|assumed|guess|conclude|expect|claim)"
    r"|i (?:(?:had|have|initially|first|originally|previously|at first|earlier) ){0,2}"
    r"(?:thought|assumed|believed|guessed|suspected))(?!\w)"
)
_HELD_THAT = re.compile(
    rf"{_HELD}(?: (?:that|the|my|at|first|initially|correct|right|best|final|answer|option|choice)"
    r"){0,5} ?$"
)
HELD_BY_OTHERS = re.compile(_HELD)
_OTHERS_WOULD = re.compile(rf"(?<!\w)(?:{_OTHERS}) would(?!\w)")
_WRONG_ANSWER = re.compile(r"(?<!\w)(?:wrong|incorrect|falsche|mauvaise) $")
# "If it were hotter", "had it been asked": what is no premise of this question.
_CONTRARY = re.compile(
    r"(?<!\w)(?:(?:if|unless)(?: [^\s.!?;¶]+){1,6} (?:were|weren['’]t|had|hadn['’]t|was|wasn['’]t"
    r"|did|didn['’]t|asked|wanted)"
    r"|(?:had|were) (?:the|it|this|we|there|they|you|i))(?!\w)[^.!?;¶]*$"
)
_ASKED_INSTEAD = re.compile(
    r"(?:若|如果|假如|要是)[^。；！？;!?¶]{0,8}(?:问|問|改为|改為|换成|換成)[^。；！？;!?¶]*$"
)
# Enough where less is said than that it would be the answer: "if you meant …, it would be".
_PREMISE = re.compile(rf"(?<!\w)(?:if|unless)(?!\w)[^.!?;¶]*$|{_CONTRARY.pattern}")
_BOX_BEFORE = re.compile(
    r"\\f?box(?:ed)?\s{0,3}\{[\s{(\[$*]{0,6}"
    r"(?:\\(?:text(?:bf|it|rm|sf|tt)?|math(?:rm|bf|it|sf|tt)|bf|rm|bm|boldsymbol|large|Large|huge)"
    r"\s{0,2}[\s{(\[$*]{0,6}){0,3}"
    r"(?:(?:[Oo]ption|[Cc]hoice|[Aa]nswer|ANSWER)(?: is)?[:\s]{0,3}[({\[]{0,2})?$"
)
_BOX_AFTER = re.compile(r"[\s)\].:*$]{0,6}(?:\}|[.:)\]\\}][^{}]{0,3}[\s{\\(])")


# Only the announcement itself may be followed by a new paragraph or item.
_CLOSED = re.compile(r"</\w{0,20}answer>", re.IGNORECASE)
_PARAGRAPH = re.compile(r"\n[ \t]{0,8}\n|\n[ \t]{0,8}[*•-][ \t]")


def announced(before: str, after: str) -> How | None:
    """Whether ``before``, the text up to a label, says that the answer comes, and how firmly.

    ``loose``: only what is not followed by more of a sentence counts.
    """
    if _BOX_BEFORE.search(before):
        return "colon" if _BOX_AFTER.match(after) else None
    said = _said(before)
    found = _ANNOUNCED.search(said)
    if found is None or _UNSURE.search(said, 0, found.start()):
        return None
    if _not_held(said, found):
        return None
    if found["noun"] is not None:
        link = said.rstrip()[-1:]
        return "colon" if link in (":", "：", "=") else "copula"
    if found["verb"] is not None:
        return "copula"
    return "loose"


def is_supposed(before: str) -> bool:
    """Whether the answer that ``before`` announces would be one if something else were the case."""
    said = _said(before)
    found = _ANNOUNCED.search(said)
    if found is None:
        return False
    if re.search(r"(?<!\w)would(?!\w)", found.group()) is None:
        return _ASKED_INSTEAD.search(said, 0, found.start()) is not None
    premise = _CONTRARY if found["loose"] is None else _PREMISE
    return premise.search(said, 0, found.start()) is not None


def _said(before: str) -> str:
    """``before`` in small letters without markup; its new paragraphs and items are told."""
    said = _PARAGRAPH.sub(" ¶ ", _CLOSED.sub(" . ", before))
    return " ".join(without_markup(said).lower().split())


def _not_held(said: str, found: re.Match[str]) -> bool:
    """Whether what is announced is another's answer, one given up, or called a wrong one.

    Of several announcements up to the label the last one tells.
    """
    start = found.start()
    while later := _ANNOUNCED.search(said, start + 1):
        start = later.start()
    return _is_others(said, start)


def _is_others(said: str, start: int) -> bool:
    """``_not_held`` of the announcement at ``start``."""
    before = said[:start]
    if _HELD_THAT.search(before) or _OTHERS_WOULD.search(said, max(0, start - 20), start + 6):
        return True
    answer = said.startswith(("ans", "antw", "rép"), start)
    return answer and _WRONG_ANSWER.search(before) is not None


_VERDICT = (
    r"[\s)\]*_\"'”.:（）】」}$]{0,6}"
    r"(?:(?:option|choice)\s)?(?:is|must be|would be|has to be|should be|seems to be|seems"
    r"|appears to be|would seem)"
)
_THE_ANSWER = re.compile(
    _VERDICT
    + r"(?:\s(?:clearly|definitely|thus|therefore|indeed|most|likely|probably|the|my|only|one"
    r"|single|best|correct"
    r"|right|final|appropriate|accurate|suitable|most appropriate|logical"
    r"|valid)){1,7}?\s(?:answer|choice|option|solution|response)\b"
    r"|[)\]」】\s]{0,3}(?:が|は)?(?:正解|答えです)|[)\]」】\s]{0,3}(?:项|項)?(?:是|为|為)(?:正确|正確)?(?:的)?答案"
)
_CORRECT = re.compile(
    _VERDICT + r"(?:\s(?:clearly|definitely|thus|therefore|indeed|most|likely|probably|the|only|one"
    r"|that)){0,5}\s"
    r"(?:correct|right|accurate|the best|best|most accurate|most appropriate)\b(?!\s(?:that"
    r"|to say|in|about|if|only if))"
    r"|[)\]」】\s]{0,3}(?:选项|項|项)?(?:是|才是|为)?(?:唯一)?(?:正确|正確|对的|對的|正しい)"
    r"|[)\]\s]{0,3}(?:가|이)? ?(?:맞습니다|정답)"
    r"|[)\]\s.]{0,3}(?:ist richtig|ist korrekt|est correcte?|es (?:la )?correcta|es correcto"
    r"|è corretta|está correta|верн|правильн)"
)
_NOT_SAID = re.compile(
    r"(?:\bif|\bwhether|\bunless|\bsuppose|\bassum\w+|\bnot|n't|n’t|\bneither|\bnor|\bthough"
    r"|\balthough|\bhow)"
    r"(?:\s\w+){0,2}\s?(?:option|choice|answer|statement|that)?[\s(*\"'“]{0,4}$",
    re.IGNORECASE,
)


def called_the_answer(before: str, after: str) -> bool:
    """Whether it is said of the label between the two that it is the answer."""
    return bool(_THE_ANSWER.match(after)) and not _NOT_SAID.search(before[-60:])


def called_correct(before: str, after: str) -> bool:
    """Whether the label between the two is called correct: less than being the answer."""
    return bool(_CORRECT.match(after)) and not _NOT_SAID.search(before[-60:])


_CONCLUDED = re.compile(
    r"(?<!\w)(?:hence|thus|therefore|so|consequently|accordingly|in conclusion),?"
    r"(?: the)?(?: (?:option|choice|answer))? ?$"
)


def concluded(before: str) -> bool:
    """Whether what is said of the label that ``before`` leads up to is a conclusion."""
    return bool(_CONCLUDED.search(_said(before)))


_CLOSE = r"[\s)\]*_`\"'”’}.$）」】]{0,6}"
_DENIED = re.compile(
    _CLOSE
    + r"(?:(?:is|are|was|would be|can|could)?\s?(?:not|n't|never|cannot|can't|can’t|isn't|isn’t"
    r"|wrong|incorrect|false)\b"
    r"|(?:is|are|was) (?:clearly |obviously )?(?:not|wrong|incorrect|false)\b"
    r"|नहीं|নয়|ではな|ではありません|じゃない|(?:이|가|은|는) ?아니|아니|değil|nicht\b|(?:项|項|选项)?(?:是)?(?:不|错|錯|误|誤))"
)
_ASKED = re.compile(r"[\s)\]*_`\"'”’}$）]{0,6}(?:[?？]|吗|嗎|ですか)")


def denied(after: str) -> bool:
    """Whether what follows a label takes it back."""
    return bool(_DENIED.match(after))


def asked(after: str) -> bool:
    """Whether what follows a label makes it a question."""
    return bool(_ASKED.match(after))


_OTHER = (
    r"(?:,|/|\||&|\+|、|，|;|\bor|\band|\bund|\boder|\bet|\bou|\by|\bo|\be|\bи|\bили|\bو|\bأو|\bया"
    r"|\bবা|\bor maybe"
    r"|\bor possibly|\bor perhaps|\bas well as|和|或|或者|および|または|と|또는|와|과)"
)
_BETWEEN = re.compile(
    r"[\s)\]*_`\"'”’}$.）】]{0,6}" + _OTHER + r"{1,2}\s{0,2}"
    r"(?:(?:either|both|option|choice|answer|possibly|maybe|even|选项"
    r"|選項)\s?){0,2}[\s(\[*_`\"'“{$（【\\]{0,6}"
    r"(?:text\{|\()?"
)
_GOES_ON = re.compile(
    r"[\s)\]*_`\"'”’}$]{0,6}(?:[.,;:!?)\]/&。，、；！？）]|$|\n"
    r"|or\b|and\b|和|或|и\b|и\s|o\s|ou\s|oder\s|und\s|are\b|both\b|중|입니다|です)"
)


_OR = re.compile(r"(?:\b(?:or|oder|ou|или)\b|或|または|또는)")


# "The answer is A, B and C are wrong", "故选A，B、C均错误".
_THEY_ARE_WRONG = re.compile(
    r"(?:\s?(?:,|/|and|or|&){1,2}\s?\(?[A-Z]\)?(?!\w)){0,9},?\s(?:is|are)(?: all| both| clearly)?"
    r" (?:wrong|incorrect|false|not|ruled out)\b"
    r"|(?:\s?[、，和及与與]\s?[A-Z](?![A-Za-z])){0,9}\s?[一二两兩三四五]?(?:项|項|个|個|者|选项|選項)?"
    r"(?:的?说法|的?說法)?(?:均|都|皆|全)?(?:是|为|為)?(?:不|错|錯|误|誤|干扰|干擾)"
)


def offers_another(between: str, form: str, after: str) -> bool:
    """Whether a second label is offered beside the first ("A or B", "A, C").

    Whatever goes on behind it ("A or B depending on …") where the two are alternatives.
    """
    if not _BETWEEN.fullmatch(between) or _THEY_ARE_WRONG.match(after):
        return False
    return bool(_GOES_ON.match(after)) or (form not in "AI" and bool(_OR.search(between)))


def offers_text(rest: str, option: str) -> bool:
    """Whether ``rest``, what follows an option's plain text, offers another option's."""
    joined = re.match(r" ?(?:,|or|and|/|oder|ou|o|или|或)(?: either)? ?(?=\S)", rest)
    return bool(joined) and rest.startswith(option, joined.end() if joined else 0)


_WHY = (
    r"(?:because|since|as|which|and|or|but|due|with|so|for|by"
    r"|if|given|from|based|rather|not|is|are|in this)"
)
_LOWER_WORD = re.compile(rf"[ \t]+(?!{_WHY}\b)[a-zà-ɏ]")
_CAPITAL_WORD = re.compile(r" [A-Z][a-z]")


def is_a_word(form: str, before: str, after: str, how: How) -> bool:
    """Whether the letter is a word of its language ("A metal", "I think") and no label."""
    if form in "AI":
        return bool(_LOWER_WORD.match(after) or _CAPITAL_WORD.match(after))
    if form == "a":
        # "The answer is a" may have been cut off before its noun.
        return how != "colon" and not after.strip() and before[-1:].isspace()
    return False


_CLAUSE = re.compile(
    r"[*_`$\"'’”}\])>）」】 ]{0,6}(?:[,;:!?。，、]|\.(?!\w)|\s*\n|\s*$"
    r"|</|\s[-–—]\s|\s?(?:because|since|as it)\b|\s?(?:है|است)(?!\w))"
)
_FORMULA = re.compile(r"[\s)}\]$]{0,6}(?:[=^+<>·×≤≥≈]|\\(?:cdot|times|cap|cup|in|to)\b)(?!>)(?!/)")


def in_a_formula(after: str) -> bool:
    """Whether a letter is a variable: something is done with it."""
    return bool(_FORMULA.match(after)) and not after.lstrip(" )}]$").startswith(("</", "<|"))


def ends_a_clause(after: str) -> bool:
    """Whether nothing of the same clause follows."""
    return bool(_CLAUSE.match(after))


ANNOUNCEMENT = re.compile(
    literal(
        ("option is", "choice is", "boxed", "correct one is", "fbox", *ANSWER_WORDS),
        (word for word in ANSWER_WORDS_UNSPACED if len(word) > 1),
    )
)
_OPENING = re.compile(r"[\s*_`$\"“‘'({\[（「:：]{0,12}")
_AFTER_WORD = re.compile(
    rf"(?:(?:\s{{1,3}}{_NO}[^\s.:;!?。，、；！？=]+){{0,9}}?\s{{0,3}}"
    rf"(?:{_COPULA})(?P<mild>(?:[\s*]{{1,4}}{_MILD}(?![\w'’])){{0,4}})"
    rf"|{_CJK_GAP}{{0,12}}?[是为為はが은는이:：=]{{1,3}}|\s?\{{|>){_OPENING.pattern}",
    re.IGNORECASE,
)


_CLOSING = re.compile(r"</\w{0,20}$")


def in_closing_tag(text: str, position: int) -> bool:
    """Whether the word at ``position`` ends an answer (``</answer>``) and announces none."""
    return bool(_CLOSING.search(text, max(0, position - 22), position))


def is_its_own(text: str, word: re.Match[str]) -> bool:
    """Whether the announcement that ``word`` begins is the reply's: not doubted, not another's."""
    before = " ".join(text[max(0, word.start() - 60) : word.start()].lower().split())
    said = f"{before} {word.group().lower()}"
    return not _UNSURE.search(before) and not _is_others(said, len(before) + 1)


def announced_at(text: str, word: re.Match[str]) -> tuple[int, ...]:
    """Where the announced answer may start after an announcing word.

    Before and behind words that may only fill in: "only I and II", "the iron".
    """
    if in_closing_tag(text, word.start()):
        return ()
    if not is_its_own(text, word):
        return ()
    match = _AFTER_WORD.match(text, word.end(), word.end() + _REACH)
    if match is None:
        return ()
    if not match["mild"]:
        return (match.end(),)
    opening = _OPENING.match(text, match.start("mild"))
    return (opening.end() if opening else match.start("mild"), match.end())


REFUSAL = re.compile(
    r"(?:none\b|not\b|no (?:answer|option|correct)|cannot|can['’]t|could not|couldn['’]t"
    r"|un(?:known|clear|able|determined|certain)"
    r"|n/a\b|this (?:question|cannot)|i (?:cannot|can['’]t|don['’]t|do not|am not|am unable)"
    r"|don['’]t know|insufficient"
    r"|impossible|undefined|all of\b|both\b|any of\b)",
    re.IGNORECASE,
)
COMPLETE = re.compile(r"[.!?。！？।][\s)\]*_`\"'”’}$]{0,8}$")
_REACH = 160
_LINE_END = re.compile(rf"\n|{_CLOSED.pattern}", re.IGNORECASE)
_CLAUSE_BREAK = re.compile(
    r" ?(?:$|[.,;:!?。，、；！？।](?!\d)|[-–—] |because\b|since\b|as\b|which\b|and\b|but\b|due\b|so\b"
    r"|not\b|rather\b"
    r"|instead\b|or\b|is the\b|です|입니다)"
)


def first_line(text: str) -> str:
    """``text`` up to its first line break, or the tag that closes an answer."""
    end = _LINE_END.search(text)
    return text[: end.start()] if end else text


def clause_ends_at(said: str, position: int) -> bool:
    """Whether a clause of plain text ends at ``position``."""
    return bool(_CLAUSE_BREAK.match(said, position))


NEGATED = re.compile(
    r"(?:\b(?:not|never|neither|nor|cannot|incorrect|wrong|false|except|unlike|unlikely|whether"
    r"|if|or|either)\b"
    r"|n't\b|n’t\b|[不没沒非]|ない|ません|아니|\b(?:nicht|kein|keine|pas|nie|не|não|ليس|नहीं|নয়)\b)"
)
_TOLD = re.compile(
    r"(?:(?<!\w)(?:is|are|was|were|be|equals|equal to|gives|yields|becomes|remains|called|named"
    r"|ist|sind|lautet|est|es|son|é|è|это)"
    r"(?: (?:the|a|an|about|approximately|roughly|exactly|therefore|thus|then|called|equal to|der"
    r"|die|das|la|le|el|il|o))*"
    r"|[=≈:：是为為は은는]) ?$"
)


def is_told_of(before: str) -> bool:
    """Whether a sentence's beginning leads up to what something *is*."""
    return bool(_TOLD.search(before))
