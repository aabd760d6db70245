#!/usr/bin/env python3
"""test_pages.py LENS WRITE_PAGES [--shots DIR]: the pages in a headless Chromium.

Each page must open from disk within a second without a message on the console and without asking for anything; its
buttons and keys must do what they say, and what the page computes by itself must agree with the engine. Nothing is
needed but a browser: it is spoken to in the DevTools protocol, over a pipe. Without one the test says so and is skipped.
With --shots it also leaves pictures, wide and narrow, light and dark.
"""
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
WORDS = 'they slept and marc sang with me at home this morning'
WRONG = 'ils ont dormi et marc a chanté avec nous à la maison ce matin'


class Browser:
    def __init__(self, program, profile):
        to_browser, self.out = os.pipe()
        self.inp, from_browser = os.pipe()

        # In the child the pipe's ends become 3 and 4; by way of other numbers, as they may be 3 and 4 the other way round.
        def wire():
            os.dup2(to_browser, 30)
            os.dup2(from_browser, 40)
            os.dup2(30, 3)
            os.dup2(40, 4)

        self.process = subprocess.Popen(
            [program, '--headless=new', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe', '--no-first-run',
             '--disable-background-networking', '--disable-extensions', '--user-data-dir=' + profile, 'about:blank'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=wire,
            close_fds=False, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.events = b'', 0, []

    def send(self, method, session=None, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if session:
            message['sessionId'] = session
        os.write(self.out, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.receive()
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise RuntimeError('%s: %s' % (method, answer['error']))
                return answer['result']
            self.events.append(answer)

    def receive(self):
        while b'\0' not in self.buffer:
            piece = os.read(self.inp, 1 << 16)
            if not piece:
                raise RuntimeError('the browser went away')
            self.buffer += piece
        message, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(message)

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Page:
    def __init__(self, browser, path, width=1280, dark=False, fragment=''):
        self.browser = browser
        target = browser.send('Target.createTarget', url='about:blank')['targetId']
        self.target = target
        self.session = browser.send('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.send(domain + '.enable')
        self.send('Emulation.setDeviceMetricsOverride', width=width, height=900, deviceScaleFactor=1, mobile=False)
        features = [{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'},
                    {'name': 'prefers-reduced-motion', 'value': 'reduce'}]
        self.send('Emulation.setEmulatedMedia', features=features)
        browser.events.clear()
        started = time.time()
        self.send('Page.navigate', url='file://' + path + fragment)
        while self.ask('document.readyState') != 'complete' or self.ask('!window.lens'):
            if time.time() - started > 20:
                raise RuntimeError('%s does not load: %s' % (path, self.messages()))
            time.sleep(0.02)
        self.seconds = self.ask('performance.getEntriesByType("navigation")[0].loadEventEnd') / 1000

    def send(self, method, **params):
        return self.browser.send(method, self.session, **params)

    def ask(self, expression):
        result = self.send('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in result:
            raise RuntimeError('%s: %s' % (expression, json.dumps(result['exceptionDetails'])[:400]))
        return result['result'].get('value')

    def press(self, key):
        for kind in ('keyDown', 'keyUp'):
            code = {'ArrowLeft': 37, 'ArrowUp': 38, 'ArrowRight': 39, 'ArrowDown': 40, 'Enter': 13}.get(key, ord(key[0].upper()))
            self.send('Input.dispatchKeyEvent', type=kind, key=key, windowsVirtualKeyCode=code,
                      text=key if len(key) == 1 and kind == 'keyDown' else '')

    def messages(self):
        out = []
        for e in self.browser.events:
            if e.get('sessionId') != self.session:
                continue
            kind, p = e.get('method'), e.get('params', {})
            if kind == 'Runtime.consoleAPICalled':
                out.append('console: ' + json.dumps(p.get('args'))[:300])
            elif kind == 'Runtime.exceptionThrown':
                out.append('exception: ' + json.dumps(p['exceptionDetails'])[:400])
            elif kind == 'Log.entryAdded':
                out.append('log: ' + p['entry']['text'])
        return out

    def requests(self):
        urls = [e['params']['request']['url'] for e in self.browser.events
                if e.get('sessionId') == self.session and e.get('method') == 'Network.requestWillBeSent']
        return [u for u in urls if not u.startswith('data:')]

    def shot(self, path):
        height = self.ask('document.documentElement.scrollHeight')
        width = self.ask('innerWidth')
        picture = self.send('Page.captureScreenshot', format='png', captureBeyondViewport=True,
                            clip={'x': 0, 'y': 0, 'width': width, 'height': height, 'scale': 1})
        with open(path, 'wb') as f:
            f.write(base64.b64decode(picture['data']))

    def close(self):
        self.browser.send('Target.closeTarget', targetId=self.target)


failures = 0


def check(ok, what):
    global failures
    if not ok:
        failures += 1
        print('FAILED: ' + what)


def opens(page, name):
    """What every page must do, however wide."""
    check(page.messages() == [], '%s: nothing on the console: %s' % (name, page.messages()))
    check(len(page.requests()) == 1, '%s: asks for nothing but itself: %s' % (name, page.requests()))
    check(page.seconds < 1, '%s: opens within a second: %.2f' % (name, page.seconds))
    wider = page.ask('document.documentElement.scrollWidth - innerWidth')
    check(wider <= 0, '%s: nothing sticks out sideways: %s px' % (name, wider))
    text = page.ask('document.body.innerText')
    for bad in ('undefined', '[object', 'NaN'):
        check(bad not in text, '%s: no %s in the text' % (name, bad))


def explain_page(page, name):
    def green():
        return page.ask('document.getElementById("what-if-badge").className') == 'badge good'

    check(page.ask('document.getElementById("check-badge").className') == 'badge good', name + ': all numbers are checked')
    check(green(), name + ': the browser agrees with the engine: ' + page.ask('document.getElementById("what-if-badge").textContent'))
    words, steps = page.ask('lens.data.source.length'), page.ask('lens.data.steps.length')
    check(page.ask('document.querySelectorAll("#maps table").length') == 3, name + ': three maps')
    check(page.ask('document.querySelectorAll("#maps td").length') == 3 * words * steps, name + ': a cell for each pair')
    check(page.ask('document.querySelectorAll("#jacobian td").length') == words * words + 2 * words, name + ': the Jacobian')
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
    page.ask('document.getElementById("forward").click()')
    check(page.ask('lens.stations.shown().gradients') == 0, name + ': Forward takes them away')
    page.press('a')
    check(page.ask(hatched) == 0, name + ': key a shows all')
    page.press('f')
    page.press('b')
    check(page.ask('lens.stations.shown().gradients') == stations, name + ': key b')
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
    check('differ by 0' in differ or 'e−' in differ, name + ': the Jacobian: ' + differ)


def flow_page(page, name):
    check(page.ask('document.getElementById("check-badge").className') == 'badge good', name + ': checked by differences')
    answer = 'document.getElementById("answer").textContent'
    seen = {page.ask(answer)}
    for button in range(page.ask('document.querySelectorAll(".controls button").length')):
        page.ask('document.querySelectorAll(".controls button")[%d].click()' % button)
        seen.add(page.ask(answer))
        check(page.ask('document.querySelectorAll("svg polyline").length') == 4, name + ': two lines in two charts')
    check(len(seen) == 4, name + ': cells and directions make a difference: %d' % len(seen))
    page.ask('document.getElementById("length").focus()')
    page.press('ArrowRight')
    check(page.ask('lens.state.length') == 35, name + ': the length by keyboard')
    check(page.ask(answer) not in seen, name + ': the length makes a difference')


def graph_page(page, name):
    check(page.ask('document.getElementById("check-badge").className') == 'badge good', name + ': checked by differences')
    modules, edges = page.ask('lens.data.modules.length'), 'document.querySelectorAll("#graph .edge").length'
    shown = 'document.querySelectorAll("#graph .op").length'
    check(page.ask('document.querySelectorAll("#graph .module").length') == modules, name + ': a box for each module')
    check(page.ask(shown) > 5, name + ': the attention is open')
    opened = page.ask(edges)
    page.ask('document.getElementById("close").click()')
    check(page.ask(shown) == 0 and page.ask(edges) < opened, name + ': Close all')
    page.ask('document.querySelector("#graph .module").focus()')
    page.press('Enter')
    check(page.ask(shown) == 1, name + ': a module opens by keyboard')
    page.ask('document.getElementById("open-step").click()')
    check(page.ask(shown) > 10, name + ': Open this step')
    check(page.ask('document.querySelectorAll("#graph .off").length') == 0, name + ': everything is on')
    page.ask('document.querySelectorAll("#words button")[1].click()')
    off = page.ask('document.querySelectorAll("#graph .edge.off").length')
    check(0 < off < page.ask(edges), name + ': only the paths from one word: %d off' % off)
    page.ask('document.querySelectorAll("#words button")[0].click()')
    page.ask('document.getElementById("close").click()')
    page.ask('document.querySelectorAll("#graph .module")[%d].dispatchEvent(new MouseEvent("click", {bubbles: true}))' % (modules - 4))


def main():
    lens, write_pages, shots = sys.argv[1], sys.argv[2], None
    if '--shots' in sys.argv:
        shots = sys.argv[sys.argv.index('--shots') + 1]
        os.makedirs(shots, exist_ok=True)
    program = next((p for p in map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome')) if p), None)
    if not program:
        print('SKIPPED: no Chromium on this machine, the pages were not opened')
        return SKIPPED
    with tempfile.TemporaryDirectory() as work:
        def make(name, *arguments):
            path = os.path.join(work, name + '.html')
            subprocess.run([lens, *arguments, '--out', path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return path

        pages = {'explain': (make('explain', 'explain'), explain_page),
                 'explain-long': (make('explain-long', 'explain', WORDS, '--target', WRONG), explain_page),
                 'flow': (make('flow', 'flow', '--seeds', '3'), flow_page),
                 'graph': (make('graph', 'graph', '--step', '5'), graph_page)}
        variants = os.path.join(work, 'variants')
        os.mkdir(variants)
        subprocess.run([write_pages, variants], check=True, stdout=subprocess.DEVNULL)
        browser = Browser(program, os.path.join(work, 'profile'))
        try:
            for name, (path, use) in pages.items():
                for width, dark in ((1280, False), (380, True)):
                    page = Page(browser, path, width, dark)
                    label = '%s, %d px, %s' % (name, width, 'dark' if dark else 'light')
                    opens(page, label)
                    use(page, label)
                    opens(page, label)
                    if shots:
                        page.shot(os.path.join(shots, '%s-%d.png' % (name, width)))
                    page.close()
            for name in sorted(os.listdir(variants)):
                page = Page(browser, os.path.join(variants, name), 1280, False)
                opens(page, name)
                variant_page(page, name)
                opens(page, name)
                page.close()
            opened = 2 * len(pages) + len(os.listdir(variants))
        finally:
            browser.close()
    print('%d pages opened, %d failures' % (opened, failures))
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
