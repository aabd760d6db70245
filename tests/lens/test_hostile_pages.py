#!/usr/bin/env python3
"""test_hostile_pages.py LENS TRANSLATOR [--shots DIR]: what stands in the inputs is never run by a page.

Every text and every number of every input (train.log, config.json, logs of checks, vocabularies, sentences, translations, names of
directories and files) is replaced in turn by text that would run a script wherever it were taken for markup, and numbers by
numbers that nobody expects. Either lens refuses the input, and names the file and the field, or a page with it (and with
others that lens took) opens in a headless Chromium: no script of ours ran, no element of ours is there, the content security
policy had nothing to forbid, and nothing is on the console; and no picture or text for a terminal holds more than text.
Without a browser it says so and is skipped.
"""
import copy
import functools
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True
import browser  # noqa: E402
from browser import check  # noqa: E402

OWN_MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'tools', 'lens', 'model')
PAYLOADS = ['</script><script>window.pwned=1</script>', '<img src=x onerror="window.pwned=1">', '"><svg onload=window.pwned=1>',
            "'><iframe srcdoc='<script>parent.pwned=1</script>'>", 'javascript:window.pwned=1', '" onclick="window.pwned=1" x="',
            '`${window.pwned=1}`{{data}}<!--<script>', ']]></text><script>window.pwned=1</script>', '\x1b[2J\x1b]0;pwned\x07']
ALL = ' '.join(PAYLOADS)
# Of few words: a page of n source and m target words has n times m places to click.
SENTENCES = ['</script><script>pwned=1', '<img src onerror=pwned=1>', '"><svg onload=pwned=1>']
ODD_NUMBERS = [1e308, -1e308, 0, -1, 1e-320, 2 ** 62, 0.5]

refused = opened = 0


def leaves(x, path=()):
    """The paths of everything in a JSON value that is no list and no object."""
    if isinstance(x, dict):
        return [leaf for key in x for leaf in leaves(x[key], path + (key,))]
    if isinstance(x, list):
        return [leaf for i, item in enumerate(x) for leaf in leaves(item, path + (i,))]
    return [path]


def at(x, path):
    for key in path:
        x = x[key]
    return x


def changed(x, path, value):
    out = json.loads(json.dumps(x))  # of which no two parts are one
    at(out, path[:-1])[path[-1]] = value
    return out


def short(x):
    """Lists cut to two entries, which keeps what must be of one length of one length."""
    if isinstance(x, dict):
        return {key: short(value) for key, value in x.items()}
    return [short(item) for item in x[:2]] if isinstance(x, list) else x


