#!/usr/bin/env bash
# test_new.sh DIR SOURCE BUILD MESON: tools/new-layer and tools/new-attention as a user runs them: in a copy of the tree,
# then Meson and ninja, the tests and the example that they name, and a short training with the new attention.
# Nothing is optimised, tests of other parts are left out, and lib/, which neither tool touches, is the archive that BUILD
# has of it: with them the build would take minutes.
set -euo pipefail
dir="$1" source="$2" build="$3" meson="$4"

fail() { echo "FAILED: $*"; exit 1; }

rm -rf "$dir"
mkdir -p "$dir/tree"
tree="$dir/tree"
(cd "$source" && tar -c --exclude='./build*' --exclude=./.git .) | tar -x -C "$tree"
sed -i "/^  '[a-z_]*\.cc',\$/d" "$tree/tests/nn/meson.build"
sed -i "/^subdir('\(scaffold\|install\)')/d" "$tree/tests/meson.build"
sed -i 's/optimization=[1-3]/optimization=0/' "$tree/meson.build"
cat >"$tree/lib/meson.build" <<END
gradus_inc = include_directories('.')
gradus_lib = declare_dependency(
  dependencies: [cpp.find_library('gradus', dirs: '$build/lib', static: true), fmt, openblas, highway, threads])
gradus_dep = declare_dependency(include_directories: gradus_inc, dependencies: gradus_lib)
gradus_whole_dep = gradus_dep
END
# What the libraries are linked to, and pkg-config files of them, is lib's own affair.
sed -i -e '/^  link_with: gradus_lib,$/d' -e 's/dependencies: \[fmt, threads\],/dependencies: [fmt, threads, gradus_dep],/' \
  -e '/^pkg.generate/,/^$/d' "$tree/nn/meson.build"

cd "$tree"
tools/new-layer my_layer >"$dir/layer" || fail "new-layer"
tools/new-attention my_attention >"$dir/attention" || fail "new-attention"
for tool in new-layer new-attention; do tools/$tool a_second_of_some_length >>"$dir/second" || fail "$tool"; done
wide=$(sed -n 's/^wrote *//p' "$dir/layer" "$dir/attention" "$dir/second" | xargs grep -nE '.{113}|doctest::Approx' || true)
[ -z "$wide" ] || fail "tests/layering would not have it: $wide"
if tools/new-layer my_layer 2>/dev/null; then fail "a layer was overwritten"; fi
# TOOL NAME REASON: the name is refused, and why is said.
refuses() {
  if "tools/$1" "$2" >"$dir/refused" 2>&1; then fail "$1 took the name $2"; fi
  grep -qF -- "$2: $3" "$dir/refused" || fail "$1 refuses $2 with other words: $(cat "$dir/refused")"
}
for taken in dot luong scaled_dot auto none transformer; do
  refuses new-attention $taken "the library's attentions or the translator's options have that name"
done
refuses new-attention scored "nn/gradus/nn/attention/attention.h has a type ScoredAttention already"
refuses new-layer adam "nn/gradus/nn/optimizer.h has a type Adam already"
refuses new-layer tensor "lib/gradus/tensor.h has a type Tensor already"
refuses new-layer input "lib/gradus/autograd.h has a type Input already"
refuses new-layer var "lib/gradus/autograd.h has a type Var already"
refuses new-layer module "nn/gradus/nn/module.h has a type Module already"
refuses new-layer param_visitor "nn/gradus/nn/module.h has a type ParamVisitor already"
refuses new-layer translator "examples/translator is a directory"
refuses new-layer test "Meson has a target of that name"
refuses new-layer coverage "Meson has a target of that name"
if tools/new-layer MyLayer 2>/dev/null; then fail "a bad name was taken"; fi
if tools/new-layer fine --root "$dir" 2>"$dir/refused"; then fail "a layer was written into $dir"; fi
grep -qx "$dir: is no source tree of Gradus: there is no nn/gradus/nn/meson.build" "$dir/refused" || fail "no tree"
grep -q "'my_layer.h'" nn/gradus/nn/meson.build || fail "the header would not be installed"
sed -n "/^lens_exe/,/^)/p" tools/lens/meson.build | grep -q translator_attentions || fail "lens would not know it"

# Both print the commands to go on with, behind an empty line: those are run as they stand.
$meson setup build -Dbuildtype=plain -Doptimization=0 -Dwerror=true -Dtools=false >"$dir/setup.log" 2>&1 ||
  { cat "$dir/setup.log"; fail "meson setup"; }
commands() { sed '1,/^$/d' "$1"; }
ninja=$(sed -n 's/^ *ninja -C build //p' "$dir/layer" "$dir/attention" | tr '\n' ' ')
[ -n "$ninja" ] || fail "no ninja command is printed"
ninja -C build -j2 $ninja >"$dir/build.log" 2>&1 || { tail -50 "$dir/build.log"; fail "the build"; }
small="--corpus-size 200 --epochs 1 --hidden 16 --embedding 16 --threads 1 --quiet --out $dir/model"
for written in layer attention; do
  commands "$dir/$written" | sed "s|^  *ninja -C build|ninja -C build -j2|; s|\(translator train .*\)|\1 $small|" >"$dir/run"
  bash -e "$dir/run" || fail "what new-$written tells to run: $(cat "$dir/run")"
done

translator=build/examples/translator/translator
$translator translate "$dir/model" "he likes apples" >/dev/null || fail "translate"
# All of it is read: grep -q would end the translator in the middle of its help.
$translator train --help | grep my-attention >/dev/null || fail "--help does not name it"
echo "new-layer and new-attention: what they write builds, passes and trains"
rm -rf "$dir"
