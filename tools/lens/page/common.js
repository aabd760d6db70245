// What all pages share: numbers as text, colours, formulas, heat maps, the tip, the theme.
"use strict";

const $ = (id) => document.getElementById(id);

/** An element: el("td", {class: "x", onclick: f}, child, "text"). */
function el(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (key.startsWith("aria-")) e.setAttribute(key, value);
    else if (key === "style") e.style.cssText = value || "";  // as an attribute it would be inline style, which no page allows
    else if (value !== null && value !== undefined && value !== false) e.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) e.append(child);
  return e;
}

/** Markup: html`<b>${word}</b>`. Whatever is put in is text, and escaped, unless it is such markup itself, or a list. */
class Markup { constructor(text) { this.text = text; } }
const escaped = (x) => x instanceof Markup ? x.text : Array.isArray(x) ? x.map(escaped).join("") :
  String(x).replace(/[&<>"'`]/g, (c) => `&#${c.charCodeAt(0)};`);
const html = (parts, ...values) => new Markup(parts.reduce((out, part, i) => out + escaped(values[i - 1]) + part));

// The one place where text becomes elements. Each page's policy allows no other (trusted-types); a browser that does not
// know of that still has the one on scripts.
const policy = window.trustedTypes ? trustedTypes.createPolicy("lens", {createHTML: (text) => text}) : {createHTML: (text) => text};
/** Makes markup what is in an element. data-style="width:3%" stands for style, which pages do not allow in markup. */
function put(e, markup) {
  e.innerHTML = policy.createHTML(escaped(markup));
  for (const styled of e.querySelectorAll("[data-style]")) styled.style.cssText = styled.dataset.style;
}

/** Numbers of a trace: "nan" and "inf" are text there, null is what was not computed. */
const number = (x) => (x === null || x === undefined ? null : typeof x === "number" ? x :
  x === "nan" ? NaN : x === "inf" ? Infinity : x === "-inf" ? -Infinity : Number(x));

/** The leading bytes of f64 numbers, big-endian, in base64. */
function unpack(text, bytes) {
  const given = atob(text), count = given.length / bytes, view = new DataView(new ArrayBuffer(8)), out = new Float64Array(count);
  for (let i = 0, at = 0; i < count; ++i) {
    for (let k = 0; k < bytes; ++k) view.setUint8(k, given.charCodeAt(at++));
    out[i] = view.getFloat64(0);
  }
  return out;
}
/** Everything below x that was packed: grids get their values; what has a shape only becomes rows of rows. */
function unpackAll(x) {
  if (x === null || typeof x !== "object") return x;
  if (x.base64 === undefined) {
    for (const key of Object.keys(x)) x[key] = unpackAll(x[key]);
    return x;
  }
  const values = unpack(x.base64, x.bytes);
  if (x.shown !== undefined) return {shape: x.shape, shown: x.shown, values};
  const rows = (begin, shape) => {
    if (shape.length === 1) return values.subarray(begin, begin + shape[0]);
    const size = shape.slice(1).reduce((a, b) => a * b, 1);
    return Array.from({length: shape[0]}, (_, i) => rows(begin + i * size, shape.slice(1)));
  };
  return rows(0, x.shape);
}

/** 0.0213, −4.1e−10; "not computed" for null. What is not 1 gets more digits rather than look like it: 0.99997. */
function show(x, digits = 3) {
  x = number(x);
  if (x === null) return "not computed";
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const size = Math.abs(x);
  while (size !== 1 && digits < 17 && Number(size.toPrecision(digits)) === 1) ++digits;
  const text = size >= 1e-3 && size < 1e5 ? String(Number(x.toPrecision(digits))) : x.toExponential(Math.max(0, digits - 2));
  return text.replace("e+", "e").replace(/-/g, "−");
}
const signed = (x, digits) => (number(x) > 0 ? "+" : "") + show(x, digits);

// Sixteen shades a colour, as CSS classes, so that a change of theme needs no drawing; --on is for text on them. Full colours are
// dark in the light theme and light in the dark one, where they are nearer to the text: it changes sooner there.
const kShades = 16;
(function shades() {
  // As rules of the page's own sheet: it allows no style but that.
  const sheet = document.styleSheets[0], add = (rule) => sheet.insertRule(rule, sheet.cssRules.length);
  for (const [letter, colour] of [["b", "--blue"], ["o", "--orange"], ["t", "--teal"]])
    for (let k = 0; k <= kShades; ++k) {
      const mix = `color-mix(in srgb, var(${colour}) ${(100 * k) / kShades}%, var(--panel))`;
      add(`.${letter}${k}{background-color:${mix};fill:${mix};--on:var(${k < 10 ? "--ink" : k < 14 ? "--on-middle" : "--panel"})}`);
    }
  add(".none{background-color:transparent;fill:url(#hatched)}");
  add(".odd{background-color:var(--bad);fill:var(--bad);--on:var(--panel)}");
})();

/** Class for a value, 0 .. largest or, signed, -largest .. largest: pale to deep blue. */
function blue(x, largest, isSigned) {
  x = number(x);
  if (x === null) return "none";
  if (!Number.isFinite(x)) return "odd";
  const part = largest > 0 ? (isSigned ? (x / largest + 1) / 2 : x / largest) : isSigned ? 0.5 : 0;
  return "b" + Math.round(kShades * Math.min(1, Math.max(0, part)));
}
/** Class for what gradient descent does: x > 0 more, teal; x < 0 less, orange. The square root lets small ones be seen. */
function pull(x, largest) {
  x = number(x);
  if (x === null) return "none";
  if (!Number.isFinite(x)) return "odd";
  const k = largest > 0 ? Math.ceil(kShades * Math.sqrt(Math.min(1, Math.abs(x) / largest)) - 1e-9) : 0;
  return (x < 0 ? "o" : "t") + k;
}
const largestOf = (all) => all.reduce((m, x) => (Number.isFinite(number(x)) && x !== null ? Math.max(m, Math.abs(number(x))) : m), 0);

// ---- formulas ----

// Where one part is asked for, a list of them does as well.
const M = {
  i: (x) => html`<mi>${x}</mi>`,
  b: (x) => html`<mi mathvariant="bold">${x}</mi>`,
  n: (x) => html`<mn>${x}</mn>`,
  o: (x) => html`<mo>${x}</mo>`,
  t: (x) => html`<mtext>${x}</mtext>`,
  sub: (a, b) => html`<msub><mrow>${a}</mrow><mrow>${b}</mrow></msub>`,
  sup: (a, b) => html`<msup><mrow>${a}</mrow><mrow>${b}</mrow></msup>`,
  frac: (a, b) => html`<mstyle displaystyle="true"><mfrac><mrow>${a}</mrow><mrow>${b}</mrow></mfrac></mstyle>`,
  sum: (index) => html`<munder><mo>∑</mo><mrow>${index}</mrow></munder>`,
  fn: (name, x) => html`<mi>${name}</mi><mo>&#x2061;</mo><mo>(</mo>${x}<mo>)</mo>`,
  math: (...parts) => html`<math><mrow>${parts}</mrow></math>`,
};

// ---- the tip ----

const tip = el("div", {id: "tip", role: "status"});
document.addEventListener("DOMContentLoaded", () => document.body.append(tip));
function showTip(text, x, y) {
  tip.textContent = text;
  tip.style.display = "block";
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - w - 8)) + "px";
  tip.style.top = (y + 18 + h > innerHeight ? Math.max(4, y - h - 10) : y + 18) + "px";
}
const hideTip = () => { tip.style.display = "none"; };