class Hostile:
    def __init__(self, shop, chromium, shots):
        self.lens, self.work, self.chromium, self.shots = os.path.abspath(shop.lens), shop.work, chromium, shots
        self.number = 0
        self.page = browser.Page(chromium)

    def run(self, *arguments):
        plain = {**os.environ, 'NO_COLOR': '1'}
        return subprocess.run([self.lens, *arguments], capture_output=True, env=plain, cwd=self.work,
                              timeout=300)

    def no_control(self, text, label):
        check(not [c for c in text if c < 32 and c not in (9, 10) or c == 127], '%s: control characters for the terminal: %r' % (label, text[:300]))

    def look(self, path, label, picture=False):
        """Opens a page, or a picture, and tries everything on it."""
        global opened
        opened += 1
        page = self.page
        page.open(path, 'document.documentElement' if picture else 'window.lens')
        if not picture:
            # A few of each kind: a click may draw the whole page anew.
            page.ask('for (const kind of ["button", "td", "th", "svg", "line", ".chip", ".module", "[data-edge]", "rect.cell"]) {'
                     ' const all = [...document.querySelectorAll(kind)];'
                     ' all.filter((_, i) => i % Math.ceil(all.length / 4) === 0).forEach((e) => { for (const event of ["pointermove", "focusin", "click"])'
                     ' e.dispatchEvent(new PointerEvent(event, {bubbles: true, clientX: 9, clientY: 9})); }); }')
            check(page.ask('document.scripts.length') == 2, label + ': a script that is not ours')
        bad = page.ask('[...document.querySelectorAll("*")].filter((e) => /^(img|iframe|object|embed|base|form)$/i.test(e.localName) ||'
                       ' [...e.attributes].some((a) => a.name.startsWith("on") || /^\\s*javascript:/i.test(a.value) && /^(href|src|action)$/.test(a.localName)))'
                       '.map((e) => e.outerHTML.slice(0, 100)).join()')
        check(bad == '', '%s: elements that no page has: %s' % (label, bad))
        # What was put into the tree loads in its own time.
        page.ask('new Promise((done) => setTimeout(done, 0))')
        check(page.ask('window.pwned === undefined'), label + ': a script ran')
        check(page.messages() == [], '%s: the console: %s' % (label, page.messages()))
        check(len(page.requests()) == 1, '%s: asks for %s' % (label, page.requests()))
        if self.shots:
            page.shot(os.path.join(self.shots, 'hostile-%d.png' % self.number))

    def made(self, label, path, file, *arguments):
        """lens with these arguments: the page it wrote; or None, where it names `file` (with ":LINE" where it has any) and the field."""
        global refused
        self.number += 1
        out = os.path.join(self.work, 'page-%d.html' % self.number)
        ran = self.run(*arguments, '--out', out)
        said = ran.stderr.decode(errors='replace')
        check(ran.returncode in (0, 1, 2), '%s: ended by %d: %s' % (label, ran.returncode, said[:300]))
        self.no_control(ran.stderr + ran.stdout, label)
        if os.path.exists(out):
            return out
        refused += 1
        check(ran.returncode != 0 and said.startswith('lens: '), '%s: no page, and no error: %s' % (label, said[:300]))
        names = [key for key in path if isinstance(key, str)]
        check(file in said and (not names or names[-1] in said), '%s: the error does not say where: %s' % (label, said[:300]))
        return None

    def tried(self, label, path, file, *arguments):
        """The same, and the page is looked at."""
        page = self.made(label, path, file, *arguments)
        if page:
            self.look(page, label)
            os.remove(page)

    def values_for(self, old):
        """What an entry is replaced by, one after the other."""
        if isinstance(old, bool) or old is None:
            return [ALL, 1e308, []]
        if isinstance(old, (int, float)):
            return [ALL, 1e308]
        return [ALL, 7, None, {PAYLOADS[0]: PAYLOADS[1]}]

    def taken_together(self, lines, write, value, places, arguments):
        """Puts the value into as many of the places as lens takes at once, and yields them and the page; then into the rest."""
        self.number += 1
        page = os.path.join(self.work, 'page-%d.html' % self.number)
        write(functools.reduce(lambda all, place: changed(all, place, value), places, lines))
        self.run(*arguments, '--out', page)
        if os.path.exists(page):
            yield places, page
        elif len(places) == 1:
            check(False, '%r at %s: taken a moment ago, and refused now' % (value, places[0]))
        else:
            for half in (places[:len(places) // 2], places[len(places) // 2:]):
                yield from self.taken_together(lines, write, value, half, arguments)

    def each(self, lines, write, name, arguments):
        """lines: JSON values. Every entry of the first of each kind is replaced in turn, and those that lens takes one page
        shows together; then all texts, or all numbers, at once."""
        seen, taken = set(), {}
        for n, line in enumerate(lines):
            if (line.get('event'), line.get('ok')) in seen:
                continue
            seen.add((line.get('event'), line.get('ok')))
            for path in leaves(line):
                for value in self.values_for(at(line, path)):
                    write(changed(lines, (n,) + path, value))
                    label = '%s, line %d, %s = %.40r' % (name, n + 1, '.'.join(map(str, path)), value)
                    page = self.made(label, path, name + (':%d: ' % (n + 1) if name.endswith('.log') else ''), *arguments)
                    if page:
                        os.remove(page)
                        taken.setdefault(json.dumps(value), []).append((n,) + path)
        for value, places in taken.items():
            for some, page in self.taken_together(lines, write, json.loads(value), places, arguments):
                self.look(page, '%s, %.40s at %s' % (name, value, ', '.join('.'.join(map(str, place)) for place in some)))
                os.remove(page)
        fixed = ('event', 'expected_title')
        for payload in PAYLOADS + [ALL]:
            every = copy.deepcopy(lines)
            for line in every:
                for path in leaves(line):
                    if isinstance(at(line, path), str) and path[-1] not in fixed and at(line, path) not in ('nan', 'inf', '-inf'):
                        at(line, path[:-1])[path[-1]] = payload
            write(every)
            before = refused
            self.tried('%s, every text %.40r' % (name, payload), (), '', *arguments)
            check(refused == before, '%s: every text %.40r is taken' % (name, payload))
        for number in ODD_NUMBERS:
            every = copy.deepcopy(lines)
            for line in every:
                for path in leaves(line):
                    if isinstance(at(line, path), float):
                        at(line, path[:-1])[path[-1]] = number
            write(every)
            self.tried('%s, every number %r' % (name, number), (), '', *arguments)


def write_lines(path):
    def write(lines):
        with open(path, 'w') as f:
            f.write(''.join(json.dumps(line) + '\n' for line in lines))
    return write


def of_report(h, translator):
    """train.log, config.json, and the names of a run and its page."""
    run = os.path.join(h.work, 'run')
    subprocess.run([translator, 'train', '--corpus-size', '300', '--hidden', '8', '--embedding', '8', '--epochs', '2', '--lr', '0.01',
                    '--threads', '1', '-q', '--out', run], check=True)
    log = os.path.join(run, 'train.log')
    events = [json.loads(line) for line in open(log)]
    kinds = {e['event']: short(e) for e in events}
    resume = {'event': 'resume', 'version': 2, 'epoch': 0, 'step': 1, 'seconds': 1.0, 'epochs': 2, 'max_minutes': 0.0, 'threads': 1,
              'layers': kinds['start']['layers']}
    odd = {**kinds['validation'], 'train_loss': 'nan', 'step': kinds['validation']['step'] + 1}
    lines = [kinds['start'], resume, kinds['validation'], odd, kinds['end']]
    h.each(lines, write_lines(log), 'train.log', ['report', run])
    write_lines(log)(lines)
    config = os.path.join(run, 'config.json')
    whole = json.load(open(config))
    shown = {key: whole[key] for key in whole if key in ('model', 'subwords', 'network')}
    h.each([shown], lambda all: open(config, 'w').write(json.dumps({**whole, **all[0]})), 'config.json', ['report', run])
    for name in PAYLOADS:
        name = name.replace('/', '|')
        there = os.path.join(h.work, name)
        shutil.copytree(run, there)
        h.tried('a directory called %r' % name, (), '', 'report', there)
        shutil.rmtree(there)
    # Links to the pages of the worst sentences.
    write_lines(log)([e for e in events])
    open(config, 'w').write(json.dumps(whole))
    out = os.path.join(h.work, 'javascript:window.pwned=1;"><b onmouseover=1>#?%41.html')
    ran = h.run('report', run, '--explain', '--out', out)
    check(ran.returncode == 0, 'report --explain: %s' % ran.stderr)
    h.look(out, 'a page with an odd name')
    links = h.page.ask('[...document.querySelectorAll("#worst a")].map((a) => decodeURIComponent(a.href))')
    check(len(links) > 0 and all(link.startswith('file://') and os.path.exists(link[7:]) for link in links), 'links lead to the pages: %s' % links)
    # As text for a terminal.
    told = 0
    for line in lines:
        for path in leaves(line):
            if isinstance(at(line, path), str) and path[-1] != 'event':
                write_lines(log)([changed(one, path, ALL) if one is line else one for one in lines])
                ran = h.run('report', run, '--text')
                h.no_control(ran.stdout + ran.stderr, 'report --text, %s' % (path,))
                told += ran.returncode == 0
    check(told > 0, 'report --text: refuses whatever has been changed')


def of_checks(h):
    """Logs of checks, right and wrong."""
    log = os.path.join(h.work, 'mine.log')
    subprocess.run([h.lens, 'check', 'softmax'], check=True, stdout=subprocess.DEVNULL, env={**os.environ, 'LENS_CHECK_LOG': log})
    right = json.loads(open(log).readline())
    for tensor in right['tensors']:
        tensor.update(shape=[2, 1], words=['he', 'likes'], yours=[0.5, 'inf'], expected=[0.5, None])
    right['tensors'] = right['tensors'][:1]
    wrong = {**copy.deepcopy(right), 'ok': False, 'kind': 'sign', 'sentence': 'It has the wrong sign.', 'where': right['tensors'][0]['name']}
    h.each([right, wrong], write_lines(log), 'mine.log', ['check', '--from', log])


def hostile_model(h, own=OWN_MODEL):
    """A small model with a vocabulary of which every word would be a script (control characters are refused)."""
    scripts = [p for p in PAYLOADS if p.isprintable()]
    model = os.path.join(h.work, os.path.basename(own))
    shutil.copytree(own, model)
    for side in ('source', 'target'):
        with open(os.path.join(model, side + '.vocab'), encoding='utf-8') as f:
            words = f.read().split('\n')
        for i in range(4, len(words)):
            if words[i]:
                words[i] = '%s%d' % (scripts[i % len(scripts)].replace(' ', '/'), i)
        with open(os.path.join(model, side + '.vocab'), 'w', encoding='utf-8') as f:
            f.write('\n'.join(words))
    return model


def of_models(h, own, commands):
    model = hostile_model(h, own)
    short = ['he likes', '--target', 'il aime']
    for command in commands:
        more = ['--seeds', '1'] if command == 'flow' else []
        svg = os.path.join(h.work, 'flow.svg')
        before = refused
        # Without --target the model says its own words.
        h.tried(command + ', a hostile vocabulary', (), '', command, model, 'he likes <img>', *more,
                *(['--svg', svg] if command == 'flow' else []))
        if command == 'flow':
            xml.etree.ElementTree.parse(svg)
            h.look(svg, 'flow --svg', picture=True)
        for sentence in SENTENCES if command == 'explain' else SENTENCES[:1]:
            h.tried(command + ', a hostile sentence', (), '', command, own, sentence, '--target', SENTENCES[1], *more)
        check(refused == before, command + ': hostile words are taken')
    for name in PAYLOADS:
        there = os.path.join(h.work, name.replace('/', '|'))
        shutil.copytree(model, there)
        h.tried('a model called %r' % name, (), '', 'explain', there, *short)
        shutil.rmtree(there)
    config = os.path.join(model, 'config.json')
    whole = json.load(open(config))
    for path in leaves(whole):
        for value in [ALL, PAYLOADS[0]] if isinstance(at(whole, path), str) else [ALL, 2 ** 62]:
            open(config, 'w').write(json.dumps(changed(whole, path, value)))
            h.tried('config.json, %s = %.40r' % ('.'.join(map(str, path)), value), path, 'config.json', 'explain', model, *short)


def of_diffs(h):
    """Pairs and translations of them, and the names of their files."""
    def write(name, lines):
        path = os.path.join(h.work, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.writelines(line + '\n' for line in lines)
        return path

    before = refused
    pairs = write('pairs.tsv', [p + '\t' + q for p, q in zip(PAYLOADS, reversed(PAYLOADS))])
    for name in PAYLOADS:
        a, b = write('a' + name.replace('/', '|'), PAYLOADS), write('b', reversed(PAYLOADS))
        h.tried('diff, a file called %r' % name, (), '', 'diff', a, b, pairs, '--multi-reference')
    check(refused == before, 'diff: hostile text is taken')


def of_pieces(h, translator):
    """A model whose pieces are learnt from scripts."""
    data, model = os.path.join(h.work, 'scripts.tsv'), os.path.join(h.work, 'pieces')
    with open(data, 'w') as f:
        for payload in [p for p in PAYLOADS if p.isprintable()] * 8:
            f.write('%s\t%s\n' % (payload, payload))
    ran = subprocess.run([translator, 'train', '--data', data, '--subwords', 'bpe', '--subword-size', '400', '--hidden', '8',
                          '--embedding', '8', '--epochs', '1', '--threads', '1', '-q', '--out', model], capture_output=True, text=True)
    if 'needs SentencePiece' in ran.stderr:
        print('[skipped] this build has no SentencePiece: no page of a hostile model of pieces was opened')
        return
    check(ran.returncode == 0, 'training on scripts: ' + ran.stderr)
    for command in ('explain', 'graph', 'flow'):
        more = ['--seeds', '1'] if command == 'flow' else []
        for pieces in ([], ['--pieces']):
            before = refused
            h.tried('%s of pieces %s' % (command, pieces), (), '', command, model, SENTENCES[0], '--target', SENTENCES[1], *more, *pieces)
            check(refused == before, command + ': pieces of scripts are taken')


def run(shop, chromium, shots):
    h = Hostile(shop, chromium, shots)
    of_checks(h)
    of_report(h, sys.argv[2])
    of_models(h, OWN_MODEL, ('explain', 'graph', 'flow'))
    of_models(h, OWN_MODEL + '-transformer', ('explain',))
    of_diffs(h)
    of_pieces(h, sys.argv[2])
    print('%d inputs refused, %d pages and pictures opened, %d failures' % (refused, opened, browser.failures))


if __name__ == '__main__':
    sys.exit(browser.with_browser(sys.argv[1], sys.argv[3:], run))
