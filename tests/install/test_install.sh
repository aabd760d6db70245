#!/usr/bin/env bash
# test_install.sh TREE SOURCE BUILD MESON: installs BUILD into TREE and uses it as somebody else's project would.
# Prints each step; exits with 1 where one fails.
set -euo pipefail
tree="$1" source="$2" build="$3" meson="$4"
here="$(cd "$(dirname "$0")" && pwd)"

fail() { echo "FAILED: $*"; exit 1; }

rm -rf "$tree"
mkdir -p "$tree"
# MESON may hold several words, as may CXX below.
$meson install -C "$build" --no-rebuild --destdir "$tree" >"$tree/install.log" 2>&1 ||
  { cat "$tree/install.log"; fail "meson install"; }
files="$(find "$tree" -type f | wc -l)"
echo "installed  $files files"
# Nothing is left out by those who install the programs and what programs are built with one after the other.
$meson install -C "$build" --no-rebuild --tags runtime,devel --destdir "$tree/tagged" >"$tree/log" 2>&1 ||
  { cat "$tree/log"; fail "meson install --tags"; }
[ "$(find "$tree/tagged" -type f | wc -l)" = $((files - 1)) ] ||  # the log is none of them
  fail "files with neither of the tags runtime and devel"
rm -rf "$tree/tagged"

# The pkg-config files say where they lie, so that an installed tree can be moved.
found="$(find "$tree" -name gradus.pc)"
[ -n "$found" ] || fail "no gradus.pc in the tree"
export PKG_CONFIG_PATH="${found%/gradus.pc}${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
include="$(pkg-config --variable=includedir gradus)"
for name in gradus gradus-nn gradus-lens; do
  [ -n "$(pkg-config --modversion $name)" ] || fail "$name has no version"
  case "$(pkg-config --cflags $name)" in
    *"$source"/lib* | *"$source"/nn*) fail "$name.pc points into the source tree" ;;
  esac
done
echo "pkg-config gradus $(pkg-config --modversion gradus), gradus-nn $(pkg-config --modversion gradus-nn)"

# Every installed header lies where the source tree has it, and compiles by itself.
headers="$(cd "$include" && find gradus -name '*.h' | sort)"
[ -n "$headers" ] || fail "no headers"
for header in $headers; do
  cmp -s "$include/$header" "$source/lib/$header" || cmp -s "$include/$header" "$source/nn/$header" ||
    fail "$header is not the source tree's"
done
# Those that stay at home are for the library's own .cc files and say so, or have a reason in this list.
internal='^gradus/(kernels/.*|nn/packed/.*|io/json_header)\.h$'
for header in $({ cd "$source/lib" && find gradus -name '*.h'; cd "$source/nn" && find gradus -name '*.h'; }); do
  [ ! -f "$include/$header" ] || continue
  file="$source/lib/$header"
  [ -f "$file" ] || file="$source/nn/$header"
  [[ "$header" =~ $internal ]] || head -12 "$file" | grep -qi 'not installed' ||
    fail "$header is not installed and does not say that it is internal"
done
# In either order, so that no header lives on what another one included before it.
for order in sort 'sort -r'; do
  printf '#include <%s>\n' $headers | $order >"$tree/headers.cc"
  # shellcheck disable=SC2046
  ${CXX:-c++} -std=c++20 -fsyntax-only "$tree/headers.cc" $(pkg-config --cflags gradus-nn) || fail "headers, by $order"
done
echo "headers    $(printf '%s\n' "$headers" | wc -l) of them, each where the source tree has it"

# Public headers keep the libraries behind Gradus to themselves.
if grep -lE '#include *[<"](fmt|hwy|cblas|openblas|nlohmann|doctest|CLI)' $(printf "$include/%s\n" $headers); then
  fail "these public headers include a dependency"
fi

# No --static: what a static library needs is part of what pkg-config says.
# shellcheck disable=SC2046
${CXX:-c++} -std=c++20 -O1 -Wall -Wextra "$here/outside.cc" -o "$tree/outside" $(pkg-config --cflags --libs gradus-nn) ||
  fail "a program with gradus-nn"
