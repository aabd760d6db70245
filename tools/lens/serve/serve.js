// The page of `lens serve`: what is asked of the models, and a column for each that answers.

(function () {
  const data = JSON.parse($("data").textContent), models = data.models;
  const kFirst = "he doesn't like apples", kTurn = 45;  // milliseconds between words, so that one sees them come
  const kSlow = 400;  // milliseconds after which an answer that has not begun is said to be waited for
  $("theme").append(themeButton());
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

  // ---- what is asked ----

  for (const [i, m] of models.entries()) {
    $("model").append(el("option", {value: i}, m.name));
    $("other").append(el("option", {value: i}, m.name));
  }
  $("other").prepend(el("option", {value: "", selected: true}, "none"));
  $("other").value = models.length > 1 ? "1" : "";
  $("text").value = hash.get("text") || kFirst;

  const temperature = () => Math.round(100 * 10 ** Number($("sharp").value)) / 100;
  function settings(model) {
    const out = {model: model.name, text: $("text").value.trim()};
    if (model.attention_temperature !== null && temperature() !== 1) out.attention_temperature = model.attention_temperature * temperature();
    if ($("draw").checked) Object.assign(out, {seed: Number($("seed").value), sampling_temperature: Number($("warm").value)});
    return out;
  }

  /** POST, as JSON. A failure is an Error with the server's own words. */
  async function post(path, body, signal) {
    let answer;
    try {
      answer = await fetch(path, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body), signal});
    } catch (e) {
      if (e.name === "AbortError") throw e;
      throw new Error("The server does not answer: is lens serve still there?");
    }
    if (!answer.ok) throw new Error((await answer.json()).error);
    return answer;
  }
  /** The lines of an answer as they come. */
  async function* lines(answer) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return;
      const parts = (text + value).split("\n");
      text = parts.pop();
      for (const part of parts) yield JSON.parse(part);
    }
  }

  // ---- a column: one model's answer ----

  class Column {
    constructor(model) {
      this.model = model;
      this.hidden = new Set();  // masked source words
      this.prefix = [];         // ids of forced tokens
      this.force = "";          // and text behind them
      this.chosen = -1;
      this.clear();
      const what = [model.kind, model.attention, `${model.from} to ${model.to}`, `${model.parameters.toLocaleString("en")} parameters`];
      this.parts = Object.fromEntries(["source", "target", "result", "fault", "about", "instead", "map", "tree"].map((name) => [name, el("div", {class: name})]));
      const p = this.parts;
      p.source.className = p.target.className = "chips";
      for (const [part, label] of [[p.source, "Source words: choose one to mask it"], [p.target, "Translation: choose a word"]]) {
        part.setAttribute("role", "group");
        part.setAttribute("aria-label", label);
      }
      p.fault.setAttribute("role", "alert");
      p.instead.className = "";
      p.result.setAttribute("aria-live", "polite");
      p.map.className = "map scroll";
      p.tree.className = "tree scroll";
      p.about.className = "quiet small bar";
      this.size = el("input", {type: "number", min: 1, max: 10, value: 4, "aria-label": "Hypotheses of the beam"});
      this.element = el("section", {class: "panel", "aria-label": model.name},
        el("h2", {}, model.name), el("p", {class: "quiet small"}, what.filter(Boolean).join(" · ")),
        el("span", {class: "side"}, model.attends ? "source (choose a word to mask it)" : "source"), p.source, el("span", {class: "side"}, "translation (choose a word; orange: less than 50 %)"), p.target,
        p.fault, p.result, p.about, p.instead, p.map,
        el("p", {class: "legend"}, el("span", {}, "weight 0", el("span", {class: "ramp value"}), "1"), el("span", {}, el("span", {class: "key hatch"}), "masked"), model.weights ? el("span", {}, model.weights) : null),
        el("div", {class: "bar beam-bar"}, el("button", {type: "button", class: "beam", onclick: () => this.beam()}, "Open the beam"), el("label", {}, "of ", this.size), p.tree));
    }

    clear() {
      this.source = {words: [], unknown: []};
      this.tokens = [];
      this.words = [];
      this.rows = [];
      this.end = null;
    }
    /** Another sentence: nothing that was masked or forced is meant for it, and no tree of the one before. */
    forget() {
      this.hidden.clear();
      this.release();
      this.answered = null;
      this.parts.tree.replaceChildren();
    }
    /** No sentence, and so no answer. */
    empty() {
      if (this.running) this.running.abort();
      this.busy(false);
      this.parts.fault.textContent = "";
      this.clear();
      this.drawSource();
      this.draw();
    }
    release() {
      this.prefix = [];
      this.force = "";
      this.chosen = -1;
    }
    request() {
      return {...settings(this.model), hidden: [...this.hidden], prefix: this.prefix, force: this.force};
    }

    /** Whether what is shown is of the question before. */
    busy(yes) { this.element.setAttribute("aria-busy", String(yes)); }

    async ask(quick) {
      if (this.running) this.running.abort();
      const running = this.running = new AbortController();
      this.parts.fault.textContent = "";
      const asked = {prefix: this.prefix, force: this.force, hidden: new Set(this.hidden), settings: settings(this.model)};
      let heard = false;
      const late = setTimeout(() => this.running === running && !heard && this.busy(true), kSlow);
      try {
        for await (const line of lines(await post("/translate", this.request(), running.signal))) {
          if (running.signal.aborted) return;
          if (!heard) {
            this.busy(false);
            this.clear();
            this.parts.tree.replaceChildren();
            this.answered = asked;
            this.settings = asked.settings;  // of what is shown, until another answer comes
          }
          heard = true;
          if (line.event === "error") throw new Error(line.error);
          if (line.event === "token" && !quick && !calm) await wait(kTurn);
          if (running.signal.aborted) return;
          this.take(line);
        }
      } catch (e) {
        if (e.name === "AbortError" || running.signal.aborted) return;
        this.parts.fault.textContent = e.message;
        // What was refused is as if it had not been asked: the answer before stays.
        if (!heard && this.answered) Object.assign(this, this.answered, {hidden: new Set(this.answered.hidden)});
        else if (!heard) this.clear();
        this.drawSource();
        this.draw();
      } finally {
        clearTimeout(late);
        if (this.running === running) {
          this.running = null;
          this.busy(false);
        }
      }
    }

    take(line) {
      if (line.event === "source") {
        this.source = {words: line.words, unknown: line.unknown};
        this.drawSource();
      } else if (line.event === "token") {
        this.tokens.push(line);
        this.words = line.words;
        if (line.weights) this.rows[line.word] = line.weights;
        this.draw();
      } else {
        this.end = line;
        this.words = line.words;
        this.draw();
      }
    }

    /** Draws the buttons of a part anew; who had the focus keeps it, or the chosen one gets it. */
    refill(part, buttons, chosen = -1) {
      const had = [...part.children].indexOf(document.activeElement), at = had >= 0 && chosen >= 0 ? chosen : had;
      part.replaceChildren(...buttons);
      if (at >= 0 && buttons.length) buttons[Math.min(at, buttons.length - 1)].focus();
    }

    drawSource() {
      const names = this.source.words.length ? [...this.source.words.map(spaced), "</s>"] : [];
      this.refill(this.parts.source, names.map((name, j) => el("button", {type: "button", class: "chip" + (this.source.unknown[j] ? " unknown" : ""),
        "aria-pressed": String(this.hidden.has(j)), disabled: !this.model.attends, title: this.source.unknown[j] ? "unknown to the model" : null,
        "aria-label": `${name}${this.source.unknown[j] ? ", unknown to the model" : ""}: ${this.hidden.has(j) ? "masked" : "mask it"}`,
        onclick: () => this.mask(j)}, name, this.source.unknown[j] ? el("small", {}, "unknown") : null)));
    }
    mask(j) {
      if (this.hidden.has(j)) this.hidden.delete(j); else this.hidden.add(j);
      this.drawSource();
      this.ask(true);
    }

    tokensOf(w) { return this.tokens.filter((t) => t.word === w); }
    draw() {
      const ended = this.tokens.some((t) => t.token === "</s>"), names = [...this.words.map(spaced), ...(ended ? ["</s>"] : [])];
      this.refill(this.parts.target, names.map((name, w) => {
        const own = this.tokensOf(w), p = own.reduce((a, t) => a * t.probability, 1), forced = own.some((t) => t.forced);
        const unknown = own.some((t) => t.id === 0), unsure = !forced && p < 0.5;
        return el("button", {type: "button", class: `chip word${forced ? " forced" : ""}${unsure ? " unsure" : ""}${unknown ? " unknown" : ""}`, "aria-pressed": String(w === this.chosen),
          "aria-label": `${name}, probability ${probability(p)}${forced ? ", forced" : ""}${unknown ? ", unknown to the model, copied" : ""}`,
          onclick: () => this.choose(w === this.chosen ? -1 : w)}, name, el("small", {}, forced ? `forced · ${probability(p)}` : probability(p)));
      }), this.chosen);
      this.drawMap(names);
      this.drawInstead(names);
      const p = this.parts;
      p.result.textContent = this.end ? this.end.translation : "";
      const undo = el("button", {type: "button", class: "undo", onclick: () => { this.release(); this.say([], ""); }}, "Let it speak freely");
      p.about.replaceChildren(...(this.end ? [el("span", {}, `log p ${show(this.end.log_probability, 4)} nats · ${(1000 * this.end.seconds).toFixed(1)} ms${this.end.finished ? "" : " · cut off: it did not end"}`)] : []),
        ...(this.prefix.length || this.force ? [undo] : []));
    }

    drawMap(names) {
      if (!this.rows.length) return this.parts.map.replaceChildren();
      const columns = [...this.source.words.map(spaced), "</s>"], rows = names.slice(0, this.rows.length);
      const had = this.parts.map.contains(document.activeElement);
      const table = heatMap({rows, columns, label: "Attention: rows are the translation's words, columns the source's", pick: (r) => this.choose(r),
        at: () => [this.chosen, -1],
        cell: (r, c) => this.hidden.has(c) ? {class: "hatch", tip: `${rows[r]} may not look at ${columns[c]}`} :
          {class: blue((this.rows[r] || [])[c], 1), tip: `${rows[r]} looks at ${columns[c]}: ${show((this.rows[r] || [])[c], 3)}`}});
      this.parts.map.replaceChildren(table);
      if (had) table.cell(Math.max(0, Math.min(this.chosen, rows.length - 1)), 0).focus();
    }

    choose(w) {
      this.chosen = w;
      this.draw();
    }
    /** Has the model say these tokens and this text, and go on. What asked for it will go: the focus stays near. */
    say(prefix, force) {
      this.prefix = prefix;
      this.force = force;
      const words = this.parts.target.children;
      if (words.length) words[Math.max(0, Math.min(this.chosen, words.length - 1))].focus();
      this.ask();
    }

    /** What the model might have said in place of the chosen word. */
    drawInstead(names) {
      const here = this.parts.instead, own = this.tokensOf(this.chosen), name = names[this.chosen];
      if (!own.length || !this.end) return here.replaceChildren();
      const first = this.tokens.indexOf(own[0]), before = this.tokens.slice(0, first).map((t) => t.id);
      const typed = el("input", {type: "text", maxlength: 200, "aria-label": "Another word"});
      // What was said, token by token: as text it might be cut into others, and a copied word is not what the model said.
      const {model, text, attention_temperature} = this.settings;
      const address = new URLSearchParams({model, text, tokens: this.tokens.map((t) => t.id).join(), word: this.chosen, ...(attention_temperature && {attention_temperature})});
      here.replaceChildren(el("div", {class: "instead"},
        el("h3", {}, `Instead of “${name}”${own.length > 1 ? `, from its first piece “${spaced(own[0].token)}” on` : ""}`),
        el("div", {class: "others"}, ...own[0].alternatives.flatMap((a) => {
          const bar = el("i");
          bar.style.width = `${100 * a.probability}%`;
          return [el("button", {type: "button", disabled: a.id === own[0].id, onclick: () => this.say([...before, a.id], "")}, a.token === "</s>" ? "end here" : spaced(a.token)),
            el("span", {class: "track"}, bar), el("span", {class: "num"}, probability(a.probability))];
        })),
        aboutSpaces(own[0].alternatives.map((a) => a.token)),
        el("form", {class: "force", onsubmit: (e) => { e.preventDefault(); if (typed.value.trim()) this.say(before, typed.value.trim()); }},
          typed, el("button", {type: "submit"}, "Force this"),
          this.model.unexplained ? null : el("a", {href: `/explain?${address}`, target: "_blank", rel: "noopener"}, "Explain this word’s gradient"),
          this.hidden.size && !this.model.unexplained ? el("span", {class: "quiet small"}, "There no word is masked: probabilities and weights are others.") : null),
        this.model.unexplained ? el("p", {class: "quiet small"}, `Its gradient is not explained: ${this.model.unexplained}.`) : null));
    }

    async beam() {
      this.parts.fault.textContent = "";
      const {seed, sampling_temperature, ...request} = this.request();
      try {
        const answer = await (await post("/beam", {...request, beam_size: Number(this.size.value)})).json();
        if (request.text !== $("text").value.trim()) return;
        this.parts.tree.replaceChildren(
          el("p", {class: "quiet small"}, "Each word with its own probability, and the log probability of all up to it. Choose what was cut, and the model goes on from there."),
          ...[aboutSpaces(answer.nodes.map((node) => node.token))].filter(Boolean),
          beamTree(answer.nodes, answer.translations, (ids) => this.say(ids, "")));
      } catch (e) {
        this.parts.fault.textContent = e.message;
      }
    }
  }

  // ---- all columns ----

  const state = {columns: [], text: $("text").value};
  function arrange() {
    const wanted = [$("model").value, $("other").value].filter((v) => v !== "").map((v) => models[Number(v)]);
    state.columns = wanted.map((m) => new Column(m));
    $("columns").replaceChildren(...state.columns.map((c) => c.element));
    $("columns").classList.toggle("two", wanted.length === 2);
    $("sharp").disabled = wanted.every((m) => m.attention_temperature === null);
    ask();
  }
  function ask(quick) {
    const t = temperature();
    $("sharp-value").textContent = $("sharp").disabled ? "has no temperature" : t === 1 ? "as trained" : `${t < 1 ? "sharper" : "flatter"}: T × ${t}`;
    for (const e of document.querySelectorAll(".drawn")) e.hidden = !$("draw").checked;
    if ($("text").value !== state.text) {
      state.text = $("text").value;
      state.columns.forEach((c) => c.forget());
    }
    state.columns.forEach((c) => ($("text").value.trim() ? c.ask(quick) : c.empty()));
  }
  let later = 0;
  const soon = () => { clearTimeout(later); later = setTimeout(() => ask(true), 220); };
  $("ask").addEventListener("submit", (e) => { e.preventDefault(); clearTimeout(later); ask(); });
  for (const id of ["text", "sharp", "warm", "seed"]) $(id).addEventListener("input", soon);
  $("draw").addEventListener("change", () => ask(true));
  $("again").addEventListener("click", () => { $("seed").value = Number($("seed").value) + 1; ask(true); });
  for (const id of ["model", "other"]) $(id).addEventListener("change", arrange);
  arrange();
  window.lens = {data, state};
})();
