#!/usr/bin/env python3
"""embed.py OUT FILE...: the files as one C++ source, lens::kPageFiles, by name: schemas as they are, pages put together.

A page is shell.html around NAME.html, which says in its first line what styles and scripts it has besides the common ones,
"{{uses a.css b.js}}", "self" among them if it asks the server that it comes from. What several pages have is a file of its own,
"{{measured.part}}". Only a page's data is missing, "{{data}}". Its
content security policy names its one script and its one sheet by their hashes: nothing that may ever stand in the data is run,
applied, fetched or sent.
"""
import base64
import hashlib
import os
import re
import sys

PIECE = 8000  # characters a literal; compilers need not take more than 65536 in one


def literal(text):
    pieces = [text[i:i + PIECE] for i in range(0, len(text), PIECE)] or ['']
    for piece in pieces:
        assert ')~"' not in piece, 'the delimiter of raw strings'
    return '\n'.join('R"~(' + piece + ')~"' for piece in pieces)


def page(name, files):
    uses, body = re.fullmatch(r'\{\{uses ([^}]*)\}\}(.*)', files[name + '.html'], re.S).groups()
    body = re.sub(r'\{\{([a-z]+\.part)\}\}', lambda m: files[m[1]].rstrip('\n'), body)
    joined = {end: ''.join(files[f] for f in uses.split() if f.endswith(end)) for end in ('.css', '.js')}
    parts = {'name': name, 'body': body, 'styles': joined['.css'], 'scripts': joined['.js'], 'data': '{{data}}',
             'common.css': files['common.css'], 'common.js': files['common.js'], 'policy': '{{policy}}'}
    text = re.sub(r'\{\{([a-z.]+)\}\}', lambda m: parts[m[1]], files['shell.html'])

    def hashed(tag):
        (inside,) = re.findall('<%s>(.*?)</%s>' % (tag, tag), text, re.S)
        return "'sha256-%s'" % base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()

    # The page of a server may ask that server, and nobody else.
    asks = ["connect-src 'self'"] if 'self' in uses.split() else []
    rules = ["default-src 'none'", *asks, 'script-src ' + hashed('script'), 'style-src ' + hashed('style'), 'img-src data:',
             "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", 'trusted-types lens']
    return text.replace('{{policy}}', '; '.join(rules))


out, files = sys.argv[1], {}
for path in sys.argv[2:]:
    with open(path, encoding='utf-8') as file:
        files[os.path.basename(path)] = file.read()
written = {name: text for name, text in files.items() if name.endswith('.json')}
for name in files:
    if name.endswith('.html') and name != 'shell.html':
        written[name] = page(name[:-5], files)
with open(out, 'w', encoding='utf-8') as f:
    f.write('#include <string_view>\n#include <utility>\n\nnamespace lens {\n\n')
    f.write('extern const std::pair<std::string_view, std::string_view> kPageFiles[];\n')
    f.write('extern const size_t kPageFileCount;\n')
    f.write('const std::pair<std::string_view, std::string_view> kPageFiles[] = {\n')
    for name, text in written.items():
        f.write('{"%s",\n%s},\n' % (name, literal(text)))
    f.write('};\nconst size_t kPageFileCount = %d;\n\n}  // namespace lens\n' % len(written))
