#!/usr/bin/env python3
"""test_run_pages.py LENS TRANSLATOR [--shots DIR]: the pages of lens report and lens ablate in a headless Chromium.

As tests/lens/test_pages.py; without a browser it says so and is skipped.
"""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lens'))
sys.dont_write_bytecode = True
import browser  # noqa: E402
from browser import check  # noqa: E402


def keys_and_slider(page, name, positions):
    check(page.ask('+document.getElementById("slider").max + 1') == positions, name + ': the slider has %d positions' % positions)
    page.ask('lens.choose(0)')
    seen = set()
    for i in range(positions):
        check(page.ask('lens.state.at') == i, name + ': position %d' % i)
        seen.add(page.ask('document.getElementById("now").textContent'))
        page.press('ArrowRight')
    check(len(seen) == positions, name + ': each position says where it is')
    page.press('ArrowLeft')
    check(page.ask('lens.state.at') == positions - 2, name + ': back by keyboard')
    page.ask('document.getElementById("slider").value = 0; document.getElementById("slider").dispatchEvent(new Event("input"))')
    check(page.ask('lens.state.at') == 0, name + ': the slider chooses')
    page.ask('document.getElementById("play").click()')
    page.ask('new Promise((done) => setTimeout(done, 1600))')
    check(page.ask('lens.state.at') > 0, name + ': Play goes on')
    page.ask('lens.choose(%d)' % (positions - 1))
    page.ask('document.getElementById("play").blur()')


def report_page(page, name):
    n, layers = page.ask('lens.data.validations.length'), page.ask('lens.data.layers.length')
    keys_and_slider(page, name, n)
    check(page.ask('document.querySelectorAll("#layers rect.cell").length') == n * layers, name + ': a cell for each layer and validation')
    check(page.ask('document.querySelectorAll("#layers rect.none").length') == 0, name + ': all are known')
    first = page.ask('document.getElementById("layers").innerHTML')
    page.ask('document.getElementById("show-ratio").click()')
    check(page.ask('document.getElementById("layers").innerHTML') != first, name + ': the other tab shows something else')
    page.ask('document.getElementById("show-gradient").click()')
    check(page.ask('document.querySelectorAll("#probe td").length') ==
          page.ask('lens.data.validations.at(-1).probe.weights.length * lens.data.validations.at(-1).probe.weights[0].length'),
          name + ': the probe\'s weights')
    check(page.ask('document.querySelectorAll("#worst a").length') == 5, name + ': five links to explain pages')
    check(page.ask('document.querySelectorAll(".missing").length') == 0, name + ': nothing is missing')
    check(page.ask('document.querySelectorAll("#curves svg:not([aria-hidden])").length') == 4, name + ': four charts')


def pieces_report_page(page, name):
    text = page.ask('document.body.innerText')
    for said in ('Loss, nats per piece', 'Perplexity per piece', 'columns of pieces are added, rows averaged', 'cost the model most, per piece'):
        check(said in text, '%s: says "%s"' % (name, said))


# What the model says in three validations, a reference, and which words of both are marked: those outside of their longest
# common subsequence.
REFERENCE = 'le chat mangeait la pomme rouge'
LONG_NAME = 40 * 'm' + '.weight'  # of a layer
SAID = [('', [], ['le', 'chat', 'mangeait', 'la', 'pomme', 'rouge']),
        ('le chat mange une pomme', ['mange', 'une'], ['mangeait', 'la', 'rouge']),
        (REFERENCE, [], [])]


