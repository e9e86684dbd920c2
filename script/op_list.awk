# Turns the op table (kiln/backend/ops.def) into docs/ops.md. Run by script/docs.
#
# A comment that opens a block of ops becomes the paragraph above their table; one in the middle of a
# block becomes the note of the op that follows it.


function cell(text) {
  gsub(/\|/, "\\|", text)
  gsub(/\*/, "\\*", text)
  gsub(/</, "\\&lt;", text)
  return text
}

BEGIN {
  print "# Backend ops"
  print ""
  print "`script/docs` writes this page from `kiln/backend/ops.def`; do not edit it. A backend must have every"
  print "*required* op. A *fallback* is composed from other ops, unless the backend overrides it."
  print ""
  print "`F`, `I`, `B` and `Q` are the backend's float, int, bool and quantized tensors. An `OptF` may be absent."
  print "`FList`, `IList` and `BList` are spans. The op writes into an `FMut`, which is a span, too. `FI`, `FF` and"
  print "`FFF` are a pair or a tuple of tensors."
}

# The head of the file, and everything that is preprocessor.
!started && !/^\/\/ -+ / { next }
/^#/ { next }

/^\/\/ -+ / {
  started = 1
  sub(/^\/\/ -+ */, "")
  printf "\n## %s\n", $0
  comment = ""
  in_table = 0
  next
}

/^\/\// {
  sub(/^\/\/ ?/, "")
  comment = comment == "" ? $0 : comment " " $0
  next
}

/^[ \t]*$/ {
  in_table = 0
  comment = ""
  next
}

/^KILN_[A-Z]+_OP\(/ || joined != "" {
  line = joined == "" ? $0 : joined " " $0
  sub(/[ \t]*\/\/.*$/, "", line)
  if (line !~ /\)[ \t]*$/) {
    joined = line
    next
  }
  joined = ""
  sub(/^KILN_[A-Z]+_OP\(/, "", line)
  sub(/\)[ \t]*$/, "", line)
  gsub(/[ \t]+/, " ", line)
  # level, name, result; the rest are the parameters. No result type holds a comma outside <>.
  level = line
  sub(/,.*/, "", level)
  sub(/^[^,]*, */, "", line)
  name = line
  sub(/,.*/, "", name)
  sub(/^[^,]*,? */, "", line)
  depth = 0
  for (i = 1; i <= length(line); ++i) {
    c = substr(line, i, 1)
    if (c == "<") ++depth
    if (c == ">") --depth
    if (c == "," && depth == 0) break
  }
  result = substr(line, 1, i - 1)
  gsub(/^ *\(|\) *$/, "", result)
  parameters = substr(line, i + 1)
  sub(/^ +/, "", parameters)
  if (!in_table) {
    print ""
    if (comment != "") {
      print cell(comment)
      print ""
    }
    comment = ""
    print "| op | takes | gives | of a backend | |"
    print "|---|---|---|---|---|"
    in_table = 1
  }
  printf "| `%s` | %s | %s | %s | %s |\n", name, parameters == "" ? "" : "`" parameters "`",
    "`" result "`", level, cell(comment)
  comment = ""
}
