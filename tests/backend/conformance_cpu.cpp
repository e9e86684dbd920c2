// The Cpu backend held against the reference backend, op by op, with the kernels of every
// instruction set here.
#include <doctest/doctest.h>

#include "kiln/backend/conformance/conformance.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/kernel_table.h"

using namespace kiln;

namespace {

class Targets {
 public:
  explicit Targets(int64_t targets) { cpu::restrict_targets_for_test(targets); }
  ~Targets() { cpu::restrict_targets_for_test(0); }
  Targets(const Targets&) = delete;
  Targets& operator=(const Targets&) = delete;
};

}  // namespace

TEST_CASE("Cpu conforms") {
  const ConformanceOptions options{.fast = true};
  for (const auto& failure : run_conformance<Cpu>(kCpu, options)) FAIL_CHECK(to_string(failure));
}

TEST_CASE("Cpu conforms with every instruction set") {
  const std::string best = cpu::target_name();
  const int64_t supported = cpu::supported_targets();
  for (int64_t rest = supported; rest != 0; rest &= rest - 1) {
    const Targets only(rest & -rest);
    const std::string target = cpu::target_name();
    if (target == best) continue;  // the case above
    CAPTURE(target);
    const ConformanceOptions options{.float_dtypes = {f32, f16}, .int_dtypes = {i64, u8}};
    for (const auto& failure : run_conformance<Cpu>(kCpu, options)) FAIL_CHECK(to_string(failure));
  }
}
