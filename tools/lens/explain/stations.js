// One decoder step as cards: values, gradients, the formula with this step's numbers, engine against differences. What the
// cards are of is told by a view: `recurrent` here, or that of a Transformer.

const Stations = (function () {
  const h = M.sub(M.b("h"), M.i("j")), k = M.sub(M.b("k"), M.i("j")), u = M.sub(M.b("u"), M.i("j"));
  const e = M.sub(M.i("e"), M.i("j")), alpha = M.sub(M.i("α"), M.i("j")), q = M.b("q"), c = M.b("c"), g = M.b("g");
  const d = (x) => M.frac([M.i("∂"), M.i("L")], [M.i("∂"), x]), eq = M.o("="), dot = M.o("·"), plus = M.o("+");
  const tr = (x) => M.sup(x, M.i("⊤")), W = (x) => M.sub(M.i("W"), M.i(x)), paren = (...x) => [M.o("("), x, M.o(")")];
  const prev = M.sub(M.b("s"), [M.i("t"), M.o("−"), M.n("1")]), now = M.sub(M.b("s"), M.i("t"));
  const delta = M.sub(M.i("δ"), M.i("j"));

  /** What a station is: symbol, how it comes about, what its gradient is, by the kind of the model. */
  function describe(name, data) {
    const additive = "u" in data.steps[0].stations, luong = data.model.order === "luong";
    const query = luong ? now : prev, asked = "q" in data.steps[0].stations ? q : query;
    const scale = number(data.model.scale), d_k = data.keys ? data.keys.shape[1] / data.model.heads : 0;
    const scaled = scale === 1 ? [] : Math.abs(scale * scale * d_k - 1) < 1e-6 ? [M.o("/"), html`<msqrt>${M.i("d")}</msqrt>`] : [M.o("·"), M.n(show(scale, 3))];
    const cooled = data.model.temperature !== 1 ? [M.o("/"), M.i("τ")] : [], several = data.model.heads > 1;
    return {
      s_prev: {symbol: prev, formula: "", back: [d(prev), eq, M.t(luong ? "by the cell" : "by query and cell")]},
      h: {symbol: h, formula: [h, eq, data.model.directions === 2 ? [M.o("["), M.t("forward"), M.o(";"), M.t("backward"), M.o("]")] : M.t("state after word j")],
        back: [d(h), eq, alpha, g, plus, M.t("scores"), plus, M.t("states")]},
      q: {symbol: q, formula: [q, eq, W("q"), query], back: additive ? [d(q), eq, M.sum(M.i("j")), paren(M.n("1"), M.o("−"), M.sup(u, M.n("2"))), M.o("⊙"), M.b("v"), delta, scaled] : [d(q), eq, M.sum(M.i("j")), k, delta, scaled]},
      k: {symbol: k, formula: [k, eq, ...(data.model.key_weight ? [W("k")] : []), h],
        back: additive ? [d(k), eq, paren(M.n("1"), M.o("−"), M.sup(u, M.n("2"))), M.o("⊙"), M.b("v"), delta, scaled] : [d(k), eq, asked, delta, scaled]},
      u: {symbol: u, formula: [u, eq, M.fn("tanh", [q, plus, k])], back: [d(u), eq, M.b("v"), delta, scaled]},
      e: {symbol: e, formula: additive ? [e, eq, M.b("v"), dot, u, scaled] : "k" in data.steps[0].stations ? [e, eq, asked, dot, k, scaled] : [e, eq, M.t("its own score")],
        back: [delta, eq, d(e), eq, alpha, g, dot, paren(several ? [W("o"), W("v"), h, M.o("−"), M.t("mix")] : [h, M.o("−"), c]), cooled]},
      alpha: {symbol: alpha, formula: [alpha, eq, M.frac(M.sup(M.i("e"), [e, cooled]), [M.sum(M.i("i")), M.sup(M.i("e"), [M.sub(M.i("e"), M.i("i")), cooled])])],
        back: [d(alpha), eq, g, dot, several ? [W("o"), W("v")] : [], h]},
      c: {symbol: c, formula: several ? [c, eq, W("o"), M.o("["), M.sum(M.i("j")), alpha, W("v"), h, M.o("]"), M.t("\u00a0of all heads")] : [c, eq, M.sum(M.i("j")), alpha, h], back: [g, eq, d(c)]},
      s: {symbol: now, formula: [now, eq, M.i(data.model.cell.split("-")[0].toUpperCase()), paren(luong ? [M.b("y"), M.o(","), prev] : [M.b("y"), M.o(","), c, M.o(","), prev])],
        back: [d(now), eq, M.t(luong ? "by query and readout" : "by the readout")]},
      a: {symbol: M.b("a"), formula: [M.b("a"), eq, M.i("f"), paren(M.i("W"), M.o("["), luong ? [c, M.o(";"), now] : [now, M.o(";"), c, M.o(";"), M.b("y")], M.o("]"))],
        back: [d(M.b("a")), eq, tr(W("o")), paren(M.b("p"), M.o("−"), M.b("y"))]},
      z: {symbol: M.b("z"), formula: [M.b("z"), eq, W("o"), M.b("a"), plus, M.b("b")], back: [d(M.b("z")), eq, M.b("p"), M.o("−"), M.t("onehot")]},
      p: {symbol: M.b("p"), formula: [M.b("p"), eq, M.fn("softmax", M.b("z"))], back: [d(M.sub(M.i("p"), M.t("target"))), eq, M.o("−"), M.frac(M.n("1"), M.sub(M.i("p"), M.t("target")))]},
      L: {symbol: M.i("L"), formula: [M.i("L"), eq, M.o("−"), M.i("ln"), M.sub(M.i("p"), M.t("target"))], back: [d(M.i("L")), eq, M.n("1")]},
    }[name];
  }

  const byWord = (name) => /^[hku](,|$)/.test(name);
  const perWord = (name) => name === "e" || name === "alpha";
  const byVocabulary = (name) => name === "z" || name === "p";
  const unitName = (name, r, c, data, s) => byWord(name) ? `${data.source[r]}, unit ${c + 1}` : perWord(name) ? data.source[c] + (data.model.heads > 1 ? `, head ${r + 1}` : "") :
    byVocabulary(name) ? s.top.words[c] : name === "L" ? "loss" : `unit ${c + 1}`;
  /** Where a check was made, in words. */
  function where(c, data, s) {
    const [name, row, column] = c;
    if (row !== null && column !== null) return unitName(name, row, column, data, s);
    return row === null && column === null ? "all of it, along a direction" : row === null ? `unit ${column + 1} of all words, along a direction` : `${data.source[row]}, along a direction`;
  }

  /** The view of a recurrent translator's step. */
  function recurrent(data, state) {
    const names = data.stations.filter((n) => n in data.steps[0].stations).concat(["L"]);
    const step = () => data.steps[state.t];
    const values = (name) => (name === "h" ? data.annotations : name === "k" ? data.keys : step().stations[name].value);
    function grid(name, kind) {
      if (name === "L") return {shape: [1, 1], shown: 1, values: [kind === "value" ? step().loss : 1]};
      return kind === "value" ? values(name) : step().stations[name].gradient;
    }
    const at = (grid, r, c) => number(grid.values[r * grid.shown + c]);
    /** What was compared in this step, by station and place. */
    const compared = data.steps.map((s) => {
      const found = new Map();
      for (const c of s.checks) found.set([c[0], c[1], c[2]].join(), c);
      return found;
    });
    const checkOf = (name, r, c) => compared[state.t].get([name, r, c].join()) || null;

    /** The place in a grid that formulas and checks are about: the chosen word, the unit with the largest gradient. */
    function focus(name) {
      if (name === "L") return [0, 0];
      if (perWord(name)) return [state.m, state.piece];
      if (byVocabulary(name)) return [0, step().top.ids.indexOf(step().target_id)];
      const one = grid(name, "gradient") || grid(name, "value"), row = byWord(name) ? state.piece : 0;
      let best = 0;
      for (let c = 1; c < one.shown; ++c) if (Math.abs(at(one, row, c)) > Math.abs(at(one, row, best))) best = c;
      return [row, best];
    }

    /** The formula with this step's numbers, for the chosen word and the unit with the largest gradient. */
    function numbers(name) {
      const s = step(), j = state.piece, head = s.heads[state.m], word = data.source[j];
      const i = focus(name)[1], n = `[${i + 1}]`;
      const v = (station, row, column) => show(at(values(station), row, column), 4);
      switch (name) {
        case "u": return `u${n} of “${word}” = tanh(${v("q", 0, i)} + ${v("k", j, i)}) = ${v("u", j, i)}`;
        case "h": case "k": return `${name}${n} of “${word}” = ${v(name, j, i)}`;
        case "e": return `e of “${word}” = ${show(head.scores[j], 5)}`;
        case "alpha": {
          const top = Math.max(...head.scores.map(number)), T = data.model.temperature;
          const parts = head.scores.map((x) => Math.exp((number(x) - top) / T)), sum = parts.reduce((a, b) => a + b, 0);
          return `α of “${word}” = ${show(parts[j], 4)} / ${show(sum, 4)} = ${show(head.weights[j], 4)}`;
        }
        case "c": {
          if (data.model.heads > 1) return `c${n} = ${v("c", 0, i)}`;
          const order = head.weights.map((w, k) => k).sort((a, b) => number(head.weights[b]) - number(head.weights[a])).slice(0, 2);
          return `c${n} = ${order.map((k) => `${show(head.weights[k], 3)}·${v("h", k, i)}`).join(" + ")} + … = ${v("c", 0, i)}`;
        }
        case "z": case "p": {
          const at0 = s.top.ids.indexOf(s.target_id);
          return `${name} of “${s.target}” = ${v(name, 0, at0)}`;
        }
        case "L": return `L = −ln ${show(s.p_target, 5)} = ${show(s.loss, 5)}`;
        default: return `${name === "s_prev" ? "s" : name}${n} = ${v(name, 0, i)}`;
      }
    }

    function check(name) {
      if (name === "L") {
        return {ok: data.checks.worst < 1e-6, text: `all steps: taken apart ${show(data.checks.loss, 8)}, in one piece ${show(data.checks.network_loss, 8)}`};
      }
      const checked = step().stations[name].checks, ok = number(checked.worst) < data.checks.tolerance;
      if (!checked.count) return {ok: true, text: step().stations[name].gradient ? "" : "no gradient arrives: nothing to check"};
      const [r, c] = focus(name);
      const here = checkOf(name, r, c) || checkOf(name, r, null) || step().checks.find((one) => one[0] === name);
      return {ok, text: `${ok ? "✓" : "✗"} ${where(here, data, step())}: engine ${show(here[3], 5)}, differences ${show(here[4], 5)}, off by ${show(here[5], 2)}. ` +
        `${checked.count} checked, worst ${show(checked.worst, 2)}`};
    }

    return {names, grid, numbers, check, columns: (name) => perWord(name) || byVocabulary(name),
      title: (name) => (name === "L" ? "loss" : data.steps[0].stations[name].title),
      info: (name) => ({first: "from the step before", ...describe(name, data)}),
      loss: () => step().loss,
      point: (name, r, c) => unitName(name, r, c, data, step()),
      checkAt: (name, r, c) => { const one = checkOf(name, r, c); return one && {engine: one[3], numeric: one[4], error: one[5]}; },
      cut(name, one) {
        const [rows, all] = one.shape, columns = one.shown;
        return columns < all && !byVocabulary(name) ? `first ${columns} of ${all}` :
          byVocabulary(name) ? `${columns} likeliest of ${all === columns ? data.model.target_vocabulary : all}` : `${rows > 1 ? rows + "×" : ""}${all}`;
      },
      mark(name) {
        if (byWord(name)) return [0, state.piece, grid(name, "value").shown, 1];
        if (perWord(name)) return [state.piece, state.m, 1, 1];
        return byVocabulary(name) ? [step().top.ids.indexOf(step().target_id), 0, 1, 1] : null;
      },
      pick(name, r, c) {
        if (byWord(name)) state.pickPiece(r);
        else if (perWord(name)) state.pickPiece(c);
      }};
  }

  /** Draws a view's stations into a box. A view: names (the loss "L" last), title(name), info(name) -> {symbol, formula, back},
   *  grid(name, kind) -> {shape, shown, values} or null, rows(name): rows are words, columns(name): columns are, cut(name, grid),
   *  mark(name) -> [x, y, width, height] of what is outlined, point(name, row, column) -> its name, checkAt(name, row, column),
   *  check(name) -> {ok, text}, numbers(name): the formula with numbers, pick(name, row, column), loss(), first: text without a formula. */
  function create(box, view) {
    const {names} = view;
    let shownValues = names.length, shownGradients = 0, timer = null;
    box.replaceChildren();
    const cards = names.map((name) => {
      const info = view.info(name), card = el("article", {class: "card", tabindex: 0, "data-station": name});
      put(card, html`<span class="link"></span><div class="title"><b>${view.title(name)}</b><span>${M.math(info.symbol)}</span></div>
        <div class="formula">${info.formula ? M.math(...info.formula) : html`<span class="quiet small">${info.first || ""}</span>`}</div>
        <div class="numbers forward"></div><div class="value"></div>
        <div class="formula back">${M.math(...info.back)}</div><div class="gradient"></div><div class="check"></div>`);
      const place = (event, svg) => {
        const box = svg.getBoundingClientRect(), rows = +svg.dataset.rows, columns = +svg.dataset.columns;
        return [Math.min(rows - 1, Math.floor(((event.clientY - box.top) / box.height) * rows)),
          Math.min(columns - 1, Math.floor(((event.clientX - box.left) / box.width) * columns))];
      };
      card.addEventListener("pointermove", (event) => {
        const svg = event.target.closest("svg[data-rows]");
        if (!svg) return hideTip();
        showTip(pointTip(name, svg.dataset.kind, ...place(event, svg)), event.clientX, event.clientY);
      });
      card.addEventListener("pointerleave", hideTip);
      card.addEventListener("click", (event) => {
        const svg = event.target.closest("svg[data-rows]");
        if (svg) view.pick(name, ...place(event, svg));
      });
      box.append(card);
      return card;
    });

    const at = (grid, r, c) => number(grid.values[r * grid.shown + c]);
    function pointTip(name, kind, r, c) {
      const grid = view.grid(name, kind);
      if (!grid) return "not computed";
      const x = at(grid, r, c);
      if (x === null) return `${view.point(name, r, c)}\nmasked: it is not looked at`;
      const meaning = kind === "value" ? "" : x === 0 ? "" : x > 0 ? "\ndescent makes it smaller: less" : "\ndescent makes it larger: more";
      const one = kind === "value" ? null : view.checkAt(name, r, c);
      const proof = one ? `\nengine ${show(one.engine, 6)}\ndifferences ${show(one.numeric, 6)}, off by ${show(one.error, 2)}` : "";
      return `${view.point(name, r, c)}\n${kind === "value" ? "value" : "dL/dx"} ${show(x, 5)}${proof}${meaning}`;
    }

    /** The grid as a picture; `columns` of it as far as it has that many. */
    function draw(name, kind, hidden) {
      if (name === "L") return kind === "value" ? html`<div class="big num">${show(view.loss(), 5)}</div>` : [];
      const grid = view.grid(name, kind);
      if (!grid) return html`<div class="grid-name"><span>${kind}</span><span>none: no path leads here</span></div>`;
      const rows = grid.shape[0], columns = grid.shown;
      const size = rows > 1 ? Math.max(64, Math.min(130, rows * 9)) : view.columns(name) ? 22 : 16;
      // Hatching must keep its proportions, so it is drawn in the page's own pixels.
      if (hidden) return html`<div class="grid-name"><span>gradient</span><span>not computed yet</span></div>
        <svg height="${size}" aria-hidden="true"><rect width="100%" height="100%" class="none"/></svg>`;
      const largest = largestOf(grid.values), sign = kind === "value" && grid.values.some((x) => number(x) < 0);
      const {cells, dots} = paths(grid.values, rows, columns, kind === "value" ? (x) => blue(x, largest, sign) : (x) => pull(x === null ? null : -x, largest));
      const [x, y, w, v] = view.mark(name) || [];
      const mark = w ? html`<rect x="${x}" y="${y}" width="${w}" height="${v}" fill="none" stroke="var(--ink)" stroke-width="1.6" vector-effect="non-scaling-stroke"/>` : [];
      const range = kind === "value" ? (sign ? `±${show(largest, 2)}` : `0 … ${show(largest, 2)}`) : `±${show(largest, 2)}`;
      return html`<div class="grid-name"><span>${kind === "value" ? "value" : "gradient"}, ${view.cut(name, grid)}</span><span class="mono">${range}</span></div>
        <svg viewBox="0 0 ${columns} ${rows}" height="${size}" preserveAspectRatio="none" shape-rendering="crispEdges" role="img"
          aria-label="${kind} of ${view.title(name)}" data-rows="${rows}" data-columns="${columns}" data-kind="${kind}">${cells}${dots}${mark}</svg>`;
    }

    function norm(name) {
      if (name === "L") return 1;
      const grid = view.grid(name, "gradient");
      return grid ? Math.sqrt(grid.values.reduce((a, x) => a + number(x) ** 2, 0)) : 0;
    }

    function drawCard(index) {
      const name = names[index], card = cards[index], q = (selector) => card.querySelector(selector);
      const hasValue = index < shownValues, hasGradient = index >= names.length - shownGradients;
      card.classList.toggle("dim", !hasValue);
      q(".forward").textContent = hasValue ? view.numbers(name) : "";
      put(q(".value"), hasValue ? draw(name, "value", false) : []);
      put(q(".gradient"), draw(name, "gradient", !hasGradient));
      q(".back").style.visibility = hasGradient ? "visible" : "hidden";
      const result = view.check(name), line = q(".check");
      line.textContent = hasGradient ? result.text : "";
      line.className = "check " + (result.ok ? "ok" : "fail");
      const size = norm(name);
      q(".link").style.width = hasGradient && size > 0 ? Math.max(1, Math.min(11, 11 + 1.4 * Math.log10(size))) + "px" : "0";
    }
    const drawAll = () => names.forEach((_, index) => drawCard(index));

    function walk(count, one) {
      clearInterval(timer);
      let done = 0;
      const light = (index) => cards.forEach((card, k) => card.classList.toggle("lit", k === index));
      const next = () => {
        if (done === count) { clearInterval(timer); light(-1); return; }
        light(one(done++));
      };
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) while (done < count) next();
      else { next(); timer = setInterval(next, 260); }
      if (done === count) light(-1);
    }
    function forward() {
      shownValues = shownGradients = 0;
      drawAll();
      walk(names.length, (k) => { shownValues = k + 1; drawCard(k); return k; });
    }
    function backward() {
      shownValues = names.length;
      shownGradients = 0;
      drawAll();
      walk(names.length, (k) => { shownGradients = k + 1; drawCard(names.length - 1 - k); return names.length - 1 - k; });
    }
    function all() {
      clearInterval(timer);
      cards.forEach((card) => card.classList.remove("lit"));
      shownValues = shownGradients = names.length;
      drawAll();
    }
    return {draw: drawAll, forward, backward, all, shown: () => ({values: shownValues, gradients: shownGradients, of: names.length})};
  }

  /** Cells of rows x columns as one path for each shade: thousands of rectangles would take the browser a second. What is
   *  masked (null) is hatched by strokes, which keep their width however the picture is stretched. */
  function paths(values, rows, columns, shadeOf) {
    const shades = new Map();
    for (let r = 0; r < rows; ++r) for (let c = 0; c < columns; ++c) {
      const shade = shadeOf(number(values[r * columns + c]));
      shades.set(shade, (shades.get(shade) || "") + `M${c} ${r}h1.02v1.02h-1.02z`);
    }
    const masked = shades.get("none");
    shades.delete("none");
    return {cells: [...shades].map(([shade, path]) => html`<path class="${shade}" d="${path}"/>`),
      dots: masked ? html`<path class="masked" d="${masked.replace(/h1\.02v1\.02h-1\.02z/g, "m0 .5l.5 -.5m-.5 1l1 -1m-.5 1l.5 -.5")}"/>` : []};
  }
  return {create, recurrent, where, paths, symbols: {h, k, u, e, alpha, q, c, g, d, eq, dot, plus, tr, W, paren, delta}};
})();
