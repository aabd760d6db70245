// The page of `lens explain` for a Transformer: which step, part, head and row are looked at, and everything that is drawn of them.

(function () {
  const data = unpackAll(JSON.parse($("data").textContent)), T = data.steps.length, parts = data.parts;
  // Maps and lists are of words; a step and a row of a station are of a piece, which is a word where there are no others.
  const words = Words.of(data), {source, target} = words;
  const inputs = [{name: "<s>", parts: [0]}, ...target.slice(0, -1).map(({name, parts}) => ({name, parts: parts.map((i) => i + 1)}))];
  const state = {t: Math.min(data.show.step, T - 1), p: data.show.part, h: data.show.head || 0, i: data.show.row, j: 0, pick};
  const part = () => parts[state.p], attends = (p = part()) => "scores" in p, step = () => data.steps[state.t];
  const rows = () => Sublayer.rowsOf(data, part()), columns = () => Sublayer.columnsOf(data, part());
  const rowWords = (p = part()) => (p.rows === "target" ? target : source), columnWords = (p = part()) => (p.columns === "target" ? inputs : source);
  // Of a long sentence a page has the steps near the one that is shown first.
  const whole = (t) => "gradients" in data.steps[t].parts[0], next = (t, by) => { while (t >= 0 && t < T && !whole(t)) t += by; return t >= 0 && t < T ? t : state.t; };
  const norm = (all) => Math.sqrt(all.flat().reduce((sum, x) => sum + (x === null ? 0 : number(x) ** 2), 0));
  const capital = (text) => text[0].toUpperCase() + text.slice(1);

  // ---- all heads ----

  /** A head's weights and dL/de by word. */
  function inWords(p, h) {
    const one = Sublayer.head(data, state.t, p, h), of = (all, mean) => Words.cells(all, rowWords(parts[p]), columnWords(parts[p]), mean);
    return {weights: of(one.weights, true), delta: of(one.delta, false)};
  }
  /** The chosen row of the chosen head, by word it looks at. */
  function rowInWords() {
    const one = Sublayer.head(data, state.t, state.p, state.h), i = state.i;
    const row = Words.added({scores: one.scores[i], weights: one.weights[i], score_gradient: one.delta[i].map((x, j) => (one.weights[i][j] === null ? null : x)),
      gain: one.gain[i]}, columnWords(), 1);
    return {...row, delta: row.score_gradient, better: row.weights.map((w, k) => (w === null ? null : w > 0 ? -row.score_gradient[k] / w : 0)),
      names: columnWords().map(({name}) => name), chosen: Words.at(columnWords(), state.j)};
  }
  /** Of a word that the chosen row looks at, the piece it looks at most. */
  const pieceOf = (k) => { const w = Sublayer.head(data, state.t, state.p, state.h).weights[state.i]; return Words.strongest(columnWords()[k], (j) => w[j] || 0); };

  /** Two small maps of a head, weights and pull; `most` is what the strongest pull is drawn against. */
  function small(p, h, most) {
    const one = inWords(p, h), R = one.weights.length, C = one.weights[0].length;
    const picture = (all, shade, label) => {
      const {cells, dots} = Stations.paths(all.flat(), R, C, shade);
      return html`<svg viewBox="0 0 ${C} ${R}" preserveAspectRatio="none" shape-rendering="crispEdges" role="img" aria-label="${label}">${cells}${dots}</svg>`;
    };
    return [picture(one.weights, (x) => blue(x, 1), "weights"), picture(one.delta, (x) => pull(x === null ? null : -x, most), "pull")];
  }
  const sizeOf = (p, h) => norm(Sublayer.head(data, state.t, p, h).delta);
  function allHeads() {
    const H = data.model.heads, all = parts.map((one, p) => (attends(one) ? Array.from({length: H}, (_, h) => sizeOf(p, h)) : []));
    const largest = Math.max(...all.flat()), strongest = Math.max(...parts.map((one, p) => (attends(one) ? Math.max(...Array.from({length: H}, (_, h) => largestOf(inWords(p, h).delta.flat()))) : 0)));
    const box = el("div", {class: "heads", style: `--heads: ${H}`});
    box.append(el("span", {class: "wide"}), ...Array.from({length: H}, (_, h) => el("span", {class: "h"}, `head ${h + 1}`)), el("span", {class: "h wide"}, "then"));
    parts.forEach((one, p) => {
      if (!attends(one)) return;
      box.append(el("span", {class: "name"}, one.name));
      for (let h = 0; h < H; ++h) {
        const button = el("button", {type: "button", class: "map" + (all[p][h] === largest ? " largest" : ""), "aria-pressed": p === state.p && h === state.h,
          title: `${one.name}, head ${h + 1}: |∂L/∂e| ${show(all[p][h], 3)}`, "aria-label": `${one.name}, head ${h + 1}`, onclick: () => go(p, h)});
        put(button, html`${small(p, h, strongest)}<span class="size"><i data-style="width:${largest > 0 ? (100 * all[p][h]) / largest : 0}%"></i></span>`);
        box.append(button);
      }
      const ff = p + 1, next = parts[ff];
      box.append(next && !attends(next) && next.sublayer !== "output" ? el("button", {type: "button", class: "ff", "aria-pressed": ff === state.p, onclick: () => go(ff, 0)}, "feed-forward") : el("span", {class: "wide"}));
    });
    const out = parts.length - 1;
    box.append(el("span", {class: "name"}, "output"), el("button", {type: "button", class: "ff", "aria-pressed": out === state.p, onclick: () => go(out, 0)}, "norm, logits, loss"));
    $("heads").replaceChildren(box);
    const [p, h] = all.reduce((best, sizes, q) => sizes.reduce((b, size, k) => (size > all[b[0]][b[1]] ? [q, k] : b), best), [all.findIndex((x) => x.length), 0]);
    put($("why"), html`The loss of “${step().target}” pulls hardest at <b>${parts[p].name}, head ${h + 1}</b> (framed in orange): |∂L/∂e| ${show(largest, 3)}.
      ${state.p === p && state.h === h ? "It is shown below." : html`Shown below: ${part().name}${attends() ? `, head ${state.h + 1}, ${show(all[state.p][state.h], 3)}` : ""}.`}`);
  }
  function go(p, h) {
    pick({p, h});
    $("head-section").scrollIntoView({block: "start"});
  }

  function future() {
    const later = number(step().words.later), box = $("future");
    box.hidden = !(later > 0);
    if (box.hidden) return;
    const from = step().words.target.map(number), said = data.target;
    put(box, html`<h2 class="less">Gradient from the future</h2><p>The loss of “${step().target}” sends a gradient of ${show(later, 3)} to words that come after it:
      ${from.map((size, t) => (t > state.t && size > 0 ? html`${t > state.t + 1 ? "," : ""} “${said[t - 1]}” ${show(size, 2)}` : []))}. The decoder's self-attention ${data.model.trained_causal ? "is computed without its causal mask here, so" : "was trained without a causal mask, and"} the model reads the
      very word that it must say. With a mask every number right of the diagonal would be 0, and in translating there is nothing to read yet.</p>`);
  }

  // ---- one head ----

  function lesson() {
    const name = capital(part().name) + (attends() ? `, head ${state.h + 1}` : "");
    $("head-title").textContent = name;
    $("of-head").hidden = !attends();
    $("of-words").hidden = attends();
    $("of-words").textContent = part().sublayer === "output" ? "What the decoder's last layer leaves is normalised and compared with every word of the vocabulary." :
      `No head: this part looks at one word at a time, through a hidden layer of ${data.model.hidden} units, and adds what it finds to the residual.`;
    for (const id of ["softmax-section", "what-section"]) $(id).hidden = !attends();
    if (!attends()) return;
    put($("lesson-formula"), M.math(M.o("−"), M.frac([M.i("∂"), M.i("L")], [M.i("∂"), M.sub(M.i("e"), M.i("tj"))]), M.o("="), M.sub(M.i("α"), M.i("tj")), M.o("·"), M.o("("), M.o("−"), M.sub(M.b("g"), M.i("t")), M.o(")"),
      M.o("·"), M.o("("), M.sub(M.i("W"), M.i("V")), M.sub(M.b("h"), M.i("j")), M.o("−"), M.sub(M.b("o"), M.i("t")), M.o(")"), M.o(","), M.t("  "), M.sub(M.b("g"), M.i("t")), M.o("="),
      M.sup(M.sub(M.i("W"), [M.i("O"), M.o(","), M.t(`head ${state.h + 1}`)]), M.i("⊤")), M.frac([M.i("∂"), M.i("L")], [M.i("∂"), M.sub(M.b("w"), M.i("t"))])));
    const {names, weights, delta, better, chosen: j} = rowInWords(), i = state.i;
    const seen = delta.map((_, k) => k).filter((k) => delta[k] !== null);
    const most = seen.reduce((best, k) => (delta[k] < delta[best] ? k : best), seen[0]), least = seen.reduce((best, k) => (delta[k] > delta[best] ? k : best), seen[0]);
    // Counted as the words of the sentence are: what the decoder reads begins with <s>.
    const told = (k) => Words.told(data, names, k, part().columns === "target" ? 0 : 1);
    const row = Words.told(data, rows(), i), about = part().rows === "target" ? html`the row that must say “${row}”` : html`the row of “${row}”`;
    put($("lesson"), largestOf(delta) === 0 ? html`The loss of “${step().target}” does not depend on ${about}: no gradient arrives there.` :
      html`For the loss of “${step().target}”, in ${about}, attention should move from <b class="less">${told(least)}</b> to <b class="more">${told(most)}</b>.
        “${told(j)}”: ${delta[j] === null ? "masked: it has no weight and gets no gradient" : html`weight ${show(weights[j], 4)} × ${Pull.compared(better[j], 4)} = pull ${signed(-delta[j], 4)},
        so it ${delta[j] < 0 ? html`<b class="more">gains</b>` : delta[j] > 0 ? html`<b class="less">loses</b>` : "stays"}`}.`);
    $("gains").replaceChildren(Pull.gains({names, weights, better, gradient: delta, token: Words.token(data), heading: "how much better than the mix: (−g)·(v − o)",
      chosen: j, pick: (k) => pick({j: pieceOf(k)})}));
  }

  const note = (markup) => { const p = el("p", {class: "legend"}); put(p, markup); return p; };
  const titled = (title, map, under, words) => el("div", {class: words > 24 ? "tight tiny" : words > 16 ? "tight" : null, style: cellSize(words > 16 ? 440 : 420, 9, words)}, el("h3", {}, title), el("div", {class: "scroll"}, map), under);
  function maps() {
    if (!attends()) return;
    const one = inWords(state.p, state.h), most = largestOf(one.delta.flat()), across = rowWords().map(({name}) => name), down = columnWords().map(({name}) => name), C = down.length;
    const common = {rows: across, columns: down, cross: true, at: () => [Words.at(rowWords(), state.i), Words.at(columnWords(), state.j)],
      pick: (r, c) => { if (!rowWords()[r].parts.includes(state.i)) state.i = rowWords()[r].parts[0]; pick({j: pieceOf(c)}); }};
    const pair = (i, j) => `${across[i]} ← ${down[j]}`, hatched = (i, j) => ({class: "hatch", tip: `${pair(i, j)}\nmasked: it comes later`});
    $("maps").replaceChildren(
      titled("Weights: where it looks", heatMap({...common, label: "Attention weights", cell: (i, j) => { const w = one.weights[i][j];
        return w === null ? hatched(i, j) : {class: blue(w, 1), tip: `${pair(i, j)}\nweight ${show(w, 4)}`}; }}), note(html`<span>0<span class="ramp value"></span>1</span>`), C),
      titled("Score pull, −∂L/∂e", heatMap({...common, label: "Score pull", cell: (i, j) => { const x = one.delta[i][j];
        return x === null ? hatched(i, j) : {class: pull(-x, most), tip: `${pair(i, j)}\npull ${signed(-x, 4)}`, html: Math.abs(x) > 0.15 * most ? html`<span class="mark">${x < 0 ? "+" : "−"}</span>` : []}; }}),
      note(html`<span class="less">less</span><span class="ramp gradient"></span><span class="more">more attention</span>`), C));
  }

  // ---- ways ----

  const kWays = {value: ["p-value", "value: mixed into what the head found"], key: ["p-score", "key: through its score"], query: ["p-query", "query: through what it asks"],
    through: ["p-query", "through: the feed-forward part"], residual: ["p-rest", "residual: past this part"], later: ["p-rest", "other layers of cross-attention"]};
  function ways() {
    const all = data.words ? data.words.ways.map((word) => word[state.p]) : data.steps.map((s) => s.parts[state.p].ways);
    const losses = target.map(({name}) => name), worst = (word) => Words.strongest(word, (t) => number(data.steps[t].loss));
    const boxes = Object.keys(all[0]).map((input) => {
      const order = Object.keys(kWays).filter((x) => x in all[0][input]), read = input === "m" || part().rows === "source" ? source : inputs;
      const of = (t, name) => all[t][input][name].map(number), full = all.map((_, t) => of(t, "full"));
      const logs = full.flat().filter((x) => x > 0 && Number.isFinite(x)).map(Math.log10), low = Math.max(Math.floor(Math.min(...logs)), Math.ceil(Math.max(...logs)) - 8), high = Math.ceil(Math.max(...logs));
      const chosen = input === "m" ? "j" : "i", at = () => [Words.at(target, state.t), input === "x" || attends() ? Words.at(read, state[chosen]) : -1];
      const map = heatMap({rows: losses, columns: read.map(({name}) => name), cross: true, label: "Gradient by way", at,
        pick: (row, k) => pick({t: target[row].parts.includes(state.t) ? state.t : worst(target[row]), [chosen]: read[k].parts[0]}),
        cell: (t, at) => {
          const sizes = order.map((name) => of(t, name)[at]), sum = sizes.reduce((a, b) => a + b, 0), size = full[t][at];
          const width = size > 0 ? Math.max(0.04, (Math.log10(size) - low) / Math.max(1, high - low)) : 0;
          const bar = sum > 0 ? order.map((name, k) => html`<i class="${kWays[name][0]}" data-style="width:${(100 * sizes[k]) / sum}%"></i>`) : [];
          return {class: Number.isFinite(size) ? "" : "odd", html: html`<span class="parts" data-style="width:calc(${94 * Math.max(0, width)}%)">${bar}</span>`,
            tip: `loss of ${losses[t]} → ${read[at].name}\n${order.map((name, k) => `${name} ${show(sizes[k], 4)}`).join("\n")}\nall of it ${show(size, 4)}`};
        }});
      const title = input === "m" ? `At what the encoder made of each source ${Words.token(data)}` : `At each ${part().rows} ${Words.token(data)} that comes in`;
      return titled(title, map, note([...order.map((name) => html`<span><span class="key ${kWays[name][0]}"></span>${kWays[name][1]}</span>`), html`<span>length: log scale, 1e${low} … 1e${high}</span>`]), read.length);
    });
    $("ways").replaceChildren(...boxes, ...(boxes.length ? [] : [note("From here the gradient goes to the output layer's input in one piece.")]));
  }

  // ---- LayerNorm ----

  function layerNorm() {
    const first = data.model.norm_first || part().sublayer === "output", of = step().parts[state.p].norm, box = $("norm");
    $("norm-section").hidden = !of;
    if (!of) return;
    const [mean, scale, plain, along] = of[state.i], input = part().stations[first ? "x" : "s"].value, dy = Sublayer.gradient(data, state.t, state.p, first ? "n" : "y");
    const n = Math.min(input.shown, dy.shown), at = (grid, c) => number(grid.values[state.i * grid.shown + c]);
    const units = Array.from({length: n}, (_, c) => c), g = units.map((c) => at(dy, c) * number(part().gamma[c])), hat = units.map((c) => (at(input, c) - mean) * scale);
    const flat = units.map(() => -plain), tilted = hat.map((x) => -x * along), sum = units.map((c) => (g[c] + flat[c] + tilted[c]) * scale);
    const most = largestOf([...g, ...flat, ...tilted]);
    const strip = (all, largest) => { const {cells} = Stations.paths(all, 1, n, (x) => pull(-x, largest)); return html`<svg viewBox="0 0 ${n} 1" preserveAspectRatio="none" shape-rendering="crispEdges" aria-hidden="true">${cells}</svg>`; };
    const length = (all) => Math.sqrt(all.reduce((a, x) => a + x * x, 0));
    const row = (name, all, text, largest = most, extra = "") => html`<span class="${extra}">${name}</span>${strip(all, largest)}<span class="num">${text}</span>`;
    const d = (x) => M.frac([M.i("∂"), M.i("L")], [M.i("∂"), M.b(x)]), hatted = html`<mover><mi mathvariant="bold">x</mi><mo>^</mo></mover>`;
    put(box, html`<div class="scroll">${M.math(d("x"), M.o("="), M.frac(M.n("1"), M.i("σ")), M.o("("), d("y"), M.o("⊙"), M.i("γ"), M.o("−"), M.t("mean"), M.o("−"), hatted, M.o("⊙"), M.t("mean with\u00a0"), hatted, M.o(")"))}</div>
      <p class="quiet small">The norm lets a row neither shift nor grow, so what would only do that is taken away: the mean of the gradient, and the part of it along the normalised row itself.
      The row of “${rows()[state.i]}”${n < data.model.units ? `, the first ${n} of ${data.model.units} units` : ""}; 1/σ is ${show(scale, 4)}.</p>
      <div class="norm">${row("dy ⊙ γ", g, `|·| ${show(length(g), 3)}`)}${row("− its mean", flat, signed(-plain, 3))}${row("− x̂ · mean(dy γ x̂)", tilted, `x̂ · ${signed(-along, 3)}`)}
      ${row("times 1/σ: dx", sum, `|·| ${show(length(sum), 3)}`, largestOf(sum), "sum")}</div>`);
  }

  // ---- softmax, what if ----

  const lit = {row: -1, column: -1};
  function jacobian() {
    if (!attends()) return;
    const row = rowInWords(), seen = row.weights.map((_, k) => k).filter((k) => row.weights[k] !== null), of = (all) => seen.map((k) => all[k]);
    Pull.softmax($("jacobian"), {names: of(row.names), weights: of(row.weights), gain: of(row.gain), temperature: 1, gradient: of(row.delta),
      chosen: Math.max(0, seen.indexOf(row.chosen)), size: cellSize(400, 19, seen.length), at: lit});
  }

  let network = null;
  const able = WhatIf.judge($("what-if"), $("what-if-badge"), data, () => { network = new Network(data); return network.disagreement(); });
  function whatIf() {
    if (!able || !attends()) return;
    const one = Sublayer.head(data, state.t, state.p, state.h), i = state.i, plain = parts[state.p];
    const head = {scores: Array.from(plain.scores[state.h][i], number), weights: Array.from(plain.weights[state.h][i], number), score_gradient: one.delta[i].map((x) => x || 0)};
    const steps = {[state.t]: {...step(), heads: [head], mask: one.weights[i].map((w) => w !== null)}};
    const off = network.losses(state.p, {head: state.h, off: true})[state.t];
    const box = $("what-if");
    // Of a word's pieces those that the mask lets in.
    const names = columnWords().map(({name, parts}) => { const seen = parts.filter((j) => one.weights[i][j] !== null); return {name, parts: seen.length ? seen : parts}; });
    box.replaceChildren(el("p", {class: "bar"}, el("span", {}, `Head ${state.h + 1} switched off, in all rows: loss `), el("b", {class: "num", id: "head-off"}, show(off, 5)),
      el("span", {}, ` instead of ${show(step().loss, 5)}.` + (part().masked ? " A word that the mask hides can be let in below." : ""))));
    const inner = el("div");
    box.append(el("p", {class: "quiet small"}, `The row of “${rows()[i]}” in this head:`), inner);
    WhatIf.controls(inner, {model: {temperature: 1}, source: columns(), steps}, {t: state.t, m: 0, source: names}, network.row(state.p, state.h, i), Words.token(data)).draw();
  }

  // ---- shares, checks ----

  function shares() {
    const s = data.words ? data.words.shares[state.t] : step().shares, box = el("div", {class: "shares"}), off = (a, b) => { const x = number(a) - number(b); return el("span", {class: "num " + (x > 0.05 ? "less" : x < -0.05 ? "less" : "quiet")}, signed(Math.round(x * 1000) / 1000, 3)); };
    const track = (x) => { const t = el("span", {class: "track", title: show(x, 3)}); put(t, html`<i data-style="width:${100 * number(x)}%"></i>`); return t; };
    box.append(...[Words.token(data), "rollout", "off by", "weights × gradient", "off by", "gradient"].map((x) => el("span", {class: "h"}, x)));
    source.forEach(({name}, j) => box.append(el("span", {}, name), track(s.rollout[j]), off(s.rollout[j], s.gradient[j]), track(s.weighted[j]), off(s.weighted[j], s.gradient[j]), track(s.gradient[j])));
    $("shares").replaceChildren(box);
  }

  function checks() {
    const c = data.checks, ok = number(c.worst) < c.tolerance;
    put($("checks"), html`<p>${c.count} gradients were computed a second time, by central finite differences in double precision, as this page was made: every step's loss, in every part, layer and head,
      each station and each way along a random direction. Of “${data.steps[data.show.step].target}” in ${parts[data.show.part].name} every row of every station and the row's scores and weights one by one. The largest
      relative error is <b class="${ok ? "more" : "less"}">${show(c.worst, 2)}</b>; ${show(c.tolerance)} is allowed. Each relu stays on or off as it is while numbers are moved, so that the loss has no kinks there.</p>
      <table class="list"><tbody>
      <tr><td>value + key + query + residual = whole gradient</td><td class="num">within ${show(c.way_residual, 2)}</td></tr>
      <tr><td>sum of δ over the words of a row = 0</td><td class="num">within ${show(c.score_sum, 2)}</td></tr>
      <tr><td>δ = α g·(v − o), in each head</td><td class="num">within ${show(c.identity_residual, 2)}</td></tr>
      <tr><td>LayerNorm's three terms = dx</td><td class="num">within ${show(c.norm_residual, 2)}</td></tr>
      <tr><td>loss, taken apart and by the fused ops</td><td class="num">${show(c.loss, 9)}, ${c.network_loss === null ? "which have the mask" : show(c.network_loss, 9)}</td></tr></tbody></table>
      <details><summary>This step's numbers in this part, one by one</summary><div class="scroll"><table class="list mono"><thead><tr><th>station</th><th>head</th><th>row</th><th>column</th><th>engine</th><th>differences</th><th>error</th></tr></thead>
      <tbody id="check-rows"></tbody></table></div></details>`);
    $("checks").querySelector("details").addEventListener("toggle", checkRows);
  }
  function checkRows() {
    if (!$("checks").querySelector("details").open) return;
    const place = (x) => (x === null ? "all" : x + 1);
    put($("check-rows"), step().checks.filter((c) => c[0] === state.p).map((c) => html`<tr><td>${c[1]}</td><td>${place(c[2])}</td><td>${place(c[3])}</td><td>${place(c[4])}</td><td>${show(c[5], 7)}</td><td>${show(c[6], 7)}</td><td>${show(c[7], 2)}</td></tr>`));
  }

  // ---- together ----

  let stations = null;
  /** Changes what is looked at: {t, p, h, i, j}. In the decoder the row is the step's own unless one is named. */
  function pick(change) {
    if ("t" in change && !whole(change.t)) delete change.t;
    const moved = "t" in change || "p" in change, before = state.p;
    Object.assign(state, change);
    if (moved && !("i" in change) && part().rows === "target") state.i = state.t;
    else if (moved && !("i" in change)) {
      const sizes = attends() ? Sublayer.head(data, state.t, state.p, state.h).delta.map(norm) : step().parts[state.p].ways.x.full.map(number);
      state.i = sizes.reduce((best, x, i) => (x > sizes[best] ? i : best), 0);
    }
    state.i = Math.min(state.i, rows().length - 1);
    if (attends() && !("j" in change)) {
      const w = Sublayer.head(data, state.t, state.p, state.h).delta[state.i].map((x) => Math.abs(x || 0));
      state.j = w.reduce((best, x, j) => (x > w[best] ? j : best), 0);
    }
    if (before !== state.p || !stations) stations = Stations.create($("stations"), Sublayer.view(data, state));
    lit.row = lit.column = -1;
    draw();
  }
  function draw() {
    const read = part().columns === "source" ? state.j : part().rows === "source" ? state.i : -1;
    Words.choose(read, state.t);
    [future, allHeads, lesson, maps, ways, stations.draw, layerNorm, jacobian, whatIf, shares, checkRows].forEach((f) => f());
  }

  document.title = `lens: ${source.slice(0, -1).map(({name}) => name).join(" ")}`;
  const m = data.model;
  $("about").textContent = `${m.name}: Transformer, ${m.layers} + ${m.layers} layers, ${m.units} units, ${m.heads} heads, norm ${m.norm_first ? "first" : "last"}${m.temperature === 1 ? "" : `, temperature τ = ${show(m.temperature)}`}` +
    `${m.causal ? "" : m.trained_causal ? ", computed without the causal mask" : ", trained without the causal mask"}, ${m.target_vocabulary} target ${data.pieces ? "pieces" : "words"}. ${data.has_reference ? "The target was given." : "The target is the model’s own translation."}`;
  $("theme").append(themeButton());
  const ok = number(data.checks.worst) < data.checks.tolerance;
  $("badges").append(el("span", {class: "badge " + (ok ? "good" : "bad"), id: "check-badge"}, `${data.checks.count} gradients checked by differences, worst error ${show(data.checks.worst, 2)} ${ok ? "✓" : "✗"}`));
  Words.chips(data, words, (i) => pick(part().columns === "source" ? {j: i} : {i}), (t) => pick({t}));
  const missing = data.steps.filter((_, t) => !whole(t)).length;
  for (const chip of $("target").querySelectorAll(".chip"))
    if (!whole(+chip.dataset.at)) { chip.disabled = true; chip.title += `; not in this page: lens explain --step ${+chip.dataset.at + 1} shows it`; }
  $("partly").hidden = !missing;
  $("partly").textContent = `So long a sentence does not fit into a page: it has ${T - missing} of ${T} steps whole. Of the others, which are pale, it has the ways alone; lens explain --step shows any of them.`;
  checks();
  for (const [id, act] of [["forward", "forward"], ["backward", "backward"], ["all", "all"]]) $(id).addEventListener("click", () => stations[act]());
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, select, td")) return;
    const act = {ArrowLeft: () => pick({t: next(state.t - 1, -1)}), ArrowRight: () => pick({t: next(state.t + 1, 1)}),
      f: () => stations.forward(), b: () => stations.backward(), a: () => stations.all()}[e.key];
    if (act) { act(); e.preventDefault(); }
  });
  pick({i: state.i});
  if (hash.has("back")) stations.all();
  window.lens = {data, state, pick, get stations() { return stations; }};
})();
