// The page of `lens flow --depth`: everything was computed before; here it is only chosen and drawn.

(function() {
const data = JSON.parse($('data').textContent);
const nameOf = (r) =>
    (r.residual ? 'residuals' : 'no residuals') + (r.norm === 'none' ? ', no norm' : `, norm ${r.norm}`);
const classOf = (r) => `k-${r.norm}${r.residual ? '' : ' cut'}`;
const kinds = [...new Set(data.results.map(nameOf))],
      depths = [...new Set(data.results.map((r) => r.layers))].sort((a, b) => a - b);
const state = {
  quantity: 'states',
  layers: data.layers,
  layer: 0,
  off: new Set()
};
const find = (kind, layers) => data.results.find((r) => nameOf(r) === kind && r.layers === layers);
const shown = () => kinds.filter((k) => !state.off.has(k));
const symbol = {
  states: html`|∂L/∂x|`,
  weights: html`|∂L/∂W|`
};
const titles = {
  states: 'at what a layer reads',
  weights: 'at a layer’s weights'
};
const {W, narrow, left, right, top, svg, plot} = chartsIn($('chart'));

const ticks = (all, x, y) => {
  const every = Math.ceil(all.length / (narrow ? 6 : 12));
  return all.map(
      (n, i) => (i % every && i !== all.length - 1) ||
              (i !== all.length - 1 && all.length - 1 - i < every / 2 + 0.5 && i % every === 0 && i > 0) ?
          [] :
          html`<text x="${x(i)}" y="${y}" text-anchor="middle">${n}</text>`);
};
/** A chart of one line a kind; line(kind) -> {median, low, high}, at numbers `all`. */
function lines(id, all, label, about, line) {
  const height = narrow ? 250 : 350, foot = 38,
        x = (i) => left + ((W - left - right) * (i + 0.5)) / all.length;
  const drawn = shown().map((k) => ({...line(k), name: classOf(find(k, state.layers))}));
  const p = plot(height, foot, x, drawn);
  put($(id),
      svg(height,
          [
            p.grid, ticks(all, x, height - foot + 16),
            html`<text x="${(left + W - right) / 2}" y="${height - 3}" text-anchor="middle">${label}</text>`,
            drawn.map((l) => p.draw(l)), html`<line class="cursor" y1="${top}" y2="${height - foot}"/>`
          ],
          about));
  return x;
}
const upTo = (n) => Array.from({length: n}, (_, i) => i + 1);
const cursorAt = (id, x) => {
  const c = $(id).querySelector('.cursor');
  c.setAttribute('x1', x);
  c.setAttribute('x2', x);
};

/** Pointer and arrow keys of a chart choose one of n numbers. */
function chooses(id, n, at, choose) {
  const box = $(id).firstChild, to = (i) => choose(Math.max(0, Math.min(n - 1, i)));
  const under = (e) => {
    const r = box.getBoundingClientRect();
    return Math.floor(((((e.clientX - r.left) / r.width) * W - left) / (W - left - right)) * n);
  };
  if (id === 'chart')
    box.addEventListener('pointermove', (e) => to(under(e)));
  else
    box.addEventListener('click', (e) => to(under(e)));
  box.addEventListener('keydown', (e) => {
    const move = {ArrowLeft: -1, ArrowRight: 1}[e.key];
    if (!move) return;
    e.preventDefault();
    to(at() + move);
    $(id).firstChild.focus();
  });
}

let place = null;
function here() {
  const l = state.layer, N = state.layers;
  cursorAt('chart', place(l));
  put($('here'), html`Layer ${l + 1} gets, of what layer ${N} gets: ${shown().map((k, i) => {
        const line = find(k, N)[state.quantity];
        return html`${i ? '; ' : ''}${k} <b>${power(line.median[l])}</b> (${power(line.low[l])} to ${
            power(line.high[l])})`;
      })}.`);
}
function draw() {
  const N = state.layers, q = state.quantity, index = depths.indexOf(N);
  state.layer = Math.min(state.layer, N - 1);
  $('quantities').replaceChildren(...Object.keys(titles).map((key) => {
    const b = el('button', {
      type: 'button',
      'aria-pressed': key === q,
      onclick: () => {
        state.quantity = key;
        draw();
        $('quantities').querySelector('[aria-pressed=true]').focus();
      }
    });
    put(b, html`${titles[key]}: ${symbol[key]}`);
    return b;
  }));
  $('depth').max = depths.length - 1;
  $('depth').value = index;
  $('depth-text').textContent = `${N} layers`;
  put($('axis'), html`${symbol[q]} at each layer, over that of layer ${N}; log scale`);
  place = lines(
      'chart', upTo(N), 'layer',
      'log10 of the gradient at each layer, compared with the last; arrow keys go from layer to layer',
      (k) => find(k, N)[q]);
  chooses('chart', N, () => state.layer, (l) => {
    state.layer = l;
    here();
  });
  const first = (k) => find(k, N)[q].median[0];
  put($('answer'),
      html`Of the gradient ${symbol[q]} that layer ${N} gets, layer 1 gets <b>${
          factor(first('residuals, norm first'))}</b> with
      residuals and the norm first, <b>${
          factor(first('residuals, norm last'))}</b> with the norm last, <b class="less">${
          factor(first('no residuals, no norm'))}</b> with neither residuals nor norms.`);
  put($('kinds'),
      html`<thead><tr><th>kind</th><th>layer 1 over layer ${N}, ${
          symbol[q]}</th><th>all seeds</th><th>at layer ${
          N} itself</th></tr></thead><tbody>${kinds.map((k) => {
        const r = find(k, N), line = r[q];
        return html`<tr><th scope="row"><svg class="key-line" viewBox="0 0 34 10" aria-hidden="true"><line class="${
            classOf(r)}" x1="0" x2="34" y1="5" y2="5"/></svg><button type="button" data-kind="${
            k}" aria-pressed="${!state.off.has(k)}">${k}</button></th>
        <td>${factor(line.median[0])}</td><td>${power(line.low[0])} to ${power(line.high[0])}</td><td>${
            show(10 ** number(line.last[0]), 3)}</td></tr>`;
      })}</tbody>`);
  for (const b of $('kinds').querySelectorAll('button'))
    b.addEventListener('click', () => {
      const k = b.dataset.kind;
      if (!state.off.delete(k) && shown().length > 1) state.off.add(k);
      draw();
      [...$('kinds').querySelectorAll('button')].find((x) => x.dataset.kind === k).focus();
    });
  put($('deeper'),
      html`What layer 1 gets of ${
          symbol
              [q]}, over what the last layer gets, by the number of layers. Click a number of layers to see it above.`);
  const choose = (i) => {
    state.layers = depths[i];
    draw();
  };
  const byDepth = (id, label, about, of) => {
    const x = lines(id, depths, label, about, (k) => {
      const all = depths.map((n) => of(find(k, n)));
      return {median: all.map((v) => v[0]), low: all.map((v) => v[1]), high: all.map((v) => v[2])};
    });
    cursorAt(id, x(index));
    chooses(id, depths.length, () => depths.indexOf(state.layers), choose);
  };
  byDepth(
      'depths', 'layers in the stack',
      'Gradient at layer 1 over that at the last, by depth; arrow keys change the depth',
      (r) => [r[q].median[0], r[q].low[0], r[q].high[0]]);
  byDepth(
      'lasts', 'layers in the stack', 'Gradient at the last layer, by depth; arrow keys change the depth',
      (r) => r[q].last);
  const wordsX = lines('apart', upTo(N), 'layer', 'How far words differ at what each layer reads', (k) => {
    const logs = find(k, N).apart.map((v) => Math.log10(number(v)));
    return {median: logs, low: logs, high: logs};
  });
  cursorAt('apart', wordsX(N - 1));
  here();
}
$('about').textContent =
    'How long the gradient of the loss is at each layer of an untrained Transformer encoder, compared with the last layer.';
const c = data.checks, ok = number(c.worst) < 1e-6;
$('badges').append(
    el('span', {class: 'badge ' + (ok ? 'good' : 'bad'), id: 'check-badge'},
       `${c.count.toLocaleString('en')} gradients checked by differences, worst error ${show(c.worst, 2)} ${
           ok ? '✓' : '✗'}`));
$('setup').textContent = data.setup +
    '. L is the loss of all words; x is what a layer reads, all words at once; W is the second matrix of its feed-forward part.';
$('checked').textContent =
    `Checked by finite differences as they were computed, in double precision: ${
        c.count.toLocaleString(
            'en')} lengths, each the slope of the loss as x, or W, is moved along its own gradient and ` +
    `everything after it computed anew: with ${
        data.layers} layers every layer of every network, elsewhere eight layers, the first and the last among them, of the first network. ` +
    (c.small ?
         `${
             c.small.toLocaleString(
                 'en')} of them are too far from the loss: on the way it loses their digits, or blows rounding up. There it is the layer’s own output that is followed, along the gradient that arrives at it. ` :
         '') +
    `Largest relative error ${show(c.worst, 2)}.`;
$('theme').append(themeButton());
$('depth').addEventListener('input', () => {
  state.layers = depths[+$('depth').value];
  draw();
});
draw();
window.lens = {
  data,
  state
};
})();
