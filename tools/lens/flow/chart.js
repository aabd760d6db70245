// What the pages of `lens flow` share: charts on a log scale, as wide as the element that they stand in.

function chartsIn(element) {
  const W = Math.max(300, Math.min(1160, element.clientWidth)), narrow = W < 600;
  const left = narrow ? 54 : 74, right = 12, top = 12;
  const svg = (height, inside, label) => html`<svg class="plot" viewBox="0 0 ${W} ${height}" role="img" tabindex="0" aria-label="${label}">${inside}</svg>`;
  const decade = (x, y, d) => html`<text x="${x}" y="${y}" text-anchor="end">10<tspan dy="-5" font-size="10">${String(d).replace("-", "−")}</tspan></text>`;
  const range = (all, least) => {
    const finite = all.map(number).filter(Number.isFinite);
    return [Math.floor(Math.min(...least, ...finite)), Math.ceil(Math.max(...least, ...finite) + 1e-9)];
  };

  /** Lines {name, median, low, high} on a log scale that has 1 on it; x(j) is where number j stands. */
  function plot(height, foot, x, lines, hang = 0) {
    const [low, high] = range(lines.flatMap((l) => [...l.low, ...l.high, ...l.median]), [0]);
    const y = (v) => top + ((height - top - foot - hang) * (high - Math.max(low, Number.isFinite(number(v)) ? number(v) : low))) / Math.max(1, high - low);
    const grid = [];
    const every = Math.max(1, Math.ceil((high - low) / (narrow ? 6 : 9)));
    for (let d = high; d >= low; d -= every) grid.push(html`<line class="grid" x1="${left}" x2="${W - right}" y1="${y(d)}" y2="${y(d)}"/>${decade(left - 6, y(d) + 4, d)}`);
    const points = (values) => values.map((v, j) => `${x(j).toFixed(1)},${y(v).toFixed(1)}`);
    const area = (a, b, name) => html`<polygon class="${name}" points="${a.join(" ")} ${b.slice().reverse().join(" ")}"/>`;
    const draw = (l) => html`${area(points(l.high), points(l.low), "band " + l.name)}<polyline class="${l.name}" points="${points(l.median).join(" ")}"/>`;
    return {grid, y, draw, area};
  }
  return {W, narrow, left, right, top, svg, range, plot};
}

/** "1/300,000 of" for a log10 of −5.5. */
function share(log10) {
  const times = 10 ** -number(log10);
  if (!Number.isFinite(times)) return "nothing of";
  if (times > 0.95 && times < 1.05) return "as much as";
  // Above 100 one digit, far above a power of ten.
  const rounded = (x) => {
    if (x < 100) return show(x, 2);
    const magnitude = 10 ** Math.floor(Math.log10(x)), whole = Math.round(x / magnitude) * magnitude;
    return whole < 1e9 ? whole.toLocaleString("en") : html`10<sup>${Math.round(Math.log10(x))}</sup>`;
  };
  return times < 1.5 ? html`${rounded(1 / times)} times as much as` : html`1/${rounded(times)} of`;
}
/** The same without the word behind it: "1/300,000", "4.1 times as much". */
const factor = (log10) => new Markup(escaped(share(log10)).replace(/ (of|as)$/, ""));
const power = (x) => (number(x) === -Infinity ? "0" : html`10<sup>${show(x, 2)}</sup>`);
