# Finds LAPACK and sets KilnLapack_LIBRARY (a path) and KilnLapack_STATIC.
# -DKilnLapack_LIBRARY=PATH names another library.
#
# Preferred is OpenBLAS built for OpenMP, as a static library: it stays out of the way of any other
# BLAS in the process (NumPy's, PyTorch's, the one the alternatives system points to), and its OpenMP
# is the one that Kiln uses, so Kiln can keep each call on one thread. Debian's build without threads
# will not do: it may not be called from several threads at once. Else any LAPACK that CMake finds.

if(NOT KilnLapack_LIBRARY)
  find_library(KilnLapack_LIBRARY NAMES libopenblas.a
    PATH_SUFFIXES openblas-openmp NO_CACHE)
  if(KilnLapack_LIBRARY AND NOT KilnLapack_LIBRARY MATCHES "openblas-openmp")
    unset(KilnLapack_LIBRARY)  # some other build of OpenBLAS
  endif()
  if(NOT KilnLapack_LIBRARY)
    # Fedora's name of the OpenMP build, then whatever there is.
    find_library(KilnLapack_LIBRARY NAMES openblaso openblas lapack NO_CACHE)
  endif()
endif()
set(KilnLapack_STATIC FALSE)
if(KilnLapack_LIBRARY MATCHES "libopenblas\\.a$")
  set(KilnLapack_STATIC TRUE)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(KilnLapack
  REQUIRED_VARS KilnLapack_LIBRARY
  REASON_FAILURE_MESSAGE "Debian: libopenblas-openmp-dev, Fedora: openblas-devel, Arch: openblas")
