# Counts what Meson's tests came to: awk -v listed=FILE -f count.awk testlog.json
# FILE names the tests that were to run, one a line; the log has one JSON object a line, as each test ended. Prints
#   counts PASSED FAILED SKIPPED       of test cases, over all programs
#   problem TEXT                       for each failure that no program's output tells: a test that is not in the log, a
#                                      line that breaks off, a program that ended before its count
#   skip PROGRAM: REASON               for each case that was skipped
# A program counts its cases itself and says so in its last line, "[cases] 3 passed, 0 failed, 1 skipped". Programs of
# doctest (named test_*, no script) must have come to that line; another program without it is one case.

# The text after "key": in `line`, where \\ and \" were replaced by one character each; "" when it is no whole text.
function text_of(line, key,    at, rest, end) {
  at = index(line, "\"" key "\": \"")
  if (!at) return ""
  rest = substr(line, at + length(key) + 5)
  end = index(rest, "\"")
  if (!end) return ""
  rest = substr(rest, 1, end - 1)
  gsub(/\\n/, "\n", rest); gsub(/\\[rt]/, " ", rest); gsub(/\002/, "\"", rest); gsub(/\001/, "\\", rest)
  return rest
}

BEGIN {
  if (listed == "") { print "problem no list of tests was given"; exit }
  while ((getline name < listed) > 0) if (name != "") wanted[++number] = name
}

{
  line = $0
  gsub(/\\\\/, "\001", line); gsub(/\\"/, "\002", line)
  name = text_of(line, "name"); result = text_of(line, "result")
  if (line !~ /^\{.*\}$/ || name == "" || result == "" || !index(line, "\"command\": [")) {
    print "problem the log breaks off in line " NR ": " substr($0, 1, 60); ++failed
    next
  }
  ++seen[name]
  good = result == "OK" || result == "EXPECTEDFAIL"
  program = text_of("\"p\": " substr(line, index(line, "\"command\": [") + 12), "p")
  sub(/.*\//, "", program)
  p = f = s = reasons = told = 0
  rows = split(text_of(line, "stdout"), row, "\n")
  for (i = 1; i <= rows; ++i) {
    if (row[i] ~ /^\[skipped\] /) { print "skip " name ": " substr(row[i], 11); ++reasons }
    if (row[i] ~ /^\[cases\] [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/) {
      split(row[i], n, " ")
      p += n[2]; f += n[4]; s += n[6]; told = 1
    }
  }
  if (result == "SKIP") {
    if (!reasons) print "skip " name ": (no reason given)"
    skipped += reasons ? reasons : 1
    next
  }
  if (!told && program ~ /^test_[a-z0-9_]*$/) {
    print "problem " name ": ended (" result ") before it had counted its cases"; f = 1
  } else if (!told) {
    p = good; f = !good; s = reasons
  }
  if (!good && (f == 0 || !told && program !~ /^test_[a-z0-9_]*$/)) { print "problem " name ": " result; f = f ? f : 1 }
  passed += p; failed += f; skipped += s
}

END {
  for (i = 1; i <= number; ++i)
    if (!seen[wanted[i]]) { print "problem " wanted[i] ": no result in the log"; ++failed }
  if (number == 0) { print "problem no test was listed"; ++failed }
  print "counts " passed + 0 " " failed + 0 " " skipped + 0
}