def marked_report_page(page, name):
    """Where model and reference differ words are marked, and what was said by and by stands below and chooses the time."""
    marks = '[...document.querySelectorAll("#probe p.said")].map((p) => [p.querySelector(".side").textContent, [...p.querySelectorAll("mark")].map((m) => m.textContent)])'
    then = 'document.querySelectorAll("#probe .then")'
    check(page.ask(then + '.length') == len(SAID), name + ': what was said, by and by')
    check(page.ask('document.querySelectorAll("#worst a").length') == 4, name + ': a sentence that is too long to explain is left out, not the others')
    check('70 words' in page.ask('document.body.innerText'), name + ': and it says so')
    first = page.ask('(() => { const t = document.querySelector("#layers text.name"); return [t.lastChild.data, t.getBBox().x]; })()')
    check(first[0].startswith('…m') and first[1] >= -1, '%s: all of a cut name is in sight: %s' % (name, first))
    for k, (said, odd, missed) in enumerate(SAID):
        page.ask(then + '[%d].click()' % k)
        check(page.ask('lens.state.at') == k, '%s: line %d chooses its time' % (name, k))
        check(page.ask('[...%s].map((b) => b.getAttribute("aria-pressed") === "true" ? 1 : 0).join("")' % then) == ''.join('1' if i == k else '0' for i in range(len(SAID))),
              '%s: and is shown to be chosen' % name)
        found = dict(page.ask(marks))
        check(found['source'] == [] and found['reference'] == (missed if said else []) and found['model'] == odd, '%s: validation %d: %s' % (name, k, found))
        line = page.ask(then + '[%d].textContent' % k)
        check(line.endswith((said or '(says nothing)') + (' ' if said else '')), '%s: line %d: %s' % (name, k, line))
        check(page.ask('[...%s[%d].querySelectorAll("mark")].map((m) => m.textContent)' % (then, k)) == odd, '%s: marked in line %d, too' % (name, k))


def old_report_page(page, name):
    check(page.ask('document.querySelectorAll(".missing").length') == 4, name + ': entropy, attention, layers, worst are not logged')
    check('not logged' in page.ask('document.getElementById("layers").textContent'), name + ': layers say so')
    check(page.ask('document.querySelectorAll("#curves svg:not([aria-hidden])").length') == 3, name + ': the other charts are there')


def unattended_report_page(page, name):
    """Of a model without attention that was validated 20 times."""
    check(page.ask('document.querySelectorAll(".missing").length') == 0, name + ': nothing was not logged')
    check('This model has no attention.' in page.ask('document.getElementById("curves").innerText'), name + ': no entropy, and why')
    said = page.ask('document.getElementById("probe").innerText')
    check('16 of 20 validations, evenly apart. The slider above goes through all.' in said, '%s: how many are listed: %s' % (name, said[:300]))
    check(page.ask('document.querySelectorAll("#probe .then").length') == 16, name + ': and so many are')
    # What does not change has an axis all the same.
    axes = page.ask('[...document.querySelectorAll("#curves svg.plot")].map((svg) => [...svg.querySelectorAll(".grid + text")].map((text) => text.textContent))')
    check(len(axes) == 3 and all(len(set(ticks)) == 4 for ticks in axes), '%s: ticks that differ: %s' % (name, axes))
    check(not any(text.startswith('−') for ticks in axes for text in ticks), '%s: and none below 0: %s' % (name, axes))
    check(page.ask('lens.data.validations[0].valid_loss') > 1 and page.ask('lens.data.validations[0].exact_match') == 0, name + ': losses, and zeros')


def unvalidated_report_page(page, name):
    """Of a run without validation sentences."""
    keys_and_slider(page, name, 3)
    said = page.ask('document.body.innerText')
    check('There was none: the run had no validation sentences.' in said and 'no validation' in page.ask('document.getElementById("badges").innerText'), name + ': it says so')
    for claim in ('BLEU', 'Perplexity', 'best so far', '3 validations'):
        check(claim not in said, '%s: claims nothing of %s' % (name, claim))
    check(page.ask('document.querySelectorAll(".missing").length') == 0, name + ': nothing was not logged')
    check(page.ask('document.querySelectorAll("#curves svg.plot").length') == 1, name + ': one chart, the training\'s')


def ablate_page(page, name):
    n, columns = page.ask('lens.data.columns[0].epochs.length'), page.ask('lens.data.columns.length')
    check(columns == 4, name + ': four columns')
    keys_and_slider(page, name, n)
    check(page.ask('document.querySelectorAll("#columns table.heat").length') == columns, name + ': a map each')
    zero = '[...document.querySelectorAll("#columns article")].map((a) => [...a.querySelectorAll(".figure")].map((f) => f.textContent === "0 exactly" ? 1 : 0).join("")).join()'
    check(page.ask(zero) == '000,100,010,001', name + ': what is cut is exactly zero, and nothing else: ' + page.ask(zero))
    check(page.ask('document.querySelectorAll("#findings li").length') == columns + 2, name + ': findings')


