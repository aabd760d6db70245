#!/usr/bin/env python3
"""test_serve_page.py LENS TRANSLATOR [--shots DIR]: the page of `lens serve` in a headless Chromium.

Types, masks, forces, draws, opens the beam and an explanation, with the mouse and with the keyboard alone, wide and at 380 pixels,
light and dark: without a message on the console, and without asking anybody but its server. Without a browser the test says so
and is skipped.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
import browser  # noqa: E402
import served  # noqa: E402
import test_hostile_pages  # noqa: E402
from browser import check  # noqa: E402

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'tools', 'lens', 'model')
READY = 'window.lens'
COLUMN = 'lens.state.columns[%d]'


class Served(browser.Page):
    """A page whose columns are waited for."""

    def settled(self, what, column=0, condition='true'):
        found = self.ask('''(async () => { for (let i = 0; i < 200; ++i) {
            const c = lens.state.columns[%d];
            if (c && c.end && !c.running && (%s)) return true;
            if (c && c.parts.fault.textContent) return "fault: " + c.parts.fault.textContent;
            await new Promise((done) => setTimeout(done, 50)); }
            return "waited for in vain"; })()''' % (column, condition))
        check(found is True, '%s: %s' % (what, found))

    def type(self, text):
        for c in text:
            self.send('Input.insertText', text=c)

    def key(self, key, shift=False):
        codes = {'Tab': 9, 'Enter': 13, ' ': 32, 'ArrowLeft': 37, 'ArrowRight': 39, 'ArrowDown': 40, 'ArrowUp': 38}
        text = {'Enter': '\r', ' ': ' '}.get(key, '')
        for kind in ('keyDown', 'keyUp'):
            self.send('Input.dispatchKeyEvent', type=kind, key=key, code={' ': 'Space'}.get(key, key), windowsVirtualKeyCode=codes[key],
                      modifiers=8 if shift else 0, text=text if kind == 'keyDown' else '')

    def tab_to(self, condition, most=60):
        """Goes on with Tab until document.activeElement, as e, is what is looked for."""
        for _ in range(most):
            if self.ask('((e) => !!e && (%s))(document.activeElement)' % condition):
                return True
            self.key('Tab')
        return False

    def were_refused(self, what, requests):
        """That a request was refused is on the console of every browser, if not always at once: here it is no fault."""
        for _ in range(200):
            logged = [e for e in self.browser.events if '422' in str(e.get('params', {}).get('entry', {}).get('text'))]
            if len(logged) == requests:
                self.browser.events[:] = [e for e in self.browser.events if e not in logged]
                return
            self.ask('new Promise((done) => setTimeout(done, 50))')
        check(False, '%s: %d refused requests are on the console, and not %d' % (what, requests, len(logged)))

    def opened(self, what, address):
        check(self.messages() == [], '%s: nothing on the console: %s' % (what, self.messages()))
        others = [u for u in self.requests() if not u.startswith(address)]
        check(others == [], '%s: asks nobody but its server: %s' % (what, others))
        wider = self.ask('document.documentElement.scrollWidth - innerWidth')
        check(wider <= 0, '%s: nothing sticks out sideways: %s px' % (what, wider))
        text = self.ask('document.body.innerText')
        for bad in ('undefined', '[object', 'NaN'):
            check(bad not in text, '%s: no %s in the text' % (what, bad))
        browser.prints(self, what)


def tree_is_there(page, what):
    found = page.ask('''(async () => { for (let i = 0; i < 200 && !document.querySelector(".tree ol"); ++i) await new Promise((done) => setTimeout(done, 50));
        return document.querySelectorAll(".tree li").length; })()''')
    check(found > 3, what + ': the beam is there')


def translation(page, column=0):
    return page.ask(COLUMN % column + '.end.translation')


def set_value(page, element, value, event='input'):
    page.ask('(() => { const e = document.getElementById("%s"); e.value = "%s"; e.dispatchEvent(new Event("%s", {bubbles: true})); })()' % (element, value, event))


def use(page, what, transformer):
    """Everything that the page is for, with the mouse."""
    page.settled(what + ': the first sentence')
    check(translation(page) == "il n'aime pas les pommes", '%s: it is translated: %s' % (what, translation(page)))
    words = 'document.querySelectorAll("#columns section:first-child .word").length'
    check(page.ask(words) == 7, '%s: a button for each word, and </s>: %s' % (what, page.ask(words)))
    check(page.ask('document.querySelectorAll("#columns section:first-child table.heat td").length') == 7 * 5, what + ': and its attention')
    said = page.ask('document.querySelector("#columns section").innerText')
    check('weight 0' in said and 'orange: less than 50 %' in said, what + ': and what its colours mean')
    live = page.ask('document.querySelector(".result").getAttribute("aria-live")')
    check(live == 'polite', what + ': it is read out')
    check('mean over' not in said, what + ': one attention is a mean of none')

    # A model that takes its time: what is still there is of the question before.
    page.ask('(() => { const asked = window.fetch; window.fetch = async (...all) => { window.fetch = asked;'
             ' await new Promise((done) => setTimeout(done, 1500)); return asked(...all); }; lens.state.columns[0].ask(true); })()')
    busy = 'document.querySelector("#columns section").getAttribute("aria-busy")'
    check(page.ask(busy) != 'true', what + ': a quick answer is not waited for aloud')
    page.ask('new Promise((done) => setTimeout(done, 900))')
    check(page.ask(busy) == 'true', what + ': a slow one is')
    shown = page.ask('getComputedStyle(document.querySelector("#columns section h2"), "::after").content')
    check('waiting' in shown, '%s: and says so: %s' % (what, shown))
    page.settled(what + ': it has come')
    check(page.ask(busy) == 'false', what + ': and is waited for no longer')

    # Another sentence, as it is typed.
    set_value(page, 'text', 'she sings')
    page.settled(what + ': typed', 0, 'c.source.words.join(" ") === "she sings"')
    check(translation(page) == 'elle chante', '%s: the new one: %s' % (what, translation(page)))

    # Force another word.
    page.ask('document.querySelector("#columns section .word").click()')
    check(page.ask('document.querySelectorAll("#columns section:first-child .others button").length') == 8, what + ': what it might have said')
    page.ask('document.querySelectorAll("#columns section:first-child .others button")[1].click()')
    page.settled(what + ': forced', 0, 'c.tokens.length && c.tokens[0].forced')
    forced = translation(page)
    check(not forced.startswith('elle'), '%s: it says something else: %s' % (what, forced))
    check(page.ask('document.querySelectorAll("#columns section:first-child .word.forced").length') == 1, what + ': which is marked')
    page.ask('(() => { const c = lens.state.columns[0]; c.choose(1); const f = c.element.querySelector(".force");'
             ' f.querySelector("input").value = "parle"; f.requestSubmit(); })()')
    page.settled(what + ': a word that was typed', 0, 'c.words[1] === "parle"')
    page.ask('document.querySelector("#columns section:first-child .undo").click()')
    page.settled(what + ': let go', 0, 'c.end.translation === "elle chante"')
    page.ask('(() => { const c = lens.state.columns[0]; c.choose(0); const f = c.element.querySelector(".force");'
             ' f.querySelector("input").value = "zork"; f.requestSubmit(); })()')
    page.ask('new Promise((done) => setTimeout(done, 600))')
    fault = page.ask(COLUMN % 0 + '.parts.fault.textContent')
    check('not in the model' in fault, '%s: a word it does not know is refused: %s' % (what, fault))
    check(translation(page) == 'elle chante', '%s: and the answer before stays: %s' % (what, translation(page)))
    check(page.ask('document.querySelector("#columns section:first-child .undo") === null'), what + ': as if it had not been asked')
    page.were_refused(what, 1)
    page.ask('(() => { const c = lens.state.columns[0]; c.release(); c.ask(); })()')
    page.settled(what + ': and it goes on')

    # Mask a word.
    page.ask('document.querySelectorAll("#columns section:first-child .chips")[0].children[0].click()')
    page.settled(what + ': masked', 0, 'c.rows[0] && c.rows[0][0] === 0')
    check(page.ask('document.querySelectorAll("#columns section:first-child td.hatch").length') > 0, what + ': a masked column is hatched')
    page.ask(COLUMN % 0 + '.choose(1)')
    check('no word is masked' in page.ask('document.querySelector("#columns section:first-child .force").textContent'), what + ': its explanation knows no masks')
    page.ask('document.querySelectorAll("#columns section:first-child .chips")[0].children[0].click()')
    page.settled(what + ': unmasked', 0, 'c.rows[0] && c.rows[0][0] > 0')

    # Sharper attention, drawn words.
    before = page.ask('Math.max(...lens.state.columns[0].rows[0])')
    set_value(page, 'sharp', '-1')
    page.settled(what + ': sharper', 0, 'Math.max(...c.rows[0]) > %.5f' % (before - 1e-5))
    set_value(page, 'sharp', '0')
    page.ask('document.getElementById("draw").click()')
    set_value(page, 'warm', '8')
    page.settled(what + ': drawn', 0, 'c.end.translation !== "elle chante"')
    first = translation(page)
    page.ask('document.getElementById("again").click()')
    page.settled(what + ': drawn again', 0, 'c.end.translation !== %s' % json.dumps(first))
    page.ask('document.getElementById("draw").click()')
    page.settled(what + ': no longer', 0, 'c.end.translation === "elle chante"')

    # The beam.
    page.ask('document.querySelector("#columns section:first-child .beam").click()')
    tree_is_there(page, what)
    check(page.ask('document.querySelectorAll("#columns section:first-child .tree .best").length') == 3, what + ': the best path is open')
    cut = page.ask('document.querySelectorAll("#columns section:first-child .tree .cut button").length')
    check(cut > 0, what + ': what was cut is there')
    closed = '#columns section:first-child .tree details:not([open])'
    check(page.ask('document.querySelectorAll("%s").length' % closed) > 0, what + ': other paths are closed')
    inside = page.ask('(async () => { const d = document.querySelector("%s"); d.querySelector("summary").click();'
                      ' await new Promise((done) => setTimeout(done, 100)); return d.open && d.querySelectorAll("li").length; })()' % closed)
    check(inside > 0, what + ': and open')
    page.send('Emulation.setEmulatedMedia', media='print', features=page.features)
    deeper = page.ask('(() => { const left = (e) => e.getBoundingClientRect().left;'
                      ' return left(document.querySelector(".tree ol ol ol")) - left(document.querySelector(".tree ol ol")); })()')
    check(deeper <= 5, '%s: sixty words in a row fit on paper: %s px a word' % (what, deeper))
    page.send('Emulation.setEmulatedMedia', features=page.features)

    # What is no longer asked is no longer there: the tree under a sentence that is refused, the translation of no sentence.
    here = 'document.querySelector("#columns section:first-child").querySelectorAll("%s").length'
    set_value(page, 'text', 'she ' * 201)
    page.ask('(async () => { for (let i = 0; i < 100 && !lens.state.columns[0].parts.fault.textContent; ++i) await new Promise((done) => setTimeout(done, 50)); })()')
    check('200 at most' in page.ask(COLUMN % 0 + '.parts.fault.textContent'), what + ': a sentence is refused')
    check(page.ask(here % '.tree *') == 0 and page.ask(here % '.chip') == 0, what + ': nothing of the one before stays')
    page.were_refused(what, 2)  # its translation and its beam
    set_value(page, 'text', 'she sings')
    page.ask('new Promise((done) => setTimeout(done, 600))')
    page.settled(what + ': and it goes on', 0, 'c.end.translation === "elle chante"')
    set_value(page, 'text', ' ')
    page.ask('(async () => { for (let i = 0; i < 100 && lens.state.columns[0].end; ++i) await new Promise((done) => setTimeout(done, 50)); })()')
    check(page.ask(here % '.chip, td') == 0 and page.ask(COLUMN % 0 + '.parts.result.textContent') == '', what + ': no sentence, no translation')
    set_value(page, 'text', 'she sings')
    page.settled(what + ': and again', 0, 'c.end.translation === "elle chante"')

    # Two models side by side.
    set_value(page, 'other', '1', 'change')
    page.settled(what + ': beside it', 1)
    page.settled(what + ': and the first', 0)
    check(page.ask('document.querySelectorAll("#columns section").length') == 2, what + ': two columns')
    if transformer:
        said = page.ask('document.querySelectorAll("#columns section")[1].innerText')
        check('Transformer' in said and 'mean over the heads of the last layer' in said, what + ': a Transformer, and what its weights are')
        check(page.ask('document.querySelectorAll("#columns section")[1].querySelectorAll("td").length') > 0, what + ': which attends')


def alone_by_keyboard(page, what):
    """Types a sentence, masks a word, forces one, opens the beam: with keys alone."""
    page.settled(what)
    check(page.tab_to('e.id === "text"'), what + ': the sentence is reached')
    page.ask('document.activeElement.select()')
    page.type('he sings')
    page.key('Enter')
    page.settled(what + ': Enter translates', 0, 'c.source.words.join(" ") === "he sings"')
    check(translation(page) == 'il chante', '%s: typed: %s' % (what, translation(page)))
    check(page.tab_to('e.matches(".chip:not(.word)")'), what + ': source words are reached')
    outline = page.ask('getComputedStyle(document.activeElement).outlineStyle')
    check(outline == 'solid', '%s: the focus is seen: %s' % (what, outline))
    page.key(' ')
    page.settled(what + ': masked', 0, 'c.hidden.has(0) && c.rows[0][0] === 0')
    check(page.ask('document.activeElement.matches(".chip")'), what + ': the focus stays')
    page.key(' ')
    page.settled(what + ': unmasked', 0, '!c.hidden.has(0) && c.rows[0][0] > 0')
    check(page.tab_to('e.matches(".word")'), what + ': the translation is reached')
    page.key('Enter')
    check(page.tab_to('e.matches(".others button:not([disabled])")'), what + ': what else it might have said')
    page.key('Enter')
    page.settled(what + ': forced', 0, 'c.tokens.length && c.tokens[0].forced')
    check(page.ask('document.activeElement.matches(".word[aria-pressed=true]")'), what + ': the focus is at the word again')
    check(page.tab_to('e.matches("a[href^=\'/explain\']")'), what + ': the explanation is reached')
    check(page.tab_to('e.matches("table.heat td")'), what + ': the map is reached')
    page.key('ArrowRight')
    check(page.ask('document.activeElement.dataset.c') == '1', what + ': and walked')
    check(page.tab_to('e.matches(".beam")'), what + ': the beam is reached')
    page.key('Enter')
    tree_is_there(page, what)
    check(page.tab_to('e.matches(".tree details:not([open]) > summary")'), what + ': its nodes are reached')
    page.key('Enter')
    page.ask('new Promise((done) => setTimeout(done, 50))')
    check(page.ask('document.activeElement.parentNode.open'), what + ': and opened')


def explanation(page, address, what, sharp, temperature):
    """The link of a word leads to its explain page, at the attention temperature that the slider stands for."""
    page.settled(what)
    if temperature != 1:
        set_value(page, 'sharp', sharp)
        page.settled(what, 0, 'c.settings.attention_temperature === %s' % temperature)
    page.ask(COLUMN % 0 + '.choose(1)')
    said = page.ask('(({id, probability}) => [id, probability])(' + COLUMN % 0 + '.tokens[1])')
    link = page.ask('document.querySelector("a[href^=\'/explain\']").href')
    check(link.startswith(address), '%s: of this server: %s' % (what, link))
    page.open(link)
    check(page.ask('document.querySelector("h1").textContent').startswith('How one word'), what + ': the explain page')
    check(page.ask('lens.data.model.temperature') == temperature, '%s: at attention temperature %s' % (what, temperature))
    check(page.ask('lens.state.t') == 1, what + ': of that word')
    explained = page.ask('(({target_id, p_target}) => [target_id, p_target])(lens.data.steps[1])')
    check(explained[0] == said[0] and abs(explained[1] - said[1]) < 1e-4, '%s: what was said: %s, %s' % (what, said, explained))
    check(page.ask('document.getElementById("check-badge").className') == 'badge good', what + ': whose numbers are checked')
    check(page.messages() == [], '%s: nothing on the console: %s' % (what, page.messages()))
    check(page.requests() == [link], '%s: asks for nothing more: %s' % (what, page.requests()))


def unexplained(shop, chromium):
    """Where a model cannot be taken apart there is no link, but the reason."""
    server = served.Served(shop.lens, *[served.small_model(sys.argv[2], shop.work, attention, '--hidden', '16', '--embedding', '16', '--attention', attention)
                                        for attention in ('local-p', 'none')])
    page = Served(chromium, server.address)
    for column, why in ((0, 'attention local-p cannot be taken apart: its weights are more than a softmax of scores.'), (1, 'this model has no attention')):
        page.settled('unexplained', column)
        page.ask(COLUMN % column + '.choose(0)')
        said = page.ask('document.querySelectorAll("#columns section")[%d].querySelector(".instead").innerText' % column)
        check('Its gradient is not explained: ' + why in said, 'unexplained: the reason: %s' % said)
    check(page.ask('document.querySelector("a[href^=\'/explain\']") === null'), 'unexplained: no link')
    page.opened('unexplained', server.address)
    page.close()
    server.end()


def hostile(chromium, address):
    """Scripts in a sentence, and in every word that a model says, are text."""
    page = Served(chromium, address)
    page.settled('hostile')
    set_value(page, 'text', '<img src=x onerror=pwned=1> </script><script>pwned=1</script> he sings')
    page.settled('hostile', 0, 'c.source.words.length > 4')
    page.ask(COLUMN % 0 + '.choose(0); ' + COLUMN % 0 + '.beam(); 0')
    tree_is_there(page, 'hostile')
    page.ask('for (const kind of ["button", "td", "summary"]) for (const e of [...document.querySelectorAll(kind)].slice(0, 12))'
             ' for (const event of ["pointermove", "focusin", "click"]) e.dispatchEvent(new PointerEvent(event, {bubbles: true}))')
    page.ask('new Promise((done) => setTimeout(done, 500))')
    check(page.ask('window.pwned === undefined && !document.querySelector("#columns img, #columns script, #columns svg, #columns iframe")'),
          'hostile: text stays text')
    check(page.ask('document.scripts.length') == 2, 'hostile: a script that is not ours')
    page.opened('hostile', address)
    page.close()


def run(shop, chromium, shots):
    server = served.Served(shop.lens, MODEL, served.small_transformer(sys.argv[2], shop.work))
    for width, dark in ((1280, False), (380, True), (800, True)):
        what = 'serve, %d px, %s' % (width, 'dark' if dark else 'light')
        page = Served(chromium, server.address, width, dark)
        if shots:
            page.settled(what)
            page.shot(os.path.join(shots, 'serve-%d-first.png' % width))
        use(page, what, True)
        page.opened(what, server.address)
        if shots:
            page.ask('lens.state.columns.forEach((c) => { c.choose(0); c.beam(); }); new Promise((done) => setTimeout(done, 1000))')
            page.shot(os.path.join(shots, 'serve-%d.png' % width))
        page.close()
    page = Served(chromium, server.address)
    alone_by_keyboard(page, 'by keyboard')
    page.opened('by keyboard', server.address)
    page.close()
    for sharp, temperature in (('0', 1), ('-0.5', 0.32)):
        page = Served(chromium, server.address)
        explanation(page, server.address, 'an explanation at T %s' % temperature, sharp, temperature)
        page.close()
    if shots:
        page = Served(chromium, server.address + '#text=' + 'he%20loves%20Constantinople%20and%20she%20sings%20with%20the%20girl%20who%20eats%20apples%20at%20home%20this%20morning')
        page.settled('a long one')
        page.ask('lens.state.columns[0].choose(3)')
        page.shot(os.path.join(shots, 'serve-long.png'))
        page.close()
    unexplained(shop, chromium)
    hostile(chromium, server.address)
    scripts = served.Served(shop.lens, test_hostile_pages.hostile_model(shop))
    hostile(chromium, scripts.address)
    scripts.end()
    status, seconds = server.end()
    check(status == 0 and seconds < 8, 'the server ends: status %s after %.1f s' % (status, seconds))
    print('%d failures' % browser.failures)


if __name__ == '__main__':
    try:
        sys.exit(browser.with_browser(sys.argv[1], sys.argv[3:], run))
    except served.NoServer:
        print('[skipped] this build has no server (libcpp-httplib-dev): its page was not opened')
        sys.exit(served.SKIPPED)
