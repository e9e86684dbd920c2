// Every default composite, held against the reference backend's own loops: the suite on a backend
// that has Reference's required ops and nothing else.
#include "kiln/backend/defaults.h"

#include <doctest/doctest.h>

#include "kiln/backend/conformance/conformance.h"
#include "kiln/backend/reference/reference.h"

using namespace kiln;

namespace {

#define KILN_TAKE_required(name)                                                       \
  template <class... A>                                                                \
  static auto name(A&&... args)->decltype(Reference::name(std::forward<A>(args)...)) { \
    return Reference::name(std::forward<A>(args)...);                                  \
  }
#define KILN_TAKE_fallback(name)

struct RequiredOnly : BackendDefaults<RequiredOnly>, ReferenceTypes, host::Metadata {
  static std::string name(kiln::Device) { return "required only"; }
  static void seed(kiln::Device, uint64_t) {}
  static void sync(kiln::Device) {}
#define KILN_OP(level, op_name, ...) KILN_TAKE_##level(op_name)
#include "kiln/backend/ops.def"
};

}  // namespace

TEST_CASE("the default composites conform") {
  for (const auto& failure : run_conformance<RequiredOnly>(kReference)) {
    FAIL_CHECK(to_string(failure));
  }
}
