"""How replies state and deny an answer, by language (ISO 639-1): three statements of C, denials of A.

The languages are those of INCLUDE (44) and of Global-MMLU (42). ``{}`` is the text of option C.
"""

from __future__ import annotations

# Language: statements of C; what denies A (and names no other).
STATEMENTS: dict[str, tuple[list[str], list[str]]] = {
    "am": (
        ["ትክክለኛው መልስ C ነው።", "መልስ፦ C", "አማራጭ C ትክክል ነው።", "ስለዚህ መልሱ (C) {} ነው።"],
        ["መልሱ A አይደለም።", "A ስህተት ነው።"],
    ),
    "ar": (
        ["الإجابة الصحيحة هي C.", "الإجابة: C", "الخيار C صحيح.", "لذلك فالإجابة هي (C) {}."],
        ["الإجابة ليست A.", "الخيار A خاطئ."],
    ),
    "az": (
        ["Düzgün cavab C-dir.", "Cavab: C", "C variantı düzgündür.", "Beləliklə, cavab (C) {}."],
        ["Cavab A deyil.", "A variantı səhvdir."],
    ),
    "be": (
        ["Правільны адказ — C.", "Адказ: C", "Варыянт C правільны.", "Такім чынам, адказ (C) {}."],
        ["Адказ не A.", "Варыянт A няправільны."],
    ),
    "bg": (
        ["Правилният отговор е C.", "Отговор: C", "Вариант C е верен.", "Следователно отговорът е (C) {}."],
        ["Отговорът не е A.", "A е грешен отговор."],
    ),
    "bn": (
        ["সঠিক উত্তর হলো C।", "উত্তর: C", "বিকল্প C সঠিক।", "সুতরাং, সঠিক উত্তর (C) {}।"],
        ["উত্তর A নয়।", "বিকল্প A ভুল।"],
    ),
    "cs": (
        ["Správná odpověď je C.", "Odpověď: C", "Možnost C je správná.", "Odpověď je tedy (C) {}."],
        ["Odpověď není A.", "Možnost A je nesprávná."],
    ),
    "da": (
        ["Det rigtige svar er C.", "Svar: C", "Mulighed C er korrekt.", "Derfor er svaret (C) {}."],
        ["Svaret er ikke A.", "Mulighed A er forkert."],
    ),
    "de": (
        ["Die richtige Antwort ist C.", "Antwort: C", "Option C ist richtig.", "Daher ist die Antwort (C) {}."],
        ["Die Antwort ist nicht A.", "A ist falsch."],
    ),
    "el": (
        ["Η σωστή απάντηση είναι το Γ.", "Απάντηση: Γ", "Η επιλογή Γ είναι σωστή.", "Άρα η απάντηση είναι (Γ) {}."],
        ["Η απάντηση δεν είναι το Α.", "Το Α είναι λάθος."],
    ),
    "en": (
        ["The correct answer is C.", "Answer: C", "Option C is correct.", "So the answer is (C) {}."],
        ["The answer is not A.", "A is wrong."],
    ),
    "es": (
        ["La respuesta correcta es la C.", "Respuesta: C", "La opción C es correcta.", "Por lo tanto, la respuesta es (C) {}."],
        ["La respuesta no es A.", "La opción A es incorrecta."],
    ),
    "et": (
        ["Õige vastus on C.", "Vastus: C", "Variant C on õige.", "Seega on vastus (C) {}."],
        ["Vastus ei ole A.", "Variant A on vale."],
    ),
    "eu": (
        ["Erantzun zuzena C da.", "Erantzuna: C", "C aukera zuzena da.", "Beraz, erantzuna (C) {} da."],
        ["Erantzuna ez da A.", "A aukera okerra da."],
    ),
    "fa": (
        ["پاسخ صحیح گزینه C است.", "پاسخ: C", "گزینه C درست است.", "بنابراین پاسخ (C) {} است."],
        ["پاسخ A نیست.", "گزینه A نادرست است."],
    ),
    "fi": (
        ["Oikea vastaus on C.", "Vastaus: C", "Vaihtoehto C on oikein.", "Siis vastaus on (C) {}."],
        ["Vastaus ei ole A.", "Vaihtoehto A on väärin."],
    ),
    "fr": (
        ["La bonne réponse est la C.", "Réponse : C", "L'option C est correcte.", "Donc la réponse est (C) {}."],
        ["La réponse n'est pas A.", "A est fausse."],
    ),
    "ha": (
        ["Amsar da ta dace ita ce C.", "Amsa: C", "Zaɓi C shi ne daidai.", "Don haka amsar ita ce (C) {}."],
        ["Amsar ba A ba ce.", "Zaɓi A kuskure ne."],
    ),
    "he": (
        ["התשובה הנכונה היא C.", "תשובה: ג", "אפשרות C נכונה.", "לכן התשובה היא (C) {}."],
        ["התשובה אינה A.", "אפשרות A שגויה."],
    ),
    "hi": (
        ["सही उत्तर C है।", "उत्तर: C", "विकल्प C सही है।", "अतः सही उत्तर (C) {} है।"],
        ["उत्तर A नहीं है।", "विकल्प A गलत है।"],
    ),
    "hr": (
        ["Točan odgovor je C.", "Odgovor: C", "Opcija C je točna.", "Dakle, odgovor je (C) {}."],
        ["Odgovor nije A.", "Opcija A je netočna."],
    ),
    "hu": (
        ["A helyes válasz a C.", "Válasz: C", "A C opció helyes.", "Tehát a válasz (C) {}."],
        ["A válasz nem A.", "Az A opció hibás."],
    ),
    "hy": (
        ["Ճիշտ պատասխանը C-ն է։", "Պատասխան՝ C", "C տարբերակը ճիշտ է։", "Ուստի պատասխանն է (C) {}։"],
        ["Պատասխանը A-ն չէ։", "A տարբերակը սխալ է։"],
    ),
    "id": (
        ["Jawaban yang benar adalah C.", "Jawaban: C", "Pilihan C benar.", "Jadi, jawabannya adalah (C) {}."],
        ["Jawabannya bukan A.", "Pilihan A salah."],
    ),
    "ig": (
        ["Azịza ziri ezi bụ C.", "Azịza: C", "Nhọrọ C ziri ezi.", "Ya mere azịza bụ (C) {}."],
        ["Azịza abụghị A.", "Nhọrọ A ezighi ezi."],
    ),
    "it": (
        ["La risposta corretta è la C.", "Risposta: C", "L'opzione C è corretta.", "Quindi la risposta è (C) {}."],
        ["La risposta non è A.", "L'opzione A è sbagliata."],
    ),
    "ja": (
        ["正解はCです。", "答え：C", "選択肢Cが正しいです。", "したがって、答えは(C) {}です。"],
        ["答えはAではありません。", "Aは間違いです。"],
    ),
    "ka": (
        ["სწორი პასუხია C.", "პასუხი: C", "ვარიანტი C სწორია.", "ამიტომ პასუხია (C) {}."],
        ["პასუხი არ არის A.", "ვარიანტი A არასწორია."],
    ),
    "kk": (
        ["Дұрыс жауап – C.", "Жауап: C", "C нұсқасы дұрыс.", "Сондықтан жауабы (C) {}."],
        ["Жауап A емес.", "A нұсқасы қате."],
    ),
    "ko": (
        ["정답은 3번입니다.", "정답: C", "선택지 C가 맞습니다.", "따라서 정답은 (C) {}입니다."],
        ["정답은 A가 아닙니다.", "A는 틀렸습니다."],
    ),
    "ky": (
        ["Туура жооп — C.", "Жооп: C", "C варианты туура.", "Ошондуктан жооп (C) {}."],
        ["Жооп A эмес.", "A варианты туура эмес."],
    ),
    "lt": (
        ["Teisingas atsakymas yra C.", "Atsakymas: C", "C variantas yra teisingas.", "Taigi atsakymas yra (C) {}."],
        ["Atsakymas nėra A.", "A variantas yra neteisingas."],
    ),
    "mg": (
        ["Ny valiny marina dia C.", "Valiny: C", "Marina ny safidy C.", "Noho izany ny valiny dia (C) {}."],
        ["Tsy A ny valiny.", "Diso ny safidy A."],
    ),
    "mk": (
        ["Точниот одговор е C.", "Одговор: C", "Опцијата C е точна.", "Значи, одговорот е (C) {}."],
        ["Одговорот не е A.", "Опцијата A е погрешна."],
    ),
    "ml": (
        ["ശരിയായ ഉത്തരം C ആണ്.", "ഉത്തരം: C", "ഓപ്ഷൻ C ശരിയാണ്.", "അതിനാൽ ഉത്തരം (C) {} ആണ്."],
        ["ഉത്തരം A അല്ല.", "ഓപ്ഷൻ A തെറ്റാണ്."],
    ),
    "ms": (
        ["Jawapan yang betul ialah C.", "Jawapan: C", "Pilihan C adalah betul.", "Oleh itu, jawapannya ialah (C) {}."],
        ["Jawapannya bukan A.", "Pilihan A salah."],
    ),
    "ne": (
        ["सही उत्तर C हो।", "उत्तर: C", "विकल्प C सही छ।", "त्यसैले सही उत्तर (C) {} हो।"],
        ["उत्तर A होइन।", "विकल्प A गलत छ।"],
    ),
    "nl": (
        ["Het juiste antwoord is C.", "Antwoord: C", "Optie C is juist.", "Dus het antwoord is (C) {}."],
        ["Het antwoord is niet A.", "Optie A is onjuist."],
    ),
    "ny": (
        ["Yankho lolondola ndi C.", "Yankho: C", "Njira C ndi yolondola.", "Choncho yankho ndi (C) {}."],
        ["Yankho si A.", "Njira A ndi yolakwika."],
    ),
    "pl": (
        ["Poprawna odpowiedź to C.", "Odpowiedź: C", "Opcja C jest poprawna.", "Zatem odpowiedź to (C) {}."],
        ["Odpowiedź to nie A.", "Opcja A jest błędna."],
    ),
    "pt": (
        ["A resposta correta é a C.", "Resposta: C", "A alternativa C está correta.", "Portanto, a resposta é (C) {}."],
        ["A resposta não é A.", "A alternativa A está errada."],
    ),
    "ro": (
        ["Răspunsul corect este C.", "Răspuns: C", "Varianta C este corectă.", "Deci răspunsul este (C) {}."],
        ["Răspunsul nu este A.", "Varianta A este greșită."],
    ),
    "ru": (
        ["Правильный ответ — C.", "Ответ: C", "Вариант C верный.", "Следовательно, ответ (C) {}."],
        ["Ответ не A.", "Вариант A неверен."],
    ),
    "si": (
        ["නිවැරදි පිළිතුර C වේ.", "පිළිතුර: C", "විකල්පය C නිවැරදියි.", "එබැවින් පිළිතුර (C) {} වේ."],
        ["පිළිතුර A නොවේ.", "විකල්පය A වැරදියි."],
    ),
    "sn": (
        ["Mhinduro chaiyo ndeye C.", "Mhinduro: C", "Sarudzo C ndiyo chaiyo.", "Saka mhinduro ndi (C) {}."],
        ["Mhinduro haisi A.", "Sarudzo A haina kururama."],
    ),
    "so": (
        ["Jawaabta saxda ah waa C.", "Jawaab: C", "Doorashada C waa sax.", "Markaa jawaabtu waa (C) {}."],
        ["Jawaabtu ma aha A.", "Doorashada A waa khalad."],
    ),
    "sq": (
        ["Përgjigja e saktë është C.", "Përgjigje: C", "Opsioni C është i saktë.", "Prandaj, përgjigja është (C) {}."],
        ["Përgjigja nuk është A.", "Opsioni A është i gabuar."],
    ),
    "sr": (
        ["Тачан одговор је C.", "Одговор: C", "Опција C је тачна.", "Дакле, одговор је (C) {}."],
        ["Одговор није A.", "Опција A је нетачна."],
    ),
    "sv": (
        ["Rätt svar är C.", "Svar: C", "Alternativ C är rätt.", "Alltså är svaret (C) {}."],
        ["Svaret är inte A.", "Alternativ A är fel."],
    ),
    "sw": (
        ["Jibu sahihi ni C.", "Jibu: C", "Chaguo C ni sahihi.", "Kwa hivyo jibu ni (C) {}."],
        ["Jibu si A.", "Chaguo A si sahihi."],
    ),
    "ta": (
        ["சரியான விடை C ஆகும்.", "பதில்: C", "விருப்பம் C சரியானது.", "எனவே, சரியான பதில் (C) {}."],
        ["விடை A அல்ல.", "விருப்பம் A தவறானது."],
    ),
    "te": (
        ["సరైన సమాధానం C.", "సమాధానం: C", "ఎంపిక C సరైనది.", "కాబట్టి సమాధానం (C) {}."],
        ["సమాధానం A కాదు.", "ఎంపిక A తప్పు."],
    ),
    "th": (
        ["คำตอบที่ถูกต้องคือ C", "คำตอบ: ค", "ตัวเลือก C ถูกต้อง", "ดังนั้นคำตอบคือ (C) {}"],
        ["คำตอบไม่ใช่ A", "ตัวเลือก A ผิด"],
    ),
    "tl": (
        ["Ang tamang sagot ay C.", "Sagot: C", "Ang opsyon C ay tama.", "Kaya ang sagot ay (C) {}."],
        ["Hindi A ang sagot.", "Mali ang opsyon A."],
    ),
    "tr": (
        ["Doğru cevap C şıkkıdır.", "Cevap: C", "C seçeneği doğrudur.", "Bu nedenle doğru cevap (C) {}."],
        ["Cevap A değildir.", "A şıkkı yanlıştır."],
    ),
    "uk": (
        ["Правильна відповідь — C.", "Відповідь: C", "Варіант C правильний.", "Отже, відповідь (C) {}."],
        ["Відповідь не A.", "Варіант A неправильний."],
    ),
    "ur": (
        ["صحیح جواب C ہے۔", "جواب: C", "آپشن C درست ہے۔", "لہٰذا صحیح جواب (C) {} ہے۔"],
        ["جواب A نہیں ہے۔", "آپشن A غلط ہے۔"],
    ),
    "uz": (
        ["To'g'ri javob C.", "Javob: C", "C varianti to'g'ri.", "Demak, javob (C) {}."],
        ["Javob A emas.", "A varianti noto'g'ri."],
    ),
    "vi": (
        ["Đáp án đúng là C.", "Đáp án: C", "Phương án C đúng.", "Vậy đáp án là (C) {}."],
        ["Đáp án không phải là A.", "Phương án A sai."],
    ),
    "yo": (
        ["Ìdáhùn tó tọ́ ni C.", "Ìdáhùn: C", "Àṣàyàn C ló tọ̀nà.", "Nítorí náà ìdáhùn ni (C) {}."],
        ["Ìdáhùn kì í ṣe A.", "Àṣàyàn A kò tọ̀nà."],
    ),
    "zh": (
        ["正确答案是C。", "答案：C", "C选项是正确的。", "因此答案是（C）{}。"],
        ["答案不是A。", "A是错误的。"],
    ),
}  # fmt: skip
