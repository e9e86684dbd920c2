# Compiles SOURCE, which must fail, and say EXPECTED.
execute_process(
  COMMAND "${COMPILER}" -std=c++20 -fsyntax-only "-I${INCLUDE_DIR}" "-DCASE=${CASE}" "${SOURCE}"
  RESULT_VARIABLE result ERROR_VARIABLE errors)
if(CASE EQUAL 0)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "the file without a mistake does not compile:\n${errors}")
  endif()
  return()
endif()
if(result EQUAL 0)
  message(FATAL_ERROR "case ${CASE} compiles; expected the error '${EXPECTED}'")
endif()
string(FIND "${errors}" "${EXPECTED}" found)
if(found EQUAL -1)
  message(FATAL_ERROR "case ${CASE} fails without saying '${EXPECTED}':\n${errors}")
endif()
