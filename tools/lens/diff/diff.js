// The page of `lens diff`: two systems' scores, who wins which sentences, and the sentences.

(function () {
  const data = JSON.parse($("data").textContent), kAtOnce = 20;
  const state = {order: "lost", search: "", shown: kAtOnce};
  const counted = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
  $("theme").append(themeButton());
  $("about").replaceChildren("A: ", el("b", {}, data.a), ". B: ", el("b", {}, data.b),
    `. ${counted(data.sentences, "sentence")}: B translates ${data.won} better than A, ${data.lost} worse, ${data.tied} equally well.`);
  $("left-out").hidden = !data.left_out;
  $("left-out").textContent = `${counted(data.left_out, "line")} of the pairs ${data.left_out === 1 ? "was" : "were"} left out, since something is wrong with ${data.left_out === 1 ? "it" : "them"}: ` +
    "lens diff said what on standard error. Scores are of the others.";

  const one = (x) => x.toFixed(1), two = (x) => x.toFixed(2), plus = (x, text) => (x > 0 ? "+" : "") + text(x).replace("-", "−");
  const rows = (id, heads, body) =>
    put($(id), html`<thead><tr>${heads.map((h) => html`<th scope="col"${h.includes("below") ? html` class="drawn"` : ""}>${h}</th>`)}</tr></thead><tbody>${body}</tbody>`);
  const cells = (values) => values.map((v) => html`<td>${v}</td>`);

  // ---- scores ----

  const W = 260, H = 22;
  const ends = (s) => s.confidence ? [s.confidence.mean - s.confidence.half_width, s.confidence.mean + s.confidence.half_width] : [s.score, s.score];
  function intervals(s) {
    const all = [...ends(s.a), ...ends(s.b), s.a.score, s.b.score], low = Math.min(...all), wide = Math.max(...all) - low || 1;
    const x = (value) => 6 + ((W - 12) * (value - low)) / wide;
    const bar = (name, of, y) => html`<line class="${name}" x1="${x(ends(of)[0])}" x2="${x(ends(of)[1])}" y1="${y}" y2="${y}"/><circle class="${name}" cx="${x(of.score)}" cy="${y}" r="4"/>`;
    return html`<svg width="${W}" height="${H}" role="img" aria-label="A ${two(s.a.score)}, B ${two(s.b.score)}">${bar("a", s.a, 6)}${bar("b", s.b, H - 6)}</svg>`;
  }
  const score = (s) => two(s.score) + (s.confidence ? ` ± ${two(s.confidence.half_width)}` : "");
  rows("scores", ["", "A", "B", "B − A", "p", "A above, B below"], data.scores.map((s) =>
    html`<tr><th scope="row">${s.name}</th>${cells([score(s.a), score(s.b)])}<td class="${s.p !== null && s.p < 0.05 ? "clear" : ""}">${plus(s.b.score - s.a.score, two)}</td>${cells([s.p === null ? "equal" : s.p.toFixed(4), intervals(s)])}</tr>`));
  $("signatures").append(...data.scores.map((s) => el("li", {}, `${s.name}|${s.signature}`)));

  // ---- by length ----

  function shares(part) {
    let at = 0;
    return html`<svg width="${W}" height="14" role="img" aria-label="${part.won} better, ${part.tied} equally well, ${part.lost} worse">${["won", "tied", "lost"].map((which) => {
      const wide = (W * part[which]) / part.sentences, bar = html`<rect class="${which}" x="${at}" width="${wide}" height="14"/>`;
      at += wide;
      return bar;
    })}</svg>`;
  }
  const names = data.scores.map((s) => s.name.toLowerCase());
  const all = {source_words: "all", sentences: data.sentences, won: data.won, lost: data.lost, tied: data.tied};
  data.scores.forEach((s, m) => { all[names[m]] = {a: s.a.score, b: s.b.score}; });
  rows("lengths", ["source words", "sentences", "better", "worse", "", ...data.scores.map((s) => `${s.name} A, B`)], [all, ...data.by_length].map((part) =>
    html`<tr><th scope="row">${part.source_words}</th>${cells([part.sentences, part.won, part.lost, shares(part), ...names.map((name) => `${one(part[name].a)}, ${one(part[name].b)}`)])}</tr>`));

  // ---- by frequency ----

  $("frequency-text").textContent = "F1 of the words that the references have and the translations say, as BLEU splits them, by how often each is seen in " +
    (data.frequencies_of === "training" ? "the training pairs." : "the references themselves (--train FILE: in the training pairs).");
  const f1 = (row) => html`<svg width="${W}" height="${H}" role="img" aria-label="A ${one(row.a)}, B ${one(row.b)}"><rect class="a" y="1" width="${(W * row.a) / 100}" height="8"/><rect class="b" y="12" width="${(W * row.b) / 100}" height="8"/></svg>`;
  rows("frequencies", ["seen", "words", "F1 A", "F1 B", "A above, B below; 0 to 100"], data.by_frequency.map((row) =>
    html`<tr><th scope="row">${row.frequency}</th>${cells([row.words, one(row.a), one(row.b), f1(row)])}</tr>`));

  // ---- sentences ----

  const gain = (s) => s.chrf2_b - s.chrf2_a;
  const order = {lost: (s, t) => gain(s) - gain(t), won: (s, t) => gain(t) - gain(s), file: (s, t) => s.line - t.line};
  const wordsOf = (text) => text.match(/[\p{L}\p{M}\p{N}]+/gu) || [];
  function marked(text, known) {
    // Words keep their places; what is between them is text as it is.
    const parts = [];
    let at = 0;
    for (const word of text.matchAll(/[\p{L}\p{M}\p{N}]+/gu)) {
      parts.push(text.slice(at, word.index), known.has(word[0].toLowerCase()) ? word[0] : html`<span class="other">${word[0]}</span>`);
      at = word.index + word[0].length;
    }
    return [...parts, text.slice(at)];
  }
  function sentence(s) {
    const known = new Set(s.references.flatMap(wordsOf).map((w) => w.toLowerCase()));
    const line = (side, says) => html`<span class="side">${side}</span><span class="says" dir="auto">${says}</span>`;
    return html`<div class="sentence"><span class="gain ${gain(s) < 0 ? "less" : gain(s) > 0 ? "more" : ""}">${plus(gain(s), one)}</span>${line("", s.source)}${s.references.map((r) => line("=", r))}${line("A", marked(s.a, known))}${line("B", marked(s.b, known))}</div>`;
  }
  function draw() {
    const wanted = state.search.toLowerCase();
    const found = data.by_sentence.filter((s) => [s.source, s.a, s.b, ...s.references].some((text) => text.toLowerCase().includes(wanted)));
    found.sort(order[state.order]);
    put($("sentences"), found.slice(0, state.shown).map(sentence));
    $("more").hidden = found.length <= state.shown;
    $("count").textContent = `${Math.min(found.length, state.shown)} of ${found.length}${found.length < data.by_sentence.length ? ` found in ${data.by_sentence.length}` : ""}`;
  }
  $("order").addEventListener("change", (e) => { state.order = e.target.value; state.shown = kAtOnce; draw(); });
  $("search").addEventListener("input", (e) => { state.search = e.target.value; state.shown = kAtOnce; draw(); });
  $("more").addEventListener("click", () => { state.shown += 5 * kAtOnce; draw(); });
  draw();
  window.lens = {data, state};
})();
