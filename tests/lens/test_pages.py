#!/usr/bin/env python3
"""test_pages.py LENS WRITE_PAGES [--shots DIR]: the pages in a headless Chromium.

Each page must open from disk without a message on the console and without asking for anything; its
buttons and keys must do what they say, and what the page computes by itself must agree with the engine. Without a
browser the test says so and is skipped. With --shots it also leaves pictures, wide and narrow, light and dark.
"""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import browser  # noqa: E402
import formulas  # noqa: E402
from browser import check  # noqa: E402

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'tools', 'lens', 'model')
WORDS = 'they slept and marc sang with me at home this morning'
WRONG = 'ils ont dormi et marc a chanté avec nous à la maison ce matin'
INFINITE = ('{"title":"a","ok":false,"kind":"infinite","sentence":"It is infinite.","where":"x","tensors":[{"name":"x","shape":[1,3],"words":[],'
            '"yours":["inf",1,1],"expected":[2,null,1],"expected_title":"numeric","error":"inf","tolerance":1e-6}]}')
LONGER = ('if he listens to music , he will see his bird and the girl who sings at home sees anna and our mother will talk to '
          'him at home')


def explain_page(page, name):
    level = page.ask('["#target-side small", "#target .chip small"].map((e) => document.querySelector(e).getBoundingClientRect().bottom)')
    check(abs(level[0] - level[1]) < 12, '%s: "loss" stands beside the losses: %s' % (name, level))

    def green():
        return page.ask('document.getElementById("what-if-badge").className') == 'badge good'

    check(page.ask('document.getElementById("check-badge").className') == 'badge good', name + ': all numbers are checked')
    check(green(), name + ': the browser agrees with the engine: ' + page.ask('document.getElementById("what-if-badge").textContent'))
    words, steps = page.ask('lens.data.source.length'), page.ask('lens.data.steps.length')
    check(page.ask('document.querySelectorAll("#maps table").length') == 3, name + ': three maps')
    check(page.ask('document.querySelectorAll("#maps td").length') == 3 * words * steps, name + ': a cell for each pair')
    check(page.ask('document.querySelectorAll("#jacobian td").length') == words * words + 2 * words, name + ': the Jacobian')
    if page.ask('innerWidth') >= 1280:
        tops = page.ask('[...document.querySelectorAll("#maps table")].map((t) => Math.round(t.getBoundingClientRect().top))')
        check(len(set(tops)) == 1, '%s: the three maps stand side by side: %s' % (name, tops))
        hidden = page.ask('Math.max(...[...document.querySelectorAll("#maps .scroll")].map((s) => s.scrollWidth - s.clientWidth))')
        check(hidden <= 0, '%s: all of each map is in sight: %s px hidden' % (name, hidden))
    cut = page.ask('[...document.querySelectorAll(".formula, #lesson-formula, #gains")].filter((e) => e.scrollHeight > e.clientHeight).length')
    check(cut == 0, '%s: no formula scrolls up and down: %s do' % (name, cut))
    # The columns of the product stand beside the matrix's rows, all in sight.
    rows = '[...document.querySelectorAll("#jacobian table")].map((t) => Math.round(t.tBodies[0].rows[%d].getBoundingClientRect().top))'
    for row in (0, words - 1):
        tops = page.ask(rows % row)
        check(max(tops) - min(tops) <= 1, '%s: row %d of the product is level: %s' % (name, row, tops))
    hidden = page.ask('(() => { const s = document.querySelector("#jacobian .scroll"); return s.scrollWidth - s.clientWidth; })()')
    check(hidden <= 0 or words > 12, '%s: the product is in sight: %s px hidden' % (name, hidden))
    hatched = 'document.querySelectorAll("#stations .gradient rect.none").length'
    stations = page.ask('document.querySelectorAll("#stations .card").length')
    check(page.ask(hatched) == stations - 1, name + ': gradients are hatched at first')
    page.ask('document.getElementById("backward").click()')
    check(page.ask(hatched) == 0, name + ': Backward shows them')
    check(page.ask('lens.stations.shown().gradients') == stations, name + ': at all stations')
    check(page.ask('document.querySelectorAll("#stations .check.fail").length') == 0, name + ': no station is wrong')
    tip = page.ask('(() => { const svg = document.querySelector("#stations [data-station=q] .gradient svg"), b = svg.getBoundingClientRect();'
                   ' svg.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: b.left + 2, clientY: b.top + 2}));'
                   ' return document.getElementById("tip").textContent; })()')
    check('engine' in tip and 'differences' in tip and 'off by' in tip, '%s: each element says what differences gave: %s' % (name, tip))
    page.ask('document.getElementById("forward").click()')
    check(page.ask('lens.stations.shown().gradients') == 0, name + ': Forward takes them away')
    page.press('a')
    check(page.ask(hatched) == 0, name + ': key a shows all')
    page.press('f')
    page.press('b')
    check(page.ask('lens.stations.shown().gradients') == stations, name + ': key b')
    page.ask('document.querySelector("#checks details").open = true; new Promise((done) => setTimeout(done, 50))')
    rows, listed = page.ask('document.querySelectorAll("#check-rows tr").length'), page.ask('lens.data.steps[lens.state.t].checks.length')
    check(rows == listed > 100, '%s: the numbers one by one: %s of %s' % (name, rows, listed))
    page.ask('document.querySelector("#checks details").open = false')
    # Another step: by key, by chip, by cell.
    page.ask('document.querySelectorAll("#target .chip")[1].click()')
    check(page.ask('lens.state.t') == 1, name + ': a chip chooses the step')
    page.press('ArrowLeft')
    check(page.ask('lens.state.t') == 0, name + ': arrow keys choose the step')
    page.ask('document.querySelectorAll("#maps table")[1].querySelectorAll("tbody tr")[2].cells[2].click()')
    check(page.ask('[lens.state.t, lens.state.j].join()') == '2,1', name + ': a cell chooses step and word')
    page.ask('document.querySelectorAll("#maps table")[0].querySelectorAll("tbody tr")[2].cells[2].focus()')
    page.press('ArrowRight')
    page.press('Enter')
    check(page.ask('[lens.state.t, lens.state.j].join()') == '2,2', name + ': cells by keyboard')
    # What if.
    loss = 'document.getElementById("what-result").textContent'
    before = page.ask(loss)
    page.ask('document.getElementById("what-descend").click()')
    check(page.ask(loss) != before and 'foretells' in page.ask(loss), name + ': a step down changes the loss: ' + page.ask(loss))
    page.ask('document.getElementById("what-reset").click()')
    check(page.ask(loss) == before, name + ': Reset goes back')
    page.ask('document.querySelector("#what-if input[type=checkbox]").click()')
    check(page.ask('document.querySelectorAll("#what-if .hatch").length') == 1, name + ': a masked word is hatched')
    page.ask('document.getElementById("what-reset").click()')
    check(page.messages() == [], name + ': and still nothing on the console: %s' % page.messages())


