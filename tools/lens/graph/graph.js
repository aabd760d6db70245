// The page of `lens graph`: places boxes and edges, opens modules, follows paths.

(function () {
  const data = JSON.parse($("data").textContent);
  const source = wordsOf(data, "source"), target = wordsOf(data, "target");
  const names = {source: pieceNames(data.source, source), target: pieceNames(data.target, target)};
  const ops = data.nodes.filter((n) => n.module !== null), opOf = new Map(ops.map((n) => [n.id, n]));
  const byId = new Map(data.nodes.map((n) => [n.id, n])), members = data.modules.map(() => []);
  ops.forEach((n) => members[n.module].push(n));
  const edges = data.edges.filter(([from, to]) => opOf.has(from) && opOf.has(to));
  const reads = new Map();  // parameters by operation
  data.edges.forEach(([from, to, , size]) => { if (!opOf.has(from)) { if (!reads.has(to)) reads.set(to, []); reads.get(to).push([byId.get(from), size]); } });
  // What a closed module shows: its last operation that is more than a label for one of its readers.
  const result = members.map((all) => all.filter((n) => n.op !== "tap").pop() || all[all.length - 1]);
  // Open are modules, by number, and heads of a Transformer's attention, by module and head.
  const state = {open: new Set([data.show.module]), heads: new Set([`${data.show.module} ${data.show.head}`]), word: null}, box = $("graph");
  const byHead = ops.some((n) => n.head !== undefined), headKey = (k, h) => `${k} ${h}`;

  const operations = (nodes) => `${nodes.length} operation${nodes.length === 1 ? "" : "s"}`;

  /** What an open module lists: operations, and a line for each head, {head, nodes}, under which the operations of an open one
   *  stand. `of` has the line that an operation is seen in. */
  function lines(k) {
    const out = [], of = new Map(), heads = new Map();
    for (const n of members[k]) {
      if (n.head !== undefined && !heads.has(n.head)) {
        const nodes = members[k].filter((one) => one.head === n.head), open = state.heads.has(headKey(k, n.head));
        heads.set(n.head, open);
        out.push({head: n.head, nodes, open});
      }
      if (n.head === undefined || heads.get(n.head)) out.push({nodes: [n]});
      of.set(n.id, out.length - 1);
    }
    return {out, of};
  }
  let listed = data.modules.map(() => null);

  const titles = Math.max(...data.modules.filter((m) => m.column !== null).map((m) => m.title.length));
  const kClosed = {w: Math.max(92, 40 + Math.ceil(6.6 * titles)), h: 46, most: 190}, kOpen = {w: Math.max(226, 40 + Math.ceil(6.6 * titles)), most: 640}, kOp = 40, kGapX = 22, kGapY = 34, kHead = 24;
  const size = (k) => state.open.has(k) ? {...kOpen, h: kHead + listed[k].out.length * kOp + 4} : data.modules[k].column === null ? {w: 130, h: 36} : kClosed;

  /** Boxes of all modules: columns as wide and rows as high as their largest box; where there is room they grow into it. */
  function layout() {
    const boxes = data.modules.map(() => null);
    let top = 18;
    const bands = [];
    for (const decoder of [false, true]) {
      const mine = data.modules.map((m, k) => k).filter((k) => data.modules[k].decoder === decoder);
      const columns = decoder ? Math.max(data.step, ...mine.map((k) => data.modules[k].column ?? 0)) + 1 : data.source.length;
      const rows = Math.max(...mine.map((k) => data.modules[k].row)) + 1, widths = new Array(columns).fill(kClosed.w), heights = new Array(rows).fill(0);
      const limits = new Array(columns).fill(kClosed.most);
      mine.forEach((k) => {
        const m = data.modules[k], s = size(k);
        if (m.column !== null) {
          widths[m.column] = Math.max(widths[m.column], s.w);
          limits[m.column] = Math.max(limits[m.column], s.most);
        }
        heights[m.row] = Math.max(heights[m.row], s.h);
      });
      const room = box.clientWidth - 30 - widths.reduce((a, w) => a + w + kGapX, 0);
      if (room > 0) widths.forEach((w, c) => { widths[c] = Math.min(limits[c], w + room / columns); });
      const left = [16];
      widths.forEach((w, c) => left.push(left[c] + w + kGapX));
      const y = [top + (data.words ? 48 : 30)];
      // Below keys and values of all words there is room for the fans of attention.
      const fans = new Set(mine.map((k) => data.modules[k]).filter((m) => /\.qkv_l\d+$/.test(m.path)).map((m) => m.row));
      heights.forEach((h, r) => y.push(y[r] + (h ? h + kGapY + (fans.has(r) ? 50 : 0) : 0)));
      mine.forEach((k) => {
        const m = data.modules[k], wide = m.column === null && !state.open.has(k);
        let s = size(k);
        if (m.column !== null) s = {...s, w: Math.min(widths[m.column], s.most)};
        boxes[k] = m.column === null ? {x: 16, y: y[m.row], w: wide && m.title !== "final state" && !decoder ? left[columns] - kGapX - 16 : s.w, h: s.h}
          : {x: left[m.column] + (widths[m.column] - s.w) / 2, y: y[m.row], w: s.w, h: s.h};
      });
      bands.push({decoder, top, left, widths, words: (decoder ? target : source).map(({name, parts}) => ({name, parts: parts.filter((c) => c < columns)}))
        .filter(({parts}) => parts.length), pieces: decoder ? data.target : data.source});
      top = y[rows] + 10;
    }
    return {boxes, bands, width: Math.max(...bands.map((b) => b.left[b.left.length - 1])) + 4, height: top};
  }

  function opBox(n, boxes) {
    const b = boxes[n.module];
    if (!state.open.has(n.module)) return {...b, key: "m" + n.module};
    const at = listed[n.module].of.get(n.id);
    return {...lineBox(b, at), key: `${listed[n.module].out[at].head === undefined ? "o" : "h"}${n.module} ${at}`};
  }
  const lineBox = (b, at) => ({x: b.x + 8, y: b.y + kHead + at * kOp, w: b.w - 16, h: kOp - 6});

  /** Operations that the word's states lead to, themselves included; null: all. */
  function reached() {
    if (state.word === null) return null;
    const start = new RegExp(`^encoder\\.((forward|backward)_l\\d+\\.)?j(${source[state.word].parts.join("|")})(\\.word)?$`), found = new Set(), next = new Map();
    edges.forEach(([from, to]) => { if (!next.has(from)) next.set(from, []); next.get(from).push(to); });
    const stack = ops.filter((n) => start.test(data.modules[n.module].path)).map((n) => n.id);
    while (stack.length) {
      const id = stack.pop();
      if (found.has(id)) continue;
      found.add(id);
      stack.push(...(next.get(id) || []));
    }
    return found;
  }

  const opName = (n) => n.op + (n.label ? ` “${n.label}”` : "");
  const word = (m) => m.column === null ? "" : (m.decoder ? names.target : names.source)[m.column];
  const inHead = (n) => (n.head === undefined ? "" : `, head ${n.head + 1}`);
  const moduleName = (k) => `${data.modules[k].title} ${word(data.modules[k])}`.trim();

  function strip(values, x, y, w, h, kind) {
    if (values === null) return html`<rect x="${x}" y="${y}" width="${w}" height="${h}" class="none"/>`;
    const largest = largestOf(values), sign = values.some((v) => number(v) < 0), cell = w / values.length;
    return values.map((v, i) => html`<rect x="${(x + i * cell).toFixed(2)}" y="${y}" width="${(cell + 0.3).toFixed(2)}" height="${h}" class="${kind === "value" ? blue(v, largest, sign) : pull(-number(v), largest)}"/>`);
  }

  // Widths are measured by the largest edge between modules, so that they stay when one is opened; within one, edges may
  // be larger (1/p behind a logarithm) and are as wide as that.
  const most = (() => {
    const between = new Map();
    for (const [from, to, , amount] of edges) {
      const a = opOf.get(from).module, b = opOf.get(to).module, x = number(amount);
      if (a !== b && Number.isFinite(x)) between.set(a + ">" + b, (between.get(a + ">" + b) || 0) + x * x);
    }
    return Math.log10(Math.sqrt(Math.max(1e-300, ...between.values())));
  })();
  /** Of an edge: a decade below the largest is 2.2 pixels less. */
  const thick = (amount) => (amount > 0 ? Math.max(0.6, Math.min(9, 9 + 2.2 * (Math.log10(amount) - most))) : 0.5);

  function draw() {
    listed = data.modules.map((m, k) => (state.open.has(k) ? lines(k) : null));
    const {boxes, bands, width, height} = layout(), on = reached();
    const lit = (n) => on === null || on.has(n.id), litModule = (k) => members[k].some(lit);
    // Edges between what can be seen, with what they are made of.
    const seen = new Map();
    for (const [from, to, input, amount] of edges) {
      const a = opOf.get(from), b = opOf.get(to), p = opBox(a, boxes), q = opBox(b, boxes);
      if (p.key === q.key) continue;
      const key = p.key + ">" + q.key;
      if (!seen.has(key)) seen.set(key, {p, q, a, b, square: 0, parts: [], on: false});
      const e = seen.get(key);
      e.square += number(amount) ** 2;
      e.parts.push([a, b, amount]);
      e.on = e.on || (lit(a) && lit(b));
    }
    const all = [...seen.values()];
    const out = [];
    all.forEach((e, k) => {
      const {p, q} = e, amount = Math.sqrt(e.square), line = thick(amount);
      const inside = (box, x) => Math.max(box.x + 8, Math.min(box.x + box.w - 8, x)), middle = (box) => box.x + box.w / 2;
      let d;
      if (e.a.module === e.b.module) {  // within an open module: an arc at its side
        const x = p.x, y1 = p.y + p.h * 0.7, y2 = q.y + q.h * 0.3, out = Math.min(26, 7 + Math.abs(y2 - y1) / 12);
        d = `M${x} ${y1}C${x - out} ${y1} ${x - out} ${y2} ${x} ${y2}`;
      } else if (Math.abs(p.y - q.y) < 8 && p.w < 400 && q.w < 400 && p.key[0] === "m" && q.key[0] === "m") {  // beside each other
        const right = q.x > p.x, x1 = right ? p.x + p.w : p.x, x2 = right ? q.x : q.x + q.w, y = Math.min(p.y + p.h / 2, p.y + 24);
        d = `M${x1} ${y}C${(x1 + x2) / 2} ${y} ${(x1 + x2) / 2} ${y} ${x2} ${y}`;
      } else if (q.y + q.h <= p.y) {  // up again: the next step in time
        const x1 = p.x + p.w, x2 = q.x, y1 = p.y + p.h / 2, y2 = q.y + q.h / 2;
        d = `M${x1} ${y1}C${x1 + 34} ${y1} ${x2 - 34} ${y2} ${x2} ${y2}`;
      } else {
        // An operation in an open module lets go at its right and is reached at its left.
        const opened = (key) => key[0] !== "m";
        const x1 = opened(p.key) ? p.x + p.w : inside(p, p.w > q.w ? middle(q) : middle(p)), y1 = opened(p.key) ? p.y + p.h / 2 : p.y + p.h;
        const x2 = opened(q.key) ? q.x : inside(q, q.w > p.w ? x1 : middle(q)), y2 = opened(q.key) ? q.y + q.h / 2 : q.y;
        const bend = Math.max(18, Math.abs(y2 - y1) / 2.4);
        // What skips a row goes around it.
        const around = !opened(p.key) && !opened(q.key) && y2 - y1 > 60 && Math.abs(x2 - x1) < 30 ? -(Math.min(p.w, q.w) / 2 + 11) / 0.75 : 0;
        const c1 = opened(p.key) ? [x1 + 30, y1] : [x1 + around, y1 + bend], c2 = opened(q.key) ? [x2 - 30, y2] : [x2 + around, y2 - bend];
        d = `M${x1} ${y1}C${c1[0]} ${c1[1]} ${c2[0]} ${c2[1]} ${x2} ${y2}`;
      }
      out.push(html`<path class="edge${e.on ? "" : " off"}" data-edge="${k}" d="${d}" stroke-width="${line.toFixed(2)}"/>`);
    });
    for (const band of bands) {
      out.push(html`<text class="quiet" x="16" y="${band.top}">${band.decoder ? "decoder" : "encoder"}</text>`);
      for (const {name, parts} of band.words) {
        const from = band.left[parts[0]], last = parts[parts.length - 1], to = band.left[last] + band.widths[last];
        out.push(html`<text x="${(from + to) / 2}" y="${band.top + 21}" text-anchor="middle" class="head">${clip(name, 13 * parts.length)}</text>`);
        // Of a word's pieces each has a column; they stand under it.
        if (parts.length > 1) out.push(html`<line class="under" x1="${from}" x2="${to}" y1="${band.top + 26}" y2="${band.top + 26}"/>`,
          parts.map((c) => html`<text x="${band.left[c] + band.widths[c] / 2}" y="${band.top + 40}" text-anchor="middle" class="quiet">${clip(band.pieces[c], 13)}</text>`));
      }
    }
    data.modules.forEach((m, k) => {
      const b = boxes[k], open = state.open.has(k), last = result[k];
      const now = m.decoder && m.column === data.step;
      const inside = [html`<rect class="box" x="${b.x}" y="${b.y}" width="${b.w}" height="${b.h}" rx="7"/><text x="${b.x + 8}" y="${b.y + 16}">${m.title}</text>
        <text class="quiet" x="${b.x + b.w - 7}" y="${b.y + 16}" text-anchor="end">${open ? "−" : members[k].length > 1 ? members[k].length : ""}</text>`];
      if (!open) {
        const w = b.w - 16, y = b.y + b.h - 20;
        inside.push(m.column === null ? [strip(last.value, b.x + 74, b.y + 22, Math.min(48, b.w - 80), 5, "value"), strip(last.gradient, b.x + 74, b.y + 28, Math.min(48, b.w - 80), 5, "gradient")]
          : [strip(last.value, b.x + 8, y, w, 7, "value"), strip(last.gradient, b.x + 8, y + 8, w, 7, "gradient")]);
      } else listed[k].out.forEach(({head, nodes, open}, at) => {
        const n = nodes[nodes.length - 1], o = lineBox(b, at), isHead = head !== undefined, inset = n.head !== undefined && !isHead ? 10 : 0;
        const name = isHead ? `head ${head + 1}` : clip(n.op === "tap" && n.label ? n.label : `${n.op} ${n.label}`.trim(), Math.floor((o.w - 70) / 7));
        const can = isHead ? html` data-head="${headKey(k, head)}" tabindex="0" role="button" aria-expanded="${open}" aria-label="head ${head + 1} of ${moduleName(k)}, ${operations(nodes)}"` : [];
        inside.push(html`<g class="op${nodes.some(lit) ? "" : " off"}" data-op="${n.id}"${can}><rect class="box${isHead ? " head-box" : ""}" x="${o.x + inset}" y="${o.y}" width="${o.w - inset}" height="${o.h}" rx="4"/>
          <text x="${o.x + inset + 6}" y="${o.y + 13}">${name}</text><text class="quiet" x="${o.x + o.w - 5}" y="${o.y + 13}" text-anchor="end">${isHead ? (open ? "−" : nodes.length) : n.shape}</text>
          ${strip(n.value, o.x + inset + 6, o.y + 18, o.w - inset - 12, 6, "value")}${strip(n.gradient, o.x + inset + 6, o.y + 25, o.w - inset - 12, 6, "gradient")}</g>`);
      });
      out.push(html`<g class="module${now ? " now" : ""}${litModule(k) ? "" : " off"}" data-module="${k}" tabindex="0" role="button" aria-expanded="${open}" aria-label="${moduleName(k)}, ${operations(members[k])}">${inside}</g>`);
    });
    const {module: focused, head: focusedHead} = (document.activeElement && document.activeElement.dataset) || {};
    put($("graph"), html`<svg width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${out}</svg>`);
    const again = focusedHead !== undefined ? `[data-head="${focusedHead}"]` : focused !== undefined ? `[data-module="${focused}"]` : null;
    if (again) { const g = $("graph").querySelector(again); if (g) g.focus({preventScroll: true}); }
    drawn = all;
    sideways();
    const top = Math.floor(most);
    put($("widths"), all.length ? [0, 1, 2, 3].map((k) => html`<span><svg width="34" height="12" aria-hidden="true"><line class="edge" x1="0" x2="34" y1="6" y2="6" stroke-width="${thick(10 ** (top - k)).toFixed(2)}"/></svg> 10<sup>${String(top - k).replace("-", "−")}</sup></span>`) : []);
    [...$("words").children].forEach((b, k) => b.setAttribute("aria-pressed", state.word === (k === 0 ? null : k - 1)));
    $("said").textContent = on === null ? `${ops.length} operations in ${data.modules.length} modules, ${edges.length} edges between them.`
      : `${on.size} of ${ops.length} operations lie on paths from “${source[state.word].name}” to the loss.`;
  }
  let drawn = [];

  function tipAt(target) {
    const edge = target.closest("[data-edge]"), op = target.closest("[data-op]"), module = target.closest("[data-module]");
    if (edge) {
      const e = drawn[+edge.dataset.edge], parts = e.parts.slice().sort((a, b) => number(b[2]) - number(a[2]));
      return `${moduleName(e.a.module)} → ${moduleName(e.b.module)}\ngradient that comes back: ${show(Math.sqrt(e.square), 4)}` +
        parts.slice(0, 5).map(([a, b, x]) => `\n${opName(a)} ← ${opName(b)}: ${show(x, 3)}`).join("") + (parts.length > 5 ? `\nand ${parts.length - 5} more` : "");
    }
    const n = op ? opOf.get(+op.dataset.op) : module ? result[+module.dataset.module] : null;
    if (!n) return null;
    const parameters = (reads.get(n.id) || []).map(([leaf, x]) => `\nreads ${leaf.label || leaf.op} ${leaf.shape}, gives it ${show(x, 3)}`).join("");
    // Whom a module's gradient comes from, the largest first: the same that its edges say, for those who come by keyboard.
    const from = op ? "" : drawn.filter((e) => e.a.module === n.module && e.b.module !== n.module).sort((a, b) => b.square - a.square).slice(0, 4)
      .map((e) => `\n← ${state.open.has(e.b.module) ? opName(e.b) + " of " : ""}${moduleName(e.b.module)}: ${show(Math.sqrt(e.square), 3)}`).join("");
    return `${op ? opName(n) + inHead(n) : moduleName(n.module) + ": " + opName(n)} ${n.shape}\n|value| ${show(n.value_norm, 4)}\n|∂L/∂value| ${show(n.gradient_norm, 4)}${parameters}${from && "\ngradient comes from" + from}`;
  }
  box.addEventListener("pointermove", (e) => { const text = tipAt(e.target); if (text) showTip(text, e.clientX, e.clientY); else hideTip(); });
  box.addEventListener("pointerleave", hideTip);
  function toggle(target) {
    const module = target.closest("[data-module]"), head = target.closest("[data-head]");
    if (!module) return;
    const [all, one] = head ? [state.heads, head.dataset.head] : [state.open, +module.dataset.module];
    if (!all.delete(one)) all.add(one);
    hideTip();
    draw();
  }
  box.addEventListener("click", (e) => toggle(e.target));
  box.addEventListener("keydown", (e) => { if ((e.key === "Enter" || e.key === " ") && e.target.closest("[data-module]")) { e.preventDefault(); toggle(e.target); } });
  box.addEventListener("focusin", (e) => {
    const focused = e.target.closest("[data-head], [data-module]");
    if (!focused || !focused.matches(":focus-visible")) return hideTip();
    const b = focused.getBoundingClientRect();
    showTip(tipAt(focused), b.left, b.bottom - 12);
  });
  box.addEventListener("focusout", hideTip);
  // Where the graph is wider than its box, what says so and goes on.
  function sideways() {
    const most = box.scrollWidth - box.clientWidth;
    $("sideways").hidden = most <= 1;
    $("to-left").disabled = box.scrollLeft <= 1;
    $("to-right").disabled = box.scrollLeft >= most - 1;
  }
  box.addEventListener("scroll", sideways);
  for (const [id, way] of [["to-left", -1], ["to-right", 1]]) $(id).addEventListener("click", () => box.scrollBy({left: way * 0.8 * box.clientWidth}));
  $("open-step").addEventListener("click", () => { data.modules.forEach((m, k) => { if (m.decoder && m.column === data.step) state.open.add(k); }); draw(); });
  $("close").addEventListener("click", () => { state.open.clear(); state.heads.clear(); draw(); });
  const choose = (text, value) => el("button", {type: "button", onclick: () => { state.word = value; draw(); }}, text);
  $("words").append(choose("everywhere", null), ...source.map(({name}, j) => choose(name, j)));

  $("title").textContent = `The graph behind “${names.target[data.step]}”`;
  document.title = `lens graph: ${names.target[data.step]}`;
  if (byHead) $("how").textContent = "A column is a word, the computation runs down; a box is what one part of one layer does for one word, and the fans between " +
    "boxes are attention: from the keys and values of the words that are looked at. A column of the decoder reads the word before and must say the one that it is named by.";
  $("pieces").hidden = !data.pieces;
  $("pieces").textContent = "The model reads and writes pieces of words, one by one; ▁ is the space before a word." +
    (data.words ? " The columns of a word’s pieces stand under it, and the paths from a word are those from all of its pieces. lens graph --pieces shows pieces alone." : "");
  $("about").textContent = `${data.model.name}: “${source.slice(0, -1).map(({name}) => name).join(" ")}”, the loss of target ${data.pieces ? "piece" : "word"} ${data.step + 1} of ${data.target.length}, as the engine recorded it.`;
  const ok = number(data.checks.worst) < 1e-6 && number(data.checks.sum_residual) < 1e-10;
  $("badges").append(el("span", {class: "badge " + (ok ? "good" : "bad"), id: "check-badge"},
    `${data.checks.count} gradients checked by differences, worst error ${show(data.checks.worst, 2)}; edges add up to each gradient${number(data.checks.sum_residual) === 0 ? "" : ` within ${show(data.checks.sum_residual, 2)}`} ${ok ? "✓" : "✗"}`));
  $("theme").append(themeButton());
  draw();
  const widest = $("graph").querySelector(".module.now[aria-expanded=true]") || $("graph").querySelector(".module.now");
  if (widest) {
    const w = widest.getBoundingClientRect(), b = box.getBoundingClientRect();
    box.scrollLeft += w.width > b.width ? w.left - b.left - 8 : w.left + w.width / 2 - b.left - b.width / 2;
  }
  sideways();
  window.lens = {data, state};
})();
