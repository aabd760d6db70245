// A part of a Transformer's layer as stations: what each is, its formula, and this step's numbers.

const Sublayer = (function () {
  const x = M.sub(M.b("x"), M.i("t")), n = M.sub(M.b("n"), M.i("t")), q = M.sub(M.b("q"), M.i("t")), o = M.sub(M.b("o"), M.i("t"));
  const k = M.sub(M.b("k"), M.i("j")), v = M.sub(M.b("v"), M.i("j")), w = M.b("w"), s = M.b("s"), u = M.b("u"), r = M.b("r"), m = M.sub(M.b("m"), M.i("j"));
  const tj = (letter) => M.sub(M.i(letter), M.i("tj")), e = tj("e"), alpha = tj("α"), delta = tj("δ"), g = M.sub(M.b("g"), M.i("t"));
  const {d, eq, dot, plus, tr, W, paren} = Stations.symbols, over = M.o("/"), z = M.b("z"), p = M.b("p");
  const pTarget = M.sub(M.i("p"), M.t("target"));

  function describe(name, data, part) {
    const cross = part.sublayer === "cross", attends = "scores" in part, first = data.model.norm_first;
    const read = first ? n : x, other = cross ? m : first ? M.sub(M.b("n"), M.i("j")) : M.sub(M.b("x"), M.i("j"));
    const root = [html`<msqrt>${M.i("d")}</msqrt>`, data.model.temperature === 1 ? [] : M.i("τ")];
    const relu = data.model.activation === "relu";
    return {
      x: {symbol: x, first: "from the part before", back: [d(x), eq, ...(attends ? cross ? [M.t("query"), plus] : [M.t("value"), plus, M.t("key"), plus, M.t("query"), plus] : [M.t("through"), plus]), M.t("residual")]},
      m: {symbol: m, first: "from the encoder", back: [d(m), eq, M.t("value"), plus, M.t("key"), M.t("\u00a0of this layer")]},
      n: {symbol: n, formula: [n, eq, M.fn("LN", x)], back: [d(n), eq, part.sublayer === "output" ? [tr(W("o")), d(z)] : attends ? [M.t("by queries"), cross ? [] : M.t(", keys, values")] : [tr(W("1")), d(u)]]},
      q: {symbol: q, formula: [q, eq, W("Q"), read], back: [d(q), eq, M.sum(M.i("j")), delta, k, over, root]},
      k: {symbol: k, formula: [k, eq, W("K"), other], back: [d(k), eq, M.sum(M.i("t")), delta, q, over, root]},
      v: {symbol: v, formula: [v, eq, W("V"), other], back: [d(v), eq, M.sum(M.i("t")), alpha, g]},
      e: {symbol: e, formula: [e, eq, q, dot, k, over, root], back: [delta, eq, d(e), eq, alpha, g, dot, paren(v, M.o("−"), o)]},
      alpha: {symbol: alpha, formula: [alpha, eq, M.frac(M.sup(M.i("e"), e), [M.sum(M.i("i")), M.sup(M.i("e"), M.sub(M.i("e"), M.i("ti")))])], back: [d(alpha), eq, g, dot, v]},
      o: {symbol: o, formula: [o, eq, M.sum(M.i("j")), alpha, v], back: [g, eq, d(o), eq, tr(W("O")), d(w)]},
      u: {symbol: u, formula: [u, eq, W("1"), read, plus, M.b("b")], back: [d(u), eq, d(r), relu ? M.t("\u00a0where u > 0") : M.t("\u00a0· gelu′(u)")]},
      r: {symbol: r, formula: [r, eq, relu ? M.fn("max", [M.n("0"), M.o(","), u]) : M.fn("gelu", u)], back: [d(r), eq, tr(W("2")), d(w)]},
      w: {symbol: w, formula: attends ? [w, eq, W("O"), o, plus, M.b("b")] : [w, eq, W("2"), r, plus, M.b("b")], back: [d(w), eq, d(s)]},
      s: {symbol: s, formula: [s, eq, x, plus, w], back: [d(s), eq, M.t(first ? "by the next part" : "through the norm")]},
      y: {symbol: M.b("y"), formula: [M.b("y"), eq, M.fn("LN", s)], back: [d(M.b("y")), eq, M.t("by the next part")]},
      z: {symbol: z, formula: [z, eq, W("o"), M.t("\u00a0last row"), plus, M.b("b")], back: [d(z), eq, p, M.o("−"), M.t("onehot")]},
      p: {symbol: p, formula: [p, eq, M.fn("softmax", z)], back: [d(pTarget), eq, M.o("−"), M.frac(M.n("1"), pTarget)]},
      L: {symbol: M.i("L"), formula: [M.i("L"), eq, M.o("−"), M.i("ln"), pTarget], back: [d(M.i("L")), eq, M.n("1")]},
    }[name];
  }

  /** The words that the rows, or the columns, of a part stand for. In the decoder a row is named by the word it must say. */
  const rowsOf = (data, part) => (part.rows === "target" ? data.target : data.source);
  const columnsOf = (data, part) => (part.columns === "target" ? ["<s>", ...data.target.slice(0, -1)] : data.source);
  const masked = (part, i, j) => part.masked && j > i;

  /** A page leaves rows out that no gradient can reach past the causal mask. */
  function filled(grid, rows) {
    if (grid.shape[0] === rows) return grid;
    const values = new Float64Array(rows * grid.shown);
    values.set(grid.values);
    return {shape: [rows, grid.shape[1]], shown: grid.shown, values};
  }
  /** dL/dx at a station. A page leaves out what stands elsewhere: w's is that of the sum, and that what comes into the next part. */
  function gradient(data, t, at, name) {
    const own = data.steps[t].parts[at].gradients;
    if (name in own) return filled(own[name], data.parts[at].stations[name].value.shape[0]);
    if (name === "w") return gradient(data, t, at, "s");
    return name === "s" ? gradient(data, t, at + 1, "x") : null;
  }
  /** One head of one step: rows of weights, scores, dL/de and dL/dalpha; null where the mask is. */
  function head(data, t, at, h) {
    const part = data.parts[at], g = data.steps[t].parts[at];
    const rows = (of) => part.weights[h].map((row, i) => Array.from(row, (_, j) => (masked(part, i, j) ? null : number(of(i, j)))));
    const weights = rows((i, j) => part.weights[h][i][j]), delta = rows((i, j) => (i < g.score_gradient[h].length ? g.score_gradient[h][i][j] : 0));
    return {weights, delta, scores: rows((i, j) => part.scores[h][i][j]),
      better: rows((i, j) => (weights[i][j] > 0 ? -delta[i][j] / weights[i][j] : 0)),
      gain: rows((i, j) => number(g.mix[h][i]) + (weights[i][j] > 0 ? delta[i][j] / weights[i][j] : 0))};
  }

  /** The view for Stations. state: t, p, h, i (row), j (column). */
  function view(data, state) {
    const at = state.p, part = data.parts[at], last = at === data.parts.length - 1, width = data.model.units / data.model.heads;
    const names = [...Object.keys(part.stations), ...(last ? ["z", "p", "L"] : ["L"])];
    const step = () => data.steps[state.t], square = (name) => name === "e" || name === "alpha", vocabulary = (name) => name === "z" || name === "p";
    const byColumn = (name) => ["k", "v", "m"].includes(name);
    function grid(name, kind) {
      const s = step(), flat = (x) => ({shape: [1, x.length], shown: x.length, values: x});
      if (name === "L") return flat([kind === "value" ? s.loss : 1]);
      if (name === "z") return flat(kind === "value" ? s.top.logits : s.top.gradient);
      if (name === "p") return flat(kind === "value" ? s.top.p : s.top.ids.map((id) => (id === s.target_id ? -1 / number(s.p_target) : 0)));
      if (!square(name)) return kind === "value" ? part.stations[name].value : gradient(data, state.t, at, name);
      const one = head(data, state.t, at, state.h), rows = {e: {value: one.scores, gradient: one.delta}, alpha: {value: one.weights, gradient: one.gain}}[name][kind];
      return {shape: [rows.length, rows[0].length], shown: rows[0].length, values: rows.flat()};
    }
    const row = (name) => (byColumn(name) ? state.j : state.i);
    const word = (name, i) => (byColumn(name) ? columnsOf(data, part) : rowsOf(data, part))[i];
    const point = (name, r, c) => name === "L" ? "loss" : vocabulary(name) ? step().top.words[c] :
      square(name) ? `${rowsOf(data, part)[r]} looks at ${columnsOf(data, part)[c]}` :
        `${word(name, r)}, unit ${c + 1}${["q", "k", "v", "o"].includes(name) ? `, head ${Math.floor(c / width) + 1}` : ""}`;
    function checkAt(name, r, c) {
      const found = step().checks.find((one) => one[0] === at && one[1] === name && one[3] === r && one[4] === c && (one[2] === null || one[2] === state.h));
      return found ? {engine: found[5], numeric: found[6], error: found[7]} : null;
    }
    const first = (name) => square(name) && part.scores ? [state.i, state.j] : vocabulary(name) ? [0, step().top.ids.indexOf(step().target_id)] : [row(name), ["q", "k", "v", "o"].includes(name) ? state.h * width : 0];
    return {names, grid, point, checkAt, columns: (name) => vocabulary(name),
      title: (name) => ({z: "logits", p: "probabilities", L: "loss"}[name] || part.stations[name].title),
      info: (name) => describe(name, data, part),
      loss: () => step().loss,
      cut: (name, one) => vocabulary(name) ? `${one.shown} likeliest of ${data.model.target_vocabulary}` :
        one.shown < one.shape[1] ? `first ${one.shown} of ${one.shape[1]}` : `${one.shape[0] > 1 ? one.shape[0] + "×" : ""}${one.shape[1]}${square(name) ? `, head ${state.h + 1}` : ""}`,
      mark(name) {
        if (name === "L") return null;
        if (vocabulary(name)) return [first(name)[1], 0, 1, 1];
        if (square(name)) return [state.j, state.i, 1, 1];
        const shown = grid(name, "value").shown;
        return ["q", "k", "v", "o"].includes(name) ? [state.h * width, row(name), width, 1] : [0, row(name), shown, 1];
      },
      numbers(name) {
        const s = step();
        if (name === "L") return `L = −ln ${show(s.p_target, 5)} = ${show(s.loss, 5)}`;
        const [r, c] = first(name), one = grid(name, "value"), value = show(one.values[r * one.shown + c], 5);
        if (vocabulary(name)) return `${name} of “${s.target}” = ${value}`;
        if (square(name)) {
          const text = `${name === "e" ? "e" : "α"} of “${point(name, r, c)}” = `;
          if (name === "e" || one.values[r * one.shown + c] === null) return text + (one.values[r * one.shown + c] === null ? "masked" : value);
          const scores = head(data, state.t, at, state.h).scores[r], top = Math.max(...scores.map((x) => (x === null ? -Infinity : x)));
          const parts = scores.map((x) => (x === null ? 0 : Math.exp(x - top)));
          return `${text}${show(parts[c], 4)} / ${show(parts.reduce((a, b) => a + b, 0), 4)} = ${value}`;
        }
        return `${name}[${c + 1}] of “${word(name, r)}” = ${value}`;
      },
      check(name) {
        if (name === "L") {
          const c = data.checks;
          return {ok: number(c.worst) < c.tolerance, text: `all steps: taken apart ${show(c.loss, 8)}` + (c.network_loss === null ? "" : `, in one piece ${show(c.network_loss, 8)}`)};
        }
        const checked = step().parts[at].checked[name];
        if (!checked || !checked.count) return {ok: true, text: name === "p" ? "−1 / p, by itself" : ""};
        const ok = number(checked.worst) < data.checks.tolerance, own = step().checks.filter((one) => one[0] === at && one[1].split(",")[0] === name);
        const here = own.find((one) => one[3] === row(name) && (one[2] === null || one[2] === state.h)) || own.find((one) => one[2] === state.h) || own[0];
        const place = here[4] !== null ? point(name, here[3], here[4]) : here[3] !== null ? `${word(name, here[3])}, along a direction` : "all of it, along a direction";
        return {ok, text: `${ok ? "✓" : "✗"} ${place}: engine ${show(here[5], 5)}, differences ${show(here[6], 5)}, off by ${show(here[7], 2)}. ${checked.count} checked, worst ${show(checked.worst, 2)}`};
      },
      pick(name, r, c) {
        if (square(name)) state.pick({i: r, j: c});
        else if (byColumn(name)) state.pick({j: r});
        else if (!vocabulary(name) && name !== "L") state.pick({i: r});
      }};
  }
  return {view, head, rowsOf, columnsOf, masked, gradient};
})();
