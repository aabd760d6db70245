// The page of `lens ablate`: one column a cut, an epoch at a time.

(function () {
  const data = JSON.parse($("data").textContent), task = data.task, n = data.columns[0].epochs.length;
  const state = {at: n - 1};
  const W = 260, H = 120, left = 34, right = 8, top = 8, bottom = 20;
  $("theme").append(themeButton());
  $("about").textContent = `Task: ${task.kind === "copy" ? "repeat" : "reverse"} ${task.length} digits. GRU encoder in one direction and GRU decoder of ${task.hidden} units, additive attention; ` +
    `${task.epochs} epoch${task.epochs === 1 ? "" : "s"} of ${task.steps} batches of ${task.batch}, Adam at ${task.lr}, seed ${task.seed}.`;
  data.findings.forEach((text) => $("findings").append(el("li", {}, text)));

  const words = Array.from({length: task.length}, (_, i) => String(i + 1));
  const finite = data.columns.flatMap((c) => c.epochs.map((e) => number(e.loss))).filter(Number.isFinite);
  const most = Math.max(...finite, 0.1);
  const x = (i) => left + ((W - left - right) * i) / Math.max(1, n - 1), y = (v) => top + ((H - top - bottom) * (most - v)) / most;

  const columns = data.columns.map((c) => {
    const now = () => c.epochs[state.at];
    const map = heatMap({rows: words, columns: words, label: "Alignment, " + c.title,
      cell: (r, k) => ({class: blue(now().alignment[r][k], 1) + (data.expected[r] === k ? " row-on" : ""),
        tip: `output ${r + 1} looks at input ${k + 1}: ${show(now().alignment[r][k], 3)}${data.expected[r] === k ? "\nthis is where it comes from" : ""}`})});
    const figures = el("p", {class: "figures small"}), ways = el("table", {class: "ways"});
    const bars = [["value", "p-value"], ["score", "p-score"], ["recurrent", "p-rest"]].map(([way, colour]) => {
      const bar = el("div", {class: colour}), figure = el("td", {class: "figure num"});
      ways.append(el("tr", {}, el("th", {scope: "row"}, way), el("td", {}, el("div", {class: "track"}, bar)), figure));
      return {way, bar, figure};
    });
    const inside = [];
    for (const value of [0, most / 2, most]) inside.push(html`<line class="grid" x1="${left}" x2="${W - right}" y1="${y(value)}" y2="${y(value)}"/><text x="${left - 4}" y="${y(value) + 4}" text-anchor="end">${show(value, 2)}</text>`);
    const points = c.epochs.map((e, i) => [x(i), y(number(e.loss))]).filter(([, b]) => Number.isFinite(b));
    inside.push(html`<polyline class="one" points="${points.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(" ")}"/>`);
    inside.push(html`<text x="${left}" y="${H - 4}">epoch 0</text><text x="${W - right}" y="${H - 4}" text-anchor="end">${n - 1}</text><line class="cursor" y1="${top}" y2="${H - bottom}"/>`);
    const chart = el("div");
    put(chart, html`<svg class="plot" viewBox="0 0 ${W} ${H}" role="img" aria-label="Loss by epoch, ${c.title}">${inside}</svg>`);
    const box = chart.firstChild, cursor = box.querySelector(".cursor");
    box.addEventListener("click", (e) => { const r = box.getBoundingClientRect(); play(false); choose(Math.round((((e.clientX - r.left) / r.width) * W - left) / (W - left - right) * (n - 1))); });
    $("columns").append(el("article", {}, el("h3", {}, c.title), el("div", {class: "scroll"}, map), figures,
      el("p", {class: "small quiet"}, "Loss, nats a digit"), chart, el("p", {class: "small quiet"}, "Gradient norm by the way it comes"), ways));
    return () => {
      const e = now(), largest = largestOf(Object.values(e.ways));
      map.draw();
      const percent = (share) => `${Math.round(100 * share)} %`;
      figures.replaceChildren(...[`${percent(e.on_place)} in place`, `${percent(e.one_later)} one later`, `${percent(e.accuracy)} right`, `loss ${show(e.loss, 3)}`]
        .map((text) => el("span", {}, text)));
      for (const {way, bar, figure} of bars) {
        const size = number(e.ways[way]);
        bar.style.width = largest > 0 && Number.isFinite(size) ? `${(100 * size) / largest}%` : "0";
        figure.textContent = size === 0 ? "0 exactly" : show(size, 2);
      }
      cursor.setAttribute("x1", x(state.at));
      cursor.setAttribute("x2", x(state.at));
    };
  });

  const choose = timeline(n, state, 500, (at) => {
    $("now").textContent = at === 0 ? "before training" : `epoch ${at} of ${n - 1}`;
    columns.forEach((draw) => draw());
  });
  window.lens = {data, state, choose};
})();
