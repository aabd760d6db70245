// The page of `lens flow`: everything was computed before; here it is only chosen and drawn.

(function () {
  const data = JSON.parse($("data").textContent);
  const first = data.results[data.show];
  const state = {weights: first.weights, cell: first.cell, directions: first.directions, length: first.length, sentence: first.source !== null, j: 0, t: 0};
  const unique = (all) => [...new Set(all)];
  /** Values of a key among the results that agree with the state in the other keys. */
  const choices = (key, ...given) => unique(data.results.filter((r) => given.every((k) => value(r, k) === state[k])).map((r) => value(r, key)));
  const value = (r, key) => (key === "sentence" ? r.source !== null : r[key]);
  const keys = ["weights", "cell", "directions", "sentence"];
  const matching = () => data.results.filter((r) => keys.every((k) => value(r, k) === state[k]));
  const lengths = () => matching().map((r) => r.length).sort((a, b) => a - b);
  const current = () => matching().find((r) => r.length === state.length);
  /** After a choice: whatever does not go with it any more goes to the nearest that does. */
  function settle() {
    keys.forEach((key, i) => { const all = choices(key, ...keys.slice(0, i)); if (!all.includes(state[key])) state[key] = all[0]; });
    const all = lengths();
    if (!all.includes(state.length)) state.length = all.reduce((a, b) => (Math.abs(b - state.length) < Math.abs(a - state.length) ? b : a));
    state.j = Math.min(state.j, current().length - 1);
    state.t = Math.min(state.t, current().with.map.length - 1);
  }

  /** Shares of a whole in percents without fractions, which add up to 100: what rounding down leaves over goes to the largest fractions. */
  function percents(shares) {
    const exact = shares.map((x) => 100 * number(x)), out = exact.map(Math.floor);
    let left = 100 - out.reduce((a, b) => a + b, 0);
    if (left > shares.length) left = 0;  // no gradient, which has no ways
    for (; left > 0; --left) ++out[exact.reduce((most, x, i) => (x - out[i] > exact[most] - out[most] ? i : most), 0)];
    return out.map((x) => `${x} %`);
  }

  const {W, narrow, left, right, top, svg, range, plot} = chartsIn($("chart"));
  // Of a model of pieces, what the columns are.
  const unit = () => (!data.pieces || state.weights === "fresh" || (state.sentence && data.pieces === "added") ? "word" : "piece");
  // Source words stand in the middle of columns, which chart and maps share.
  const column = (n) => (W - left - right) / n, middle = (j, n) => left + (j + 0.5) * column(n);

  /** Names of the source words under a chart; numbers where they were drawn at random. */
  function axis(r, y) {
    // Slanted lines of text have room from a column of 19 on.
    const n = r.length, every = r.source ? Math.max(1, Math.ceil(19 / column(n))) : Math.max(1, Math.ceil(n / (narrow ? 6 : 12)));
    const wide = (w) => [...w].reduce((sum, c) => sum + (c < "\u2e80" ? 7.5 : 12), 6);
    const slanted = r.source && Math.max(...r.source.map(wide)) > column(n);
    const out = [];
    for (let j = 0; j < n; j += every) {
      const x = middle(j, n), text = r.source ? clip(r.source[j], 12) : j + 1;
      out.push(slanted ? html`<text x="${x + 4}" y="${y - 2}" text-anchor="end" transform="rotate(-40 ${x + 4} ${y - 2})" data-word="${j}">${text}</text>`
        : html`<text x="${x}" y="${y}" text-anchor="middle" data-word="${j}">${text}</text>`);
    }
    return {out, height: slanted ? 58 : 18};
  }
  /** What hangs under the line with attention at each word: one height everywhere, divided by the ways the gradient came. */
  function bars(p, r, thick) {
    const wide = Math.min(column(r.length) - 1, 56);
    return r.with.median.map((v, j) => {
      let y = p.y(v) + 2;
      return [["value", r.with.value], ["score", r.with.score], ["rest", r.with.recurrent]].filter(([, shares]) => shares !== null).map(([name, shares]) => {
        const h = thick * (number(shares[j]) || 0);
        y += h;
        return html`<rect class="p-${name}" x="${(middle(j, r.length) - wide / 2).toFixed(2)}" y="${(y - h).toFixed(2)}" width="${wide.toFixed(2)}" height="${h.toFixed(2)}"/>`;
      });
    });
  }
  const kBars = narrow ? 22 : 30;
  // A Transformer has no line without attention: its two are before and after the encoder.
  const withName = data.transformer ? "At the encoder’s states" : "With attention";
  const otherName = () => (data.transformer ? "At the words’ vectors" : state.weights === "fresh" || data.versus ? "Without attention" : "With the short cut stopped");

  function chart() {
    const r = current(), n = r.length, x = (j) => middle(j, n), names = axis(r, 0), foot = names.height + (r.source ? 6 : 20), height = (narrow ? 260 : 370) + foot;
    const without = {...r.without, name: "without"}, withIt = {...r.with, name: "with"};
    const p = plot(height, foot, x, [without, withIt], kBars + 4);
    const label = r.source ? [] : html`<text x="${(left + W - right) / 2}" y="${height - 2}" text-anchor="middle">source ${unit()}</text>`;
    put($("chart"), svg(height, [p.grid, axis(r, height - foot + 17).out, label, bars(p, r, kBars), p.draw(without), p.draw(withIt),
      html`<line class="cursor" y1="${top}" y2="${height - foot}"/>`], "log10 of the gradient at each source word; arrow keys go from word to word"));
    follow($("chart").firstChild, n, false);
    const worst = (line) => line.median.reduce((best, v, j) => (number(v) < number(line.median[best]) ? j : best), 0);
    const bad = worst(r.without), asked = r.directions === 2 && bad > 0 && bad < n - 1 ? bad : 0;
    put($("answer"), html`Of the gradient |∂L/∂h| that ${wordName(r, n - 1)} gets, ${wordName(r, asked)} gets ${otherName().toLowerCase()} <b class="less">${factor(r.without.median[asked])}</b>,
      ${withName.toLowerCase()} <b class="with-it">${factor(r.with.median[asked])}</b>. <span class="quiet">(${power(r.without.median[asked])} and ${power(r.with.median[asked])}${r.source ? "" : `, medians of ${data.seeds}`})</span>`);
  }

  function maps() {
    const r = current(), n = r.length, T = r.with.map.length, cell = Math.max(narrow ? 15 : 17, Math.min(26, column(n))), names = axis(r, 0);
    const [low, high] = range([...r.with.map.flat(), ...r.without.map.flat()], []);
    if (!data.transformer)
      $("fading").textContent = state.weights !== "fresh" && !data.versus ? "With the short cut stopped all rows are much alike: what arrives has come through the decoder’s first state, and what fades is up to what was learned." :
        `Without attention all rows fade alike, towards the words that ${r.directions === 2 ? "are far from both ends" : "were read long ago"}.`;
    put($("map-low"), power(low));
    put($("map-high"), power(high));
    const one = (line, name, last) => {
      const height = top + T * cell + (last ? names.height + 6 : 2);
      const out = [];
      for (let t = 0; t < T; ++t) {
        out.push(html`<text x="${left - 6}" y="${top + t * cell + cell * 0.7}" text-anchor="end" data-step="${t}">${r.target ? clip(r.target[t], narrow ? 6 : 10) : t + 1}</text>`);
        for (let j = 0; j < n; ++j) {
          const v = number(line.map[t][j]), part = v === null || Number.isNaN(v) ? null : Number.isFinite(v) ? (v - low) / Math.max(1e-9, high - low) : v > 0 ? Infinity : 0;
          out.push(html`<rect x="${(left + j * column(n)).toFixed(2)}" y="${top + t * cell}" width="${Math.max(1, column(n) - 1).toFixed(2)}" height="${cell - 1}" rx="1.5" class="${Number.isNaN(v) ? "odd" : blue(part, 1)}"/>`);
        }
      }
      out.push(html`<rect class="cursor-cell" width="${column(n)}" height="${cell}"/>`);
      return html`<h3>${name}</h3>${svg(height, [out, last ? axis(r, top + T * cell + 15).out : []], `${name}: gradient of each target word at each source word; arrow keys go through the cells`)}`;
    };
    put($("maps"), [one(r.without, otherName(), false), one(r.with, withName, true)]);
    for (const box of $("maps").querySelectorAll("svg")) follow(box, n, T, cell);
  }

  /** Pointer and arrow keys move the cursor; what is there is said under the chart. */
  function follow(box, n, T, cell) {
    const to = (j, t) => {
      state.j = Math.max(0, Math.min(n - 1, j));
      if (T) state.t = Math.max(0, Math.min(T - 1, t));
      here(T ? box : null);
    };
    box.addEventListener("pointermove", (e) => {
      const r = box.getBoundingClientRect(), scale = W / r.width;
      to(Math.floor(((e.clientX - r.left) * scale - left) / column(n)), T ? Math.floor(((e.clientY - r.top) * scale - top) / cell) : 0);
      if (T) showTip(mapText(), e.clientX, e.clientY);
    });
    box.addEventListener("pointerleave", hideTip);
    box.addEventListener("blur", hideTip);
    box.addEventListener("keydown", (e) => {
      const move = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[e.key];
      if (!move || (!T && move[1] !== 0)) return;
      e.preventDefault();
      to(state.j + move[0], state.t + move[1]);
      if (!T) return;
      const c = box.querySelector(".cursor-cell").getBoundingClientRect();
      showTip(mapText(), c.right, c.bottom);
    });
  }
  const wordName = (r, j) => (r.source ? `“${r.source[j]}”` : `${unit()} ${j + 1}`);
  function mapText() {
    const r = current(), at = (line) => (number(line.map[state.t][state.j]) === -Infinity ? "0" : `10^${show(line.map[state.t][state.j], 3)}`);
    return `loss of ${r.target ? `“${r.target[state.t]}”` : `target ${unit()} ${state.t + 1}`} at ${wordName(r, state.j)}\n${otherName().toLowerCase()} ${at(r.without)}\n${withName.toLowerCase()} ${at(r.with)}`;
  }
  function here() {
    const r = current(), n = r.length, j = state.j, x = middle(j, n);
    const ways = percents([r.with.value, r.with.score, r.with.recurrent].filter((shares) => shares).map((shares) => shares[j]));
    put($("here"), html`${wordName(r, j)}, compared with ${wordName(r, n - 1)}: ${otherName().toLowerCase()} <b>${power(r.without.median[j])}</b>, ${withName.toLowerCase()}
      <b>${power(r.with.median[j])}</b>. ${withName} it comes ${ways[0]} by the value path, ${ways[1]} by the score path${ways.length > 2 ? `, ${ways[2]} by the recurrent path` : ""}.`);
    for (const line of document.querySelectorAll("#chart .cursor")) { line.setAttribute("x1", x); line.setAttribute("x2", x); }
    for (const box of document.querySelectorAll("#maps svg")) {
      const mark = box.querySelector(".cursor-cell"), cell = +mark.getAttribute("height");
      mark.setAttribute("x", left + j * column(n) - 0.5);
      mark.setAttribute("y", top + state.t * cell - 0.5);
      box.querySelectorAll("[data-step]").forEach((e) => e.classList.toggle("on", +e.dataset.step === state.t));
    }
    document.querySelectorAll("[data-word]").forEach((e) => e.classList.toggle("on", +e.dataset.word === j));
  }

  function byLength() {
    const all = lengths(), of = (n) => matching().find((r) => r.length === n);
    $("by-length").hidden = all.length < 2;
    if (all.length < 2) return;
    const worst = (line) => line.median.reduce((best, v, j) => (number(v) < number(line.median[best]) ? j : best), 0);
    const at = (side) => {
      const lines = all.map((n) => [of(n)[side], worst(of(n)[side])]);
      return {name: side, median: lines.map(([l, j]) => l.median[j]), low: lines.map(([l, j]) => l.low[j]), high: lines.map(([l, j]) => l.high[j])};
    };
    const height = narrow ? 230 : 300, foot = 36, x = (i) => left + ((W - left - right) * i) / (all.length - 1), p = plot(height, foot, x, [at("without"), at("with")]);
    const i = all.indexOf(state.length), names = all.map((n, k) => html`<text x="${x(k)}" y="${height - foot + 16}" text-anchor="middle">${n}</text>`);
    put($("lengths"), svg(height, [p.grid, names, html`<text x="${(left + W - right) / 2}" y="${height - 2}" text-anchor="middle">${unit()}s in the source</text>`, p.draw(at("without")), p.draw(at("with")),
      html`<line class="cursor" x1="${x(i)}" x2="${x(i)}" y1="${top}" y2="${height - foot}"/>`], "Gradient of the worst-off word by length; arrow keys change the length"));
    const box = $("lengths").firstChild;
    const go = (k) => { state.length = all[Math.max(0, Math.min(all.length - 1, k))]; draw(); };
    box.addEventListener("click", (e) => {
      const r = box.getBoundingClientRect();
      go(Math.round(((((e.clientX - r.left) / r.width) * W - left) / (W - left - right)) * (all.length - 1)));
    });
    box.addEventListener("keydown", (e) => {
      const move = {ArrowLeft: -1, ArrowRight: 1}[e.key];
      if (!move) return;
      e.preventDefault();
      go(i + move);
      $("lengths").firstChild.focus();
    });
  }

  function draw() {
    settle();
    const focused = document.activeElement && document.activeElement.closest(".controls button") ? document.activeElement.textContent : null;
    const group = (id, key, name, given) => {
      const all = choices(key, ...given);
      $(id).hidden = all.length < 2;
      $(id).replaceChildren(...all.map((v) => el("button", {type: "button", "aria-pressed": v === state[key], onclick: () => { state[key] = v; draw(); }}, name(v))));
    };
    group("weights", "weights", (w) => (w === "fresh" ? "untrained" : `trained: ${data.model}`), []);
    group("cells", "cell", (c) => (c === "transformer" ? "Transformer" : c.toUpperCase()), ["weights"]);
    group("directions", "directions", (d) => (d === 1 ? "one direction" : "both directions"), ["weights", "cell"]);
    group("texts", "sentence", (s) => (s ? "a sentence" : `random ${data.pieces && state.weights !== "fresh" ? "pieces" : "words"}`), ["weights", "cell", "directions"]);
    if (focused) for (const b of document.querySelectorAll(".controls button")) if (b.textContent === focused) b.focus();
    const all = lengths();
    $("length").max = all.length - 1;
    $("length").value = all.indexOf(state.length);
    $("length-label").hidden = all.length < 2;
    $("length-text").textContent = state.length;
    $("length-unit").textContent = unit() + "s";
    $("pieces").hidden = data.pieces !== "added" || !state.sentence;
    const fresh = state.weights === "fresh";
    $("without-name").textContent = data.transformer ? otherName().toLowerCase() : fresh ? "without: one vector for the whole source" : `without: ${data.without}`;
    $("band-name").hidden = state.sentence;
    $("caveat").textContent = data.transformer ? "" : (fresh ? "Fresh weights; a trained network, or one whose gates start open, is flatter. " : "") +
      (state.directions === 2 ? "An encoder that reads both ways makes a V without attention: its backward half ends at word 1, so the words in the middle are far from everything." : "");
    const r = current();
    $("setup").textContent = (fresh ? data.setup : state.sentence ? `${data.model} on “${r.source.slice(0, -1).join(" ")}”, target “${r.target.slice(0, -1).join(" ")}”`
      : `${data.model} on ${data.seeds} random sentences of its vocabulary, targets of ${r.with.map.length} random ${unit()}s`) + `. Lines: |∂L/∂h| of each ${unit()} over that of the last, L the loss of the whole target.`;
    chart();
    maps();
    byLength();
    here();
  }

  if (data.transformer) {
    $("headline").textContent = "How the gradient reaches the source in a Transformer";
    $("with-name").textContent = withName.toLowerCase();
    document.querySelector(".with-said").textContent = withName.toLowerCase();
    $("recurrent").hidden = true;
    $("longer").textContent = "By length";
    $("fading").textContent = "At the encoder’s states a cell says who looks there; on the way down to the words the encoder’s own attention spreads it.";
  }
  $("about").textContent = data.transformer ? "How long the gradient ∂L/∂h is at each source word, compared with the last one: at the encoder’s states, which every layer of the decoder attends to, and at the words’ vectors, which the encoder reads. There is no recurrence, so there is no recurrent path, and no network without attention to compare with." : "How long the gradient ∂L/∂h is at each source word, compared with the last one, when the decoder may look back at every word and when it must live on the last state.";
  const c = data.checks, ok = number(c.worst) < 1e-6;
  $("badges").append(el("span", {class: "badge " + (ok ? "good" : "bad"), id: "check-badge"}, `${c.count.toLocaleString("en")} gradients checked by differences, worst error ${show(c.worst, 2)} ${ok ? "✓" : "✗"}`));
  const tokens = data.pieces ? "pieces" : "words";
  $("checked").textContent = `Checked by finite differences as they were computed, in double precision: ${c.count.toLocaleString("en")} lengths, each the slope of the loss along its own gradient ` +
    "(of every target word, of the whole target, and of each way). In the setting shown first all " + tokens + " of all networks; elsewhere eight " + tokens + ", the first and the last among them, of the first network. " +
    (c.small ? `${c.small.toLocaleString("en")} of them are too small for differences in double precision to tell to six digits (below 10⁻⁷ of the loss, or more where a kink forces small steps); their error is relative to that. ` : "") + (c.undecided ? `${c.undecided.toLocaleString("en")} more lie between kinks of a relu so near that differences of no step tell six digits. ` : "") + `Largest relative error ${show(c.worst, 2)}.`;
  $("pieces").textContent = "The model reads and writes pieces of words, and words are shown: the gradients of a source word’s pieces are added, and so are the losses of a target word’s. lens flow --pieces shows pieces.";
  $("theme").append(themeButton());
  $("length").addEventListener("input", () => { state.length = lengths()[+$("length").value]; draw(); });
  draw();
  window.lens = {data, state};
})();