def variant_page(page, name):
    """A model of another kind: what its page computes agrees with the engine, head by head."""
    badge = page.ask('document.getElementById("what-if-badge").textContent')
    if 'layer-norm' in name:
        check(badge == 'not available', name + ': says that it cannot: ' + badge)
    else:
        check('agrees with the engine' in badge, name + ': ' + badge)
    check(page.ask('document.getElementById("check-badge").className') == 'badge good', name + ': all numbers are checked')
    page.press('b')
    check(page.ask('document.querySelectorAll("#stations .check.fail").length') == 0, name + ': no station is wrong')
    heads = page.ask('document.querySelectorAll("#head-choice button").length')
    check(heads == (2 if 'multihead' in name else 0), name + ': a button for each head')
    for head in range(heads):
        page.ask('document.querySelectorAll("#head-choice button")[%d].click()' % head)
        check(page.ask('lens.state.m') == head, name + ': head %d' % head)
    differ = page.ask('document.querySelector("#jacobian > p.small").textContent')
    if name.startswith('uniform'):
        check('has no gradient of these scores' in differ, name + ': no gradient of the scores: ' + differ)
        claims = page.ask('document.getElementById("jacobian").innerText + document.getElementById("checks").innerText')
        check('δ' not in claims and 'differ by' not in claims, '%s: and nothing is claimed of it: %s' % (name, claims))
        check(page.ask('document.querySelectorAll("#jacobian table").length') == 2, name + ': nor drawn')
    else:
        check(products_agree(differ), name + ': the Jacobian: ' + differ)


def products_agree(said):
    """With the engine's gradient of the scores, as far as the numbers of a page have digits."""
    off = re.search(r'differ by (\S+)\.$', said)
    return off and float(off[1].replace('−', '-')) < 3e-5


def wrong_page(page, name):
    """Of numbers that finite differences and the browser do not find: all badges and stations say so."""
    badges = page.ask('["check-badge", "what-if-badge"].map((id) => document.getElementById(id)).filter((e) => e).map((e) => e.className)')
    check(len(badges) == (2 if page.ask('"what_if" in lens.data') else 1) and set(badges) == {'badge bad'}, '%s: %s' % (name, badges))
    page.press('b')
    stations = page.ask('[...document.querySelectorAll("#stations .check:not(.fail)")].map((e) => e.textContent)')
    check(stations == [], '%s: stations that are not wrong: %s' % (name, stations))


def target_pieces(page):
    """Places of a target word's pieces as they are said, and as they are read, one later, <s> first."""
    of = page.ask('lens.data.words ? lens.data.words.target.word_of : lens.data.steps.map((_, t) => t)')
    said = [[t for t, word in enumerate(of) if word == w] for w in range(of[-1] + 1)]
    return said, [[0]] + [[t + 1 for t in word] for word in said[:-1]]


