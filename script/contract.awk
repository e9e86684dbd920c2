# Checks docs/contract.md against tests/fixtures/contract_items.txt:
#   awk -f script/contract.awk tests/fixtures/contract_items.txt docs/contract.md
# Every item of the four pages has a row in a section that names its page, and every row names a test
# for each language, or says "no test: why" where the list of such cells has it.
FNR == 1 { file++ }
file == 1 && /^(documentation|source|PyTorch|trait) / { items++; item[items] = $2; page[items] = $1; next }
file == 1 && /^no test / { sub(/^no test /, ""); allowed[$0] = 1; next }
file == 1 { next }
/^## / { heading = $0; next }
/^\| item / || /^\|---/ || !/^\|/ { next }
{
  n = split($0, cell, / \| /)
  sub(/^\| /, "", cell[1])
  sub(/ \|$/, "", cell[4])
  if (n != 4) fail("a row has " n " cells, not 4: " cell[1])
  check_tests(cell[3], "C++")
  check_tests(cell[4], "Python")
  # Names in the first cell, without what they take.
  text = cell[1]
  while (match(text, /`[A-Za-z_0-9:]+[`(]/)) {
    name = substr(text, RSTART + 1, RLENGTH - 2)
    if (heading ~ /\(/) known[heading SUBSEP name] = 1
    text = substr(text, RSTART + RLENGTH)
  }
}
function fail(why) { print "docs/contract.md: " why; bad = 1 }
function check_tests(text, language) {
  if (text ~ /`[a-z_]+\/[a-z0-9_\/]+(\.cpp)?`/ || text ~ /\.py::/) return
  if (text !~ /^no test: ./) { fail("no test in " language ": " cell[1]); return }
  key = language ": " cell[1]
  if (!(key in allowed)) fail("this row may not go without a test in " key)
  without++
  used[key] = 1
}
END {
  for (i = 1; i <= items; i++) {
    found = 0
    for (k in known) {
      split(k, part, SUBSEP)
      if (part[2] == item[i] && part[1] ~ page[i]) found = 1
    }
    if (!found) fail("no row for `" item[i] "` of page " page[i])
  }
  for (key in allowed) if (!(key in used)) fail("a cell is allowed to have no test, and has one: " key)
  if (bad) exit 1
  printf "docs: all %d items of the contract have tests; %d cells say why there is none\n", items, without
}
