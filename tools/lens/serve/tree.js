// The beam search as a tree that opens: each node a token, what was kept above what was cut.

/** nodes: {parent, token, id, log_probability, fate} in the order in which they were considered; ends: the translations, best
 *  first. force(ids) is called with the tokens that lead to a node which was cut. */
function beamTree(nodes, ends, force) {
  const children = new Map(), of = (n) => children.get(n) || [];
  nodes.forEach((node, n) => children.set(node.parent, [...of(node.parent), n]));
  const rank = new Map();  // of the nodes where translations end
  ends.forEach((end, i) => {
    const n = nodes.findIndex((node, k) => node.log_probability === end.log_probability && !rank.has(k) && (node.fate === "finished" || !of(k).length));
    if (n >= 0) rank.set(n, i);
  });
  const best = new Set();
  for (const [n, i] of rank) for (let at = i === 0 ? n : -1; at >= 0; at = nodes[at].parent) best.add(at);
  const path = (n) => n < 0 ? [] : [...path(nodes[n].parent), nodes[n].id];
  const percent = (node) => Math.exp(number(node.log_probability) - (node.parent < 0 ? 0 : number(nodes[node.parent].log_probability)));

  const nameOf = (node) => node.token === "</s>" ? "end" : spaced(node.token);
  /** What a node could have gone on with, and was cut: one line of buttons. */
  const cutBelow = (all) => all.length ? [el("li", {class: "cut leaf"}, "cut: ", ...all.map((n) => el("button",
    {type: "button", "aria-label": `${nameOf(nodes[n])}, cut. Go on from here`, onclick: () => force(path(n))}, `${nameOf(nodes[n])} `, el("small", {}, probability(percent(nodes[n]))))))] : [];
  function item(n) {
    const node = nodes[n], name = nameOf(node);
    const at = (more) => el("span", {class: "at num"}, `${probability(percent(node))} · ${show(node.log_probability, 3)}${more}`);
    const mine = best.has(n) ? "best" : "";
    if (!of(n).length) {
      const ended = rank.has(n) ? ` · translation ${rank.get(n) + 1} of ${ends.length}` : node.fate === "finished" ? "" : " · given up";
      return el("li", {class: `leaf ended ${mine}`}, el("span", {}, el("b", {}, name), at(ended)));
    }
    const below = el("ol"), details = el("details", {open: best.has(n)}, el("summary", {}, el("b", {}, name), at("")), below);
    const fill = () => { if (details.open && !below.childNodes.length) below.append(...list(n)); };
    details.addEventListener("toggle", fill);
    fill();
    return el("li", {class: mine}, details);
  }
  function list(n) {
    const all = of(n).slice().sort((a, b) => nodes[b].log_probability - nodes[a].log_probability);
    return [...all.filter((k) => nodes[k].fate !== "cut").map(item), ...cutBelow(all.filter((k) => nodes[k].fate === "cut"))];
  }
  return el("ol", {"aria-label": "Beam search"}, ...list(-1));
}

/** 41 %, 0.3 %, below what can be told apart from 0: "< 0.1 %"; of a model that has diverged "NaN". */
const probability = (p) => Number.isNaN(number(p)) ? "NaN" : p >= 0.0995 ? `${Math.round(100 * p)} %` : p >= 0.001 ? `${(100 * p).toFixed(1)} %` : "< 0.1 %";
