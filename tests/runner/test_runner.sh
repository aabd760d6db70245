#!/usr/bin/env bash
# test_runner.sh DIR SOURCE: tools/test against runs that end in the middle, are killed, or leave half a log. In DIR stands
# a tree with SOURCE's tools/test and a meson and a ninja that only pretend: their "log" is what a case writes.
set -euo pipefail
dir="$1" source="$2"
wrong=0 cases=0

rm -rf "$dir"
mkdir -p "$dir/tree/tools" "$dir/bin"
cp "$source"/tools/{test,setup,count.awk} "$dir/tree/tools/"
# find_meson asks for the version, build() for a configured directory; the rest is what the case says.
cat >"$dir/bin/meson" <<'END'
#!/usr/bin/env bash
case "$*" in
  --version) echo 1.0.1 ;;
  setup*) mkdir -p "$2" && : >"$2/build.ninja" ;;
  *--list*) cat "$FAKE/listed" ;;
  test*)
    mkdir -p "$3/meson-logs"
    cp "$FAKE/log" "$3/meson-logs/testlog.json" 2>/dev/null
    source "$FAKE/end" ;;
esac
END
printf '#!/bin/sh\nexit ${FAKE_NINJA:-0}\n' >"$dir/bin/ninja"
chmod +x "$dir/bin"/*
export FAKE="$dir" MESON="$dir/bin/meson" PATH="$dir/bin:$PATH"
unset CI

# result NAME RESULT PROGRAM OUTPUT: a line of the log. OUTPUT as it stands in JSON.
result() {
  printf '{"name": "gradus:%s", "stdout": "%s", "result": "%s", "is_fail": false, "starttime": 1.5, "duration": 0.1, ' \
    "$1" "$4" "$2"
  printf '"returncode": 0, "env": {"A": "\\"result\\": \\"FAIL\\""}, "command": ["/b/tests/%s", "-x"]}\n' "$3"
}
cases_line() { printf '[doctest] run\\n[cases] %s passed, %s failed, %s skipped\\n' "$@"; }

# check WHAT LAST CODE [TEXT...]: runs tools/test; its last line is to be LAST, its exit code CODE, each TEXT in its output
# once. "!TEXT": not in it.
check() {
  local what="$1" last="$2" code="$3" got=0 text found
  shift 3
  "$dir/tree/tools/test" --no-install ${options:-} >"$dir/out" 2>&1 || got=$?
  cases=$((cases + 1))
  complain() { wrong=$((wrong + 1)); echo "WRONG: $what: $*"; sed 's/^/    /' "$dir/out"; }
  [ "$(tail -1 "$dir/out")" = "$last" ] || complain "the last line is not \"$last\""
  [ "$got" = "$code" ] || complain "exit code $got, not $code"
  for text in "$@"; do
    found="$(grep -cF -- "${text#!}" "$dir/out" || true)"
    if [ "${text#!}" = "$text" ]; then [ "$found" = 1 ] || complain "\"$text\" $found times"
    else [ "$found" = 0 ] || complain "there is \"${text#!}\""; fi
  done
}

engine="$(result engine OK engine/test_engine "$(cases_line 5 0 0)")"
kernels="$(result kernels OK kernels/test_kernels "[skipped] amx: no \\\"AMX\\\" here\\n$(cases_line 3 0 1)")"
pages="$(result 'lens pages' OK lens/test_pages.py '30 pages opened, 0 failures\n')"
printf 'gradus:engine\ngradus:kernels\ngradus:lens pages\n' >"$dir/listed"
log() { printf '%s\n' "$@" >"$dir/log"; }
ends() { printf '%s\n' "$1" >"$dir/end"; }
ends 'exit 0'

log "$engine" "$kernels" "$pages"
check "all is well" "9 passed, 0 failed, 1 skipped" 0 'skipped  gradus:kernels: amx: no "AMX" here' '!FAILED'
options=--both
check "twice: the reason once" "18 passed, 0 failed, 2 skipped" 0 'skipped  gradus:kernels: amx: no "AMX" here'
options=

# The runner.
log "$engine"
ends 'kill -9 $$'
check "the runner is killed" "5 passed, 3 failed, 0 skipped" 1 'exit code 137' 'gradus:kernels: no result in the log'
log "$engine" "$kernels" "$pages"
check "the runner is killed with its log complete" "9 passed, 1 failed, 1 skipped" 1 'exit code 137'
ends 'exit 1'
check "the runner says that something failed, the log does not" "9 passed, 1 failed, 1 skipped" 1 'exit code 1'
ends 'exit 0'
log "$engine" "$pages"
check "a test is listed and not in the log" "6 passed, 1 failed, 0 skipped" 1 'gradus:kernels: no result in the log'
rm "$dir/log"
check "there is no log" "0 passed, 3 failed, 0 skipped" 1
log ''
: >"$dir/log"
check "the log is empty" "0 passed, 3 failed, 0 skipped" 1
cp "$dir/listed" "$dir/kept"
: >"$dir/listed"
check "nothing is listed" "0 passed, 1 failed, 0 skipped" 1 'no test was listed'
cp "$dir/kept" "$dir/listed"

# Logs that break off: in a line's text, before its result, before its end, and before the last of three.
whole="$(printf '%s\n' "$engine" "$kernels" "$pages")"
last=${#pages} line=${#kernels}
for cut in 1 20 $((last - 200)) $((last - 60)) $((last - 1)); do
  printf '%s' "${whole:0:$((${#whole} - cut))}" >"$dir/log"
  check "the log ends $cut bytes early" "8 passed, 2 failed, 1 skipped" 1 \
    'the log breaks off in line 3' 'gradus:lens pages: no result in the log'
done
printf '%s' "${whole:0:$((${#whole} - last - line / 2))}" >"$dir/log"
check "the log ends in its middle" "5 passed, 3 failed, 0 skipped" 1 'the log breaks off in line 2'
printf '%s' "$whole" >"$dir/log"
check "the log lacks only its last line feed" "9 passed, 0 failed, 1 skipped" 0

# The programs.
crashed() { result kernels "$1" kernels/test_kernels "$2"; }
ends 'exit 1'
log "$engine" "$(crashed FAIL 'TEST CASE: a\nSIGSEGV')" "$pages"
check "a program crashes" "6 passed, 1 failed, 0 skipped" 1 'gradus:kernels: ended (FAIL) before it had counted its cases'
log "$engine" "$(crashed TIMEOUT '')" "$pages"
check "a program hangs" "6 passed, 1 failed, 0 skipped" 1 'gradus:kernels: ended (TIMEOUT)'
log "$engine" "$(crashed FAIL "$(cases_line 3 2 1)")" "$pages"
check "cases fail" "9 passed, 2 failed, 1 skipped" 1 '!exit code 1'
log "$engine" "$(crashed FAIL "$(cases_line 4 0 0)ERROR: LeakSanitizer")" "$pages"
check "a leak at the end" "10 passed, 1 failed, 0 skipped" 1 'gradus:kernels: FAIL'
log "$engine" "$kernels" "$(result 'lens pages' FAIL lens/test_pages.py 'oh\n')"
check "a script fails" "8 passed, 1 failed, 1 skipped" 1 'gradus:lens pages: FAIL'
ends 'exit 0'
log "$engine" "$(crashed OK 'TEST CASE: a\n')" "$pages"
check "a program ends with 0 in its middle" "6 passed, 1 failed, 0 skipped" 1 'ended (OK) before it had counted'
log "$engine" "$(crashed OK 'says [cases] 3 passed, 0 failed, 0 skipped\n')" "$pages"
check "what only looks like a count" "6 passed, 1 failed, 0 skipped" 1 'ended (OK) before it had counted'

# Skips.
log "$engine" "$kernels" "$(result 'lens pages' SKIP lens/test_pages.py '[skipped] no Chromium\n')"
check "a script skips itself" "8 passed, 0 failed, 2 skipped" 0 'skipped  gradus:lens pages: no Chromium'
log "$engine" "$kernels" "$(result 'lens pages' OK lens/test_pages.py '[skipped] no dark page\nrest\n')"
check "a script skips a part" "9 passed, 0 failed, 2 skipped" 0 'skipped  gradus:lens pages: no dark page'
log "$engine" "$kernels" "$(result 'lens pages' SKIP lens/test_pages.py '')"
check "a script skips without a reason" "8 passed, 0 failed, 2 skipped" 0 'gradus:lens pages: (no reason given)'

# --all: the thread sanitizer's suite has its part, then the scripts.
options=--all
mkdir -p "$dir/tree/tests"
script() { printf '#!/bin/sh\n%s\n' "$2" >"$dir/tree/tests/$1"; chmod +x "$dir/tree/tests/$1"; }
script tidy 'echo "[cases] 20 passed, 0 failed, 0 skipped"'
script fuzz 'echo "[skipped] there is no clang"; exit 77'
log "$engine" "$kernels" "$pages"
check "scripts that count, and one that skips itself" "47 passed, 0 failed, 4 skipped" 0 \
  'skipped  tests/fuzz: there is no clang' 'build-thread: 9 test'
script tidy 'echo "a.cc:1: error"; echo "[cases] 18 passed, 2 failed, 0 skipped"; exit 1'
check "a script finds something" "45 passed, 2 failed, 4 skipped" 1 'a.cc:1: error'
script tidy 'kill -9 $$'
check "a script is killed" "27 passed, 1 failed, 4 skipped" 1 'tests/tidy ended with exit code 137 before'
script tidy 'echo "[cases] 20 passed, 0 failed, 0 skipped"; exit 3'
check "a script counts and fails" "47 passed, 1 failed, 4 skipped" 1 'tests/tidy ended with exit code 3'
rm "$dir/tree/tests/fuzz"
check "a script is missing" "47 passed, 2 failed, 3 skipped" 1 'tests/fuzz ended with exit code 127'
# --ci: the same, with fewer tests under the sanitizers.
script tidy 'echo "[cases] 20 passed, 0 failed, 0 skipped"'
script fuzz '[ "$*" = "--engine build-test" ] && echo "[cases] 15 passed, 0 failed, 0 skipped"'
options=--ci
check "as continuous integration does" "62 passed, 0 failed, 3 skipped" 0 'build-sanitize: 9 test'
options=

# What is before the tests.
FAKE_NINJA=1 check "the build fails" "0 passed, 1 failed, 0 skipped" 1 'the build failed'
options=--no-such-option
check "a wrong option" "test: unknown option: --no-such-option (see --help)" 1

echo "$cases runs, $wrong wrong"
[ "$wrong" = 0 ]
