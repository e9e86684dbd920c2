# Which sources are made for size rather than for speed. All others are compiled as the build type says.

# In the build type Quick, script/demo's, what takes time when it runs is optimized a little, and nothing else.
if(CMAKE_BUILD_TYPE STREQUAL "Quick")
  file(GLOB_RECURSE cpu_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kiln/backend/cpu/*.cpp")
  set_property(SOURCE ${cpu_sources} APPEND PROPERTY COMPILE_OPTIONS -O1)
  return()
endif()

# These check, choose and call, and what takes time stands below them; or nobody waits for them: files
# are read at the disk's pace, and the reference backend is there to be right. They are half as large so.
set(small_sources "")
foreach(folder backend/batched backend/reference graph graph/file graph/passes io metrics nn rl train)
  file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kiln/${folder}/*.cpp")
  list(APPEND small_sources ${found})
endforeach()
foreach(name backend/dispatch/profile compile/capture_call compile/free_graph compile/graph_model
             core/json optim/lbfgs_state optim/optimizer_state tensor/autograd/checkpoint tensor/autograd/derivatives
             tensor/autograd/region tensor/autograd/vmap tensor/nn/losses
             tensor/nn/rnnt_loss)
  list(APPEND small_sources "${PROJECT_SOURCE_DIR}/kiln/${name}.cpp")
endforeach()
foreach(name graph/fused graph/plan io/crc32 io/gguf_blocks io/image io/image_jpeg io/image_webp)  # loops that somebody waits for
  list(REMOVE_ITEM small_sources "${PROJECT_SOURCE_DIR}/kiln/${name}.cpp")
endforeach()
if(NOT KILN_SANITIZE)
  set_property(SOURCE ${small_sources} APPEND PROPERTY COMPILE_OPTIONS "$<$<CONFIG:Release>:-Os>")
endif()

# Here -O3 repeats loops that are no faster for it.
set(medium_sources "")
foreach(folder data tensor/complex tensor/fft tensor/linalg text vision)
  file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kiln/${folder}/*.cpp")
  list(APPEND medium_sources ${found})
endforeach()
list(REMOVE_ITEM medium_sources "${lapack_source}")
foreach(name compile/compile compile/guards compile/replay_call core/tensor_data io/crc32 io/gguf_blocks io/image io/image_jpeg io/image_webp tensor/index/unique
             tensor/nn/adaptive_pooling tensor/nn/folding tensor/nn/fractional_pooling tensor/nn/grid_sample
             tensor/nn/interpolate tensor/nn/padding tensor/nn/resampling)
  list(APPEND medium_sources "${PROJECT_SOURCE_DIR}/kiln/${name}.cpp")
endforeach()
# And here, as long as loops are turned into vectors as -O3 does it.
set(vector_sources "")
foreach(name elementwise/int_kernels index/scatter reduce/int_reduce_kernels reduce/reduce)
  list(APPEND vector_sources "${PROJECT_SOURCE_DIR}/kiln/backend/cpu/${name}.cpp")
endforeach()
if(NOT KILN_SANITIZE)
  set_property(SOURCE ${medium_sources} ${vector_sources} APPEND PROPERTY COMPILE_OPTIONS
               "$<$<CONFIG:Release>:-O2>")
  set_property(SOURCE ${vector_sources} APPEND PROPERTY COMPILE_OPTIONS
               "$<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-fvect-cost-model=dynamic>")
endif()

# Kernels are cut into functions where a loop has its own registers; GCC would join them again when
# they are called from one place, and a transform of 1024 numbers would take half as long again.
file(GLOB_RECURSE kernel_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kiln/backend/cpu/*.cpp")
if(NOT KILN_SANITIZE)
  set_property(SOURCE ${kernel_sources} "${PROJECT_SOURCE_DIR}/kiln/tensor/nn/nll_loss.cpp" APPEND PROPERTY
               COMPILE_OPTIONS "$<$<CXX_COMPILER_ID:GNU>:-fno-inline-functions-called-once>")
endif()

# Of an inline function that several files have, the linker takes the first: the fast ones go first,
# or each op would pay for the small form of what all ops share (30 ns of 70).
list(REMOVE_ITEM kiln_sources ${medium_sources} ${small_sources})
list(APPEND kiln_sources ${medium_sources} ${small_sources})
