// The reference backend held against itself: every row of the table has a case, and layouts,
// donation, in-place forms and memory behave. Its values are checked in reference_*.cpp.
#include <doctest/doctest.h>

#include "kiln/backend/conformance/conformance.h"
#include "kiln/backend/reference/reference.h"

using namespace kiln;

TEST_CASE("Reference conforms") {
  for (const auto& failure : run_conformance<Reference>(kReference)) {
    FAIL_CHECK(to_string(failure));
  }
}
