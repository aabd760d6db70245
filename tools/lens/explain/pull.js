// Who gains attention and why, for one row of weights: the list of gains, and the product with the softmax's Jacobian.

const Pull = (function () {
  /** How much better than the mix a word is, in words. */
  const compared = (better, digits) => `${better < 0 ? "worse" : "better"} than the mix by ${show(Math.abs(better), digits)}`;

  /** A bar for each word. o: names, weights, better (null: masked), gradient dL/de (null: not computed), token (what the names
   *  are of: "word"), heading, chosen, pick(j). */
  function gains(o) {
    const box = el("div", {class: "gains"});
    const title = (text, wide) => el("span", {class: "h num" + (wide ? " wide" : "")}, text);
    box.append(title(o.token), title("weight", true), el("span", {class: "h"}, o.heading), title("pull"), title("", true));
    const largest = Math.max(...o.better.map((x) => Math.abs(x || 0))) || 1, largestPull = largestOf(o.gradient);
    o.names.forEach((name, j) => {
      const x = o.better[j], masked = x === null, width = (48 * Math.abs(x || 0)) / largest;
      const side = x >= 0 ? `left:50%;width:${width}%;background:var(--teal)` : `right:50%;width:${width}%;background:var(--orange)`;
      const track = el("span", {class: "track" + (masked ? " hatch" : ""), title: masked ? "masked" : compared(x, 5)});
      // The bar's strength is the weight: an unattended word may be far better and still not be heard.
      if (!masked) put(track, html`<i data-style="${side};opacity:${0.25 + 0.75 * Math.sqrt(number(o.weights[j]))}"></i><u data-style="left:calc(50% - 1px)"></u>`);
      const value = o.gradient[j] === null || masked ? null : -o.gradient[j];
      box.append(el("button", {type: "button", class: "word" + (j === o.chosen ? " on" : ""), onclick: () => o.pick(j)}, name),
        el("span", {class: "num wide"}, masked ? "masked" : show(o.weights[j], 3)), track,
        el("span", {class: "num " + (value > 0 ? "more" : value < 0 ? "less" : "")}, value === null ? "—" : signed(value, 3)),
        el("span", {class: "wide small " + (value > 0 ? "more" : "less")}, value === null || Math.abs(value) < 0.02 * largestPull ? "" : value > 0 ? "more" : "less"));
    });
    return box;
  }

  /** The softmax's Jacobian times dL/dalpha is dL/de. o: names, weights, gain = dL/dalpha, temperature, gradient (the engine's
   *  dL/de; null: there is none, as nothing that is learned leads to the scores, and no product then), chosen, size (style of
   *  the cells), at: {row, column} that is lit, kept by the caller. */
  function softmax(box, o) {
    const {names, gain, at} = o, w = o.weights, T = o.temperature;
    const entry = (i, j) => (w[i] * ((i === j ? 1 : 0) - w[j])) / T, largest = Math.max(...w.map((_, i) => entry(i, i)));
    const scores = w.map((_, i) => gain.reduce((sum, g, j) => sum + entry(i, j) * g, 0));
    const say = el("div", {class: "say"});
    const light = (i, j) => {
      at.row = i; at.column = j;
      [...matrix.querySelectorAll("td")].forEach((td) => td.classList.toggle("lit", +td.dataset.r === i && +td.dataset.c === j));
      [...left.querySelectorAll("td")].forEach((td) => td.classList.toggle("lit", +td.dataset.r === j));
      if (right) [...right.querySelectorAll("td")].forEach((td) => td.classList.toggle("lit", +td.dataset.r === i));
      const rest = scores[i] - entry(i, j) * gain[j];
      put(say, html`<h3>“${names[i]}”, through the weight of “${names[j]}”</h3>
        <p class="mono small">${i === j ? "α(1 − α)" : "−α α"}${T === 1 ? "" : " / τ"} = ${show(entry(i, j), 4)}<br>× ∂L/∂α of “${names[j]}” = ${show(gain[j], 4)}<br>
        = ${show(entry(i, j) * gain[j], 4)}${right ? html`; all other weights ${show(rest, 4)}<br>δ of “${names[i]}” = <b>${show(scores[i], 4)}</b>` : []}</p>
        <p class="small quiet">${i === j ? "Its own score raises its own weight…" : `Raising the score of “${names[i]}” takes weight from “${names[j]}”…`}
        and the weight's gradient says what that is worth.${right ? ` The column δ always sums to 0: here ${show(scores.reduce((a, b) => a + b, 0), 2)}.` : ""}</p>`);
    };
    const matrix = heatMap({rows: names, columns: names, label: "Jacobian of the softmax", hover: light, pick: light,
      cell: (i, j) => ({class: pull(entry(i, j), largest), tip: `∂α(${names[j]}) / ∂e(${names[i]}) = ${show(entry(i, j), 4)}`})});
    const column = (title, x, words) => {
      const map = heatMap({rows: words ? names : x.map(() => ""), columns: [title], label: title, hover: (i) => light(i, i), pick: (i) => light(i, i),
        cell: (i) => ({class: pull(-x[i], largestOf(x)), tip: `${names[i]}: ${show(x[i], 5)}`})});
      map.classList.add("column");
      return map;
    };
    const left = column("∂L/∂α", gain), right = o.gradient ? column("δ = ∂L/∂e", scores) : null;
    const matrixWith = el("div", {class: "product", style: o.size}, matrix, el("span", {class: "sign"}, "×"), left, right ? [el("span", {class: "sign"}, "="), right] : null);
    box.replaceChildren(el("div", {class: "jac"}, el("div", {class: "scroll"}, matrixWith), say),
      el("p", {class: "legend"}, el("span", {}, "matrix: teal, raising the score raises the weight; orange, it lowers it. Columns: teal, descent makes it larger.")));
    box.append(el("p", {class: "small quiet"}, o.gradient ?
      `The product of the numbers on this page, which are rounded, and the engine's gradient of the scores differ by ${show(largestOf(scores.map((x, i) => x - number(o.gradient[i]))), 2)}.` :
      "The engine has no gradient of these scores: nothing that is learned leads to them, and so the product goes nowhere."));
    const within = (k) => (k >= 0 && k < names.length ? k : o.chosen);
    light(within(at.row), within(at.column));
  }
  return {compared, gains, softmax};
})();

/** Few words get larger cells, many smaller ones; a narrow window decides for itself. */
const cellSize = (share, least, words) => (innerWidth > 640 ? `--cell:${Math.floor(Math.max(least, Math.min(36, share / words)))}px` : null);
