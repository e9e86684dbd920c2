# vcpkg install kiln --overlay-ports=packaging/vcpkg
# Builds the library from the sources that this recipe lies in.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)

# Nobody steps through kernels in a program that links Kiln, and a debug build would double the time.
set(VCPKG_BUILD_TYPE release)

vcpkg_check_features(OUT_FEATURE_OPTIONS features
  FEATURES
    gpu KILN_GPU
    jpeg KILN_JPEG
    tools KILN_BUILD_CLI
    webp KILN_WEBP
)
# No LAPACK: Kiln links parts of OpenBLAS that only some systems' packages have.
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${features}
    -DKILN_BUILD_BENCH=OFF
    -DKILN_BUILD_CONFORMANCE=OFF
    -DKILN_BUILD_EXAMPLES=OFF
    -DKILN_BUILD_TESTS=OFF
    -DKILN_LAPACK=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/kiln)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES kiln AUTO_CLEAN)
endif()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/THIRD_PARTY_NOTICES.txt")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
