#!/usr/bin/env bash
# test_subproject.sh DIR SOURCE MESON: a project that has Gradus under subprojects/, as a wrap would put it there.
set -euo pipefail
dir="$1" source="$2" meson="$3"
here="$(cd "$(dirname "$0")" && pwd)"
rm -rf "$dir"
mkdir -p "$dir"
cp -r "$here/project" "$dir/project"
cp "$here/outside.cc" "$dir/project/"
mkdir "$dir/project/subprojects"
ln -s "$source" "$dir/project/subprojects/gradus"
# The wrap file of docs/extending.md.
python3 "$source/tests/docs/extract.py" "$source/docs/extending.md" "$dir/page" --all
cp "$dir/page/subprojects/gradus.wrap" "$dir/project/subprojects/"
# Unoptimised: what is tested is that it builds. Only from the subproject: an installed Gradus would not be noticed.
# Gradus has a buildtype of its own, which counts for more than the project's options.
{ $meson setup "$dir/build" "$dir/project" --force-fallback-for=gradus-nn -Doptimization=0 -Ddebug=false \
    -Dgradus:buildtype=debug -Dgradus:debug=false &&
  ninja -C "$dir/build" -j2 && $meson test -C "$dir/build" --no-rebuild --print-errorlogs; } >"$dir/log" 2>&1 || { cat "$dir/log"; echo "FAILED"; exit 1; }
echo "an outside project builds with Gradus as a subproject and passes its tests"
rm -rf "$dir"
