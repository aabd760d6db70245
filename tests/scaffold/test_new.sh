#!/usr/bin/env bash
# test_new.sh DIR SOURCE BUILD MESON: what tools/new-layer and tools/new-attention write compiles without a warning, passes its
# tests, and is entered in the build. Compiled by hand against the libraries of BUILD: a whole build would take minutes.
set -euo pipefail
dir="$1" source="$2" build="$3" meson="$4"

fail() { echo "FAILED: $*"; exit 1; }

rm -rf "$dir"
(cd "$source" && find . \( -path './build*' -o -path './.git' \) -prune -o \( -name meson.build -o -name meson.options \) -print) |
  while read -r file; do
    mkdir -p "$dir/tree/$(dirname "$file")"
    cp "$source/$file" "$dir/tree/$file"
  done
tree="$dir/tree"
"$source/tools/new-layer" my_layer --root "$tree"
"$source/tools/new-attention" my_attention --root "$tree"
if "$source/tools/new-layer" my_layer --root "$tree" 2>/dev/null; then fail "a layer was overwritten"; fi
if "$source/tools/new-layer" MyLayer --root "$tree" 2>/dev/null; then fail "a bad name was taken"; fi

includes="-I$tree/nn -I$tree/examples -I$source/lib -I$source/nn -I$source/examples"
flags="-std=c++20 -O0 -Wall -Wextra -Werror -Wno-restrict"
libraries="$build/nn/libgradus-nn.a $build/lib/libgradus.a $(pkg-config --libs fmt openblas libhwy) -pthread"
compile() { ${CXX:-c++} $flags $includes -c "$tree/$1" -o "$dir/$(basename "$1" .cc).o" || fail "$1"; }
# Meson reads the build files without configuring: each new file must be a source of the target that it is meant for.
$meson introspect --targets "$tree/meson.build" >"$dir/targets.json" || fail "Meson cannot read the entries"
python3 - "$dir/targets.json" <<'EOF' || fail "an entry in a meson.build is missing"
import json, sys
meant = {("test_nn", "tests/nn/test_my_layer.cc"), ("my_layer", "examples/my_layer.cc"),
         ("translator", "examples/translator/attentions/my_attention.cc"), ("test_attentions", "tests/attentions/test_my_attention.cc")}
built = {(t["name"], f.split("/tree/")[-1]) for t in json.load(open(sys.argv[1])) for s in t["target_sources"] for f in s["sources"]}
for target, file in meant - built:
    print(f"{file} is not a source of {target}")
sys.exit(bool(meant - built))
EOF
# The library's list grows over several files, and what Meson reads without configuring then has only the last of them.
grep -q "^  'my_layer.cc'," "$tree/nn/gradus/nn/meson.build" || fail "the layer would not be built"
grep -q "'my_layer.h'" "$tree/nn/gradus/nn/meson.build" || fail "the header would not be installed"
compile nn/gradus/nn/my_layer.cc
mv "$dir/my_layer.o" "$dir/layer.o"
compile examples/my_layer.cc
compile tests/nn/test_my_layer.cc
compile examples/translator/attentions/my_attention.cc
compile tests/attentions/test_my_attention.cc
link() { local out="$1"; shift; ${CXX:-c++} "$@" -o "$dir/$out" || fail "linking $out"; }
link test_layer "$dir/test_my_layer.o" "$dir/layer.o" "$build/tests/libdoctest_main.a" $libraries
link example "$dir/my_layer.o" "$dir/layer.o" $libraries
link test_attention "$dir/test_my_attention.o" "$dir/my_attention.o" "$build/tests/libdoctest_main.a" $libraries
"$dir/test_layer" || fail "the layer's test"
"$dir/example" || fail "the layer's example"
"$dir/test_attention" || fail "the attention's test"

# The translator with one more object file knows one more attention.
app="$build/examples/translator"
link translator "$app/translator.p/main.cc.o" "$dir/my_attention.o" "$app/libtranslator_app.a" \
  $(find "$app" -name '*.a' ! -name libtranslator_app.a) $libraries $(pkg-config --libs libutf8proc)
"$dir/translator" train --attention my-attention --corpus-size 200 --epochs 1 --hidden 16 --embedding 16 --threads 1 \
  --quiet --out "$dir/model" || fail "train --attention my-attention"
"$dir/translator" translate "$dir/model" "he likes apples" >/dev/null || fail "translate"
# All of it is read: grep -q would end the translator in the middle of its help.
"$dir/translator" train --help | grep my-attention >/dev/null || fail "--help does not name it"
echo "new-layer and new-attention: what they write compiles, passes and trains"
rm -rf "$dir"
