# The tests of a build for WebAssembly, which Node runs: of each layer some that need no thread, no
# process and no file of this machine, and those of tests/wasm/.

file(GLOB wasm_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/wasm/*.cpp")
foreach(name IN ITEMS
    core/dtype core/error core/half core/handle core/portable core/random core/scalar core/shape
    core/slice core/tensor_data
    tensor/arithmetic tensor/convolution tensor/creation tensor/derivatives tensor/fft
    tensor/index_ops tensor/losses tensor/matmul tensor/normalization tensor/pooling
    tensor/promotion tensor/reduce tensor/shape tensor/sort tensor/statistics tensor/unary
    autodiff/gradients_cpu autodiff/graph autodiff/nested
    nn/batch_norm2d nn/conv2d nn/dropout nn/embedding nn/init nn/layer_norm nn/linear nn/loss
    nn/module nn/multihead_attention nn/sequential nn/state_dict
    optim/adam optim/lbfgs optim/optimizer_state optim/rules optim/sgd
    data/digits io/safetensors web/digit_trainer)
  list(APPEND wasm_sources "${CMAKE_CURRENT_SOURCE_DIR}/${name}.cpp")
endforeach()

kiln_wasm_headers(doctest::doctest doctest doctest.h)
set(web_folder "${PROJECT_SOURCE_DIR}/examples/web")
add_executable(kiln_wasm_tests main.cpp support/tensor_check.cpp ${wasm_sources}
  "${web_folder}/digit_trainer.cpp" "${web_folder}/module.cpp")
target_include_directories(kiln_wasm_tests PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(kiln_wasm_tests PRIVATE kiln::kiln doctest::doctest)
target_compile_definitions(kiln_wasm_tests PRIVATE
  KILN_VERSION="${PROJECT_VERSION}" DOCTEST_CONFIG_SUPER_FAST_ASSERTS DOCTEST_CONFIG_NO_POSIX_SIGNALS)
kiln_target_flags(kiln_wasm_tests)
target_compile_options(kiln_wasm_tests PRIVATE -O1)
set(wasm_link_options -sENVIRONMENT=node -sALLOW_MEMORY_GROWTH=1 -sSTACK_SIZE=4MB -sEXIT_RUNTIME=1)
target_link_options(kiln_wasm_tests PRIVATE ${wasm_link_options} -O1)

add_executable(kiln_no_lapack peer/no_lapack.cpp)
target_include_directories(kiln_no_lapack PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(kiln_no_lapack PRIVATE kiln::kiln)
kiln_target_flags(kiln_no_lapack)
target_link_options(kiln_no_lapack PRIVATE ${wasm_link_options})

# By Node, which Emscripten's toolchain names as the emulator.
foreach(source IN LISTS wasm_sources)
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE name)
  string(REGEX REPLACE "\\.cpp$" "" test "${name}")
  add_test(NAME "${test}" COMMAND kiln_wasm_tests "-sf=*tests/${name}" --no-intro)
  set_tests_properties("${test}" PROPERTIES FAIL_REGULAR_EXPRESSION "test cases: +0 \\|" TIMEOUT 600)
endforeach()
add_test(NAME linalg/without_lapack COMMAND kiln_no_lapack)
