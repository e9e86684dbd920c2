# cmake --install: headers, library, program and the files that find_package(kiln) reads.

include(CMakePackageConfigHelpers)
include(KilnHeaders)
set(kiln_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/kiln")

install(TARGETS kiln EXPORT kilnTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS kiln_models EXPORT kilnTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS kiln_onnx EXPORT kilnTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS kiln_pt2 EXPORT kilnTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS kiln_dashboard EXPORT kilnTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS kiln_distributions EXPORT kilnTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET kiln_distributed)
  install(TARGETS kiln_distributed EXPORT kilnTargets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
install(TARGETS kiln_audio EXPORT kilnTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET kiln_conformance)
  install(TARGETS kiln_conformance EXPORT kilnTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
if(TARGET kiln_lapack)
  install(TARGETS kiln_lapack EXPORT kilnTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
if(TARGET kiln_cuda_kernels)
  install(TARGETS kiln_cuda_kernels LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
if(TARGET kiln_gpu)
  # Opened by libkiln, beside which it has to be; nobody links it.
  install(TARGETS kiln_gpu LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
kiln_public_headers(public_headers)
foreach(header IN LISTS public_headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES "${PROJECT_SOURCE_DIR}/${header}"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${folder}")
endforeach()
# A shared and a static Kiln can be installed into one prefix, from two builds: each brings its targets.
if(BUILD_SHARED_LIBS)
  set(kiln_kind shared)
else()
  set(kiln_kind static)
endif()
install(EXPORT kilnTargets FILE kiln-${kiln_kind}-targets.cmake NAMESPACE kiln::
  DESTINATION "${kiln_package_dir}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/kiln-kind.cmake.in"
  "${PROJECT_BINARY_DIR}/kiln-${kiln_kind}.cmake" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/kiln-${kiln_kind}.cmake" DESTINATION "${kiln_package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/kilnConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/kilnConfig.cmake" INSTALL_DESTINATION "${kiln_package_dir}")
# Before 1.0 a minor version may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/kilnConfig.cmake"
  "${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake"
  DESTINATION "${kiln_package_dir}")
# For builds without CMake; a static Kiln would have to name what it stands on.
if(BUILD_SHARED_LIBS)
  set(pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  file(RELATIVE_PATH kiln_pc_prefix "/${pc_dir}" "/")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/kiln.pc.in" "${PROJECT_BINARY_DIR}/kiln.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/kiln.pc" DESTINATION "${pc_dir}")
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/THIRD_PARTY_NOTICES.txt"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}")
if(TARGET kiln_program)
  install(TARGETS kiln_program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
