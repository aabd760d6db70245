"""A headless Chromium, spoken to in the DevTools protocol over a pipe, and what every page of lens must do in it.

Nothing is needed but the browser. test_pages.py here and tests/runs/test_run_pages.py open their pages with it.
"""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse

SKIPPED = 77


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

    def receive(self, until=None):
        while b'\0' not in self.buffer:
            if until and not select.select([self.inp], [], [], max(0, until - time.time()))[0]:
                raise TimeoutError()
            piece = os.read(self.inp, 1 << 16)
            if not piece:
                raise RuntimeError('the browser went away')
            self.buffer += piece
        message, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(message)

    def wait_for(self, event, seconds):
        """Until an event comes that event(message) is true of; what comes meanwhile is kept."""
        until = time.time() + seconds
        while not any(map(event, self.events)):
            self.events.append(self.receive(until))

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Page:
    def __init__(self, browser, path=None, width=1280, dark=False):
        self.browser = browser
        target = browser.send('Target.createTarget', url='about:blank')['targetId']
        self.target = target
        self.session = browser.send('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.send(domain + '.enable')
        self.send('Page.setLifecycleEventsEnabled', enabled=True)
        self.width = width
        self.resize(width)
        self.features = [{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'},
                         {'name': 'prefers-reduced-motion', 'value': 'reduce'}]
        self.send('Emulation.setEmulatedMedia', features=self.features)
        if path:
            self.open(path)

    def open(self, path, ready='window.lens'):
        self.browser.events.clear()
        url = path if path.startswith('http://') else 'file://' + urllib.parse.quote(path)
        loader = self.send('Page.navigate', url=url).get('loaderId')
        loaded = {'name': 'load', 'loaderId': loader}
        try:
            self.browser.wait_for(lambda e: e.get('method') == 'Page.lifecycleEvent' and loaded.items() <= e['params'].items(), 20)
        except TimeoutError:
            raise RuntimeError('%s does not load: %s' % (path, self.messages())) from None
        if not self.ask('!!(%s)' % ready):
            raise RuntimeError('%s has no %s: %s' % (path, ready, self.messages()))
        self.seconds = self.ask('performance.getEntriesByType("navigation")[0].loadEventEnd') / 1000

    def resize(self, width):
        self.send('Emulation.setDeviceMetricsOverride', width=width, height=900, deviceScaleFactor=1, mobile=False)

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


# The faintest of the signs and numbers that are written on cells: the quotient of WCAG 2, 1 is not to be seen.
FAINTEST = '''(() => {
  const dot = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const light = (colour) => {
    dot.fillStyle = colour;
    dot.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...dot.getImageData(0, 0, 1, 1).data].map((x) => (x / 255 <= 0.03928 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return Math.min(21, ...[...document.querySelectorAll("td .mark, td .figure")].map((e) => {
    const both = [getComputedStyle(e).color, getComputedStyle(e.closest("td")).backgroundColor].map(light);
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  }));
})()'''


def prints(page, name):
    """Paper does not scroll, and a browser leaves the colours of cells out unless it is asked for them."""
    page.send('Emulation.setEmulatedMedia', media='print', features=page.features)
    lost = page.ask('''[...document.querySelectorAll(".scroll")].filter((e) => {
      const s = getComputedStyle(e);
      return s.overflowX !== "visible" || s.maxHeight !== "none" || s.printColorAdjust !== "exact";
    }).map((e) => e.id || e.className)''')
    check(lost == [], '%s: on paper nothing is cut off or without its colours: %s' % (name, lost))
    page.send('Emulation.setEmulatedMedia', features=page.features)


def opens(page, name):
    """What every page must do, however wide."""
    check(page.messages() == [], '%s: nothing on the console: %s' % (name, page.messages()))
    check(len(page.requests()) == 1, '%s: asks for nothing but itself: %s' % (name, page.requests()))
    # A second is asked for, on a machine with nothing else to do: a busy one says so, a page that hangs fails.
    if page.seconds > 1:
        print('slow: %s: opened after %.2f s' % (name, page.seconds))
    check(page.seconds < 15, '%s: opens: %.2f s' % (name, page.seconds))
    wider = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
    check(page.ask(wider) <= 0, '%s: nothing sticks out sideways: %s px' % (name, page.ask(wider)))
    if page.width < 640:  # nor in the narrowest window that there is
        page.resize(320)
        check(page.ask(wider) <= 0, '%s: nor at 320 px: %s px' % (name, page.ask(wider)))
        page.resize(page.width)
    check(page.ask(FAINTEST) > 3.5, '%s: what stands on cells is readable: %.2f' % (name, page.ask(FAINTEST)))
    prints(page, name)
    text = page.ask('document.body.innerText')
    for bad in ('undefined', '[object', 'NaN'):
        check(bad not in text, '%s: no %s in the text' % (name, bad))


class Shop:
    """A folder to work in, the lens program, and where pictures go."""

    def __init__(self, lens, work):
        self.lens, self.work = lens, work

    def make(self, name, *arguments, status=0):
        """The page that lens writes with these arguments, ending with this status; its path."""
        path = os.path.join(self.work, name + '.html')
        ended = subprocess.run([self.lens, *arguments, '--out', path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if ended.returncode != status:
            raise SystemExit('lens %s: exit status %d, not %d: %s' % (' '.join(arguments), ended.returncode, status, ended.stderr))
        return path


def with_browser(lens, arguments, use):
    """use(shop, browser, shots); arguments: "--shots DIR" leaves pictures there. Returns the exit status."""
    shots = None
    if '--shots' in arguments:
        shots = arguments[arguments.index('--shots') + 1]
        os.makedirs(shots, exist_ok=True)
    program = next((p for p in map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome')) if p), None)
    if not program:
        print('[skipped] no Chromium on this machine, the pages were not opened')
        return SKIPPED
    with tempfile.TemporaryDirectory() as work:
        browser = Browser(program, os.path.join(work, 'profile'))
        try:
            use(Shop(lens, work), browser, shots)
        finally:
            browser.close()
    return 1 if failures else 0


def run(lens, arguments, pages_of):
    """Opens pages_of(shop) -> [(name, path, use, both)]: wide and light, with `both` also narrow and dark; use(page, label)
    tries what the page is for."""
    def all(shop, browser, shots):
        opened = 0
        for name, path, use, both in pages_of(shop):
            for width, dark in ((1280, False), (380, True)) if both else ((1280, False),):
                page = Page(browser, path, width, dark)
                label = '%s, %d px, %s' % (name, width, 'dark' if dark else 'light')
                opens(page, label)
                use(page, label)
                opens(page, label)
                if shots:
                    page.shot(os.path.join(shots, '%s-%d.png' % (name, width)))
                page.close()
                opened += 1
        print('%d pages opened, %d failures' % (opened, failures))
    return with_browser(lens, arguments, all)
