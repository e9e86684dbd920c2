"""Conan recipe, built in place: conan create . --test-folder tests/consumer"""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.system.package_manager import Apt


class Kiln(ConanFile):
    name = "kiln"
    license = "MIT"
    description = "Kiln, a deep-learning framework in C++20: tensors, gradients and neural networks"
    topics = ("deep-learning", "machine-learning", "tensors", "autodiff")
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "lapack": [True, False],
        "jpeg": [True, False],
        "webp": [True, False],
        "gpu": [True, False],
        "program": [True, False],
    }
    default_options = {
        "shared": True,
        "fPIC": True,
        "lapack": True,
        "jpeg": True,
        "webp": True,
        "gpu": True,
        "program": True,
    }
    implements = ["auto_shared_fpic"]
    exports_sources = (
        "CMakeLists.txt",
        "cmake/*",
        "kiln/*",
        "cli/*",
        "LICENSE",
        "THIRD_PARTY_NOTICES.txt",
    )

    def set_version(self):
        text = (Path(self.recipe_folder) / "CMakeLists.txt").read_text()
        self.version = re.search(r"project\(kiln VERSION ([0-9.]+)", text).group(1)

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    # What Kiln stands on comes from the distribution, as in every other build of it.
    def system_requirements(self):
        packages = ["libhwy-dev", "nlohmann-json3-dev", "zlib1g-dev", "libpng-dev"]
        if self.options.program:
            packages.append("libcli11-dev")
        if self.options.lapack:
            packages.append("libopenblas-openmp-dev")
        if self.options.jpeg:
            packages.append("libjpeg-dev")
        if self.options.webp:
            packages.append("libwebp-dev")
        if self.options.gpu:
            packages.append("opencl-c-headers")
        Apt(self).check(packages)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "BENCH", "EXAMPLES", "CONFORMANCE", "PYTHON"):
            toolchain.cache_variables[f"KILN_BUILD_{part}"] = False
        toolchain.cache_variables["KILN_BUILD_CLI"] = bool(self.options.program)
        for name in ("lapack", "jpeg", "webp", "gpu"):
            toolchain.cache_variables[f"KILN_{name.upper()}"] = bool(self.options.get_safe(name))
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    # Kiln's own kilnConfig.cmake is what find_package reads, as without Conan.
    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/kiln", "lib"]
        self.cpp_info.libs = ["kiln"]
