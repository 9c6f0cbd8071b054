"""Words and letters by which replies in many languages state an answer."""

from __future__ import annotations

from collections.abc import Mapping

ANSWER_WORDS: tuple[str, ...] = (
    # "answer"; where it inflects, its forms
    "answer", "ans",
    "antwort", "lösung",
    "réponse", "reponse",
    "respuesta", "resposta", "risposta", "răspuns", "răspunsul", "raspuns",
    "antwoord", "svar", "svaret", "vastaus", "válasz",
    "odpowiedź", "odpowiedz", "odpowiedź to", "vastaus on", "odpověď", "odpoveď", "odgovor",
    "cevap", "cevabı", "yanıt", "jawaban", "jawapan", "sagot", "jibu",
    "đáp án", "câu trả lời",
    "idahun", "ìdáhùn", "idáhùn", "àdáhùn", "àmọ̀nà", "ànúgọ", "àṣàyàn",
    "ответ", "ответом", "відповідь", "отговор", "απάντηση",
    "תשובה", "התשובה",
    "الجواب", "جواب", "الإجابة", "الاجابة", "إجابة", "اجابة", "پاسخ",
    "उत्तर", "जवाब", "উত্তর", "উত্তরঃ", "సమాధానం", "జవాబు", "பதில்", "விடை", "ઉત્તર", "ਉੱਤਰ",
    "उत्तरः",
)  # fmt: skip

# Of the other languages of INCLUDE. Read by `matched` alone so far.
MORE_ANSWER_WORDS: tuple[str, ...] = (
    "përgjigje", "përgjigja", "përgjigjja", "պատասխան", "պատասխանը", "cavab", "erantzuna", "адказ",
    "პასუხი", "პასუხია", "жауап", "жауабы", "atsakymas", "ഉത്തരം", "одговор", "одговорот",
    "отговорът", "vastus", "javob", "javobi",
)  # fmt: skip

# Written without blanks around them, so that no word ends where they do.
ANSWER_WORDS_UNSPACED: tuple[str, ...] = (
    "答案", "答复", "答曰", "正解", "回答", "解答", "答え", "答", "应选", "應選", "故选", "故選",
    "选择", "選擇", "选", "選", "正确选项", "正確選項", "正确的选项", "正确的是",
    "정답", "답변", "답", "คำตอบ",
)  # fmt: skip

OPTION_WORDS: tuple[str, ...] = (
    "option", "choice", "letter", "alternative", "statement",
    "opción", "opcion", "opção", "opcao", "alternativa", "letra", "inciso",
    "proposition", "lettre", "lettera", "opzione", "buchstabe", "möglichkeit", "optie", "opcja",
    "možnost", "seçenek", "şıkkı", "pilihan", "opsi", "chaguo", "lựa chọn", "phương án",
    "вариант", "буква", "варіант", "επιλογή", "אפשרות", "الخيار", "خيار", "الحرف", "حرف", "گزینه",
    "विकल्प", "বিকল্প", "ตัวเลือก", "ข้อ",
)  # fmt: skip

COPULAS: tuple[str, ...] = (
    "is", "are", "was", "be", "remains", "becomes", "equals", "ist", "sind", "lautet", "wäre",
    "est", "serait",
    "es", "son", "sería", "seria", "será", "é", "è", "sarebbe", "este", "jest", "je",
    "är", "er", "adalah", "ialah", "ay", "ni", "là", "это", "является", "будет", "є", "це",
    "είναι",
    "היא", "הוא", "هو", "هي", "است", "है", "হল", "হলো", "হচ্ছে", "คือ",
)  # fmt: skip

# As MORE_ANSWER_WORDS.
MORE_COPULAS: tuple[str, ...] = ("është", "է", "гэта", "е", "არის", "yra")

NEGATIONS: tuple[str, ...] = (
    "not", "isn't", "isn’t", "wasn't", "cannot", "can't", "can’t", "never", "neither", "nor",
    "no", "won't",
    "wouldn't", "doesn't", "don't", "don’t", "isnt", "wrong", "incorrect", "false", "unlikely",
    "unclear", "unknown",
    "except", "whether", "if", "choices", "options", "nicht", "kein", "keine", "weder", "falsch",
    "pas", "incorrecte", "fausse", "incorrecta", "incorrecto", "non", "nunca", "não", "nao",
    "errata",
    "не", "ни", "неверный", "nie", "nu", "inte", "ikke", "değil", "bukan", "không", "si", "sio",
    "ليس", "ليست", "لا", "لیس", "नहीं", "নয়", "ไม่",
)  # fmt: skip

