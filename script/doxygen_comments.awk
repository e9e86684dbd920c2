# Kiln's comments are plain // lines. Doxygen wants /// before what they describe and ///< behind it.
FNR == 1 && /^\/\// { print "/// @file"; in_head = 1 }
in_head && !/^\/\// { in_head = 0 }
/^ *\/\/ ---- / { print ""; next }  # the title of a section
/^ *\/\/ / { sub(/\/\/ /, "/// "); print; next }
/^ *\/\/$/ { sub(/\/\//, "///"); print; next }
/[;,{]  +\/\/ / { sub(/\/\/ /, "///< ") }
{ print }
