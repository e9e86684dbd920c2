# cpack -G DEB: one package with the library, its headers, what CMake and pkg-config need, and the
# program. script/deb builds and checks it.

set(CPACK_PACKAGE_NAME "kiln")
set(CPACK_PACKAGE_VENDOR "The Kiln developers")
set(CPACK_PACKAGE_CONTACT "The Kiln developers <maintainers@kiln.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "deep learning in C++: tensors, gradients, modules, training")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_GENERATOR "DEB")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX "/usr")
set(CPACK_DEBIAN_FILE_NAME "DEB-DEFAULT")
set(CPACK_DEBIAN_PACKAGE_SECTION "libdevel")
# The distribution's libraries that the binaries link, by dpkg-shlibdeps, which finds Kiln's own here.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
# A program that links Kiln needs a compiler; running the program kiln does not.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++ (>= 4:12), cmake, pkg-config")
# Tells ldconfig about the new libraries.
file(WRITE "${PROJECT_BINARY_DIR}/deb/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/deb/triggers")
include(CPack)