def transformer_page(page, name):
    """Of a Transformer: every head and part opens, and what the page computes agrees with the engine."""
    def count(selector):
        return page.ask('document.querySelectorAll("%s").length' % selector)

    def text(at):
        return page.ask('document.getElementById("%s").textContent' % at)

    badge = page.ask('document.getElementById("check-badge").className')
    check(badge == 'badge good', name + ': all numbers are checked: ' + text('check-badge'))
    check('agrees with the engine' in text('what-if-badge'), '%s: the browser agrees with the engine: %s' % (name, text('what-if-badge')))
    unmasked = 'open' in name or 'uncausal' in name
    check(page.ask('document.getElementById("future").hidden') != unmasked, name + ': gradient from the future only without the mask')
    if unmasked:
        check('sends a gradient of' in text('future'), '%s: and how much of it: %s' % (name, text('future')))
        was = 'computed without' if 'open' in name else 'trained without'
        check(was in text('future') and was in text('about'), '%s: and that it was %s: %s' % (name, was, text('about')))
    # Pieces by word; </s> is in the source, and in the target only to be said.
    said, read = target_pieces(page)
    attending = page.ask('lens.data.parts.map((p, i) => (p.scores ? i : -1)).filter((i) => i >= 0)')
    heads = page.ask('lens.data.model.heads')
    check(count('#heads button.map') == len(attending) * heads, name + ': a button for each head')
    check(count('#heads button.map.largest') == 1, name + ': the strongest is framed')
    check(page.ask('document.querySelector("#heads button.map.largest").getAttribute("aria-pressed")') == 'true', name + ': and shown first')
    for k, part in enumerate(attending):
        head = k % heads
        page.ask('document.querySelectorAll("#heads button.map")[%d].click()' % (k * heads + head))
        what = '%s: %s' % (name, text('head-title'))
        check(page.ask('[lens.state.p, lens.state.h].join()') == '%d,%d' % (part, head), what + ' is chosen')
        check(text('head-title').endswith('head %d' % (head + 1)), what)
        check(count('#maps table') == 2, what + ': weights and pull')
        hidden = sum(min(column) > max(row) for row in said for column in read)
        masked = 2 * hidden if page.ask('lens.data.parts[%d].masked' % part) else 0
        check(count('#maps td.hatch') == masked, '%s: %d masked cells in both' % (what, masked))
        check(count('#norm svg') == 4, what + ': LayerNorm in four strips')
        differ = page.ask('document.querySelector("#jacobian > p.small").textContent')
        check(products_agree(differ), what + ': the Jacobian: ' + differ)
        page.ask('document.getElementById("all").click()')
        check(count('#stations .gradient rect.none') == 0 and count('#stations .check.fail') == 0, what + ': no station is wrong')
        check(count('#stations .card') >= 9, what + ': all stations')
        off = float(page.ask('document.getElementById("head-off").textContent').replace('−', '-'))
        check(off > 0, what + ': a loss without the head')
    # A decoder's masked word can be let in: the loss changes.
    decoder = next(k for k, part in enumerate(attending) if page.ask('lens.data.parts[%d].sublayer' % part) == 'decoder')
    page.ask('document.querySelectorAll("#heads button.map")[%d].click()' % (decoder * heads))
    page.ask('document.querySelectorAll("#target .chip")[1].click()')
    check(page.ask('[lens.state.t, lens.state.i].join()') == '1,1', name + ': a chip chooses step and row')
    boxes = '[...document.querySelectorAll("#what-if input[type=checkbox]")]'
    if not unmasked:
        check(page.ask(boxes + '.filter((b) => !b.checked).length') == sum(min(column) > 1 for column in read), name + ': later words are out')
    before = text('what-result')
    page.ask(boxes + '[%d].click()' % (len(read) - 1))
    check(text('what-result') != before, '%s: a word let in changes the loss: %s' % (name, text('what-result')))
    page.press('ArrowRight')
    check(page.ask('lens.state.t') == 2, name + ': arrow keys walk through the target')
    # Parts without a head.
    check(count('#heads button.ff') == page.ask('lens.data.parts.filter((p) => !p.scores).length') > 2, name + ': a button for each')
    for k in range(count('#heads button.ff')):
        page.ask('document.querySelectorAll("#heads button.ff")[%d].click()' % k)
        check(page.ask('document.getElementById("of-head").hidden && document.getElementById("softmax-section").hidden'), name + ': no head, no softmax')
        page.ask('document.getElementById("backward").click()')
        check(count('#stations .card') >= 3 and count('#stations .check.fail') == 0, '%s: stations of %s' % (name, text('head-title')))
    page.ask('document.querySelector("#checks details").open = true; new Promise((done) => setTimeout(done, 50))')
    check(count('#check-rows tr') >= 2, name + ': the numbers one by one')
    page.ask('document.querySelectorAll("#ways td")[0].click()' if count('#ways td') else '0')
    page.ask('document.querySelectorAll("#heads button.map")[0].click()')
    bars = page.ask('[...document.querySelectorAll("#shares .track i")].map((i) => parseFloat(i.style.width))')
    check(len(bars) == 3 * page.ask('(lens.data.words ? lens.data.words.source.words : lens.data.source).length'), name + ': three shares of each word')
    check(abs(sum(bars) - 300) < 1, '%s: which add up: %s' % (name, sum(bars)))


def transformer_pieces_page(page, name):
    """A Transformer of pieces: each head's maps are sums and means of the trace's numbers, which are by piece."""
    transformer_page(page, name)
    check('columns of pieces are added' in page.ask('document.getElementById("pieces").innerText'), name + ': says that they are')
    said, read = target_pieces(page)
    of = page.ask('lens.data.words.source.word_of')
    source = [[j for j, word in enumerate(of) if word == w] for w in range(of[-1] + 1)]
    check(len(of) > len(source) and sum(map(len, said)) > len(said), name + ': some words have several pieces')
    off, seen = [], 0
    for k, part in enumerate(page.ask('lens.data.parts.map((p, i) => (p.scores ? i : -1)).filter((i) => i >= 0)')):
        page.ask('document.querySelectorAll("#heads button.map")[%d].click()' % (2 * k + 1))
        data = page.ask("""(() => { const p = lens.data.parts[%d], g = lens.data.steps[lens.state.t].parts[%d], plain = (rows) => Array.from(rows, (row) => [...row]);
            return {rows: p.rows, columns: p.columns, masked: p.masked, weights: plain(p.weights[1]), delta: plain(g.score_gradient[1])}; })()""" % (part, part))
        rows, columns = source if data['rows'] == 'source' else said, read if data['columns'] == 'target' else source
        check(page.ask('[...document.querySelector("#maps table").rows].length - 1') == len(rows), '%s: %d rows' % (name, len(rows)))
        for r, row in enumerate(rows):
            for c, column in enumerate(columns):
                tips = page.ask('[0, 1].map((map) => document.querySelectorAll("#maps table")[map].cell(%d, %d).getAttribute("aria-label"))' % (r, c))
                pairs = [(i, j) for i in row for j in column if not data['masked'] or j <= i]
                if not pairs:
                    off += [] if all('masked' in tip for tip in tips) else [tips]
                    continue
                weight = sum(data['weights'][i][j] for i, j in pairs) / len(row)
                pulls = -sum(data['delta'][i][j] for i, j in pairs if i < len(data['delta']))
                seen += 1
                if not near(tips[0].split('weight ')[1], weight) or not near(tips[1].split('pull ')[1], pulls):
                    off.append((r, c, tips, weight, pulls))
    check(seen > 50 and not off, '%s: weights are added by column and averaged by row, pulls added: %s' % (name, off[:2]))
    page.ask('document.querySelectorAll("#maps table")[0].cell(1, 1).click()')
    check(page.ask('lens.state.j') in source[1] and page.ask('lens.state.i') in said[1], name + ': a cell chooses a piece of each word')
    check(page.messages() == [], name + ': and nothing on the console: %s' % page.messages())


