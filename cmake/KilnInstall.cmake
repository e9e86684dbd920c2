# cmake --install: headers, library, program and the files that find_package(kiln) reads.

include(CMakePackageConfigHelpers)
set(kiln_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/kiln")

install(TARGETS kiln EXPORT kilnTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET kiln_lapack)
  install(TARGETS kiln_lapack EXPORT kilnTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/kiln" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(EXPORT kilnTargets NAMESPACE kiln:: DESTINATION "${kiln_package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/kilnConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/kilnConfig.cmake" INSTALL_DESTINATION "${kiln_package_dir}")
# Before 1.0 a minor version may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/kilnConfig.cmake"
  "${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake"
  DESTINATION "${kiln_package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
if(TARGET kiln_program)
  install(TARGETS kiln_program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