// ---- words and pieces ----

/** The words of a side of a trace, each with the places of its pieces: {name, parts}. Where pieces are not put together
 *  each is a word. */
function wordsOf(data, side) {
  if (!data.words) return data[side].map((name, i) => ({name: spaced(name), parts: [i]}));
  const {words, word_of} = data.words[side];
  return words.map((name, w) => ({name: isolated(name), parts: word_of.map((_, i) => i).filter((i) => word_of[i] === w)}));
}
/** A word among others: letters that are read from right to left would else take the numbers behind them along. */
const isolated = (word) => (/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(word) ? `\u2068${word}\u2069` : word);
/** A piece that is the mark of a space and nothing else, or a word of nothing but that, would hardly be seen. */
const spaced = (name) => (name === "▁" || name === "" ? "▁ (space)" : isolated(name));
/** A legend for names with that mark, or nothing. */
const aboutSpaces = (names) => (names.some((name) => name.includes("▁")) ? el("p", {class: "quiet small"}, "▁ is the space before a word.") : null);
/** Names of what a model reads or writes: words, and "k of Zork" for a piece of one. */
function pieceNames(pieces, words) {
  const names = pieces.map(spaced);
  for (const {name, parts} of words) for (const i of parts) names[i] = parts.length === 1 ? name : `${isolated(pieces[i])} of ${name}`;
  return names;
}
/** A name cut to n characters; that it is unknown stays to be seen. */
function clip(text, n) {
  const mark = text.endsWith(" <unk>") ? " <unk>" : "", word = text.slice(0, text.length - mark.length);
  return text.length > n ? word.slice(0, Math.max(1, n - mark.length - 1)) + "…" + mark : text;
}

