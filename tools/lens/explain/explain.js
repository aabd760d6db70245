// The page of `lens explain`: which step and word are looked at, and everything that is drawn of them.

(function () {
  const data = unpackAll(JSON.parse($("data").textContent));
  // Columns are source words; what a step and its stations are about is a piece, which is a word where there are no others.
  const words = Words.of(data), {source, target} = words, S = source.length, T = data.steps.length;
  const state = {t: Math.min(data.show.step, T - 1), j: 0, piece: 0, m: 0, source, pick, pickPiece};
  const wordAt = Words.at, byWord = (h) => Words.added(h, source, number(data.model.temperature));
  const heads = data.steps.map((s) => s.heads.map(byWord));
  const head = (t = state.t) => heads[t][state.m];
  const strongest = (t) => head(t).weights.reduce((best, w, j) => (number(w) > number(head(t).weights[best]) ? j : best), 0);
  const scoreGradient = (t) => (head(t).score_gradient || new Array(S).fill(null)).map(number);

  // ---- the lesson: who gains, and why ----

  function lesson() {
    const step = data.steps[state.t], h = head(), mix = number(h.mix), gradient = scoreGradient(state.t);
    // Of several heads c is what W_o makes of all mixes: a word is in it as W_o W_v h.
    const several = data.model.heads > 1, {W, h: annotation, c} = Stations.symbols, T = number(data.model.temperature);
    const value = several ? [W("o"), W("v"), annotation] : annotation, mixture = several ? M.t("this head’s mix") : c;
    const cooled = T !== 1 ? [M.o("/"), M.i("τ")] : [];
    put($("lesson-formula"), M.math(M.o("−"), M.frac([M.i("∂"), M.i("L")], [M.i("∂"), M.sub(M.i("e"), M.i("j"))]), M.o("="),
      M.sub(M.i("α"), M.i("j")), M.o("·"), M.o("("), M.o("−"), M.b("g"), M.o(")"), M.o("·"), M.o("("), value, M.o("−"), mixture, M.o(")"),
      cooled, M.o(","), M.t("  "), M.b("g"), M.o("="), M.frac([M.i("∂"), M.i("L")], [M.i("∂"), M.b("c")])));
    const better = (j) => mix - number(h.gain[j]);
    const names = source.map(({name}) => name), told = (j) => Words.told(data, names, j);
    if (gradient.some((x) => x === null)) {
      $("lesson").textContent = "The loss does not depend on the scores of this step: nothing can gain or lose attention.";
    } else {
      const most = gradient.reduce((best, x, j) => (x < gradient[best] ? j : best), 0);
      const least = gradient.reduce((best, x, j) => (x > gradient[best] ? j : best), 0);
      put($("lesson"), html`To make “${step.target}” more likely after “${step.previous}”, attention should move from
        <b class="less">${told(least)}</b> to <b class="more">${told(most)}</b>.
        For “${told(state.j)}”: weight ${show(h.weights[state.j], 4)} × ${Pull.compared(better(state.j), 4)}${T === 1 ? "" : ` / ${show(T, 4)} (temperature τ)`}
        = pull ${signed(-gradient[state.j], 4)}, so it ${gradient[state.j] < 0 ? html`<b class="more">gains</b>` : gradient[state.j] > 0 ? html`<b class="less">loses</b>` : "stays"}.`);
    }
    const heading = el("span");
    put(heading, html`how much better than the mix: ${several ? M.math(M.o("("), M.o("−"), M.b("g"), M.o(")"), M.o("·"), M.o("("), W("o"), W("v"), M.b("h"), M.o("−"), M.t("mix"), M.o(")")) : "(−g)·(h − c)"}`);
    $("gains").replaceChildren(Pull.gains({names, weights: h.weights, better: h.gain.map((_, j) => better(j)), gradient,
      token: Words.token(data), heading, chosen: state.j, pick: (j) => pick(state.t, j)}));
    $("head-choice").replaceChildren(...(data.model.heads > 1 ? [el("span", {class: "quiet small"}, "head"),
      ...step.heads.map((_, m) => el("button", {type: "button", "aria-pressed": m === state.m, onclick: () => { state.m = m; draw(); }}, m + 1))] : []));
  }

  // ---- blame map ----

  const maps = [];
  function blame() {
    const rows = target.map(({name}) => name), columns = source.map(({name}) => name);
    const worst = (word) => Words.strongest(word, (t) => number(data.steps[t].loss));
    const common = {rows, columns, cross: true, at: () => [wordAt(target, state.t), state.j],
      pick: (row, j) => pick(target[row].parts.includes(state.t) ? state.t : worst(target[row]), j)};
    // Of a target word's pieces weights are averaged, gradients added; a table for each head.
    const tables = heads[0].map((_, m) => {
      const added = (key) => target.map(({parts}) => columns.map((_, j) =>
        parts.reduce((a, t) => (heads[t][m][key] && a !== null ? a + number(heads[t][m][key][j]) : null), 0)));
      const pulls = added("score_gradient");
      return {weights: added("weights").map((row, r) => row.map((w) => w / target[r].parts.length)), pulls, most: largestOf(pulls.flat())};
    });
    const paths = data.words ? data.words.paths : data.steps.map((s) => s.paths);
    const titled = (title, note, map) => {
      maps.push(map);
      const scroll = el("div", {class: "scroll"}, map);
      // Where the words are too many to be in sight, the three go along together.
      scroll.addEventListener("scroll", () => {
        for (const other of $("maps").querySelectorAll(".scroll")) if (other.scrollLeft !== scroll.scrollLeft) other.scrollLeft = scroll.scrollLeft;
      });
      return el("div", {style: S > 16 ? cellSize(290 - S, 8, S) : cellSize(270 - 1.5 * S, 15, S)}, el("h3", {}, title), scroll, note);
    };
    const note = (markup) => { const p = el("p", {class: "legend"}); put(p, markup); return p; };
    const pair = (row, j) => `${rows[row]} ← ${columns[j]}`;
    const full = paths.map((p) => p.full.map(number));
    const logs = full.flat().filter((x) => x > 0 && Number.isFinite(x)).map(Math.log10);
    const low = Math.floor(Math.min(...logs)), high = Math.ceil(Math.max(...logs)), decades = Math.max(1, high - low);
    $("maps").classList.toggle("tight", S > 16);
    $("maps").classList.toggle("tiny", S > 24);
    const ofHead = data.model.heads > 1 ? `, head ${state.m + 1}` : "", ofAll = ofHead && ", all heads";
    $("maps").append(
      titled(`Weights: where it looks${ofHead}`, note(html`<span>0<span class="ramp value"></span>1</span>`), heatMap({...common, label: "Attention weights",
        cell: (row, j) => { const w = tables[state.m].weights[row][j]; return {class: blue(w, 1), tip: `${pair(row, j)}\nweight ${show(w, 4)}`}; }})),
      titled(`Score pull, −∂L/∂e${ofHead}`, note(html`<span class="less">less</span><span class="ramp gradient"></span><span class="more">more attention</span>`), heatMap({...common, label: "Score pull",
        cell: (row, j) => { const {pulls, most} = tables[state.m], x = pulls[row][j]; return {class: pull(x === null ? null : -x, most), tip: `${pair(row, j)}\npull ${x === null ? "not computed" : signed(-x, 4)}`,
          html: x !== null && Math.abs(x) > 0.15 * most ? html`<span class="mark">${x < 0 ? "+" : "−"}</span>` : []}; }})),
      titled(`Blame, |∂L/∂h|, by path${ofAll}`, note(html`<span><span class="key p-value"></span>value: through the mixture</span><span><span class="key p-score"></span>score: through the weights</span>
        <span><span class="key p-rest"></span>recurrent: through other states</span><span>length: log scale, 1e${low} … 1e${high}</span>`), heatMap({...common, label: "Gradient by path",
        cell: (row, j) => {
          const p = paths[row], parts = [p.value[j], p.score[j], p.recurrent[j]].map(number), sum = parts.reduce((a, b) => a + b, 0);
          const size = full[row][j], width = size > 0 ? Math.max(0.04, (Math.log10(size) - low) / decades) : 0;
          const bar = sum > 0 ? ["value", "score", "rest"].map((name, k) => html`<i class="p-${name}" data-style="width:${(100 * parts[k]) / sum}%"></i>`) : [];
          return {class: Number.isFinite(size) ? "" : "odd", html: html`<span class="parts" data-style="width:calc(${94 * width}%)">${bar}</span>`,
            tip: `${pair(row, j)}\n|∂L/∂h| ${show(size, 4)}\nvalue path ${show(parts[0], 4)}\nscore path ${p.score_path_exists ? show(parts[1], 4) : "0: the scores do not read the words"}\nrecurrent ${show(parts[2], 4)}` +
              `\n  earlier steps ${show(p.earlier[j])}, neighbours ${show(p.neighbours[j])}, first state ${show(p.start[j])}`};
        }})));
  }

  // ---- softmax ----

  const lit = {row: -1, column: -1};
  function jacobian() {
    const h = head();
    Pull.softmax($("jacobian"), {names: source.map(({name}) => name), weights: h.weights.map(number), gain: (h.weight_gradient || h.gain).map(number),
      temperature: number(data.model.temperature), gradient: h.score_gradient, chosen: state.j, size: cellSize(400, 19, S), at: lit});
  }

  // ---- checks ----

  function checks() {
    const c = data.checks, ok = number(c.worst) < c.tolerance, token = data.pieces ? "piece" : "word";
    put($("checks"), html`<p>${c.count} gradients were computed a second time, by central finite differences in double precision, as this page was made.
      The largest relative error is <b class="${ok ? "more" : "less"}">${show(c.worst, 2)}</b>; ${show(c.tolerance)} is allowed.
      Of “${data.steps[data.show.step].target}” (${token} ${data.show.step + 1}) every element of every vector was compared, of larger matrices every row and every column
      along a random direction; of the other ${token}s, each station along two directions, 16 scores and weights at most and likely logits one by one. <code>--step</code> chooses the ${token}.</p>
      <p class="small quiet">Errors are relative to the number itself, but to no less than 10<sup>−4</sup> of the largest gradient in its grid; for the scores and what leads to them, no less than
      10<sup>−9</sup> of the terms α g·h whose differences they are, for the others no less than 10<sup>−6</sup> of the loss. Less than that, sixteen digits cannot hold to six.</p>
      <table class="list"><tbody>
      <tr><td>value + score + recurrent path = whole gradient</td><td class="num">within ${show(c.path_residual, 2)}</td></tr>
      ${data.steps.some((s) => s.heads[0].score_gradient) ? html`<tr><td>sum of δ over the source ${token}s = 0</td><td class="num">within ${show(c.score_sum, 2)}</td></tr>
      <tr><td>δ = α g·${data.model.heads > 1 ? html`(W<sub>o</sub> W<sub>v</sub> h − mix)` : "(h − c)"}${data.model.temperature === 1 ? "" : " / τ"}</td><td class="num">within ${show(c.identity_residual, 2)}</td></tr>` : []}
      <tr><td>loss, taken apart and by the fused ops</td><td class="num">${show(c.loss, 9)}, ${show(c.network_loss, 9)}</td></tr></tbody></table>
      <details><summary>The step's numbers, one by one</summary><div class="scroll"><table class="list mono"><thead><tr><th>station</th><th>where</th><th>engine</th><th>differences</th><th>error</th></tr></thead>
      <tbody id="check-rows"></tbody></table></div></details>`);
    $("checks").querySelector("details").addEventListener("toggle", checkRows);
  }
  function checkRows() {
    if (!$("checks").querySelector("details").open) return;
    const s = data.steps[state.t];
    const where = (c) => Stations.where(c, data, s);
    put($("check-rows"), s.checks.map((c) => html`<tr><td>${c[0]}</td><td>${where(c)}</td><td>${show(c[3], 7)}</td><td>${show(c[4], 7)}</td><td>${show(c[5], 2)}</td></tr>`));
  }

  // ---- together ----

  /** Step t and source word j, null: the strongest; of its pieces `piece`, or that with the largest weight. */
  function pick(t, j, piece = null) {
    const moved = t !== state.t, w = (i) => number(data.steps[t].heads[state.m].weights[i]);
    state.t = t;
    state.j = j === null ? strongest(t) : Math.max(0, Math.min(S - 1, j));
    state.piece = piece !== null ? piece : Words.strongest(source[state.j], w);
    if (moved || j !== null) lit.row = lit.column = -1;
    draw(moved);
  }
  function pickPiece(i) { pick(state.t, wordAt(source, i), i); }
  let stations, whatIf;
  function draw(moved = true) {
    Words.choose(state.piece, state.t);
    lesson();
    maps.forEach((map) => map.draw());
    stations.draw();
    jacobian();
    checkRows();
    if (moved) whatIf.draw();
  }

  document.title = `lens: ${source.slice(0, -1).map(({name}) => name).join(" ")}`;
  const m = data.model;
  $("about").textContent = `${m.name}: ${m.attention} attention in ${m.order === "luong" ? "Luong’s" : "Bahdanau’s"} order, ${m.cell} cells, ` +
    `${m.hidden_size} units, ${m.target_vocabulary} target ${data.pieces ? "pieces" : "words"}. ${data.has_reference ? "The target was given." : "The target is the model’s own translation."}`;
  $("theme").append(themeButton());
  const ok = number(data.checks.worst) < data.checks.tolerance;
  $("badges").append(el("span", {class: "badge " + (ok ? "good" : "bad"), id: "check-badge"}, `${data.checks.count} gradients checked by differences, worst error ${show(data.checks.worst, 2)} ${ok ? "✓" : "✗"}`));
  if (hash.has("t")) state.t = Math.max(0, Math.min(T - 1, Math.floor(+hash.get("t")) - 1 || 0));
  Words.chips(data, words, pickPiece, (t) => pick(t, null));
  blame();
  checks();
  stations = Stations.create($("stations"), Stations.recurrent(data, state));
  whatIf = WhatIf.create($("what-if"), $("what-if-badge"), data, state);
  $("forward").addEventListener("click", stations.forward);
  $("backward").addEventListener("click", stations.backward);
  $("all").addEventListener("click", stations.all);
  if (hash.has("back")) stations.all();
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, select, td")) return;
    const act = {ArrowLeft: () => pick(Math.max(0, state.t - 1), null), ArrowRight: () => pick(Math.min(T - 1, state.t + 1), null),
      f: stations.forward, b: stations.backward, a: stations.all}[e.key];
    if (act) { act(); e.preventDefault(); }
  });
  pick(state.t, hash.has("j") ? Math.floor(+hash.get("j")) - 1 || 0 : null);
  whatIf.draw();
  window.lens = {data, state, stations};
})();
