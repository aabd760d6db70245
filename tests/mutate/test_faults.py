#!/usr/bin/env python3
"""What faults.py finds in a line, and where it finds nothing."""

import importlib.machinery
import importlib.util
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import faults

loader = importlib.machinery.SourceFileLoader('run', os.path.join(HERE, 'run'))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader('run', loader))
loader.exec_module(run)


def found(line, path='a.cc', above=()):
    text = '\n'.join(['void f() {', *above, line, '}'])
    return {(kind, new.strip()) for kind, number, old, new in faults.faults_of_file(path, text) if old == line}


class Faults(unittest.TestCase):
    def has(self, line, kind, new, **more):
        self.assertIn((kind, new), found(line, **more))

    def test_each_kind(self):
        self.has('  y = x + b;', 'sign', 'y = x - b;')
        self.has('  return -x;', 'sign', 'return x;')
        self.has('  auto s = hn::MulAdd(a, b, c);', 'sign', 'auto s = hn::NegMulAdd(a, b, c);')
        self.has('  y[i] = x[i];', 'index', 'y[i] = x[0];')
        self.has('  dx.add(0, dy);', 'index', 'dx.add(1, dy);')
        self.has('  y = 0.5 * x;', 'constant', 'y = 0.55 * x;')
        self.has('  y = g(2, x);', 'constant', 'y = g(3, x);')
        self.has('  y = a * (b + c) + d;', 'missing term', 'y = a * (b + c);')
        self.has('  y = a * (b + c) + d;', 'missing term', 'y = a + d;')
        self.has('  auto s = hn::Mul(hn::Sub(a, b), c);', 'missing term', 'auto s = hn::Sub(a, b);')
        self.has('  sum += x;', 'dropped accumulation', 'sum = x;')
        self.has('  s = hn::MulAdd(a, hn::Add(b, c), s);', 'dropped accumulation',
                 's = hn::Mul(a, hn::Add(b, c));')
        self.has('  if (dx.needed(1)) dx.add(1, dy);', 'dropped accumulation', 'if (dx.needed(1)) ;')
        self.has('  w.product(n, x, H, true, y, H);', 'dropped accumulation',
                 'w.product(n, x, H, false, y, H);')
        self.has('  for (int i = 0; i < n; ++i) {', 'off by one', 'for (int i = 0; i <= n; ++i) {')
        self.has('  for (int i = 0; i < n; ++i) {', 'off by one', 'for (int i = 1; i < n; ++i) {')
        self.has('  for (int i = 0; i < n; ++i) {', 'skipped lane',
                 'for (int i = 0; i < n; i += 1 + (i == 1)) {')
        self.has('  for_lanes(d, n, [&](int64_t i, auto part) {', 'skipped lane',
                 'for_lanes(d, n - 1, [&](int64_t i, auto part) {')
        self.has('  h = mix(r, n);', 'swapped gate', 'h = mix(z, n);', path='gru.cc', above=('  T r, z;',))
        self.has('  if (a && !b) return;', 'condition', 'if (a || !b) return;')
        self.has('  if (a && !b) return;', 'condition', 'if (a && b) return;')
        self.has('  check(x);', 'missing statement', ';')
        kinds = {kind for kind, _ in found('  return a * b;')}
        self.assertIn('NaN on an interval', kinds)

    def test_nothing_where_nothing_is_computed(self):
        for line in ('  // y = x + 1;', '#define SUM(a, b) a + b', 'int kTop = 1 + 2;', '  using T = A<1>;',
                     '  fail("op", "needs " + a.str());', '  out.reserve(n + 1);'):
            self.assertEqual(found(line), set(), line)
        self.assertEqual(found('  y = "a + b";'), {('missing statement', ';')})
        # The end of a statement is not a statement.
        self.assertNotIn(('missing statement', ';'), found('  check(x);', above=('  auto y =',)))
        cases = 'GRADUS_OP_CASES(\n    {"add", {{2, 3}}, [](auto& in) { return in[0] + in[1]; }});'
        self.assertEqual(list(faults.faults_of_file('add.cc', cases)), [])

    def test_a_name_that_is_not_there_is_not_swapped_in(self):
        self.assertNotIn(('swapped gate', 'h = mix(z, n);'), found('  h = mix(r, n);', path='gru.cc'))
        # r and z are gates only in files that have gates
        self.assertNotIn(('swapped gate', 'h = mix(z, n);'), found('  h = mix(r, n);', above=('  T r, z;',)))

    def test_areas_are_of_files_that_there_are(self):
        for area in run.AREAS:
            self.assertTrue(run.files_of(area, run.ROOT), area)

    def test_equivalent_faults_are_of_lines_that_there_are(self):
        with open(os.path.join(HERE, 'equivalent.json'), encoding='utf-8') as f:
            for known in json.load(f):
                with open(os.path.join(HERE, '../..', known['path']), encoding='utf-8') as source:
                    self.assertIn(known['old'], {line.strip() for line in source}, known['path'])


if __name__ == '__main__':
    unittest.main()
