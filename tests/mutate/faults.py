"""Small faults for tests/mutate/run: where in a C++ file one can stand, and what the line then says.

Nothing is parsed: a fault is found line by line, by its shape, in a file formatted as .clang-format says.
Comments, strings, preprocessor lines, declarations at the left margin, error texts and the op cases at the
end of an op's file are passed over. A fault that does not compile is no fault; the driver notices that.
"""

import re

KINDS = [
    'sign', 'index', 'constant', 'missing term', 'dropped accumulation', 'off by one', 'NaN on an interval',
    'skipped lane', 'swapped gate', 'condition', 'missing statement',
]

# Names that stand for each other in a fault of the kind "swapped gate"; GATES only in files that have gates.
PAIRS = [
    ('reset', 'update'), ('forget', 'input'), ('gate', 'candidate'), ('query', 'key'), ('key', 'value'),
    ('keys', 'values'), ('keys', 'annotations'), ('source', 'target'), ('source', 'lengths'), ('left', 'right'),
    ('rows', 'columns'), ('first', 'last'), ('begin', 'end'), ('forward', 'backward'), ('mean', 'variance'),
    ('before', 'after'), ('weight_ih', 'weight_hh'), ('bias_ih', 'bias_hh'), ('b_ih', 'b_hh'),
    ('hypothesis', 'reference'), ('hypotheses', 'references'), ('row', 'column'), ('beta1', 'beta2'),
    ('low', 'high'), ('min', 'max'), ('x', 'y'), ('a', 'b'), ('B', 'H'), ('S', 'B'), ('T', 'B'), ('M', 'N'),
    ('rows', 'width'), ('dy', 'y'), ('dh', 'dc'), ('correct', 'total'), ('train', 'valid'), ('token', 'parent'),
    ('epoch', 'step'),
]
GATES = [('r', 'z'), ('z', 'n'), ('r', 'n'), ('i', 'f'), ('f', 'g'), ('i', 'g'), ('i', 'o'), ('f', 'o'),
         ('vz', 'vn'), ('dz', 'dn')]
GATED_FILE = re.compile(r'(gru|lstm|rnn|recurrent_cell|inference)\.cc$')

IDENT = r'[A-Za-z_]\w*'
OPEN, CLOSE = '([{', ')]}'


def masked(text):
    """The text with comments, strings, error texts and preprocessor lines blotted out, letter for letter."""
    out = list(text)

    def blot(begin, end):
        for i in range(begin, end):
            if out[i] != '\n':
                out[i] = '\x01'

    # A character literal is no digit separator: nothing alphanumeric stands before it.
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"\w*\(.*?\)\w*"|"(?:\\.|[^"\\\n])*"|'
                       r'(?<![\w])\'(?:\\.|[^\'\\\n])+\'', re.S)
    for found in token.finditer(text):
        blot(*found.span())
    plain = ''.join(out)
    for found in re.finditer(r'^[ \t]*#(?:.*\\\n)*.*$', plain, re.M):
        blot(*found.span())
    for found in re.finditer(r'\b(?:fail|wrong|failed|complain|assert|static_assert)\(|\bthrow\b', plain):
        blot(found.start(), plain.find(';', found.start()) % (len(plain) + 1))
    return ''.join(out)


def executable_lines(text):
    """(number from 0, line, masked line) of the lines in which a fault may stand."""
    lines = text.split('\n')
    blotted = masked(text).split('\n')
    in_case = False  # a function that makes op cases
    for number, (line, mask) in enumerate(zip(lines, blotted)):
        if line.startswith('GRADUS_OP_CASES') or re.match(r'// -+ cases', line):
            return
        if re.match(r'OpCase \w+\(', line):
            in_case = True
        if in_case:
            in_case = line != '}'
            continue
        if not line.startswith('  ') or not mask.strip('\x01 '):
            continue
        if re.match(r'\s*(?:template|using|friend|struct|class|namespace|enum|case|public|private)\b', mask):
            continue
        if re.search(r'\breserve\(|Prefetch|HWY_UNROLL|HWY_DYNAMIC_DISPATCH|\boperator', mask):
            continue
        yield number, line, mask


