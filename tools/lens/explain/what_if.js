// A step computed anew in the browser: a second implementation, held against the engine's numbers when the page opens.

const WhatIf = (function () {
  /** Little-endian f32 in base64. */
  function floats(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Float32Array(bytes.buffer);
  }
  const tanh = Math.tanh, sigmoid = (x) => 1 / (1 + Math.exp(-x));
  /** y += W x, W row by row. */
  function addProduct(y, W, x) {
    for (let r = 0, k = 0; r < y.length; ++r) {
      let sum = 0;
      for (let c = 0; c < x.length; ++c) sum += W[k++] * x[c];
      y[r] += sum;
    }
    return y;
  }

  class Step {
    constructor(data) {
      this.data = data;
      this.what = data.what_if;
      this.output = {...this.what.output, weight: floats(this.what.output.weight)};
      if (this.what.readout.state) this.readState = floats(this.what.readout.state);
      if (this.what.cell && this.what.cell.weight_hn) this.hn = floats(this.what.cell.weight_hn);
    }
    /** Weights of one head; what is masked gets 0, and so does everything where all is masked. */
    softmax(scores, temperature, mask) {
      let top = -Infinity;
      scores.forEach((e, j) => { if (mask[j]) top = Math.max(top, e / temperature); });
      const parts = scores.map((e, j) => (mask[j] ? Math.exp(e / temperature - top) : 0));
      const sum = parts.reduce((a, b) => a + b, 0);
      return parts.map((x) => (sum > 0 ? x / sum : 0));
    }
    /** sum over heads and words of weight times what the word puts there. */
    mixed(parts, weights, start) {
      const y = start.slice();
      weights.forEach((head, m) => head.forEach((w, j) => { if (w !== 0) parts[m][j].forEach((x, i) => { y[i] += w * x; }); }));
      return y;
    }
    state(t, weights) {
      const c = this.what.cell, H = c.hidden, before = c.state_before[t], kind = c.type;
      const x = this.mixed(c.context, weights, c.word[t]), hh = c.state[t];
      const gate = (k, i) => x[k * H + i] + hh[k * H + i], out = new Array(H);
      if (kind === "rnn" || kind === "rnn-relu") {
        for (let i = 0; i < H; ++i) out[i] = kind === "rnn" ? tanh(gate(0, i)) : Math.max(0, gate(0, i));
      } else if (kind === "lstm") {
        for (let i = 0; i < H; ++i) {
          const cell = sigmoid(gate(1, i)) * c.cell_before[t][i] + sigmoid(gate(0, i)) * tanh(gate(2, i));
          out[i] = sigmoid(gate(3, i)) * tanh(cell);
        }
      } else {
        let candidate;
        if (this.hn) {  // the reset gate comes before the product
          const reset = before.map((b, i) => sigmoid(gate(0, i)) * b);
          candidate = addProduct(c.bias_hn ? c.bias_hn.slice() : new Array(H).fill(0), this.hn, reset).map((n, i) => tanh(n + x[2 * H + i]));
        } else {
          candidate = before.map((_, i) => tanh(x[2 * H + i] + sigmoid(gate(0, i)) * hh[2 * H + i]));
        }
        for (let i = 0; i < H; ++i) {
          const z = sigmoid(gate(1, i));
          out[i] = kind === "gru-bahdanau" ? (1 - z) * before[i] + z * candidate[i] : (1 - z) * candidate[i] + z * before[i];
        }
      }
      return out;
    }
    /** scores [M][S] -> weights, log probabilities of the words of the output layer. */
    run(t, scores, temperature, mask) {
      const weights = scores.map((row) => this.softmax(row, temperature, mask));
      const r = this.what.readout;
      let a = this.mixed(r.context, weights, r.rest[t]);
      if (!this.what.luong) addProduct(a, this.readState, this.state(t, weights));
      if (r.maxout) a = a.filter((_, i) => i % 2 === 0).map((x, i) => Math.max(a[2 * i], a[2 * i + 1]));
      else a = a.map(tanh);
      const z = addProduct(this.output.bias.slice(), this.output.weight, a);
      const rest = this.output.rest[t] === null ? -Infinity : this.output.rest[t];
      const top = z.reduce((m, x) => Math.max(m, x), rest);
      const log = top + Math.log(z.reduce((s, x) => s + Math.exp(x - top), Math.exp(rest - top)));
      return {weights, logp: z.map((x) => x - log)};
    }
    loss(t, scores, temperature, mask, word) { return -this.run(t, scores, temperature, mask).logp[word]; }
    /** dL/dscores by differences, of one head. */
    gradient(t, m, scores, temperature, mask, word) {
      return scores[m].map((e, j) => {
        if (!mask[j]) return 0;
        const at = (by) => this.loss(t, scores.map((row, k) => (k === m ? row.map((x, i) => (i === j ? x + by : x)) : row)), temperature, mask, word);
        return (at(1e-4) - at(-1e-4)) / 2e-4;
      });
    }
  }

  /** Largest difference between the page's numbers and the engine's, over all steps, nothing edited. */
  function disagreement(data, step) {
    let worst = 0;
    const all = data.source.map(() => true);
    data.steps.forEach((s, t) => {
      const scores = s.heads.map((head) => head.scores.map(number));
      const found = step.run(t, scores, number(data.model.temperature), all);
      found.weights.forEach((row, m) => row.forEach((w, j) => { worst = Math.max(worst, Math.abs(w - number(s.heads[m].weights[j]))); }));
      const loss = -found.logp[step.output.ids.indexOf(s.target_id)];
      worst = Math.max(worst, Math.abs(loss - number(s.loss)) / Math.max(1, Math.abs(number(s.loss))));
      if (Number.isNaN(loss)) worst = NaN;
    });
    return worst;
  }

  /** The badge: what the page computes and what the engine did differ by `off`. False where the page cannot compute. */
  function judge(box, badge, data, off) {
    if (!data.what_if || data.what_if.unavailable) {
      badge.textContent = "not available";
      put(box, html`<p class="quiet">${data.what_if ? data.what_if.unavailable : "This trace was written without it."}</p>`);
      return false;
    }
    const by = off(), ok = by < 1e-6;
    badge.textContent = ok ? `browser agrees with the engine to ${show(by, 2)} ✓` : `browser and engine differ by ${show(by, 2)}`;
    badge.className = "badge " + (ok ? "good" : "bad");
    return true;
  }
  function create(box, badge, data, state) {
    let step = null;
    const able = judge(box, badge, data, () => { step = new Step(data); return disagreement(data, step); });
    return able ? controls(box, data, state, step, `source ${Words.token(data)}`) : {draw() {}};
  }

  /** So many decimals, but what is not 1 does not look like it. */
  const fixed = (x, decimals) => (x !== 1 && Number(x.toFixed(decimals)) === 1 ? show(x, decimals) : x.toFixed(decimals));

  /** Sliders and what follows from them. step: output, run(t, scores, temperature, mask), loss and gradient as Step's. */
  function controls(box, data, state, step, heading) {
    let edit = null;

    function reset() {
      const s = data.steps[state.t];
      edit = {t: state.t, scores: s.heads.map((head) => head.scores.map(number)), temperature: number(data.model.temperature),
        mask: s.mask ? s.mask.slice() : data.source.map(() => true), word: step.output.ids.indexOf(s.target_id)};
    }
    const select = el("select", {"aria-label": "Target word", id: "what-target"});
    step.output.words.map((word, i) => [word, i]).sort((a, b) => (a[0] < b[0] ? -1 : 1))
      .forEach(([word, i]) => select.append(el("option", {value: i}, word)));
    const temperature = el("input", {type: "range", min: -2, max: 2, step: 0.01, "aria-label": "Temperature"});
    const temperatureText = el("span", {class: "num"});
    const rows = el("div", {class: "scores"}), probabilities = el("div", {class: "probs"}), result = el("p", {class: "result", id: "what-result"});
    const buttons = el("div", {class: "bar"},
      el("button", {type: "button", id: "what-descend", onclick: descend}, "Step down the gradient"),
      el("button", {type: "button", id: "what-reset", onclick: () => { reset(); update(true); }}, "Reset"));
    box.append(
      el("p", {class: "quiet small"}, "Move scores, leave words out, change the temperature or what should be said: your browser computes the step again, by its own code. The upright mark is where a weight was."),
      el("div", {class: "what"},
        el("div", {}, rows, el("p", {class: "bar small temperature", style: "margin-top:8px"}, "temperature ", temperature, temperatureText), buttons),
        el("div", {}, el("p", {class: "bar small"}, "should say ", select), probabilities, result)));

    /** A word's score: that of a piece which would get the weights of all of its pieces. They are moved together. */
    function scoreOf(parts, scores) {
      if (parts.length === 1) return scores[parts[0]];
      const T = number(data.model.temperature), top = Math.max(...parts.map((j) => scores[j]));
      return top + T * Math.log(parts.reduce((sum, j) => sum + Math.exp((scores[j] - top) / T), 0));
    }
    let sliders = [];
    function build() {
      rows.replaceChildren(...[heading, "in", "score", "", "weight", ""].map((x) => el("span", {class: "h"}, x)));
      sliders = state.source.map(({name: word, parts}) => {
        const scores = edit.scores[state.m], middle = scoreOf(parts, data.steps[state.t].heads[state.m].scores.map(number));
        const box = el("input", {type: "checkbox", "aria-label": `look at ${word}`, onchange: () => { parts.forEach((j) => { edit.mask[j] = box.checked; }); update(); }});
        const range = el("input", {type: "range", min: middle - 8, max: middle + 8, step: "any", "aria-label": `score of ${word}`,
          oninput: () => { const by = +range.value - scoreOf(parts, scores); parts.forEach((j) => { scores[j] += by; }); update(); }});
        const text = el("span", {class: "num"}), bar = el("span", {class: "weight"}), weight = el("span", {class: "num"});
        rows.append(el("span", {}, word), box, range, text, bar, weight);
        return {parts, box, range, text, bar, weight};
      });
    }
    temperature.addEventListener("input", () => { edit.temperature = 2 ** +temperature.value; update(); });
    select.addEventListener("change", () => { edit.word = +select.value; update(); });

    function descend() {
      const gradient = step.gradient(state.t, state.m, edit.scores, edit.temperature, edit.mask, edit.word);
      const size = largestOf(gradient);
      if (size > 0) gradient.forEach((g, j) => { edit.scores[state.m][j] -= (0.5 * g) / size; });
      update(true);
    }

    function update() {
      const s = data.steps[state.t], before = s.heads[state.m];
      const now = step.run(state.t, edit.scores, edit.temperature, edit.mask);
      sliders.forEach((row) => {
        const added = (weights) => row.parts.reduce((sum, j) => sum + number(weights[j]), 0), weight = added(now.weights[state.m]);
        const looked = edit.mask[row.parts[0]], score = scoreOf(row.parts, edit.scores[state.m]);
        row.box.checked = looked;
        if (score < +row.range.min) row.range.min = score;
        if (score > +row.range.max) row.range.max = score;
        row.range.value = score;
        row.range.disabled = !looked;
        row.text.textContent = show(score, 4);
        put(row.bar, looked ? html`<i data-style="width:${100 * weight}%"></i><u data-style="left:calc(${100 * added(before.weights)}% - 1px)"></u>` : html`<i class="hatch" data-style="width:100%"></i>`);
        row.weight.textContent = looked ? fixed(weight, 3) : "masked";
      });
      temperature.value = Math.log2(edit.temperature);
      temperatureText.textContent = edit.temperature.toFixed(2);
      select.value = edit.word;
      const order = now.logp.map((_, i) => i).sort((a, b) => now.logp[b] - now.logp[a]).slice(0, 7);
      if (!order.includes(edit.word)) order[6] = edit.word;
      put(probabilities, order.map((i) => html`<span class="${i === edit.word ? "target" : ""}">${step.output.words[i]}</span>
        <span class="weight"><i data-style="width:${100 * Math.exp(now.logp[i])}%"></i></span><span class="num">${fixed(Math.exp(now.logp[i]), 4)}</span>`));
      const loss = -now.logp[edit.word], engine = number(s.loss);
      let text = `Loss ${show(loss, 5)}`;
      if (step.output.ids[edit.word] === s.target_id) {
        text += `; unedited ${show(engine, 5)}`;
        const masked = edit.mask.some((x, j) => x !== (s.mask ? s.mask[j] : true)), hot = edit.temperature !== number(data.model.temperature);
        const moved = edit.scores.some((row, m) => row.some((e, j) => e !== number(s.heads[m].scores[j])));
        if (moved && !masked && !hot) {
          let guess = 0;
          edit.scores.forEach((row, m) => row.forEach((e, j) => { guess += (e - number(s.heads[m].scores[j])) * number((s.heads[m].score_gradient || [])[j] || 0); }));
          text += `. The gradient alone foretells a change of ${signed(guess, 3)}; it is ${signed(loss - engine, 3)}`;
        }
      } else text += ` for “${step.output.words[edit.word]}”`;
      if (step.output.words.length < step.output.vocabulary) text += `. The ${step.output.vocabulary - step.output.words.length} ${data.pieces ? "pieces" : "words"} that are not listed share the probability that they had`;
      result.textContent = text + ".";
    }
    return {draw() { reset(); build(); update(); }};
  }
  return {create, judge, controls, floats, addProduct, Step};
})();
