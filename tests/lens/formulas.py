"""What explain pages say in formulas and sentences, held against the numbers beside them. For test_pages.py."""
import re

from browser import check


def explained_pull(page, name):
    """The sentence's product, by its own numbers; its pull is that of the list beside it."""
    said = page.ask('document.getElementById("lesson").textContent').replace('−', '-')
    weight, better, by, rest = re.search(r'weight (\S+) × (better|worse) than the mix by (\S+)(.*)', said, re.S).groups()
    temperature = re.search(r'^ / (\S+) \(temperature τ\)', rest)
    pull = float(re.search(r'= pull (\S+),', rest)[1])
    product = float(weight) * float(by) * (1 if better == 'better' else -1) / (float(temperature[1]) if temperature else 1)
    check(abs(product - pull) <= 3e-3 * abs(pull), '%s: the product is the pull: %s' % (name, said))
    listed = page.ask('document.querySelectorAll("#gains button.word.on ~ .num")[1].textContent').replace('−', '-')
    check(abs(float(listed) - pull) <= 0.06 * abs(pull), '%s: and so says the list: %s, %s' % (name, listed, pull))
    return temperature


def formula_page(page, name):
    """Formulas are those of the model: with its temperature, and of several heads with their matrices."""
    T = page.ask('lens.data.model.temperature')
    formula = page.ask('document.getElementById("lesson-formula").textContent')
    check(('/τ' in formula) == (T != 1), '%s: the temperature is in the formula: %s' % (name, formula))
    several = page.ask('lens.data.model.heads') > 1
    check(('WoWvhj' in formula) == several, '%s: the matrices of heads are in the formula: %s' % (name, formula))
    check(('WoWvh' in page.ask('document.getElementById("gains").textContent')) == several, name + ': and over the list')
    for j in range(page.ask('lens.state.source.length')):
        page.ask('document.querySelectorAll("#gains button.word")[%d].click()' % j)
        check(bool(explained_pull(page, name)) == (T != 1), name + ': divided by the temperature where there is one')
    jacobian = page.ask('document.getElementById("jacobian").innerText')
    check(('α(1 − α) / τ =' in jacobian) == (T != 1), '%s: and so in the softmax: %s' % (name, jacobian))
    claim = page.ask('document.getElementById("checks").innerText')
    check(('mix) / τ' in claim or 'c) / τ' in claim) == (T != 1), name + ': and in what was checked')


# W_k h only where there is such a matrix, and scores by the root of d.
FORMULAS = {'bahdanau': ('kj=Wkhj', 'ej=v·uj'), 'concat': ('kj=Wkhj', 'ej=v·uj'), 'general': ('kj=Wkhj', 'ej=st·kj'), 'dot': ('kj=hj', 'ej=st·kj'),
            'scaled-dot': ('kj=hj', 'ej=st·kj/d'), 'multihead': ('kj=Wkhj', 'ej=q·kj/d'), 'location': (None, 'ej=its own score')}


def attention_page(page, name):
    formula_page(page, name)
    key, score = FORMULAS[name.split('.')[0]]
    of = 'document.querySelector("#stations [data-station=%s] .formula").textContent'
    check(page.ask(of % 'e') == score, '%s: the scores: %s' % (name, page.ask(of % 'e')))
    if key:
        check(page.ask(of % 'k') == key, '%s: the keys: %s' % (name, page.ask(of % 'k')))


def repeated_page(page, name):
    """Two words that are alike are told apart by where they stand; others need no number."""
    formula_page(page, name)
    for j, said in ((0, 'the (word 1)'), (1, 'cat'), (3, 'the (word 4)')):
        page.ask('document.querySelectorAll("#gains button.word")[%d].click()' % j)
        lesson = page.ask('document.getElementById("lesson").textContent')
        check('For “%s”: weight' % said in lesson, '%s: word %d: %s' % (name, j + 1, lesson))
    shown = page.ask('[[0.99997, 3], [-0.99997, 3], [1.0003, 2], [1, 3], [0.0012345, 3], [12345.6, 4]].map(([x, digits]) => show(x, digits)).join()')
    check(shown == '0.99997,−0.99997,1.0003,1,0.00123,12350', '%s: only 1 is 1: %s' % (name, shown))
    # A sharp attention: what is nearly all of it is not said to be all of it.
    sharp = page.ask('(() => { const e = document.querySelector("#what-if .temperature input"); e.value = -2; e.dispatchEvent(new Event("input"));'
                     ' const r = document.querySelector("#what-if .scores input[type=range]"); r.value = r.max; r.dispatchEvent(new Event("input"));'
                     ' return [...document.querySelectorAll("#what-if .scores .num")].map((e) => e.textContent).join(); })()')
    check('1.000' not in sharp and '0.9999' in sharp, '%s: nor in What if: %s' % (name, sharp))