def closing(text, at):
    """Where the bracket that opens at `at` closes, -1 when not on this line."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in OPEN) - (text[i] in CLOSE)
        if depth == 0:
            return i
    return -1


def arguments(text, at):
    """The spans of the arguments of the call whose bracket opens at `at`; None when it does not close here."""
    end = closing(text, at)
    if end < 0:
        return None
    spans, depth, begin = [], 0, at + 1
    for i in range(at + 1, end):
        depth += (text[i] in OPEN) - (text[i] in CLOSE)
        if text[i] == ',' and depth == 0:
            spans.append((begin, i))
            begin = i + 1
    spans.append((begin, end))
    return spans


def term_end(mask, at, stops):
    """Where the operand that begins at `at` ends: at its level, before one of the operators `stops`."""
    depth, i = 0, at
    while i < len(mask):
        if mask[i] in OPEN:
            depth += 1
        elif mask[i] in CLOSE:
            if depth == 0:
                return i
            depth -= 1
        elif depth == 0 and (mask[i] in ',;?' or any(mask.startswith(s, i) for s in stops)):
            return i
        i += 1
    return -1


SUM_STOPS = (' + ', ' - ', ' < ', ' > ', ' <= ', ' >= ', ' == ', ' != ', ' && ', ' || ', ' : ', ' << ', ' >> ')
FACTOR_STOPS = SUM_STOPS + (' * ', ' / ', ' % ')


def faults_of_line(line, m, before, names, gated, vectors):
    """(kind, what the line says with the fault) for all faults of this line. `before` is the (masked) line
    above it, `names` are the words that occur near it."""
    loop = re.match(r'\s*for \(', m) is not None

    def put(begin, end, text):
        return line[:begin] + text + line[end:]

    def each(pattern):
        return re.finditer(pattern, m)

    # ---- sign ----
    for f in each(r' ([+-]) (?=[\w(])'):
        yield 'sign', put(f.start(1), f.end(1), '-' if f[1] == '+' else '+')
    for f in each(r' ([+-])= '):
        yield 'sign', put(f.start(1), f.end(1), '-' if f[1] == '+' else '+')
    for f in each(r'(?:(?<=\()|(?<=, )|(?<== )|(?<=return )|(?<=\? )|(?<=: ))-(?=[A-Za-z_(])'):
        yield 'sign', put(f.start(), f.end(), '')
    for f in each(r'\bhn::(Add|Sub|MulAdd|NegMulAdd)\('):
        other = {'Add': 'Sub', 'Sub': 'Add', 'MulAdd': 'NegMulAdd', 'NegMulAdd': 'MulAdd'}[f[1]]
        yield 'sign', put(f.start(1), f.end(1), other)

    # ---- index ----
    declares = re.match(r'\s+(?:HWY_ALIGN |const )*(?!return|else)[A-Za-z_][\w:<>]*[ *]+\w+\[', m)
    if not declares:
        for f in each(rf'(?<=[\w\])])\[({IDENT})\]'):
            yield 'index', put(f.start(1), f.end(1), '0')
        for f in each(r'(?<=[\w\])])\[(\d)\]'):
            yield 'index', put(f.start(1), f.end(1), str(int(f[1]) + 1))
    for f in each(r'\b(?:size|add|into|needed|select|row|stride|axes|at)\((-?\d)(?=[,)])'):
        yield 'index', put(f.start(1), f.end(1), str(int(f[1]) + 1))

    # ---- constant ----
    for f in each(r'(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)(?=f?\b)'):
        value = float(f[1])
        yield 'constant', put(f.start(1), f.end(1), repr(value * 1.1 if value else 0.1))
    for f in each(r'(?<=[(, ])(\d+)(?=[),; }])(?! = )'):
        if int(f[1]) == 0 and (loop or not re.search(r' = $', m[:f.start()])):
            continue
        yield 'constant', put(f.start(1), f.end(1), str(int(f[1]) + 1))

    # ---- missing term ----
    for operators, stops in ((r' [+-] (?=[\w(-])', SUM_STOPS), (r' [*/] (?=[\w(-])', FACTOR_STOPS)):
        for f in each(operators):
            end = term_end(m, f.end(), stops)
            if end > 0 and re.search(r'[\w)\]]$', m[:f.start()]):
                yield 'missing term', put(f.start(), end, '')
    for f in each(r'\bhn::(?:Add|Sub|Mul|Max|Min)(?=\()'):
        spans = arguments(m, f.end())
        if spans and len(spans) == 2:
            yield 'missing term', put(f.start(), closing(m, f.end()) + 1, line[slice(*spans[0])].strip())

    # ---- dropped accumulation ----
    if not loop:
        for f in each(r' \+= '):
            yield 'dropped accumulation', put(f.start(), f.end(), ' = ')
    for f in each(r'\bhn::MulAdd(?=\()'):
        spans = arguments(m, f.end())
        if spans and len(spans) == 3:
            kept = line[spans[0][0]:spans[1][1]].strip()
            yield 'dropped accumulation', put(f.start(), closing(m, f.end()) + 1, f'hn::Mul({kept})')
    if re.search(r'\b(?:product|gemm|multiply|multiply_rows)\(', m):
        for f in each(r'\b(true)\b'):
            yield 'dropped accumulation', put(f.start(), f.end(), 'false')
    for f in each(r'(?:^\s+(?:if \(.*\) )?)((?:dx|grads)\.add(?:_rows)?\(.*\);$)'):
        yield 'dropped accumulation', line[:f.start(1)] + ';'

    # ---- off by one ----
    for f in each(r' (<|<=|>|>=) (?=[\w(-])'):
        yield 'off by one', put(f.start(1), f.end(1), f[1][:-1] if f[1].endswith('=') else f[1] + '=')
    for f in each(r' [+-] 1(?=[),;\] ])'):
        yield 'off by one', put(f.start(), f.end(), '')
    if loop:
        for f in each(r' = (0)(?=[,;])'):
            yield 'off by one', put(f.start(1), f.end(1), '1')

    # ---- NaN on an interval ----
    scalar = ('[](auto v) { static_assert(std::is_floating_point_v<decltype(v)>); '
              'return v * v > 0.0625 && v * v < 0.25 ? v * NAN : v; }(')
    vector = ('[](auto v) { using W = hn::TFromV<decltype(v)>; static_assert(std::is_floating_point_v<W>); '
              'const hn::DFromV<decltype(v)> at; const auto w = hn::Abs(v); '
              'return hn::IfThenElse(hn::And(hn::Gt(w, hn::Set(at, W(0.25))), hn::Lt(w, hn::Set(at, W(0.5)))), '
              'hn::Set(at, W(NAN)), v); }(')
    left = r'\breturn|(?:const |\b)(?:auto|float|double|T) \w+ =|^\s+[\w.\[\]>-]+ [+*-]?='
    for f in each(rf'(?:{left}) ([^;{{}}]+)(?=;)'):
        value, blotted = line[f.start(1):f.end(1)], m[f.start(1):f.end(1)]
        if '\x01' in blotted or term_end(m, f.start(1), ()) < f.end(1):
            continue
        if 'hn::' in blotted or '_lanes(d' in blotted:
            yield 'NaN on an interval', put(f.start(1), f.end(1), f'{vector}{value})')
        elif re.search(r' [*/+-] |exp|log|sqrt|tanh|pow|sum|static_cast<(?:double|float|T)>', blotted):
            yield 'NaN on an interval', put(f.start(1), f.end(1), f'{scalar}{value})')
    for f in each(r'\bpart\.store(?=\()'):
        spans = arguments(m, f.end())
        if spans and len(spans) == 3:
            begin, end = spans[0]
            yield 'NaN on an interval', put(begin, end, f'{vector}{line[begin:end]})')

    # ---- skipped lane ----
    if loop:
        for f in each(rf'\+\+({IDENT})\)'):
            yield 'skipped lane', put(f.start(), f.end(), f'{f[1]} += 1 + ({f[1]} == 1))')
    for f in each(r'\b(\w+) \+= (?:4 \* )?(?:lanes|N)\b'):
        yield 'skipped lane', put(f.end(), f.end(), f' + ({f[1]} == 0)')
    for f in each(r'\bfor_lanes\(d, ([^,]+),'):
        yield 'skipped lane', put(f.start(1), f.end(1), f'{f[1]} - 1')
    if vectors:
        for f in each(r'\bhn::StoreU?(?=\()'):
            spans = arguments(m, f.end())
            if spans and len(spans) == 3:
                v, d, p = (line[slice(*s)].strip() for s in spans)
                fewer = f'hn::BlendedStore({v}, hn::FirstN({d}, hn::Lanes({d}) - 1), {d}, {p})'
                yield 'skipped lane', put(f.start(), closing(m, f.end()) + 1, fewer)

    # ---- swapped gate ----
    for pair in PAIRS + (GATES if gated else []):
        for one, other in (pair, pair[::-1]):
            if other not in names:
                continue
            # A use: not what is declared here (a type or & or * before it), not a member, not a call.
            for f in each(rf'(?<![\w.>:&]){one}(?![\w(:]|\s=\s)'):
                left = m[:f.start()]
                if left.endswith(('<', 'sizeof(')) or m.startswith('>', f.end()):
                    continue  # a type
                types = r'(?:auto|float|double|int|T|bool|size_t|int\d+_t|Tensor|Var|string|D|V|P)'
                if re.search(rf'(?:\b{types}&?|[\w>]&|\*|>) $', left) and not left.endswith(' * '):
                    continue
                yield 'swapped gate', put(f.start(), f.end(), other)

    # ---- condition ----
    for f in each(r' (&&|\|\||==|!=) '):
        other = {'&&': '||', '||': '&&', '==': '!=', '!=': '=='}[f[1]]
        yield 'condition', put(f.start(1), f.end(1), other)
    for f in each(r'(?:(?<=\()|(?<= ))!(?=[\w(])'):
        yield 'condition', put(f.start(), f.end(), '')
    for f in each(r'\b(true|false)\b'):
        yield 'condition', put(f.start(), f.end(), 'false' if f[1] == 'true' else 'true')
    for f in each(r'\bif \((?=[\w.]+\()'):
        end = closing(m, f.end() - 1)
        if end > 0:
            yield 'condition', put(f.end(), end, f'!({line[f.end():end]})')

    # ---- missing statement ----
    if not re.search(r'[;{}:)]$|\belse$|^\s*\x01*$', before):
        return  # the end of a statement, not all of it
    call = re.match(rf'\s+(?:{IDENT}(?:\.|->|::))*{IDENT}(?:<\w+>)?\(.*\);$', m)
    if call and closing(m, m.index('(')) == len(m) - 2:
        if not re.match(r'\s+(?:At|if|while|return)\b', m):
            yield 'missing statement', re.match(r'\s+', line)[0] + ';'
    elif re.match(r'\s+[\w.\[\]>-]+ [+*/|-]?= [^;]*;$', m) or re.match(r'\s+(?:\+\+|--)[\w.]+;$', m):
        yield 'missing statement', re.match(r'\s+', line)[0] + ';'


def faults_of_file(path, text):
    """All (kind, line number from 1, line, line with the fault) of a file, each line with a fault once."""
    gated = GATED_FILE.search(path) is not None
    vectors = 'simd-inl.h' in text
    blotted = masked(text).split('\n')
    for number, line, mask in executable_lines(text):
        before = blotted[number - 1].rstrip('\x01 ')
        names = set(re.findall(IDENT, ' '.join(blotted[max(0, number - 25):number + 5])))
        seen = {line}
        for kind, fault in faults_of_line(line, mask, before, names, gated, vectors):
            if fault not in seen:
                seen.add(fault)
                yield kind, number + 1, line, fault