def near(said, value):
    return abs(float(said.replace('−', '-').replace('NaN', 'nan')) - value) <= 6e-3 * abs(value) + 1e-12


def pieces_page(page, name):
    """A model of pieces: the maps' numbers are sums and means of the trace's, which are by piece."""
    variant_page(page, name)
    about = page.ask('document.getElementById("pieces").innerText')
    check('columns of pieces are added' in about and '▁ is the space before a word' in about, name + ': says that they are')
    page.ask('document.querySelectorAll("#head-choice button")[0].click()')
    formulas.explained_pull(page, name)
    data = page.ask('({words: lens.data.words, steps: lens.data.steps.map((s) => s.heads[0])})')
    source, target = data['words']['source'], data['words']['target']
    check(len(source['word_of']) > len(source['words']), name + ': some words have several pieces')

    def pieces(side, word):
        return [i for i, w in enumerate(side['word_of']) if w == word]

    off = []
    for t in range(len(target['words'])):
        for j in range(len(source['words'])):
            tips = page.ask('[0, 1].map((map) => document.querySelectorAll("#maps table")[map].cell(%d, %d).getAttribute("aria-label"))' % (t, j))
            pairs = [(s, p) for s in pieces(target, t) for p in pieces(source, j)]
            weight = sum(data['steps'][s]['weights'][p] for s, p in pairs) / len(pieces(target, t))
            pull = -sum(data['steps'][s]['score_gradient'][p] for s, p in pairs)
            if not near(tips[0].split('weight ')[1], weight) or not near(tips[1].split('pull ')[1], pull):
                off.append((t, j, tips, weight, pull))
    check(not off, '%s: weights are added by column and averaged by row, pulls added: %s' % (name, off[:2]))
    # What is chosen: a piece by its chip, a word's strongest by a cell; its stations are the piece's.
    last = pieces(source, 1)[-1]
    page.ask('document.querySelector("#source [data-at=\\"%d\\"]").click()' % last)
    check(page.ask('[lens.state.j, lens.state.piece].join()') == '1,%d' % last, name + ': a chip chooses a piece')
    check(' of cat' in page.ask('document.querySelector("#stations [data-station=e] .forward").textContent'), name + ': a piece is named by its word')
    page.ask('document.querySelectorAll("#maps table")[0].cell(1, 3).click()')
    check(page.ask('lens.state.j') == 3 and page.ask('lens.state.t') in pieces(target, 1), name + ': a cell chooses a word')
    check(page.ask('lens.state.piece') in pieces(source, 3), name + ': and one of its pieces')
    # What if: a word's pieces move together, and a step along its score does what the sum of their gradients says.
    before = page.ask('document.getElementById("what-result").textContent')
    page.ask('(() => { const r = document.querySelectorAll("#what-if input[type=range]")[1]; r.value = +r.value + 0.01; r.dispatchEvent(new Event("input")); })()')
    said = page.ask('document.getElementById("what-result").textContent').replace('−', '-')
    told, is_it = (float(said.split(part)[1].split()[0].rstrip('.;')) for part in ('a change of ', 'it is '))
    check(said != before and abs(told - is_it) <= 0.05 * abs(is_it) + 1e-9, '%s: moving a word: %s' % (name, said))
    page.ask('document.querySelectorAll("#what-if input[type=checkbox]")[1].click()')
    check(page.ask('document.querySelectorAll("#what-if .hatch").length') == 1, name + ': a masked word is hatched')
    check(page.messages() == [], name + ': and nothing on the console: %s' % page.messages())


def unknown_page(page, name):
    variant_page(page, name)
    marked = page.ask('[...document.querySelectorAll("#maps th.unknown")].map((th) => th.textContent).join()')
    check(marked.startswith('Zork <unk>,Con… <unk>'), '%s: unknown words are marked: %s' % (name, marked))
    check(page.ask('[...document.querySelectorAll("#source .chip.unknown")].map((c) => c.textContent).join()') == 'Zork <unk>,Constantinople <unk>',
          name + ': in the strip, too')


def with_formulas(use):
    def both(page, name):
        variant_page(page, name)
        use(page, name)
    return both


def pieces_shown_page(page, name):
    variant_page(page, name)
    said = page.ask('document.body.innerText')
    for words in ('How one piece\'s error', '▁ is the space before a word', 'Rows are target pieces, columns source pieces'):
        check(words in said, '%s: says "%s"' % (name, words))
    check(page.ask('document.querySelector("#gains .h").textContent') == 'piece', name + ': the list is of pieces')
    check(page.ask('wordsOf({source: ["▁", "▁a"]}, "source").map(({name}) => name).join()') == '▁ (space),▁a', name + ': the mark of a space alone can be seen')


