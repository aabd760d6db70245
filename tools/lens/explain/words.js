// A model's pieces put together into words: numbers by word, and the strip of words at the top of a page.

const Words = (function () {
  /** The words of both sides. In the trace itself pieces get names that say of which word they are. */
  function of(data) {
    const source = wordsOf(data, "source"), target = wordsOf(data, "target"), pieces = {source: data.source, target: data.target};
    data.source = pieceNames(data.source, source);
    data.target = pieceNames(data.target, target);
    data.steps.forEach((s, t) => {
      s.target = data.target[t];
      s.previous = t ? data.target[t - 1] : s.previous;
      s.choice = spaced(s.choice);
      s.top.words = s.top.words.map(spaced);
    });
    if (data.what_if && data.what_if.output) data.what_if.output.words = data.what_if.output.words.map(spaced);
    return {source, target, pieces};
  }
  /** What maps and lists show: words, or pieces of them where those are asked for. */
  const token = (data) => (data.pieces === "shown" ? "piece" : "word");
  /** A name of a list, and where it stands if it is there more than once: the (word 4). Counted from 1, or from `first`. */
  const told = (data, names, i, first = 1) =>
    names[i] + (names.indexOf(names[i]) === names.lastIndexOf(names[i]) ? "" : ` (${token(data)} ${i + first})`);
  /** The word that piece i is of. */
  const at = (words, i) => words.findIndex(({parts}) => parts.includes(i));
  /** Of a word's pieces the one that most is said of. */
  const strongest = ({parts}, size) => parts.reduce((best, i) => (size(i) > size(best) ? i : best), parts[0]);

  /** A row of weights by word: weights and gradients of a word's pieces are added, and its annotation is the mean of theirs by
   *  weight, so that all formulas hold for words as well. What is masked, null, is left out. */
  function added(h, words, temperature) {
    if (words.every(({parts}) => parts.length === 1)) return h;
    const seen = words.map(({parts}) => parts.filter((j) => h.weights[j] !== null));
    const each = (f) => seen.map((parts, k) => (parts.length ? f(parts, k) : null));
    const sum = (x) => x && each((parts) => parts.reduce((a, j) => a + number(x[j]), 0)), total = sum(h.weights);
    const mean = (x) => x && each((parts, k) =>
      parts.reduce((a, j) => a + number(x[j]) * (total[k] > 0 ? number(h.weights[j]) / total[k] : 1 / parts.length), 0));
    const score = (parts) => {
      const top = Math.max(...parts.map((j) => number(h.scores[j])));
      return top + temperature * Math.log(parts.reduce((a, j) => a + Math.exp((number(h.scores[j]) - top) / temperature), 0));
    };
    return {scores: each(score), weights: total, score_gradient: sum(h.score_gradient), weight_gradient: mean(h.weight_gradient),
      gain: mean(h.gain), mix: h.mix};
  }
  /** A matrix by row and column word: of a word's pieces columns are added and rows averaged, or where `mean` is false added, too. */
  const cells = (all, rows, columns, mean) => rows.map(({parts: is}) => columns.map(({parts: js}) => {
    const seen = is.flatMap((i) => js.map((j) => all[i][j])).filter((x) => x !== null).map(number);
    return seen.length ? seen.reduce((a, b) => a + b, 0) / (mean ? is.length : 1) : null;
  }));

  /** The chips of both sides: one for each piece, those of one word together under it. */
  function chips(data, words, pickSource, pickTarget) {
    const grouped = (all, chip) => all.map(({name, parts}) =>
      parts.length === 1 ? chip(parts[0], name) : el("span", {class: "group"}, el("small", {}, name), ...parts.map((i) => chip(i, null))));
    $("source").replaceChildren(...grouped(words.source, (i, name) => {
      const unknown = data.source_unknown[i];
      return el("button", {type: "button", class: "chip" + (unknown ? " unknown" : ""), title: unknown ? "unknown to the model: <unk>" : null,
        "data-at": i, onclick: () => pickSource(i)}, name || words.pieces.source[i]);
    }));
    $("target").replaceChildren(...grouped(words.target, (t, name) => {
      const s = data.steps[t], wrong = s.choice !== s.top.words[s.top.ids.indexOf(s.target_id)];
      return el("button", {type: "button", class: "chip" + (wrong ? " wrong" : ""), "data-at": t, onclick: () => pickTarget(t),
        title: `loss ${show(s.loss, 4)}, probability ${show(s.p_target, 4)}`}, name || words.pieces.target[t],
        el("small", {}, wrong ? `says ${s.choice} · ${show(s.loss, 2)}` : show(s.loss, 2)));
    }));
    put($("target-side"), html`${data.has_reference ? "should say" : "says"}<small>loss</small>`);
    for (const e of document.querySelectorAll(".token")) e.textContent = e.textContent.replace("word", token(data));
    $("pieces").hidden = !data.pieces;
    $("pieces").textContent = "The model reads and writes pieces of words; ▁ is the space before a word." + (data.words ? " Maps and lists show words: columns of pieces are added, rows of weights averaged, " +
      "gradients summed; what a word gives the mix is the mean of its pieces by weight. A step is a piece, and so is a row of a station. lens explain --pieces shows pieces everywhere." : "");
  }
  /** Marks the chosen chips, and moves the target's into sight. */
  function choose(source, target) {
    for (const [side, i] of [["source", source], ["target", target]])
      for (const chip of $(side).querySelectorAll(".chip")) chip.setAttribute("aria-pressed", +chip.dataset.at === i);
    const strip = $("target"), chosen = strip.querySelector(`[data-at="${target}"]`);
    if (strip.scrollWidth > strip.clientWidth) strip.scrollLeft = chosen.offsetLeft - strip.offsetLeft - strip.clientWidth / 2 + chosen.offsetWidth / 2;
  }
  return {of, token, told, at, strongest, added, cells, chips, choose};
})();