// ---- heat maps ----

/** A table of cells that the arrow keys walk through.
 *  o: rows, columns (words), label, cell(r, c) -> {class, html, tip}, pick(r, c), at() -> [r, c] chosen. */
function heatMap(o) {
  const table = el("table", {class: "heat", role: "grid", "aria-label": o.label});
  const head = el("tr", {}, el("th"));
  // The style sheet cuts names, but not the mark of an unknown one.
  const heading = (scope, word) => {
    const unknown = word.endsWith(" <unk>");
    return el("th", {scope, title: word, class: unknown && "unknown"}, el("span", {}, unknown ? clip(word, 10) : word));
  };
  o.columns.forEach((word) => head.append(heading("col", word)));
  table.append(el("thead", {}, head));
  const body = el("tbody");
  const cells = o.rows.map((word, r) => {
    const row = el("tr", {}, heading("row", word));
    body.append(row);
    return o.columns.map((_, c) => {
      const td = el("td", {role: "gridcell", tabindex: -1});
      td.dataset.r = r; td.dataset.c = c;
      row.append(td);
      return td;
    });
  });
  table.append(body);
  const tipFor = (td) => o.cell(+td.dataset.r, +td.dataset.c).tip;
  table.addEventListener("pointermove", (e) => {
    const td = e.target.closest("td");
    if (td) showTip(tipFor(td), e.clientX, e.clientY); else hideTip();
    if (td && o.hover) o.hover(+td.dataset.r, +td.dataset.c);
  });
  table.addEventListener("pointerleave", () => { hideTip(); if (o.leave) o.leave(); });
  table.addEventListener("click", (e) => {
    const td = e.target.closest("td");
    if (td && o.pick) o.pick(+td.dataset.r, +td.dataset.c);
  });
  table.addEventListener("focusin", (e) => {
    const td = e.target.closest("td");
    if (!td || !td.matches(":focus-visible")) return;
    const box = td.getBoundingClientRect();
    showTip(tipFor(td), box.right, box.bottom);
    if (o.hover) o.hover(+td.dataset.r, +td.dataset.c);
  });
  table.addEventListener("focusout", hideTip);
  table.addEventListener("keydown", (e) => {
    const td = e.target.closest("td"), move = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[e.key];
    if (!td) return;
    if (e.key === "Enter" || e.key === " ") { if (o.pick) o.pick(+td.dataset.r, +td.dataset.c); e.preventDefault(); return; }
    if (!move) return;
    e.preventDefault();
    e.stopPropagation();
    const next = (cells[+td.dataset.r + move[0]] || [])[+td.dataset.c + move[1]];
    if (next) { next.tabIndex = 0; td.tabIndex = -1; next.focus(); }
  });
  table.draw = () => {
    const [onRow, onColumn] = o.at ? o.at() : [-1, -1];
    cells.forEach((row, r) => row.forEach((td, c) => {
      const cell = o.cell(r, c);
      td.className = cell.class + (r === onRow && c === onColumn ? " on" : r === onRow || c === onColumn && o.cross ? " row-on" : "");
      put(td, cell.html || []);
      td.tabIndex = r === Math.max(0, onRow) && c === Math.max(0, onColumn) ? 0 : -1;
      td.setAttribute("aria-label", cell.tip);
    }));
    [...body.rows].forEach((row, r) => row.classList.toggle("on", r === onRow));
    [...head.cells].forEach((th, c) => th.classList.toggle("on", c - 1 === onColumn));
  };
  table.cell = (r, c) => cells[r][c];
  table.draw();
  return table;
}

// ---- theme, and what the address says ----

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }  // "100%" is no code
}
const hash = new Map(location.hash.slice(1).split("&").filter(Boolean).map((part) => {
  const [key, ...value] = part.split("=");
  return [decoded(key), decoded(value.join("="))];
}));
function setTheme(theme) { document.documentElement.dataset.theme = theme; }
if (hash.get("theme")) setTheme(hash.get("theme"));
function themeButton() {
  const dark = () => document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" :
    matchMedia("(prefers-color-scheme: dark)").matches;
  return el("button", {type: "button", title: "Light or dark", "aria-label": "Light or dark",
    onclick: () => setTheme(dark() ? "light" : "dark")}, "◐");
}