def flow_page(page, name):
    check(page.ask('document.getElementById("check-badge").className') == 'badge good', name + ': checked by differences')
    answer = 'document.getElementById("answer").textContent'
    seen = {page.ask(answer)}
    for group in ('cells', 'directions'):
        for button in range(page.ask('document.querySelectorAll("#%s button").length' % group)):
            page.ask('document.querySelectorAll("#%s button")[%d].click()' % (group, button))
            seen.add(page.ask(answer))
            check(page.ask('document.querySelectorAll("svg polyline").length') == 4, name + ': two lines in two charts')
    check(len(seen) == 4, name + ': cells and directions make a difference: %d' % len(seen))
    page.ask('document.getElementById("length").focus()')
    page.press('ArrowRight')
    check(page.ask('lens.state.length') == 35, name + ': the length by keyboard')
    check(page.ask(answer) not in seen, name + ': the length makes a difference')
    check(page.ask('document.querySelectorAll("#chart rect").length') == 3 * 35, name + ': three ways at each word')
    check(page.ask('document.querySelectorAll("#maps svg").length') == 2, name + ': the map is there twice')
    check(page.ask('document.querySelectorAll("#maps rect:not(.cursor-cell)").length') == 2 * 4 * 35, name + ': a cell for each pair')
    check(page.ask('document.querySelectorAll("#maps .odd").length') == 0, name + ': no NaN in the maps')
    # The cursor, by keyboard, in chart and maps.
    here = 'document.getElementById("here").textContent'
    before = page.ask(here)
    page.ask('document.querySelector("#chart svg").focus()')
    page.press('ArrowRight')
    check(page.ask('lens.state.j') == 1 and page.ask(here) != before, name + ': arrow keys go to the next word')
    for _ in range(32):
        page.press('ArrowRight')
        shares = [int(share) for share in re.findall(r'(\d+) %', page.ask(here))]
        check(len(shares) == 3 and sum(shares) == 100, name + ': the ways are the whole: %s' % shares)
    page.ask('document.querySelectorAll("#maps svg")[1].focus()')
    page.press('ArrowDown')
    check(page.ask('lens.state.t') == 1, name + ': and to the next target word')
    check('target word 2' in page.ask('document.getElementById("tip").textContent'), name + ': whose numbers are said')
    # From fresh networks to the trained one, and its sentence's words.
    page.ask('document.querySelectorAll("#weights button")[1].click()')
    check(page.ask('lens.state.weights') == 'trained' and page.ask('lens.state.directions') == 2, name + ': the trained model')
    page.ask('document.querySelectorAll("#texts button")[0].click()')
    check(page.ask('lens.state.sentence') and 'apples' in page.ask('document.getElementById("chart").textContent'), name + ': its words are on the axis')
    page.ask('document.querySelectorAll("#texts button")[1].click()')
    check(not page.ask('lens.state.sentence'), name + ': random words')
    page.ask('document.querySelectorAll("#weights button")[0].click()')
    check(page.ask('lens.state.weights') == 'fresh', name + ': and back')


def flow_model_page(page, name):
    check(page.ask('document.getElementById("check-badge").className') == 'badge good', name + ': checked by differences')
    check(page.ask('lens.state.sentence') and page.ask('lens.state.weights') == 'trained', name + ': the sentence first')
    shown = page.ask('document.getElementById("chart").textContent')
    check(all(word in shown for word in ('they', 'slept', 'marc')), name + ': its words on the axis')
    check('ils' in page.ask('document.getElementById("maps").textContent'), name + ': and those of the target')
    check(page.ask('document.getElementById("by-length").hidden'), name + ': one length')
    check('the short cut stopped' in page.ask('document.getElementById("answer").textContent'), name + ': says what is compared')
    page.ask('document.querySelectorAll("#texts button")[1].click()')
    check(not page.ask('document.getElementById("by-length").hidden'), name + ': many lengths of random words')
    page.ask('document.querySelectorAll("#weights button")[0].click()')
    check('without attention' in page.ask('document.getElementById("answer").textContent'), name + ': and fresh networks')


def flow_transformer_page(page, name):
    check(page.ask('document.getElementById("check-badge").className') == 'badge good', name + ': checked by differences')
    check(page.ask('lens.state.weights') == 'trained' and page.ask('lens.state.length') == 10, name + ': what it is told to show')
    check(page.ask('document.querySelectorAll("#chart rect").length') == 2 * 10, name + ': two ways at each word')
    check(page.ask('document.getElementById("recurrent").hidden'), name + ': there is no third')
    said = page.ask('document.body.innerText')
    check('Without attention' not in said, name + ': nothing is without attention')
    check('At the words’ vectors' in said and 'At the encoder’s states' in said, name + ': says where the maps are')
    page.ask('document.querySelector("#maps svg").focus()')
    page.press('ArrowRight')
    check('at the encoder’s states 10^' in page.ask('document.getElementById("tip").textContent'), name + ': and its numbers')
    page.ask('document.querySelectorAll("#weights button")[0].click()')
    check('fresh networks' in page.ask('document.getElementById("setup").textContent'), name + ': fresh networks of its shape')


def depth_page(page, name):
    check(page.ask('document.getElementById("check-badge").className') == 'badge good', name + ': checked by differences')
    check(page.ask('lens.state.layers') == 24, name + ': the deepest first')
    lines = 'document.querySelectorAll("#%s polyline").length'
    for chart in ('chart', 'depths', 'lasts', 'apart'):
        check(page.ask(lines % chart) == 6, '%s: a line a kind in #%s' % (name, chart))
    answer = 'document.getElementById("answer").textContent'
    seen = {page.ask(answer)}
    page.ask('document.querySelectorAll("#quantities button")[1].click()')
    seen.add(page.ask(answer))
    page.ask('document.getElementById("depth").focus()')
    page.press('ArrowLeft')
    check(page.ask('lens.state.layers') == 20, name + ': the depth by keyboard')
    seen.add(page.ask(answer))
    check(len(seen) == 3, name + ': quantity and depth make a difference')
    here = 'document.getElementById("here").textContent'
    before = page.ask(here)
    page.ask('document.querySelector("#chart svg").focus()')
    page.press('ArrowRight')
    check(page.ask('lens.state.layer') == 1 and page.ask(here) != before, name + ': arrow keys go to the next layer')
    page.ask('document.querySelector("#depths svg").focus()')
    page.press('ArrowRight')
    check(page.ask('lens.state.layers') == 24, name + ': and change the depth')
    page.ask('document.querySelector("#kinds button").click()')
    check(page.ask(lines % 'chart') == 5, name + ': a kind can be taken out')
    page.ask('document.querySelector("#kinds button").click()')
    check(page.ask(lines % 'chart') == 6, name + ': and put back')


