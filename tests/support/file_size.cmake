# Fails when FILE has more than MOST bytes.
file(SIZE "${FILE}" size)
message(STATUS "${FILE} has ${size} bytes; ${MOST} are allowed")
if(size GREATER MOST)
  message(FATAL_ERROR "too large")
endif()
