// The page of `lens check`: three heat maps of each gradient, yours, numeric and their difference, and what is wrong.

(function () {
  const data = JSON.parse($("data").textContent), all = data.checks;
  const firstWrong = Math.max(0, all.findIndex((c) => !c.ok));
  const state = {at: firstWrong, input: 0, pick};
  const kMostRows = 40, kMostColumns = 40;

  const wrongAt = (t, i) => {
    const a = number(t.yours[i]), b = number(t.expected[i]);
    return b !== null && (!Number.isFinite(a - b) || Math.abs(a - b) > t.tolerance * Math.max(t.floor ?? 1, Math.abs(a), Math.abs(b)));
  };
  const isWrong = (t) => t.yours.some((_, i) => wrongAt(t, i)) || !(number(t.error) <= t.tolerance);

  /** Rows and columns of a picture: more than two axes are flattened, a single one with words is drawn downwards. */
  function layout(t) {
    const n = t.yours.length, down = t.shape.length === 1 && t.words.length > 0;
    const columns = t.shape.length === 0 || down ? 1 : t.shape[t.shape.length - 1], rows = columns > 0 ? n / columns : 0;
    const names = Array.from({length: rows}, (_, r) => {
      if (t.shape.length <= 1 && !down) return "";
      if (t.shape.length <= 2) return t.words[r] !== undefined ? t.words[r] : String(r);
      const label = [];
      for (let axis = t.shape.length - 2, rest = r; axis >= 0; --axis) {
        const i = rest % t.shape[axis];
        rest = Math.floor(rest / t.shape[axis]);
        label.unshift(axis === 0 && t.words[i] !== undefined ? t.words[i] : i);
      }
      return label.join(", ");
    });
    return {rows, columns, names};
  }

  function draw() {
    const c = all[state.at], t = c.tensors[state.input];
    [...$("checks").children].forEach((chip, i) => chip.setAttribute("aria-pressed", i === state.at));
    $("title").textContent = c.title;
    $("verdict").textContent = c.ok ? "the gradients agree ✓" : c.kind + " ✗";
    $("verdict").className = "badge " + (c.ok ? "good" : "bad");
    $("sentence").replaceChildren(...(c.ok ? ["The backward's gradient and the numeric one are the same to the tolerance, in every element that was looked at."] :
      [c.where ? el("b", {}, `${c.kind}, in ${c.where}`) : null, c.sentence].filter((x) => x !== null)));
    $("inputs").replaceChildren(...(c.tensors.length < 2 ? [] : c.tensors.map((x, i) => el("button", {type: "button", "aria-pressed": i === state.input,
      onclick: () => { state.input = i; draw(); }}, `${x.name} ${isWrong(x) ? "✗" : "✓"}`))));
    $("maps").replaceChildren();
    $("legend").textContent = "";
    $("table-panel").hidden = c.tensors.length === 0;
    put($("table"), html`<table class="list"><thead><tr><th></th><th>input</th><th>shape</th><th>largest relative error</th></tr></thead><tbody>${
      c.tensors.map((x) => html`<tr class="${isWrong(x) ? "less" : "more"}"><td>${isWrong(x) ? "✗" : "✓"}</td><td>${x.name}</td><td class="num">[${x.shape.join(", ")}]</td><td class="num">${show(x.error, 2)}</td></tr>`)}</tbody></table>`);
    if (!t) return;
    const {rows, columns, names} = layout(t), shownRows = Math.min(rows, kMostRows), shownColumns = Math.min(columns, kMostColumns);
    const scale = Math.max(largestOf(t.yours), largestOf(t.expected)), right = !isWrong(t);
    const difference = t.yours.map((a, i) => (number(t.expected[i]) === null ? null : number(a) - number(t.expected[i])));
    const size = Math.max(14, Math.min(44, Math.floor((innerWidth > 960 ? 270 : 230) / shownColumns)));
    const map = (title, values) => {
      const table = heatMap({rows: names.slice(0, shownRows), columns: Array.from({length: shownColumns}, (_, k) => String(k)), label: title,
        cell: (r, k) => {
          const i = r * columns + k, x = values[i], odd = x !== null && !Number.isFinite(number(x));
          return {class: pull(x, scale) + (wrongAt(t, i) ? " wrong" : ""),
            html: size >= 34 && x !== null ? html`<span class="figure">${odd ? show(x) : Math.abs(number(x)) < 5e-3 && number(x) !== 0 ? "≈0" : Number(number(x).toFixed(2))}</span>` : [],
            tip: `${t.name}[${names[r] ? names[r] + ", " : ""}${k}]\n${right ? "backward" : "yours"} ${show(t.yours[i], 6)}\n${t.expected_title} ${show(t.expected[i], 6)}\ndifference ${show(difference[i], 3)}`};
        }});
      $("maps").append(el("div", {style: `--size:${size}px`}, el("h3", {}, title), el("div", {class: "scroll"}, table)));
    };
    // Where all is right, two equal maps and one of zeros would say it thrice; and it may be the library's.
    $("maps").classList.toggle("alone", right);
    if (right) map(`backward and ${t.expected_title}, equal to ${show(t.error, 2)} of their size`, t.yours);
    else {
      map("yours", t.yours);
      map(t.expected_title, t.expected);
      map("difference", difference);
    }
    put($("legend"), [html`<span><span class="less">negative</span><span class="ramp gradient"></span><span class="more">positive</span>, ±${show(scale, 3)}${right ? "" : " in all three"}</span>`,
      (t.expected_title === "numeric" ? html`<span>under a random dy, the gradient of the result</span>` : []),
      (right ? [] : html`<span><span class="key outlined"></span>differs</span>`),
      (t.expected.includes(null) ? html`<span><span class="key hatch"></span>not computed</span>` : []),
      (shownRows < rows || shownColumns < columns ? html`<span>the first ${shownRows} × ${shownColumns} of ${rows} × ${columns}</span>` : [])]);
  }
  function pick(i) {
    state.at = Math.max(0, Math.min(all.length - 1, i));
    const tensors = all[state.at].tensors;
    // The one that is at fault; else of the wrong ones rather one whose rows are words; else the worst.
    const interest = (t) => (t.name === all[state.at].where ? 4 : 0) + (isWrong(t) ? 2 : 0) + (t.words.length ? 1 : 0) + Math.min(0.9, number(t.error) || 0);
    state.input = tensors.reduce((best, t, k) => (interest(t) > interest(tensors[best]) ? k : best), 0);
    draw();
  }

  $("theme").append(themeButton());
  const wrong = all.filter((c) => !c.ok).length;
  $("badges").append(el("span", {class: "badge " + (wrong ? "bad" : "good"), id: "check-badge"}, wrong ? `${wrong} of ${all.length} wrong ✗` : `${all.length === 1 ? "right" : `all ${all.length} right`} ✓`));
  $("choice").hidden = all.length < 2;
  $("checks").append(...all.map((c, i) => el("button", {type: "button", class: c.ok ? "" : "wrong", onclick: () => pick(i)}, `${c.ok ? "✓" : "✗"} ${c.title}`)));
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, select, td")) return;
    if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
    pick(state.at + (e.key === "ArrowLeft" ? -1 : 1));
    e.preventDefault();
  });
  pick(state.at);
  window.lens = {data, state};
})();