def graph_page(page, name):
    check(page.ask('document.getElementById("check-badge").className') == 'badge good', name + ': checked by differences')
    modules, edges = page.ask('lens.data.modules.length'), 'document.querySelectorAll("#graph .edge").length'
    shown = 'document.querySelectorAll("#graph .op").length'
    check(page.ask('document.querySelectorAll("#graph .module").length') == modules, name + ': a box for each module')
    check(page.ask(shown) > 5, name + ': the attention is open')
    linears = page.ask('[...document.querySelectorAll("#graph .op text:not(.quiet)")].map((t) => t.textContent).filter((t) => t.startsWith("linear"))')
    check(linears == ['linear query', 'linear key'], '%s: products are named by their parameters: %s' % (name, linears))
    overflows = 'document.getElementById("graph").scrollWidth - document.getElementById("graph").clientWidth'
    check(page.ask('document.getElementById("sideways").hidden') == (page.ask(overflows) <= 1), name + ': says that it scrolls where it does')
    used = page.ask('document.querySelector("#graph svg").clientWidth / document.getElementById("graph").clientWidth')
    check(used > 0.6, '%s: the graph uses its room: %s' % (name, used))
    opened = page.ask(edges)
    page.ask('document.getElementById("close").click()')
    check(page.ask(shown) == 0 and page.ask(edges) < opened, name + ': Close all')
    page.ask('document.querySelector("#graph .module").focus()')
    page.press('Enter')
    check(page.ask(shown) == 1, name + ': a module opens by keyboard')
    widths = 'document.getElementById("widths").innerHTML'
    before = page.ask(widths)
    check(page.ask('document.querySelectorAll("#widths line").length') == 4, name + ': a scale of widths')
    page.ask('document.getElementById("open-step").click()')
    check(page.ask(shown) > 10, name + ': Open this step')
    check(page.ask(widths) == before, name + ': which stays when modules open')
    check(page.ask('document.querySelectorAll("#graph .off").length') == 0, name + ': everything is on')
    page.ask('document.querySelectorAll("#words button")[1].click()')
    off = page.ask('document.querySelectorAll("#graph .edge.off").length')
    check(0 < off < page.ask(edges), name + ': only the paths from one word: %d off' % off)
    page.ask('document.querySelectorAll("#words button")[0].click()')
    page.ask('document.getElementById("close").click()')
    page.ask('document.querySelectorAll("#graph .module")[%d].dispatchEvent(new MouseEvent("click", {bubbles: true}))' % (modules - 4))


def check_pages(wrong):
    """Of operations of the library, which are right, or of a lesson's starter, which is not."""
    def use(page, name):
        checks = page.ask('lens.data.checks.length')
        check(page.ask('document.getElementById("check-badge").className') == ('badge bad' if wrong else 'badge good'), name + ': the verdict')
        titles = page.ask('[...document.querySelectorAll("#maps h3")].map((h) => h.textContent).join()')
        check(titles == 'yours,numeric,difference' if wrong else titles.startswith('backward and numeric, equal to '),
              '%s: three heat maps, or one where they are equal: %s' % (name, titles))
        outlined = page.ask('[...document.querySelectorAll("#maps table")].map((t) => t.querySelectorAll("td.wrong").length).join()').split(',')
        check(len(set(outlined)) == 1 and (int(outlined[0]) > 0) == wrong, '%s: what differs is outlined, nothing else: %s' % (name, outlined))
        zeros = page.ask('''(() => { let wrong = 0;
          for (const chip of document.querySelectorAll("#checks button")) {
            chip.click();
            const t = lens.data.checks[lens.state.at].tensors[lens.state.input];
            document.querySelectorAll("#maps > div:first-child .figure").forEach((f, i) => { wrong += f.textContent === "0" && t.yours[i] !== 0; });
          }
          document.querySelector("#checks button").click();
          return wrong; })()''')
        check(zeros == 0, '%s: only what is 0 is written as 0: %s' % (name, zeros))
        if wrong:
            said = page.ask('document.getElementById("sentence").textContent')
            check('Only the value path is there' in said, '%s: the diagnosis in a sentence: %s' % (name, said))
            inputs = page.ask('document.querySelectorAll("#inputs button").length')
            check(inputs == 5, '%s: a button for each input: %s' % (name, inputs))
            page.ask('document.querySelectorAll("#inputs button")[3].click()')
            check(page.ask('lens.state.input') == 3, name + ': another input')
        else:
            check(page.ask('document.querySelectorAll("#checks button").length') == checks > 5, name + ': a button for each check')
            page.press('ArrowRight')
            check(page.ask('lens.state.at') == 1, name + ': arrow keys go on')
            page.ask('document.querySelectorAll("#checks button")[4].click()')
            check(page.ask('lens.state.at') == 4, name + ': a button chooses')
    return use


def check_infinite_page(page, name):
    """What is infinite differs from what is not; what was not computed from nothing."""
    outlined = page.ask('[...document.querySelector("#maps table").querySelectorAll("td")].map((td) => td.classList.contains("wrong") ? 1 : 0).join("")')
    check(outlined == '100', '%s: %s' % (name, outlined))


