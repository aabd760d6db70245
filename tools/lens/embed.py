#!/usr/bin/env python3
"""embed.py OUT FILE...: the files as one C++ source, lens::kPageFiles, by name."""
import os
import sys

PIECE = 8000  # characters a literal; compilers need not take more than 65536 in one


def literal(text):
    pieces = [text[i:i + PIECE] for i in range(0, len(text), PIECE)] or ['']
    for piece in pieces:
        assert ')~"' not in piece, 'the delimiter of raw strings'
    return '\n'.join('R"~(' + piece + ')~"' for piece in pieces)


out, files = sys.argv[1], sys.argv[2:]
with open(out, 'w', encoding='utf-8') as f:
    f.write('#include <string_view>\n#include <utility>\n\nnamespace lens {\n\n')
    f.write('extern const std::pair<std::string_view, std::string_view> kPageFiles[];\n')
    f.write('extern const size_t kPageFileCount;\n')
    f.write('const std::pair<std::string_view, std::string_view> kPageFiles[] = {\n')
    for path in files:
        with open(path, encoding='utf-8') as page:
            f.write('{"%s",\n%s},\n' % (os.path.basename(path), literal(page.read())))
    f.write('};\nconst size_t kPageFileCount = %d;\n\n}  // namespace lens\n' % len(files))
