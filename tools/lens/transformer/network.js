// A Transformer computed anew in the browser from a part on: a second implementation, held against the engine's numbers
// when the page opens.

class Network {
  constructor(data) {
    this.data = data;
    const what = data.what_if, {floats} = WhatIf;
    const matrix = (m) => m && {weight: floats(m.weight), bias: floats(m.bias), eps: m.eps};
    this.parts = what.parts.map((p) => ({norm: matrix(p.norm), hidden: matrix(p.hidden), out: matrix(p.out),
      attention: p.attention && {in: matrix(p.attention.in), out: matrix(p.attention.out)}}));
    this.memoryNorm = matrix(what.memory_norm);
    this.output = {...what.output, weight: floats(what.output.weight)};
    this.inputs = [];  // of each part, as nothing is changed
    this.forward(0, null, true);
  }

  linear(rows, weight, bias, begin = 0, count = bias.length) {
    const size = rows[0].length;
    return rows.map((x) => {
      const y = new Float64Array(count);
      for (let r = 0; r < count; ++r) {
        let sum = bias[begin + r];
        for (let c = 0, k = (begin + r) * size; c < size; ++c) sum += weight[k + c] * x[c];
        y[r] = sum;
      }
      return y;
    });
  }
  normed(rows, norm) {
    return rows.map((x) => {
      const n = x.length, mean = x.reduce((a, b) => a + b, 0) / n;
      const scale = 1 / Math.sqrt(x.reduce((a, b) => a + (b - mean) ** 2, 0) / n + norm.eps);
      return x.map((value, i) => norm.weight[i] * (value - mean) * scale + norm.bias[i]);
    });
  }
  gelu(x) {  // x Phi(x), the error function by its series and its continued fraction
    const y = Math.abs(x) / Math.SQRT2;
    let erf;
    if (y < 2.5) {
      let term = y, sum = y;
      for (let n = 1; n < 80; ++n) { term *= -(y * y) / n; sum += term / (2 * n + 1); }
      erf = (2 / Math.sqrt(Math.PI)) * sum;
    } else {
      let fraction = 0;
      for (let n = 60; n > 0; --n) fraction = n / 2 / (y + fraction);
      erf = 1 - Math.exp(-y * y) / Math.sqrt(Math.PI) / (y + fraction);
    }
    return 0.5 * x * (1 + Math.sign(x) * erf);
  }
  /** What the heads find, side by side. change: {head, row, scores, temperature, mask} of one row, or {head, off}. */
  attend(part, net, x, memory, change) {
    const E = this.data.model.units, H = this.data.model.heads, n = E / H, {in: w} = net, scale = Math.sqrt(n) * number(this.data.model.temperature);
    const q = this.linear(x, w.weight, w.bias, 0, E), k = this.linear(memory, w.weight, w.bias, E, E), v = this.linear(memory, w.weight, w.bias, 2 * E, E);
    const changed = {};
    const out = q.map((row, i) => {
      const found = new Float64Array(E);
      for (let h = 0; h < H; ++h) {
        const mine = change && change.head === h;
        if (mine && change.off) continue;
        const here = mine && change.row === i ? change : {};
        let scores = k.map((key) => { let sum = 0; for (let c = h * n; c < (h + 1) * n; ++c) sum += row[c] * key[c]; return sum / scale; });
        if (here.scores) scores = here.scores;
        const mask = here.mask || scores.map((_, j) => !Sublayer.masked(part, i, j));
        const weights = WhatIf.Step.prototype.softmax(scores, here.temperature || 1, mask);
        if (mine && change.row === i) changed.weights = weights;
        weights.forEach((a, j) => { if (a !== 0) for (let c = h * n; c < (h + 1) * n; ++c) found[c] += a * v[j][c]; });
      }
      return found;
    });
    return {out, weights: changed.weights};
  }
  /** Log probabilities of the words of the output layer at each step, with one head of part `from` changed. */
  forward(from, change, keep = false) {
    const {data} = this, first = data.model.norm_first, rows = (x) => x.map((row) => Float64Array.from(row)), plus = (a, b) => a.map((x, i) => x.map((y, c) => y + b[i][c]));
    let x = from === 0 ? rows(data.what_if.source) : this.inputs[from], memory = this.memory, weights = null;
    for (let p = from; p < data.parts.length; ++p) {
      const part = data.parts[p], net = this.parts[p];
      if (part.sublayer === "decoder" && part.layer === 0 && p !== from || (from === 0 && p === 0 && part.sublayer === "decoder")) {
        memory = this.memoryNorm ? this.normed(x, this.memoryNorm) : x;
        if (keep) this.memory = memory;
        x = rows(data.what_if.target);
      }
      if (keep) this.inputs[p] = x;
      if (part.sublayer === "output") { if (net.norm) x = this.normed(x, net.norm); break; }
      const read = first ? this.normed(x, net.norm) : x;
      let y;
      if (net.attention) {
        const found = this.attend(part, net.attention, read, part.sublayer === "cross" ? memory : read, p === from ? change : null);
        weights = found.weights || weights;
        y = this.linear(found.out, net.attention.out.weight, net.attention.out.bias);
      } else {
        const hidden = this.linear(read, net.hidden.weight, net.hidden.bias);
        y = this.linear(hidden.map((row) => row.map((u) => (data.model.activation === "relu" ? Math.max(0, u) : this.gelu(u)))), net.out.weight, net.out.bias);
      }
      x = plus(x, y);
      if (!first) x = this.normed(x, net.norm);
    }
    return {weights, logp: x.map((row, t) => {
      const z = WhatIf.addProduct(this.output.bias.slice(), this.output.weight, row);
      const rest = this.output.rest[t] === null ? -Infinity : this.output.rest[t];
      const top = z.reduce((m, one) => Math.max(m, one), rest);
      const log = top + Math.log(z.reduce((sum, one) => sum + Math.exp(one - top), Math.exp(rest - top)));
      return z.map((one) => one - log);
    })};
  }
  losses(from, change) {
    const {logp} = this.forward(from, change);
    return this.data.steps.map((s, t) => -logp[t][this.output.ids.indexOf(s.target_id)]);
  }

  /** Largest difference between the page's losses and the engine's: nothing changed, and with each of the engine's examples. */
  disagreement() {
    const {data} = this;
    let worst = 0;
    const compare = (mine, engine) => mine.forEach((loss, t) => {
      const off = Math.abs(loss - number(engine[t])) / Math.max(1, Math.abs(number(engine[t])));
      worst = Number.isNaN(off) ? NaN : Math.max(worst, off);
    });
    compare(this.losses(0, null), data.steps.map((s) => s.loss));
    for (const {part, head, change, row, column, losses} of data.what_if.examples) {
      const scores = data.parts[part].scores[head][row].slice(), mask = Array.from(scores, (_, j) => !Sublayer.masked(data.parts[part], row, j));
      if (change === "raise") scores[column] += 1;
      if (change === "mask") mask[column] = false;
      compare(this.losses(part, change === "off" ? {head, off: true} : {head, row, scores, mask, temperature: change === "temperature" ? 2 : 1}), losses);
    }
    return worst;
  }

  /** For WhatIf.controls: one row of one head as its only one. */
  row(p, head, row) {
    const run = (t, scores, temperature, mask) => {
      const {weights, logp} = this.forward(p, {head, row, scores: scores[0], temperature, mask});
      return {weights: [weights], logp: logp[t]};
    };
    const step = {output: this.output, run, loss: (t, scores, temperature, mask, word) => -run(t, scores, temperature, mask).logp[word]};
    step.gradient = WhatIf.Step.prototype.gradient;
    return step;
  }
}