# What a reason begins with, and what a negative number may be written with.
BECAUSE: tuple[str, ...] = (
    "because", "since", "weil", "denn", "car", "parce que", "puisque", "porque", "pues", "ya que",
    "pois", "perché", "потому что", "так как", "поскольку", "kwa sababu", "কারণ",
)  # fmt: skip

BECAUSE_UNSPACED: tuple[str, ...] = ("因为", "因為", "なぜなら", "왜냐하면", "เพราะ")

MINUS: tuple[str, ...] = ("minus", "negative", "menos", "moins", "минус")

QUESTION_WORDS: tuple[str, ...] = (
    "Question", "QUESTION", "Q", "Human", "User", "Frage", "Pregunta", "Pergunta", "Domanda",
    "Vraag", "Pytanie",
    "Вопрос", "Задача", "问题", "問題", "题目", "প্রশ্ন", "प्रश्न", "ప్రశ్న", "โจทย์", "Swali",
    "السؤال", "질문",
)  # fmt: skip

# By language: what stands for A, B, C, …, in this order.
LETTERS: Mapping[str, str] = {
    "full-width": "ＡＢＣＤＥＦＧＨＩＪＫＬＭＮＯＰＱＲＳＴＵＶＷＸＹＺ",
    "full-width small": "ａｂｃｄｅｆｇｈｉｊｋｌｍｎｏｐｑｒｓｔｕｖｗｘｙｚ",
    "circled": "ⒶⒷⒸⒹⒺⒻⒼⒽⒾⒿⓀⓁⓂⓃⓄⓅⓆⓇⓈⓉⓊⓋⓌⓍⓎⓏ",
    "circled small": "ⓐⓑⓒⓓⓔⓕⓖⓗⓘⓙⓚⓛⓜⓝⓞⓟⓠⓡⓢⓣⓤⓥⓦⓧⓨⓩ",
    "parenthesised": "⒜⒝⒞⒟⒠⒡⒢⒣⒤⒥⒦⒧⒨⒩⒪⒫⒬⒭⒮⒯⒰⒱⒲⒳⒴⒵",
    "bold": "𝐀𝐁𝐂𝐃𝐄𝐅𝐆𝐇𝐈𝐉𝐊𝐋𝐌𝐍𝐎𝐏𝐐𝐑𝐒𝐓𝐔𝐕𝐖𝐗𝐘𝐙",
    "circled numbers": "①②③④⑤⑥⑦⑧⑨⑩",
    "ar": "أبجدهو",
    "ar, bare": "ابجد",
    "bn": "কখগঘঙ",
    # As simple-evals lists them.
    "bn, MMLU": "অবডঢ",
    "hi": "कखगघङ",
    "hi, MMLU": "अबसद",
    "th": "กขคงจ",
    "ja": "アイウエオカキクケコ",
    "ja, hiragana": "あいうえお",
    "zh": "甲乙丙丁戊己庚辛壬癸",
    "ko": "ㄱㄴㄷㄹㅁ",
    "ko, syllables": "가나다라마",
    "he": "אבגדה",
    "el": "ΑΒΓΔΕ",
    # В is left out: it looks like B and is the third letter; Е likewise.
    "ru": "АБ Г",
    "ru, small": "аб г",
    "ru, looks like C": "  С",
}

DECIMAL_COMMA: frozenset[str] = frozenset(
    [
        "bg",
        "ca",
        "cs",
        "da",
        "de",
        "el",
        "es",
        "et",
        "eu",
        "fi",
        "fr",
        "gl",
        "hr",
        "hu",
        "id",
        "is",
        "it",
        "lt",
        "lv",
        "mk",
        "nb",
        "nl",
        "nn",
        "no",
        "pl",
        "pt",
        "ro",
        "ru",
        "sk",
        "sl",
        "sq",
        "sr",
        "sv",
        "tr",
        "uk",
        "vi",
    ]
)
"""Languages (ISO 639-1) that write 2,5 for two and a half."""
