// The page of `lens flow`: everything was computed before; here it is only chosen and drawn.

(function () {
  const data = JSON.parse($("data").textContent);
  const unique = (all) => [...new Set(all)];
  const first = data.results[data.show];
  const state = {cell: first.cell, directions: first.directions, length: first.length};
  const cells = unique(data.results.map((r) => r.cell)), directions = unique(data.results.map((r) => r.directions));
  const lengths = unique(data.results.map((r) => r.length)).sort((a, b) => a - b);
  const of = (length) => data.results.find((r) => r.cell === state.cell && r.directions === state.directions && r.length === length);

  function share(log10) {
    const times = 10 ** -number(log10);
    if (!Number.isFinite(times)) return "nothing of";
    if (times < 1.5) return `${show(1 / times, 2)} times as much as`;
    if (times < 100) return `1/${show(times, 2)} of`;
    const magnitude = 10 ** Math.floor(Math.log10(times)), rounded = Math.round(times / magnitude) * magnitude;
    return rounded < 1e9 ? `1/${rounded.toLocaleString("en")} of` : `1/10<sup>${Math.round(Math.log10(times))}</sup> of`;
  }

  const W = Math.max(300, Math.min(1160, $("chart").clientWidth)), narrow = W < 600;
  const left = 44, right = 12, top = 12;
  const svg = (height, inside, label) => `<svg class="plot" viewBox="0 0 ${W} ${height}" role="img" aria-label="${html(label)}">${inside}</svg>`;
  const power = (x, y, d) => `<text x="${x}" y="${y}" text-anchor="end">10<tspan dy="-5" font-size="10">${String(d).replace("-", "−")}</tspan></text>`;

  /** Lines over x = 0 .. n - 1 on a log scale. */
  function plot(height, n, lines, ticks, label) {
    const finite = lines.flatMap((l) => [...l.low, ...l.high, ...l.median]).map(number).filter(Number.isFinite);
    const low = Math.floor(Math.min(0, ...finite)), high = Math.ceil(Math.max(0, ...finite) + 1e-9), bottom = 34;
    const x = (j) => left + ((W - left - right) * j) / Math.max(1, n - 1);
    const y = (v) => top + ((height - top - bottom) * (high - Math.max(low, Number.isFinite(v) ? v : low))) / Math.max(1, high - low);
    let out = "";
    const every = Math.max(1, Math.ceil((high - low) / (narrow ? 6 : 9)));
    for (let d = high; d >= low; d -= every) out += `<line class="grid" x1="${left}" x2="${W - right}" y1="${y(d)}" y2="${y(d)}"/>${power(left - 6, y(d) + 4, d)}`;
    for (const [j, text] of ticks) out += `<text x="${x(j)}" y="${height - 16}" text-anchor="middle">${html(text)}</text>`;
    out += `<text x="${(left + W - right) / 2}" y="${height - 1}" text-anchor="middle">${html(label)}</text>`;
    const points = (values) => values.map((v, j) => `${x(j).toFixed(1)},${y(number(v)).toFixed(1)}`);
    for (const l of lines)
      out += `<polygon class="band ${l.name}" points="${points(l.high).join(" ")} ${points(l.low).reverse().join(" ")}"/><polyline class="${l.name}" points="${points(l.median).join(" ")}"/>`;
    return {out, x, y};
  }
  /** Which of n places the pointer is at. */
  const place = (event, box, n) => {
    const r = box.getBoundingClientRect(), at = ((event.clientX - r.left) / r.width) * W;
    return Math.max(0, Math.min(n - 1, Math.round(((at - left) / (W - left - right)) * (n - 1))));
  };

  function chart() {
    const r = of(state.length), n = r.length, ticks = [];
    for (let j = 0; j < n; j += Math.max(1, Math.ceil(n / (narrow ? 6 : 12)))) ticks.push([j, j + 1]);
    const p = plot(narrow ? 260 : 380, n, [{...r.without, name: "without"}, {...r.with, name: "with"}], ticks, "source word");
    $("chart").innerHTML = svg(narrow ? 260 : 380, p.out, "log10 of the gradient at each source word");
    const box = $("chart").firstChild;
    box.addEventListener("pointermove", (e) => {
      const j = place(e, box, n);
      showTip(`word ${j + 1}, compared with word ${n}\nwith attention 10^${show(r.with.median[j], 3)}\nwithout 10^${show(r.without.median[j], 3)}`, e.clientX, e.clientY);
    });
    box.addEventListener("pointerleave", hideTip);
    $("answer").innerHTML = `Without attention word 1 gets <b class="less">${share(r.without.median[0])}</b> what word ${n} gets; with attention
      <b style="color:var(--blue)">${share(r.with.median[0])}</b> it. <span class="quiet">(10<sup>${show(r.without.median[0], 2)}</sup> and 10<sup>${show(r.with.median[0], 2)}</sup>, medians of ${data.seeds})</span>`;
    const height = narrow ? 120 : 150, w = (W - left - right) / n;
    let bars = "";
    for (let j = 0; j < n; ++j) {
      let y = top;
      for (const [name, part] of [["rest", r.with.recurrent[j]], ["score", r.with.score[j]], ["value", r.with.value[j]]]) {
        const h = (height - top - 20) * number(part);
        bars += `<rect class="p-${name}" x="${(left + j * w).toFixed(2)}" y="${y.toFixed(2)}" width="${Math.max(0.5, w - 1).toFixed(2)}" height="${h.toFixed(2)}"/>`;
        y += h;
      }
    }
    for (const [value, text] of [[0, "0"], [0.5, "½"], [1, "1"]]) bars += `<text x="${left - 6}" y="${top + 4 + (height - top - 20) * (1 - value)}" text-anchor="end">${text}</text>`;
    ticks.forEach(([j, text]) => { bars += `<text x="${left + (j + 0.5) * w}" y="${height - 4}" text-anchor="middle">${text}</text>`; });
    $("ways").innerHTML = svg(height, bars, "Shares of the ways");
    const ways = $("ways").firstChild;
    ways.addEventListener("pointermove", (e) => {
      const b = ways.getBoundingClientRect(), j = Math.max(0, Math.min(n - 1, Math.floor((((e.clientX - b.left) / b.width) * W - left) / w)));
      const percent = (x) => `${Math.round(100 * number(x))} %`;
      showTip(`word ${j + 1}\nthrough the mixture ${percent(r.with.value[j])}\nthrough the weights ${percent(r.with.score[j])}\nthrough other states ${percent(r.with.recurrent[j])}`, e.clientX, e.clientY);
    });
    ways.addEventListener("pointerleave", hideTip);
  }

  function byLength() {
    const worst = (line) => line.median.reduce((best, x, j) => (number(x) < number(line.median[best]) ? j : best), 0);
    const at = (side) => {
      const all = lengths.map((n) => [of(n)[side], worst(of(n)[side])]);
      return {name: side, median: all.map(([l, j]) => l.median[j]), low: all.map(([l, j]) => l.low[j]), high: all.map(([l, j]) => l.high[j])};
    };
    const height = narrow ? 230 : 300, p = plot(height, lengths.length, [at("without"), at("with")], lengths.map((n, i) => [i, n]), "words in the source");
    const i = lengths.indexOf(state.length);
    $("lengths").innerHTML = svg(height, p.out + `<line class="cursor" x1="${p.x(i)}" x2="${p.x(i)}" y1="${top}" y2="${height - 34}"/>`, "By length");
    $("lengths").firstChild.addEventListener("click", (e) => { state.length = lengths[place(e, $("lengths").firstChild, lengths.length)]; draw(); });
  }

  function draw() {
    const button = (text, on, act) => el("button", {type: "button", "aria-pressed": on, onclick: () => { act(); draw(); }}, text);
    const focused = document.activeElement && document.activeElement.textContent;
    $("cells").replaceChildren(...cells.map((c) => button(c.toUpperCase(), c === state.cell, () => { state.cell = c; })));
    $("directions").replaceChildren(...directions.map((d) => button(d === 1 ? "one direction" : "both directions", d === state.directions, () => { state.directions = d; })));
    for (const b of document.querySelectorAll(".controls button")) if (b.textContent === focused) b.focus();
    $("length").value = lengths.indexOf(state.length);
    $("length-text").textContent = state.length;
    chart();
    byLength();
  }

  $("about").textContent = data.trained ? data.title : `Fresh networks, ${data.seeds} seeds: an encoder over random words, a decoder of four words, 16 units. ` +
    "The length of ∂L/∂h at each source word, divided by that at the last one.";
  if (data.trained) $("without-name").textContent = "without: another model, or the same with its short cut stopped";
  $("caveat").textContent = (data.trained ? "" : "Fresh weights; a trained network, or one whose gates start open, is flatter. ") +
    "An encoder that reads both ways makes a V without attention: its backward half ends at word 1, so the words in the middle are far from everything.";
  const ok = number(data.worst_error) < 1e-6;
  $("badges").append(el("span", {class: "badge " + (ok ? "good" : "bad"), id: "check-badge"}, `first and last words checked by differences, worst error ${show(data.worst_error, 2)} ${ok ? "✓" : "✗"}`));
  $("theme").append(themeButton());
  $("length").max = lengths.length - 1;
  $("length").addEventListener("input", () => { state.length = lengths[+$("length").value]; draw(); });
  draw();
  window.lens = {data, state};
})();