# A short run, as `translator train` leaves it, the same as if its words were pieces, and as an older program logged it.
def make_run(translator, work):
    run = os.path.join(work, 'run')
    subprocess.run([translator, 'train', '--corpus-size', '400', '--hidden', '16', '--embedding', '16', '--epochs', '3', '--lr',
                    '0.01', '--threads', '1', '-q', '--out', run], check=True)
    old, pieces = os.path.join(work, 'old'), os.path.join(work, 'pieces')
    shutil.copytree(run, old)
    shutil.copytree(run, pieces)
    config = json.load(open(os.path.join(run, 'config.json')))
    json.dump({**config, 'subwords': 'bpe'}, open(os.path.join(pieces, 'config.json'), 'w'))
    new_ones = ('version', 'layers', 'sentences', 'attention_entropy', 'norms', 'probe', 'worst')
    events = [json.loads(line) for line in open(os.path.join(run, 'train.log'))]
    with open(os.path.join(old, 'train.log'), 'w') as f:
        for e in events:
            if e['event'] != 'end':
                f.write(json.dumps({k: v for k, v in e.items() if k not in new_ones}) + '\n')
    marked = os.path.join(work, 'marked')
    shutil.copytree(run, marked)
    left = iter(SAID)
    with open(os.path.join(marked, 'train.log'), 'w') as f:
        for e in events:
            if e['event'] == 'start':
                e = {**e, 'layers': [{**e['layers'][0], 'name': LONG_NAME}, *e['layers'][1:]]}
            if e['event'] == 'validation':
                said = next(left, None)
                if said is None:
                    continue
                e['probe'].update(reference=REFERENCE, output=said[0])
                e['worst'][1]['reference'] = 'mot ' * 70
            f.write(json.dumps(e) + '\n')
    unattended = os.path.join(work, 'unattended')
    shutil.copytree(run, unattended)
    json.dump({**config, 'network': {**config['network'], 'attention': 'none'}}, open(os.path.join(unattended, 'config.json'), 'w'))
    validation = next(e for e in events if e['event'] == 'validation')
    with open(os.path.join(unattended, 'train.log'), 'w') as f:
        f.write(json.dumps(events[0]) + '\n')
        for step in range(20):
            f.write(json.dumps({**validation, 'step': step, 'attention_entropy': None, 'probe': {**validation['probe'], 'weights': None}}) + '\n')
    unvalidated = os.path.join(work, 'unvalidated')
    shutil.copytree(run, unvalidated)
    nothing = {'valid_loss': 0.0, 'perplexity': 1.0, 'bleu': 0.0, 'exact_match': 0.0, 'sentences': 0, 'attention_entropy': None, 'probe': None, 'worst': [], 'samples': []}
    with open(os.path.join(unvalidated, 'train.log'), 'w') as f:
        for e in events:
            f.write(json.dumps({**e, **nothing} if e['event'] == 'validation' else e) + '\n')
    return run, old, pieces, marked, unattended, unvalidated


def pages(shop):
    run, old, pieces, marked, unattended, unvalidated = make_run(sys.argv[2], shop.work)
    return [('report', shop.make('report', 'report', run, '--explain'), report_page, True),
            ('report-pieces', shop.make('report-pieces', 'report', pieces), pieces_report_page, True),
            # 1: a sentence could not be explained.
            ('report-marked', shop.make('report-marked', 'report', marked, '--explain', status=1), marked_report_page, True),
            ('report-unattended', shop.make('report-unattended', 'report', unattended), unattended_report_page, True),
            ('report-unvalidated', shop.make('report-unvalidated', 'report', unvalidated), unvalidated_report_page, True),
            ('report-old', shop.make('report-old', 'report', old), old_report_page, True),
            ('ablate', shop.make('ablate', 'ablate', '--epochs', '4', '--length', '5', '--hidden', '16'), ablate_page, True)]


if __name__ == '__main__':
    sys.exit(browser.run(sys.argv[1], sys.argv[3:], pages))