def graph_transformer_page(page, name):
    """A Transformer's graph: the strongest head is open, heads open and close by mouse and keyboard."""
    check(page.ask('document.getElementById("check-badge").className') == 'badge good', name + ': checked by differences')
    check(page.ask('document.querySelectorAll("#graph .module").length') == page.ask('lens.data.modules.length'), name + ': a box for each module')
    shown, heads = ('document.querySelectorAll("#graph %s").length' % what for what in ('.op', '[data-head]'))
    check(page.ask(heads) == 4 and page.ask('document.querySelectorAll("#graph [data-head][aria-expanded=true]").length') == 1, name + ': four heads, one is open')
    names = page.ask('[...document.querySelectorAll("#graph .op text:not(.quiet)")].map((t) => t.textContent)')
    check('softmax' in names and 'linear out_proj' in names and 'head 4' in names, '%s: operations and heads by name: %s' % (name, names))
    opened = page.ask(shown)
    page.ask('document.querySelector("#graph [data-head][aria-expanded=true]").dispatchEvent(new MouseEvent("click", {bubbles: true}))')
    check(page.ask(shown) == opened - 8 and page.ask(heads) == 4, name + ': a head closes by mouse')
    page.ask('document.querySelectorAll("#graph [data-head]")[2].focus()')
    page.press('Enter')
    check(page.ask(shown) == opened, name + ': and opens by keyboard')
    check(page.ask('document.activeElement.dataset.head.endsWith(" 2")'), name + ': where the keyboard stays')
    check('head 3' in page.ask('document.getElementById("tip").textContent'), name + ': whose tip says which: ' + page.ask('document.getElementById("tip").textContent'))
    page.ask('document.getElementById("close").click()')
    check(page.ask(shown) == 0, name + ': Close all')
    graph_variant(page, name)


def graph_variant(page, name):
    page.ask('document.getElementById("open-step").click()')
    operations = page.ask('document.querySelectorAll("#graph .op").length')
    check(operations > 10, name + ': Open this step')
    check(page.ask('document.querySelectorAll("#graph .op rect:not(.box)").length') > operations, name + ': strips of numbers')
    words = page.ask('document.querySelectorAll("#words button").length') - 1
    if 'pieces' in name and 'shown' not in name:
        check(words < page.ask('lens.data.source.length'), name + ': words have several pieces')
        heads = page.ask('[...document.querySelectorAll("#graph text.head")].map((t) => t.textContent).join()')
        check(heads.startswith('the,cat,eats,fish,</s>,'), '%s: columns stand under words: %s' % (name, heads))
        check('pieces stand under it' in page.ask('document.getElementById("pieces").innerText'), name + ': and it says so')
    else:
        check(words == page.ask('lens.data.source.length'), name + ': a button for each word')
    for word in range(1, words + 1):
        page.ask('document.querySelectorAll("#words button")[%d].click()' % word)
        off = page.ask('document.querySelectorAll("#graph .module.off").length')
        check(0 < off < page.ask('lens.data.modules.length'), '%s: the paths from word %d: %d off' % (name, word, off))


def diff_page(page, name):
    rows = 'document.querySelectorAll("#%s tbody tr").length'
    check(page.ask(rows % 'scores') == 3, name + ': three scores')
    check(page.ask('document.querySelectorAll("#scores circle").length') == 6, name + ': of both, drawn')
    check(page.ask('document.querySelector("#lengths tbody tr").cells[2].textContent') == str(page.ask('lens.data.won')), name + ': sentences won')
    check(page.ask(rows % 'lengths') == 1 + page.ask('lens.data.by_length.length') > 2, name + ': a row for each length')
    check(page.ask(rows % 'frequencies') == page.ask('lens.data.by_frequency.length') > 0, name + ': a row for each frequency')
    shown = 'document.querySelectorAll("#sentences .sentence").length'
    check(page.ask(shown) == 20, name + ': some sentences')
    gains = '[...document.querySelectorAll("#sentences .gain")].map((e) => Number(e.textContent.replace("−", "-")))'
    check(page.ask(gains) == sorted(page.ask(gains)), name + ': what B loses most comes first')
    page.ask('(() => { const o = document.getElementById("order"); o.value = "won"; o.dispatchEvent(new Event("change")); })()')
    check(page.ask(gains) == sorted(page.ask(gains), reverse=True) and page.ask(gains)[0] > 0, name + ': or what it wins')
    page.ask('document.getElementById("more").click()')
    check(page.ask(shown) > 20, name + ': More')
    page.ask('(() => { const s = document.getElementById("search"); s.value = "NUMBER 7"; s.dispatchEvent(new Event("input")); })()')
    found = page.ask('[...document.querySelectorAll("#sentences .sentence")].map((e) => e.children[2].textContent)')
    check(found == ['sentence number 7 and some more'], '%s: letters find their sentences: %s' % (name, found))
    others = page.ask('[...document.querySelectorAll("#sentences .other")].map((e) => e.textContent)')
    check(others == ['non', 'sept'], '%s: words in no reference are marked, where they stand: %s' % (name, others))
    check(page.ask('document.getElementById("left-out").hidden'), name + ': no line was left out')


def diff_of_one_page(page, name):
    """Of two lines one is no pair: the page tells that it was left out."""
    about = page.ask('document.getElementById("about").textContent')
    check('. 1 sentence: B translates' in about, '%s: one is no sentences: %s' % (name, about))
    said = page.ask('document.getElementById("left-out").innerText')
    check(said.startswith('1 line of the pairs was left out, since something is wrong with it: '), '%s: what was left out: %s' % (name, said))


def written(shop, name, lines):
    path = os.path.join(shop.work, name)
    with open(path, 'w', encoding='utf-8') as f:
        f.writelines(line + '\n' for line in lines)
    return path


