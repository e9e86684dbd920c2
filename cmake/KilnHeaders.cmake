# kiln_public_headers(<variable> [<root>...]): the headers that users can include: the roots and what
# they include, directly or not, as paths below the project ("kiln/core/shape.h"). Without roots
# those of an installed Kiln.
function(kiln_public_headers variable)
  set(waiting ${ARGN})
  if(NOT waiting)
    # All of Kiln; its models; what the author of a backend needs; what a binding to another language
    # needs.
    set(waiting kiln/kiln.h kiln/io/gguf_file.h kiln/io/torch_file.h
      kiln/io/npy_file.h kiln/models/models.h kiln/rl/rl.h kiln/vision/vision.h
      kiln/metrics/metrics.h kiln/io/image.h kiln/data/table.h kiln/data/photo_batch.h kiln/audio/audio.h kiln/dashboard/dashboard.h kiln/distributions/distributions.h kiln/distributed/distributed.h kiln/train/learner.h
      kiln/text/sentence_piece.h kiln/text/byte_level_bpe.h kiln/text/word_piece.h
      kiln/backend.h kiln/core/accelerator.h kiln/tensor/interop.h kiln/tensor/exchange.h
      kiln/tensor/host_memory.h kiln/tensor/autograd/vmap.h kiln/tensor/linalg/csr.h kiln/compile/compile.h kiln/compile/module_compile.h kiln/compile/graph_model.h kiln/onnx/onnx.h kiln/onnx/model.h kiln/pt2/model.h kiln/pt2/tree.h
      kiln/graph/capture.h kiln/graph/plan.h kiln/graph/passes/passes.h)
  endif()
  set(headers "")
  while(waiting)
    list(POP_FRONT waiting header)
    if(header IN_LIST headers)
      continue()
    endif()
    list(APPEND headers "${header}")
    file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" lines REGEX "^#include \"kiln/.*\\.(h|def)\"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" included "${line}")
      list(APPEND waiting "${included}")
    endforeach()
  endwhile()
  list(SORT headers)
  set(${variable} ${headers} PARENT_SCOPE)
endfunction()

# kiln_add_header_check(<name>): an object library in which each public header is compiled by itself.
function(kiln_add_header_check name)
  kiln_public_headers(headers)
  list(FILTER headers INCLUDE REGEX "\\.h$")
  set(sources "")
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "[/.]" "_" stem "${header}")
    set(source "${CMAKE_CURRENT_BINARY_DIR}/headers/${stem}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n" @ONLY)
    list(APPEND sources "${source}")
  endforeach()
  list(LENGTH headers count)
  message(STATUS "${name}: ${count} headers, each alone")
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PRIVATE kiln::kiln)
  target_compile_options(${name} PRIVATE -Wall -Wextra $<$<BOOL:${KILN_WERROR}>:-Werror> -O0 -g0)
endfunction()