LD_LIBRARY_PATH="$(pkg-config --variable=libdir gradus)" "$tree/outside" || fail "running it"
# shellcheck disable=SC2046
${CXX:-c++} -std=c++20 -O1 -DENGINE_ONLY "$here/outside.cc" -o "$tree/engine" $(pkg-config --cflags --libs gradus) ||
  fail "a program with gradus alone"
LD_LIBRARY_PATH="$(pkg-config --variable=libdir gradus)" "$tree/engine" || fail "running that"
echo "outside    programs compile, link and run"

# A whole project of somebody else's, with Meson and with CMake.
cp -r "$here/project" "$tree/project"
cp "$here/outside.cc" "$tree/project/"
export LD_LIBRARY_PATH="$(pkg-config --variable=libdir gradus)"
{ $meson setup "$tree/with-meson" "$tree/project" && $meson test -C "$tree/with-meson" --print-errorlogs; } \
  >"$tree/log" 2>&1 || { cat "$tree/log"; fail "a project with Meson"; }
echo "meson      an outside project builds and passes its tests"
if command -v cmake >/dev/null; then
  # Only where the tree lies is said; what it links to comes from there.
  { env -u PKG_CONFIG_PATH cmake -S "$tree/project" -B "$tree/with-cmake" -DCMAKE_PREFIX_PATH="${found%/*/pkgconfig/gradus.pc}" \
      -Dgradus_DIR="${found%/pkgconfig/gradus.pc}/cmake/gradus" &&
    cmake --build "$tree/with-cmake" && (cd "$tree/with-cmake" && ctest --output-on-failure); } >"$tree/log" 2>&1 ||
    { cat "$tree/log"; fail "a project with CMake"; }
  echo "cmake      an outside project builds and passes its tests"
else
  echo "[skipped] a project with CMake: no cmake here"
fi

# lens, with the model that comes with it: the installed one, not the source tree's.
lens="$(find "$tree" -path '*/bin/lens')"
[ -n "$lens" ] || fail "lens is not installed"
"$lens" --help | grep -q 'explain.*attention microscope' || fail "lens --help"
"$lens" explain --out "$tree/explain.html" 2>"$tree/log" || { cat "$tree/log"; fail "lens explain"; }
grep -q '</html>' "$tree/explain.html" || fail "lens explain writes a page"
echo 'broken' >"$(find "$tree" -path '*/gradus-lens/model/config.json')"
if "$lens" explain --text >"$tree/log" 2>&1; then fail "lens looks for its model elsewhere"; fi
grep -q "$tree" "$tree/log" || { cat "$tree/log"; fail "lens names its model"; }
(cd "$tree" && "$lens" lesson 5 --solution >solution.cc && mkdir -p gradus-lessons && cp solution.cc gradus-lessons/05-softmax.cc &&
  "$lens" lesson 5) >"$tree/log" 2>&1 || { cat "$tree/log"; fail "lens lesson"; }
grep -q 'chapter 5 done' "$tree/log" || { cat "$tree/log"; fail "lens lesson 5"; }
echo "lens       explains a sentence with the model that was installed, builds and judges a lesson"

# docs/extending.md: its listings in a directory, and its commands as they stand. This is what ~/.local would be.
extract="python3 $source/tests/docs/extract.py $source/docs/extending.md"
mkdir "$tree/home"
ln -s "$(pkg-config --variable=prefix gradus)" "$tree/home/.local"
$extract "$tree/mine" --all
routes=meson
if command -v cmake >/dev/null; then routes="meson cmake"; fi
for route in $routes; do
  $extract --commands $route | sed "s|^meson |$meson |" >"$tree/commands"
  (cd "$tree/mine" && HOME="$tree/home" bash -e "$tree/commands") >"$tree/log" 2>&1 ||
    { cat "$tree/log"; fail "docs/extending.md with $route"; }
  grep -qx learned "$tree/log" || fail "docs/extending.md: not learned with $route"
done
echo "page       the commands of docs/extending.md work as written: $routes"
rm -rf "$tree"
