# OpenBLAS's archive holds its kernels for twenty processors, 31 MB once linked. libkiln_lapack takes
# three of them, the least one and those for AVX2 and AVX-512, and is a quarter as large.

# kiln_lapack_kernels(<target> <archive>): links the target, which links the archive, with three sets
# of kernels. OpenBLAS still looks at the processor and names a set; the names of sets that are left
# out mean the next smaller one. What LAPACK never calls (products by three real ones, copies of
# transposed matrices, sums, largest and smallest elements) is left out too. Does nothing where the
# archive has no such sets.
function(kiln_lapack_kernels target archive)
  if(NOT CMAKE_AR OR NOT CMAKE_NM OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
  endif()
  set(folder "${PROJECT_BINARY_DIR}/lapack_kernels")
  file(MAKE_DIRECTORY "${folder}")
  set(kept PRESCOTT HASWELL SKYLAKEX)
  set(objects dynamic.o)
  foreach(set IN LISTS kept)
    list(APPEND objects setparam_${set}.o)
  endforeach()
  execute_process(COMMAND "${CMAKE_AR}" x "${archive}" ${objects}
    WORKING_DIRECTORY "${folder}" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    return()  # built for one processor, or by other names
  endif()
  execute_process(COMMAND "${CMAKE_NM}" -u ${objects} WORKING_DIRECTORY "${folder}" OUTPUT_VARIABLE names)
  string(REGEX MATCHALL "[A-Za-z0-9_]+" names "${names}")
  list(REMOVE_DUPLICATES names)
  set(text "")
  foreach(name IN LISTS names)
    if(name MATCHES "^gotoblas_([A-Z0-9_]+)$")
      set(set "${CMAKE_MATCH_1}")
      if(set MATCHES "^(COOPERLAKE|SAPPHIRERAPIDS)$")
        string(APPEND text "-Wl,--defsym=${name}=gotoblas_SKYLAKEX\n")
      elseif(set MATCHES "^(ZEN|EXCAVATOR)$")
        string(APPEND text "-Wl,--defsym=${name}=gotoblas_HASWELL\n")
      elseif(NOT set IN_LIST kept)
        string(APPEND text "-Wl,--defsym=${name}=gotoblas_PRESCOTT\n")
      endif()
    elseif(name MATCHES "^[cz](gemm|hemm|symm)3m_|^[sdcz][io]matcopy_|^[sdcz](geadd|axpby|sum)_k_|^i?[sd](max|min)_k_")
      string(APPEND text "-Wl,--defsym=${name}=kiln_lapack_left_out\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT "${folder}/options" CONTENT "${text}" @ONLY)
  target_link_options(${target} PRIVATE "@${folder}/options")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${folder}/options")
  target_compile_definitions(${target} PRIVATE KILN_LAPACK_KERNELS)
endfunction()
