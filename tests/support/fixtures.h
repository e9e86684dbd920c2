// Files that were made by other programs and committed (tests/fixtures/make_fixtures.py).
#pragma once

#include <cstdlib>
#include <string>

namespace kiln::test {

// From the environment, as ctest sets it; else from the folder that the tests run in.
inline std::string fixture(const std::string& name) {
  const char* folder = std::getenv("KILN_TEST_FIXTURES");
  return std::string(folder == nullptr ? "tests/fixtures" : folder) + "/" + name;
}

}  // namespace kiln::test
