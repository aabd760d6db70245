// The page of `lens report`: a training run, validation by validation. What was not logged says so.

(function () {
  const data = JSON.parse($("data").textContent), all = data.validations, n = all.length;
  const state = {at: Math.max(0, n - 1), ratio: false};
  const get = (v, key) => (v && v[key] !== undefined ? v[key] : null);
  const logged = (key) => all.some((v) => get(v, key) !== null);
  const missing = (what) => el("p", {class: "missing"}, `${what}: not logged`);
  const narrow = () => innerWidth < 640;
  const W = 280, H = 150, left = 44, right = 10, top = 10, bottom = 24;
  const lastStep = Math.max(1, ...all.map((v) => get(v, "step") || 0));
  const x = (v) => left + ((W - left - right) * (get(v, "step") || 0)) / lastStep;

  // ---- head ----

  $("theme").append(themeButton());
  $("title").textContent = "The training of " + data.name;
  document.title = data.name + " · lens report";
  $("facts").textContent = data.facts.map(([name, value]) => `${name} ${value}`).join(" · ");
  const badge = (text, kind) => $("badges").append(el("span", {class: "badge" + (kind ? " " + kind : "")}, text));
  badge(data.state, data.state === "finished" ? "good" : data.state.startsWith("interrupted") ? "bad" : "");
  badge(n > 0 && !data.validated ? "no validation" : `${n} validation${n === 1 ? "" : "s"}`);
  data.resumes.forEach((r) => badge(`resumed at step ${r.step}`));
  data.notes.forEach((text) => badge(text));

  // ---- curves ----

  /** A plot over steps of one or two quantities: [[key, factor, name]]; of losses on a logarithmic scale where they span much. */
  function plot(title, keys, losses) {
    const caption = el("figcaption", {}, title), figure = el("figure", {}, caption);
    const given = keys.filter(([key]) => logged(key));
    if (!given.length) { figure.append(missing(title)); return {figure, draw() {}}; }
    const raw = given.flatMap(([key]) => all.map((v) => number(get(v, key)))).filter((v) => v !== null && Number.isFinite(v));
    const log = losses && raw.length > 0 && Math.min(...raw) > 0 && Math.max(...raw) > 8 * Math.min(...raw);
    const kind = (key) => (keys.findIndex(([k]) => k === key) === 0 ? "one" : "two");
    if (log) caption.append(el("span", {class: "quiet"}, " (log scale)"));
    const fits = (y) => y !== null && Math.abs(y) < 1e300;  // so that the difference of two does
    const scale = (value) => (log ? Math.log10(value) : value);
    const values = (key, factor) => all.map((v) => { const y = number(get(v, key)); return y === null ? null : scale(y * factor); });
    const finite = given.flatMap(([key, factor]) => values(key, factor)).filter(fits);
    let low = Math.min(...finite), high = Math.max(...finite);
    if (!finite.length) { low = 0; high = 1; }
    if (!log && low > 0 && low < 0.5 * high) low = 0;
    const ticks = () => [0, 1, 2, 3].map((k) => low + ((high - low) * k) / 3), text = (value, digits) => show(log ? 10 ** value : value, digits);
    const differ = (digits) => new Set(ticks().map((value) => text(value, digits))).size === 4;
    // What hardly changes gets the least range whose ticks differ, and what is nowhere below 0 an axis that is not, either.
    const positive = low >= 0;
    while (!differ(4)) {
      const more = Math.max((high - low) / 2, 1e-6 * Math.max(Math.abs(low), Math.abs(high))) || 0.5;
      high += more;
      low -= more;
    }
    if (!log && positive && low < 0) { high -= low; low = 0; }
    const y = (value) => top + ((H - top - bottom) * (high - value)) / (high - low);
    const inside = [];
    const digits = [2, 3, 4].find(differ) || 4;
    for (const value of ticks()) {
      inside.push(html`<line class="grid" x1="${left}" x2="${W - right}" y1="${y(value)}" y2="${y(value)}"/><text x="${left - 5}" y="${y(value) + 4}" text-anchor="end">${text(value, digits)}</text>`);
    }
    for (const r of data.resumes) { const at = left + ((W - left - right) * r.step) / lastStep; inside.push(html`<line class="broken" x1="${at}" x2="${at}" y1="${top}" y2="${H - bottom}"/>`); }
    inside.push(html`<text x="${left}" y="${H - 6}">step 0</text><text x="${W - right}" y="${H - 6}" text-anchor="end">${lastStep.toLocaleString("en")}</text>`);
    given.forEach(([key, factor]) => {
      const name = kind(key);
      let piece = [], pieces = [];
      values(key, factor).forEach((value, i) => {
        if (!fits(value)) {
          if (value !== null) inside.push(html`<text class="odd-one" x="${x(all[i])}" y="${top + 10}" text-anchor="middle">${Number.isNaN(value) ? "NaN" : "∞"}</text>`);
          if (piece.length) pieces.push(piece);
          piece = [];
        } else piece.push([x(all[i]), y(value)]);
      });
      if (piece.length) pieces.push(piece);
      for (const p of pieces) {
        inside.push(html`<polyline class="${name}" points="${p.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(" ")}"/>`);
        if (n <= 40) p.forEach(([a, b]) => { inside.push(html`<circle class="dot ${name}" cx="${a.toFixed(1)}" cy="${b.toFixed(1)}" r="2.6"/>`); });
      }
    });
    const holder = el("div");
    put(holder, html`<svg class="plot" viewBox="0 0 ${W} ${H}" role="img" aria-label="${title}">${inside}<line class="cursor" y1="${top}" y2="${H - bottom}"/></svg>`);
    const box = holder.firstChild, cursor = box.querySelector(".cursor");
    const nearest = (e) => {
      const r = box.getBoundingClientRect(), at = ((e.clientX - r.left) / r.width) * W;
      return all.reduce((best, v, i) => (Math.abs(x(v) - at) < Math.abs(x(all[best]) - at) ? i : best), 0);
    };
    box.addEventListener("click", (e) => choose(nearest(e)));
    box.addEventListener("pointermove", (e) => {
      const v = all[nearest(e)];
      showTip(`step ${v.step}` + given.map(([key, factor, label]) => `\n${label} ${get(v, key) === null ? "not logged" : show(typeof v[key] === "number" ? factor * v[key] : v[key], 4)}`).join(""), e.clientX, e.clientY);
    });
    box.addEventListener("pointerleave", hideTip);
    figure.append(holder);
    if (keys.length > 1) {
      const legend = el("div", {class: "legend"});
      put(legend, given.map(([key, , name]) => html`<span><svg width="34" height="10" aria-hidden="true"><line class="${kind(key)}" x1="0" x2="34" y1="5" y2="5"/></svg> ${name}</span>`));
      figure.append(legend);
    }
    return {figure, draw() { cursor.setAttribute("x1", x(all[state.at])); cursor.setAttribute("x2", x(all[state.at])); }};
  }
  // What losses are counted by; the probe comes in words.
  const token = data.pieces ? "piece" : "word";
  $("pieces").textContent = data.pieces ? " The model reads and writes pieces of words, and words are shown: columns of pieces are added, rows averaged." : "";
  $("worst-unit").textContent = token;
  const plots = n === 0 ? [] : !data.validated ? [plot(`Loss, nats per ${token}`, [["train_loss", 1, "training"]], true)] : [
    plot(`Loss, nats per ${token}`, [["valid_loss", 1, "validation"], ["train_loss", 1, "training"]], true),
    plot(data.pieces ? "Perplexity per piece" : "Perplexity", [["perplexity", 1, "perplexity"]], true),
    plot("BLEU, and exact matches in %", [["bleu", 1, "BLEU"], ["exact_match", 100, "exact match, %"]]),
    ...(data.attends ? [plot("Entropy of attention, nats", [["attention_entropy", 1, "entropy"]])] : []),
  ];
  plots.forEach((p) => $("curves").append(p.figure));
  if (!data.validated) $("curves").append(el("figure", {}, el("figcaption", {}, "Validation"), el("p", {class: "quiet"}, "There was none: the run had no validation sentences.")));
  if (n > 0 && data.validated && !data.attends) $("curves").append(el("figure", {}, el("figcaption", {}, "Entropy of attention"), el("p", {class: "quiet"}, "This model has no attention.")));
  put($("curve-legend"), data.resumes.length ? html`<span><svg width="12" height="12" aria-hidden="true"><line class="broken" x1="6" x2="6" y1="0" y2="12"/></svg> resumed</span>` : []);

  // ---- what was said, beside what should have been ----

  /** The words of a, those marked that are not in b in this order (longest common subsequence). */
  function beside(a, b, what) {
    const x = a.split(" "), y = (b || "").split(" ");
    if (!b || x.length * y.length > 40000) return [a];
    const most = Array.from({length: x.length + 1}, () => new Int32Array(y.length + 1));
    for (let i = x.length - 1; i >= 0; --i)
      for (let k = y.length - 1; k >= 0; --k) most[i][k] = x[i] === y[k] ? most[i + 1][k + 1] + 1 : Math.max(most[i + 1][k], most[i][k + 1]);
    const out = [];
    for (let i = 0, k = 0; i < x.length; ++i) {
      while (k < y.length && x[i] !== y[k] && most[i][k + 1] > most[i + 1][k]) ++k;
      const same = k < y.length && x[i] === y[k];
      out.push(same ? x[i] : el("mark", {title: what}, x[i]), " ");
      if (same) ++k;
    }
    return out;
  }
  const said = (v, reference) => { const p = probeOf(v); return !p ? ["not logged"] : p.output ? beside(p.output, reference, "not in the reference") : ["(says nothing)"]; };

  // ---- the probe ----

  const probeOf = (v) => get(v, "probe") || (get(v, "samples") && v.samples.length ? v.samples[0] : null);
  $("probe").style.setProperty("--tallest", Math.max(0, ...all.map((v) => { const p = get(v, "probe"); return p && p.weights ? 92 + 34 * p.target_words.length : 0; })) + "px");
  function probe() {
    const v = all[state.at], p = probeOf(v), box = $("probe");
    box.textContent = "";
    if (!p && !data.validated) { box.append(el("p", {class: "quiet"}, "There were no validation sentences.")); return; }
    if (!p) { box.append(missing("Probe")); return; }
    const line = (side, text) => el("p", {class: "said"}, el("span", {class: "side"}, side), el("span", {}, text));
    const now = el("div");
    box.append(now);
    now.append(line("source", [p.source]));
    if (p.reference) now.append(line("reference", beside(p.reference, p.output, "not said")));
    now.append(line("model", said(v, p.reference)));
    if (n > 1) {
      const shown = Math.min(n, 16), place = (k) => (k < shown ? Math.round((k * (n - 1)) / (shown - 1)) : n);
      const list = el("div", {}, el("h3", {}, "What it said, by and by"),
        shown < n ? el("p", {class: "quiet small"}, `${shown} of ${n} validations, evenly apart. The slider above goes through all.`) : null);
      for (let k = 0; k < shown; ++k)
        list.append(el("button", {type: "button", class: "then", "aria-pressed": String(state.at >= place(k) && state.at < place(k + 1)), onclick: () => choose(place(k))},
          el("span", {class: "num quiet"}, `step ${all[place(k)].step}`), el("span", {}, said(all[place(k)], p.reference))));
      now.append(list);
    }
    const looked = el("div");
    box.append(looked);
    if (p.weights === undefined) { looked.append(missing("Attention")); return; }
    if (!p.weights) { looked.append(el("p", {class: "quiet"}, "This model has no attention weights to draw.")); return; }
    const holder = el("div", {class: "scroll"});
    holder.append(heatMap({rows: p.target_words.map(spaced), columns: p.source_words.map(spaced), label: "Attention of the probe",
      cell: (r, c) => ({class: blue(p.weights[r][c], 1), tip: `${p.target_words[r]} looks at ${p.source_words[c]}: ${show(p.weights[r][c], 3)}`})}));
    looked.append(holder, el("p", {class: "legend"}, el("span", {}, "weight 0", el("span", {class: "ramp value"}), "1")));
  }

  // ---- layers ----

  const norms = all.map((v) => get(v, "norms"));
  const value = (i, k) => {
    const m = norms[i];
    if (!m) return null;
    if (!state.ratio) return number(m.gradient[k] === undefined ? null : m.gradient[k]);
    const weight = number(m.weight[k]), update = number(m.update[k]);
    return weight === null || update === null ? null : weight > 0 ? update / weight : NaN;
  };
  function layers() {
    const box = $("layers"), hasLayers = data.layers && norms.some((m) => m);
    box.textContent = "";
    $("show-gradient").setAttribute("aria-pressed", String(!state.ratio));
    $("show-ratio").setAttribute("aria-pressed", String(state.ratio));
    $("layers-text").textContent = state.ratio ?
      "How far the step just before each validation moved each layer, against the size of its weights. In the midst of a training about 10⁻³ is usual; 10⁻² and more is too fast. Towards the end, as the learning rate falls, 10⁻⁴ or 10⁻⁵ is no fault; from the beginning on it is: that layer hardly learns." :
      "The norm of each layer's gradient at the step just before each validation, before clipping.";
    if (!hasLayers) { box.append(missing("Gradient norms and updates")); $("layers-legend").textContent = ""; return; }
    const rows = data.layers.map((l) => l.name), small = narrow();
    const names = small ? 124 : 240, numbers = 66, row = 17, width = Math.max(280, Math.min(1190, box.clientWidth || 800));
    const cell = Math.max(5, Math.min(110, (width - names - numbers) / n)), total = names + cell * n + numbers, height = row * rows.length + 24;
    let low = Infinity, high = -Infinity;
    for (let k = 0; k < rows.length; ++k) for (let i = 0; i < n; ++i) { const q = value(i, k); if (q > 0 && Number.isFinite(q)) { low = Math.min(low, Math.log10(q)); high = Math.max(high, Math.log10(q)); } }
    if (low > high) { low = -1; high = 0; }
    const shade = (q) => {
      if (q === null) return "none";
      if (!Number.isFinite(q)) return "odd";
      if (state.ratio) return pull(q > 0 ? Math.sign(Math.log10(q) + 3) * (Math.log10(q) + 3) ** 2 : -9, 9);
      return blue(q > 0 ? Math.log10(q) - low + 0.05 * (high - low) : 0, 1.05 * (high - low) || 1);
    };
    const brief = [["encoder", "enc"], ["decoder", "dec"], ["embedding", "emb"], ["attention", "att"], ["weight", "w"], ["bias", "b"], ["reverse", "rev"]];
    const short = (whole) => {
      const most = small ? 19 : 41, name = small ? brief.reduce((text, [word, less]) => text.replaceAll(word, less), whole) : whole;
      return name.length <= most ? name : "…" + name.slice(name.length - most + 1);
    };
    const inside = [];
    for (let k = 0; k < rows.length; ++k) {
      inside.push(html`<text class="name" x="${names - 6}" y="${row * k + 12.5}" text-anchor="end"><title>${rows[k]}</title>${short(rows[k])}</text>`);
      for (let i = 0; i < n; ++i) inside.push(html`<rect class="cell ${shade(value(i, k))}" data-i="${i}" data-k="${k}" x="${(names + cell * i).toFixed(2)}" y="${row * k}" width="${Math.max(1, cell - 1).toFixed(2)}" height="${row - 1}"/>`);
      const q = value(state.at, k);
      inside.push(html`<text class="num" x="${names + cell * n + 6}" y="${row * k + 12.5}">${q === null ? "–" : show(q, 2)}</text>`);
    }
    inside.push(html`<text x="${names}" y="${height - 8}">step ${all[0].step}</text>`);
    if (n > 1 && cell * n > 130) inside.push(html`<text x="${names + cell * n}" y="${height - 8}" text-anchor="end">${all[n - 1].step}</text>`);
    inside.push(html`<rect class="column" x="${names + cell * state.at - 0.5}" y="-0.5" width="${cell}" height="${row * rows.length}"/>`);
    put(box, html`<svg width="${total}" height="${height}" viewBox="-1 -1 ${total + 1} ${height + 1}" role="img" aria-label="Layers over time">${inside}</svg>`);
    // A font that is wider than most: what does not fit goes at the front.
    for (const text of box.querySelectorAll("text.name")) while (text.getBBox().x < 0 && text.lastChild.data.length > 2) text.lastChild.data = "…" + text.lastChild.data.slice(2);
    const svg = box.firstChild, hit = (e) => e.target.closest("rect.cell");
    svg.addEventListener("pointermove", (e) => {
      const c = hit(e);
      if (!c) { hideTip(); return; }
      const q = value(+c.dataset.i, +c.dataset.k), m = norms[+c.dataset.i];
      showTip(`${rows[+c.dataset.k]}\nat step ${m ? m.step : all[+c.dataset.i].step}: ${q === null ? "not logged" : show(q, 3)}`, e.clientX, e.clientY);
    });
    svg.addEventListener("pointerleave", hideTip);
    svg.addEventListener("click", (e) => { const c = hit(e); if (c) choose(+c.dataset.i); });
    put($("layers-legend"), state.ratio ?
      html`<span><span class="less">10<sup>−6</sup> or less</span><span class="ramp gradient"></span><span class="more">1 or more</span></span><span>white: 10<sup>−3</sup></span><span><span class="key hatch"></span>not logged</span>` :
      html`<span>${show(10 ** low, 2)}<span class="ramp value"></span>${show(10 ** high, 2)} (log scale)</span><span><span class="key hatch"></span>not logged</span>`);
  }
  $("show-gradient").onclick = () => { state.ratio = false; layers(); };
  $("show-ratio").onclick = () => { state.ratio = true; layers(); };

  // ---- the worst ----

  function worst() {
    const box = $("worst"), list = get(all[state.at], "worst");
    box.textContent = "";
    if (list === null) { box.append(missing("Worst sentences")); return; }
    if (!list.length) { box.append(el("p", {class: "quiet"}, "There were no validation sentences.")); return; }
    for (const w of list) {
      const known = data.explained.find((e) => e.source === w.source && e.reference === w.reference);
      box.append(el("div", {class: "sentence"},
        el("span", {class: "side"}, `${show(w.loss, 3)} nats`), el("span", {}, w.source),
        el("span", {class: "side"}, "reference"), el("span", {}, beside(w.reference, w.output, "not said")),
        el("span", {class: "side"}, "model"), el("span", {}, beside(w.output || "(says nothing)", w.reference, "not in the reference")),
        known ? [el("span", {class: "side"}, "explain"), known.page ? el("a", {href: "./" + encodeURIComponent(known.page)}, "see where it goes wrong") : el("code", {}, known.command)] : null));
    }
  }

  // ---- time ----

  let choose = null;
  if (n === 0) {
    document.querySelector("nav.time").remove();
    document.querySelector("main").textContent = "";
    document.querySelector("main").append(el("section", {class: "panel"}, el("p", {class: "missing"}, "No validation yet.")));
  } else {
    choose = timeline(n, state, Math.max(120, Math.min(700, 9000 / n)), (at) => {
      const v = all[at];
      $("now").textContent = `epoch ${v.epoch} · step ${v.step}` + (!data.validated ? "" : (get(v, "valid_loss") === null ? "" : ` · loss ${show(v.valid_loss, 3)}`) +
        (get(v, "bleu") === null ? "" : ` · BLEU ${show(v.bleu, 3)}`) + (v.best ? " · best so far" : ""));
      plots.forEach((p) => p.draw());
      probe(); layers(); worst();
    });
    addEventListener("resize", layers);
  }
  window.lens = {data, state, choose};
})();