def made_diff_of_one(shop):
    files = [written(shop, 'one.' + name, lines) for name, lines in (('a', ['un chat', '?']), ('b', ['le chat', '?']), ('tsv', ['the cat\tle chat', 'no tab']))]
    return shop.make('diff-of-one', 'diff', *files, status=1)


def made_diff(shop):
    """Two systems on thirty sentences; sentence 7 has words that its reference lacks."""
    def write(name, line):
        return written(shop, name, [line(i) for i in range(30)])

    pairs = write('diff.tsv', lambda i: 'sentence number %d%s\tphrase numéro %d' % (i, ' and some more' * (i % 3), i))
    a = write('diff.a', lambda i: 'phrase numéro %d' % (i if i % 3 else 99) if i != 7 else 'phrase, non, numéro 7')
    b = write('diff.b', lambda i: 'phrase numéro %d' % (i if i % 2 else 98) if i != 7 else 'Phrase numéro sept')
    return shop.make('diff', 'diff', a, b, pairs)


def made_wrong(shop, name):
    """The page of this name with other losses and errors."""
    with open(os.path.join(shop.work, name + '.html'), encoding='utf-8') as f:
        return written(shop, name + '-wrong.html', [re.sub(r'"(worst|loss)":[-.e\d]+', r'"\1":99', f.read())])


def refusals(shop):
    """Errors begin with the program's name, once, and say what could not be written."""
    one = written(shop, 'one.pair', ['he sings\til chante'])
    for arguments, said in ((['explain', '--out', '/dev/full'], 'lens: /dev/full cannot be written: No space left on device\n'),
                            (['explain', '--out', '-'], 'lens: standard output cannot be written: No space left on device\n'),
                            (['explain', '--text'], 'lens: standard output cannot be written: No space left on device\n'),
                            (['blame', MODEL, one], 'lens: standard output cannot be written: No space left on device\n')):
        with open('/dev/full', 'w') as full:
            ran = subprocess.run([shop.lens, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
        check(ran.returncode == 1 and ran.stderr == said, '%s: %s' % (arguments, ran))
    some = written(shop, 'some.pair', ['he sings\til chante', 'no tab'])
    red = os.path.join(shop.work, '\x1b[31mred')
    os.symlink(os.path.abspath(MODEL), red)
    for model, pairs, code in ((MODEL, one, 0), (MODEL, some, 1), (red, one, 0)):  # 1: a line was left out
        ran = subprocess.run([shop.lens, 'blame', model, pairs], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check(ran.returncode == code and ', 1 sentence: 3 target words' in ran.stdout, 'one sentence: %s' % ran)
        check('\x1b' not in ran.stdout, 'a name that acts on the terminal: %s' % ran)


def pages(shop):
    refusals(shop)
    lesson = os.path.join(shop.work, 'lesson.html')
    subprocess.run([shop.lens, 'lesson', '9', '--quiet', '--folder', os.path.join(shop.work, 'lessons'), '--out', lesson],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    variants = os.path.join(shop.work, 'variants')
    os.mkdir(variants)
    made = subprocess.run([sys.argv[2], variants], check=True, stdout=subprocess.PIPE, text=True).stdout
    print(''.join(line for line in made.splitlines(True) if line.startswith('[skipped]')), end='')
    return [('explain', shop.make('explain', 'explain'), explain_page, True),
            ('explain-long', shop.make('explain-long', 'explain', WORDS, '--target', WRONG), explain_page, True),
            ('explain-longer', shop.make('explain-longer', 'explain', LONGER), explain_page, True),
            ('transformer', shop.make('transformer', 'explain', '--transformer'), transformer_page, True),
            ('transformer-long', shop.make('transformer-long', 'explain', '--transformer', WORDS, '--target', WRONG), transformer_page, True),
            ('check', shop.make('check', 'check', 'softmax', 'linear', 'additive_attention'), check_pages(False), True),
            ('check-wrong', lesson, check_pages(True), True),
            ('check-infinite', shop.make('check-infinite', 'check', '--from', written(shop, 'infinite.log', [INFINITE]), status=1), check_infinite_page, False),
            ('flow', shop.make('flow', 'flow', '--seeds', '3'), flow_page, True),
            ('flow-model', shop.make('flow-model', 'flow', MODEL, WORDS, '--target', WRONG, '--seeds', '2'), flow_model_page, True),
            ('depth', shop.make('depth', 'flow', '--depth', '--seeds', '2'), depth_page, True),
            ('diff', made_diff(shop), diff_page, True),
            ('diff-of-one', made_diff_of_one(shop), diff_of_one_page, True),
            ('graph', shop.make('graph', 'graph', '--step', '5'), graph_page, True),
            ('graph-transformer', shop.make('graph-transformer', 'graph', '--transformer'), graph_transformer_page, True)] + [
                (name + '-wrong', made_wrong(shop, name), wrong_page, False) for name in ('explain', 'transformer', 'flow', 'depth', 'graph')] + [
                (name, os.path.join(variants, name), graph_variant if name.startswith('graph-') else transformer_pieces_page if name == 'transformer-pieces.html' else transformer_page if name.startswith('transformer-') else
                 {'flow-transformer.html': flow_transformer_page, 'multihead-pieces.html': pieces_page, 'unknown.html': unknown_page, 'pieces-shown.html': pieces_shown_page,
                  'temperature.html': with_formulas(formulas.formula_page), 'multihead-bahdanau.html': with_formulas(formulas.formula_page),
                  'repeated.html': with_formulas(formulas.repeated_page), **{kind + '.html': with_formulas(formulas.attention_page) for kind in formulas.FORMULAS}}.get(name, variant_page), name == 'unknown.html') for name in sorted(os.listdir(variants))]


if __name__ == '__main__':
    sys.exit(browser.run(sys.argv[1], sys.argv[3:], pages))
