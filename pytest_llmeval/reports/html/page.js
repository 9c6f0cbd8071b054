"use strict";
// The item browser. Data comes from the page's own blocks (base64 of deflated JSON) and gets into the
// document as text nodes only: nothing here parses it as markup, and nothing requests the network.
(() => {
  const ROW = 32;
  const NAMES = { c: "correct", w: "wrong", u: "unparsed", e: "error" };
  const MARKS = { c: "✓", w: "✗", u: "?", e: "!" };
  const CORPUS = { o: "in the corpus", n: "not judged" };
  const FLIPS = { w: "newly wrong", r: "newly right" };
  const $ = (id) => document.getElementById(id);
  const browser = document.querySelector(".browser");
  const list = $("list"), space = $("space"), pane = $("item"), count = $("count");
  const choice = { result: $("f-result"), subject: $("f-subject"), outcome: $("f-outcome"), flip: $("f-flip"), corpus: $("f-corpus"), text: $("f-text") };

  // Hidden characters and those that change the text direction, as in reports/formatting.py.
  const HIDDEN = new RegExp(
    "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f" +
    "\\ufeff\\ufff9-\\ufffb\\ufffe\\uffff\\u{d800}-\\u{dfff}\\u{e0000}-\\u{e007f}]", "gu");

  const make = (name, cls, ...children) => {
    const element = document.createElement(name);
    if (cls) element.className = cls;
    element.append(...children);
    return element;
  };
  const sign = (character) => {
    const code = character.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  };
  /** The text as nodes, with symbols for hidden characters. */
  const displayNodes = (text) => {
    const fragment = document.createDocumentFragment();
    let end = 0;
    for (const match of String(text).matchAll(HIDDEN)) {
      fragment.append(text.slice(end, match.index));
      const mark = make("span", "hidden-char", sign(match[0]));
      mark.title = `U+${match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
      fragment.append(mark);
      end = match.index + match[0].length;
    }
    fragment.append(String(text).slice(end));
    return fragment;
  };
  const plain = (text) => String(text).replace(HIDDEN, sign);

  const cache = new Map();
  const unpack = async (id) => {
    const packed = atob($(id).textContent);
    const bytes = new Uint8Array(packed.length);
    for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };
  const block = (id) => {
    if (!cache.has(id)) cache.set(id, unpack(id));
    return cache.get(id);
  };

  let results = [], current = null, rows = [], active = -1, generation = 0;

  /** Where the details of an item of a result are: their block, and the place in it. */
  const size = (owner) => results[owner].block;
  const whereabouts = (result, number) => {
    const owner = result.details_of, at = results[owner];
    let place = number;
    if (owner !== results.indexOf(result)) {
      at.places ??= new Map(at.ids.map((id, n) => [id, n]));
      place = at.places.get(result.ids[number]);
      if (place === undefined) return null;
    }
    return { id: `data-${owner}-${Math.floor(place / size(owner))}`, entry: place % size(owner) };
  };
  const detail = async (result, number) => {
    const where = whereabouts(result, number);
    return where === null ? null : (await block(where.id))[where.entry];
  };

  // Filters ---------------------------------------------------------------------------------

  const option = (value, label) => {
    const element = make("option", "", label);
    element.value = value;
    return element;
  };
  const useResult = (number) => {
    current = results[number];
    choice.result.value = String(number);
    const counts = new Array(current.subjects.length).fill(0);
    for (const subject of current.subject) counts[subject]++;
    choice.subject.replaceChildren(option("", `all (${current.ids.length.toLocaleString("en")})`),
      ...current.subjects.map((name, n) => option(String(n), `${plain(name)} (${counts[n].toLocaleString("en")})`)));
    document.querySelector(".flip-choice").hidden = !current.flip;
    if (!current.flip) choice.flip.value = "";
    document.querySelector(".corpus-choice").hidden = !current.corpus;
    if (!current.corpus) choice.corpus.value = "";
  };
  const passes = (n) =>
    (choice.subject.value === "" || current.subject[n] === Number(choice.subject.value)) &&
    (choice.outcome.value === "" || current.outcome[n] === choice.outcome.value) &&
    (choice.flip.value === "" || current.flip[n] === choice.flip.value) &&
    (choice.corpus.value === "" || current.corpus[n] === choice.corpus.value);
  const inIndex = (n, wanted) =>
    [current.ids[n], current.subjects[current.subject[n]], current.answer[n]].some((text) => text && text.toLowerCase().includes(wanted));
  const inDetail = (entry, wanted) => {
    entry.haystack ??= [
      entry.prompt && entry.prompt.question, ...(entry.prompt ? entry.prompt.choices : []),
      ...entry.samples.flatMap((sample) => [sample.answer, sample.text, sample.reasoning, sample.error, sample.log]),
    ].filter(Boolean).join("\n").toLowerCase();
    return entry.haystack.includes(wanted);
  };

  const filter = async () => {
    const mine = ++generation, wanted = choice.text.value.trim().toLowerCase();
    const chosen = [];
    for (let n = 0; n < current.ids.length; n++) if (passes(n)) chosen.push(n);
    if (!wanted) return show(chosen, "");
    const hits = new Set(chosen.filter((n) => inIndex(n, wanted)));
    show(chosen.filter((n) => hits.has(n)), " so far; reading texts …");
    const waiting = chosen.filter((n) => !hits.has(n));
    let breath = performance.now();
    for (const n of waiting) {
      const entry = await detail(current, n);
      if (mine !== generation) return;
      if (entry && inDetail(entry, wanted)) hits.add(n);
      if (performance.now() - breath > 60) {
        show(chosen.filter((m) => hits.has(m)), " so far; reading texts …");
        await new Promise((done) => setTimeout(done));
        if (mine !== generation) return;
        breath = performance.now();
      }
    }
    show(chosen.filter((n) => hits.has(n)), "");
  };
  const show = (chosen, more) => {
    const selected = active >= 0 ? rows[active] : -1;
    rows = chosen;
    active = rows.indexOf(selected);
    space.style.height = `${rows.length * ROW}px`;
    count.textContent = `${rows.length.toLocaleString("en")} of ${current.ids.length.toLocaleString("en")} items${more}`;
    draw();
  };

  // The list: only the rows in view are in the document ---------------------------------------

  const rowOf = (place) => {
    const n = rows[place], outcome = current.outcome[n], gold = current.gold[n];
    const mark = make("span", "mark", MARKS[outcome]);
    mark.title = NAMES[outcome];
    const id = make("span", "id mono");
    id.append(displayNodes(current.ids[n]));
    const reading = make("span", "reading");
    if (current.samples.length) reading.append(`${current.right[n]} of ${current.samples[n]} correct`);
    else if (outcome === "w") reading.append(displayNodes(current.answer[n] ?? (gold ? "–" : "")), gold ? " · gold " : "", displayNodes(gold));
    else if (outcome !== "e") reading.append(outcome === "u" && gold ? "gold " : "", displayNodes(gold));
    const flip = current.flip && current.flip[n];
    const last = make("span", "last", reading);
    if (flip in FLIPS) last.append(make("span", `flip ${flip}`, FLIPS[flip]));
    const corpus = current.corpus && current.corpus[n];
    if (corpus === "o") last.append(make("span", "flip o", CORPUS.o));
    const row = make("div", `row ${outcome}${place === active ? " active" : ""}`, mark, id, last);
    row.style.top = `${place * ROW}px`;
    row.id = `row-${place}`;
    row.dataset.place = place;
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", String(place === active));
    row.setAttribute("aria-posinset", String(place + 1));
    row.setAttribute("aria-setsize", String(rows.length));
    row.setAttribute("aria-label", `${plain(current.ids[n])}, ${NAMES[outcome]}${flip in FLIPS ? `, ${FLIPS[flip]}` : ""}${corpus === "o" ? `, ${CORPUS.o}` : ""}`);
    return row;
  };
  const draw = () => {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 8);
    const last = Math.min(rows.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + 8);
    const made = [];
    for (let place = first; place < last; place++) made.push(rowOf(place));
    space.replaceChildren(...made);
    if (active >= first && active < last) list.setAttribute("aria-activedescendant", `row-${active}`);
    else list.removeAttribute("aria-activedescendant");
  };
  const move = (place) => {
    if (!rows.length) return;
    active = Math.max(0, Math.min(rows.length - 1, place));
    const top = active * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
    draw();
  };

  // One item ----------------------------------------------------------------------------------

  const pre = (text) => {
    const element = make("pre", "");
    element.dir = "auto";
    element.append(displayNodes(text));
    return element;
  };
  const fold = (title, ...children) => make("details", "", make("summary", "", title), ...children);
  const facts = (entries) => {
    const rows = make("dl", "");
    for (const [name, value] of entries) {
      if (value === null || value === undefined) continue;
      const cell = make("dd", "");
      cell.append(typeof value === "string" ? displayNodes(value) : value);
      rows.append(make("dt", "", name), cell);
    }
    return rows;
  };
  const badge = (outcome) => make("span", `badge ${outcome}`, outcome);

  const likelihoods = (sample, gold, prompt) => {
    const values = sample.logprobs, scored = sample.scored ?? values, other = scored !== values && scored.length;
    const most = Math.max(...scored.map((v) => (v === null ? -Infinity : v)));
    const weights = scored.map((v) => (v === null ? 0 : Math.exp(v - most)));
    const sum = weights.reduce((a, b) => a + b, 0);
    const written = (value) => make("td", "num", value === null ? "−∞" : value.toFixed(4));
    const body = make("tbody", "");
    values.forEach((value, n) => {
      const label = String.fromCharCode(65 + n);
      const note = [label === sample.answer ? "answer" : "", label === gold ? "gold" : ""].filter(Boolean).join(", ");
      const row = make("tr", "", make("td", "mono", label), written(value));
      if (other) row.append(written(scored[n]));
      if (scored.length) {
        const meter = make("meter", "");
        meter.value = weights[n] / sum;
        meter.title = meter.value.toFixed(4);
        row.append(make("td", "num", `${(100 * weights[n] / sum).toFixed(1)} %`), make("td", "", meter));
      }
      const option = make("td", "");
      if (prompt && prompt.choices[n] !== undefined) option.append(displayNodes(prompt.choices[n]));
      row.append(make("td", "", note), option);
      body.append(row);
    });
    const table = make("table", "choices", body);
    if (other) {
      const heads = ["", "log-likelihood", "per character", "share", "", "", ""].map((text) => make("th", text ? "num" : "", text));
      table.prepend(make("thead", "", make("tr", "", ...heads)));
    }
    return table;
  };

  const promptOf = (prompt, chat, shots) => {
    const parts = [make("h4", "", "Prompt as sent")];
    const examples = prompt.shots.map((n) => shots[n]);
    const title = `${examples.length} worked example${examples.length === 1 ? "" : "s"}`;
    const turn = (role) => make("p", "turn", role);
    if (chat && !prompt.as_text) {
      if (prompt.description) parts.push(turn("system"), pre(prompt.description.trimEnd()));
      if (examples.length) parts.push(fold(title, ...examples.flatMap(([question, answer]) => [turn("user"), pre(question), turn("assistant"), pre(answer)])));
      parts.push(turn("user"), pre(prompt.question));
      if (prompt.prefix) parts.push(turn("assistant, prefilled"), pre(prompt.prefix));
      return parts;
    }
    if (chat && prompt.description) parts.push(turn("system"), pre(prompt.description.trimEnd()));
    else if (prompt.description) parts.push(pre(prompt.description));
    if (examples.length) parts.push(fold(title, ...examples.map(([question, answer]) => pre(question + prompt.delimiter + answer + prompt.separator))));
    parts.push(pre(prompt.question + (prompt.prefix && !chat ? prompt.delimiter + prompt.prefix : "")));
    if (chat && prompt.prefix) parts.push(turn("assistant, prefilled"), pre(prompt.prefix));
    return parts;
  };

  const sampleOf = (sample, result, n, prompt, about = []) => {
    const parts = [], gold = result.gold[n];
    const also = sample.also && Object.entries(sample.also).map(([scorer, [outcome, answer]]) =>
      make("span", "", `${scorer}: `, badge(outcome), " ", answer === null ? "–" : displayNodes(answer), " "));
    parts.push(facts([
      ...about,
      ["answer", sample.answer ?? (sample.outcome === "error" || result.gold[n] === "" ? null : "none could be extracted")],
      ["extraction", sample.why],
      ["doubtful", sample.doubt],
      ["other scorers", also && make("span", "", ...also)],
      ["error", sample.error],
      ["ended by", sample.finish === "length" ? "length (cut off at the token limit)" : sample.finish],
      ["tokens", sample.tokens === undefined ? null : `${sample.tokens} generated${sample.prompt_tokens === undefined ? "" : `, ${sample.prompt_tokens} in the prompt`}`],
      ["executed on", sample.node],
      ["time", sample.seconds === undefined ? null : `${sample.seconds} s`],
      ["tie", sample.tie ? `several options were equally good; ${result.ties}` : null],
      ["examples left out", sample.dropped ? `${sample.dropped} (prompt window)` : null],
    ]));
    if (sample.logprobs) parts.push(make("h4", "", "Log-likelihoods"), likelihoods(sample, gold, prompt));
    if (sample.reasoning) parts.push(fold("Reasoning before the answer", pre(sample.reasoning)));
    if (sample.text !== undefined) parts.push(make("h4", "", "Response"), sample.text === "" ? make("p", "small", "(empty)") : pre(sample.text));
    if (sample.log) parts.push(make("h4", "", "Log of the execution"), pre(sample.log));
    return parts;
  };

  const open = async () => {
    if (active < 0 || active >= rows.length) return;
    const result = current, n = rows[active], mine = `${results.indexOf(result)}/${n}`;
    pane.dataset.opened = mine;
    const [entry, shots] = await Promise.all([detail(result, n), block("data-shots")]);
    if (pane.dataset.opened !== mine) return;
    const outcome = result.outcome[n], title = make("h3", "mono");
    title.append(displayNodes(result.ids[n]));
    const line = make("p", "", badge(NAMES[outcome]), " ");
    if (result.flip && result.flip[n] in FLIPS) line.append(make("span", `badge ${result.flip[n] === "w" ? "wrong" : "correct"}`, FLIPS[result.flip[n]]), " ");
    const corpus = result.corpus && result.corpus[n];
    if (corpus in CORPUS) line.append(make("span", "badge warned", CORPUS[corpus]), " ");
    const subject = make("span", "small");
    subject.append(displayNodes(result.subjects[result.subject[n]].replaceAll("_", " ")));
    line.append(subject);
    const before = result.before_outcome ? result.before_outcome[n] : "-";
    const parts = [title, line], about = [
      ["gold", result.gold[n] || null],
      ["baseline", before in NAMES ? make("span", "", badge(NAMES[before]), " ", result.before[n] === null ? "" : displayNodes(result.before[n])) : null],
    ];
    if (!entry || entry.samples.length > 1) parts.push(facts(about));
    if (!entry) parts.push(make("p", "small", "No details of this item are stored."));
    else {
      if (entry.samples.length === 1) parts.push(...sampleOf(entry.samples[0], result, n, entry.prompt, about));
      else entry.samples.forEach((sample, number) => {
        const folded = fold(make("span", "", `Sample ${number + 1} `, badge(sample.outcome)), ...sampleOf(sample, result, n, entry.prompt));
        folded.open = number === 0;
        parts.push(folded);
      });
      if (entry.overlap) parts.push(make("h4", "", "In the corpus"), facts([["match", entry.overlap.words], ["document", entry.overlap.document]]), pre(entry.overlap.passage));
      if (entry.prompt) parts.push(...promptOf(entry.prompt, result.chat, shots));
      else parts.push(make("p", "small", "The prompt is not stored: the run is of an earlier version, or it did not finish."));
    }
    pane.replaceChildren(...parts);
    pane.scrollTop = 0;
    $("items").classList.add("opened");
  };

  // Events --------------------------------------------------------------------------------------

  const listen = () => {
    for (const field of [choice.subject, choice.outcome, choice.flip, choice.corpus]) field.addEventListener("change", filter);
    choice.result.addEventListener("change", () => { useResult(Number(choice.result.value)); active = -1; filter(); });
    let pause = 0;
    choice.text.addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(filter, 120); });
    document.querySelector(".filters").addEventListener("submit", (event) => { event.preventDefault(); filter(); });
    document.querySelector(".filters").addEventListener("reset", (event) => {
      event.preventDefault();
      for (const field of [choice.subject, choice.outcome, choice.flip, choice.corpus, choice.text]) field.value = "";
      filter();
    });
    list.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
    new ResizeObserver(() => draw()).observe(list);
    list.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) { move(Number(row.dataset.place)); open(); }
    });
    list.addEventListener("keydown", (event) => {
      const page = Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
      const steps = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: rows.length - 1 };
      if (event.key in steps) { event.preventDefault(); move(steps[event.key]); }
      else if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open().then(() => event.key === "Enter" && pane.focus({ preventScroll: true })); }
    });
    pane.addEventListener("keydown", (event) => { if (event.key === "Escape") list.focus(); });
    choice.text.addEventListener("keydown", (event) => { if (event.key === "Escape") list.focus(); });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.target.closest("input, select")) return;
      event.preventDefault();
      choice.text.focus();
    });
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-result]");
      if (!link) return;
      const { result, subject, flip, outcome, corpus } = link.dataset;
      useResult(Number(result));
      choice.text.value = "";
      choice.outcome.value = outcome ?? "";
      choice.flip.value = flip ?? "";
      choice.corpus.value = corpus ?? "";
      choice.subject.value = subject === undefined ? "" : String(current.plain.indexOf(subject));
      if (choice.subject.value === "-1") choice.subject.value = "";
      active = -1;
      list.scrollTop = 0;
      filter();
    });
  };

  const start = async () => {
    if (typeof DecompressionStream === "undefined") {
      $("items").append(make("p", "note", "This browser is too old for the item browser."));
      return;
    }
    results = await block("data-index");
    if (!results.some((result) => result.ids.length)) return;
    for (const result of results) result.plain = result.subjects.map(plain);
    choice.result.replaceChildren(...results.map((result, n) => option(String(n), plain(`${result.name} ${result.model}`))));
    document.querySelector(".result-choice").hidden = results.length < 2;
    useResult(0);
    browser.hidden = false;
    listen();
    filter();
  };
  start();
})();
