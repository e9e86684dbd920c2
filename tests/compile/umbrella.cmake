# Compiles SOURCE and prints the seconds. The time is information, never a verdict.
string(TIMESTAMP start "%s%f")
execute_process(
  COMMAND "${COMPILER}" -std=c++20 -O1 "-I${INCLUDE_DIR}" -c "${SOURCE}" -o "${OBJECT}"
  RESULT_VARIABLE result)
string(TIMESTAMP end "%s%f")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the umbrella header does not compile")
endif()
math(EXPR milliseconds "(${end} - ${start}) / 1000")
math(EXPR whole "${milliseconds} / 1000")
math(EXPR rest "${milliseconds} % 1000 + 1000")
string(SUBSTRING "${rest}" 1 3 rest)
message(STATUS "#include <kiln/kiln.h> and a ten-line main: ${whole}.${rest} s")
