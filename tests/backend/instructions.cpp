// KILN_INSTRUCTIONS, which limits the instruction sets that the kernels use.
#include <cstdlib>

#include <doctest/doctest.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/core/error.h"
#include "tests/support/program.h"

using namespace kiln;

namespace {

class Setting {
 public:
  explicit Setting(const char* value) { setenv("KILN_INSTRUCTIONS", value, 1); }
  ~Setting() {
    unsetenv("KILN_INSTRUCTIONS");
    cpu::restrict_targets_for_test(0);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
};

}  // namespace

TEST_CASE("KILN_INSTRUCTIONS limits the kernels") {
  const std::string best = cpu::target_name();
  const int64_t all = cpu::supported_targets();
  const std::vector<std::string> names =
#if defined(__x86_64__)
      {"baseline", "avx2", "avx512"};
#else
      {"baseline"};
#endif
  int before = 0;
  for (const std::string& name : names) {
    CAPTURE(name);
    const Setting limit(name.c_str());
    cpu::restrict_targets_for_test(0);
    const int64_t left = cpu::supported_targets();
    const int count = __builtin_popcountll(static_cast<uint64_t>(left));
    CHECK((left & ~all) == 0);
    CHECK(count >= 1);
    CHECK(count >= before);  // each name allows what the one before it does
    if (name == "baseline") CHECK(count == 1);
    before = count;
  }
  CHECK(cpu::supported_targets() == all);
  CHECK(cpu::target_name() == best);
}

TEST_CASE("KILN_INSTRUCTIONS names what it can be") {
  const Setting wrong("avx9");
  CHECK_THROWS_WITH_AS(cpu::restrict_targets_for_test(0), doctest::Contains("\"avx9\""),
                       ValueError);
  CHECK_THROWS_WITH_AS(cpu::restrict_targets_for_test(0), doctest::Contains("baseline"),
                       ValueError);
}

TEST_CASE("kiln info shows what KILN_INSTRUCTIONS left") {
  NEEDS_PROGRAM();
  const std::string best = cpu::target_name();
  {
    const Setting limit("baseline");
    cpu::restrict_targets_for_test(0);
    test::check_prints(test::run_program({"info"}), {cpu::target_name()});
  }
  const Setting wrong("none");
  const test::ProgramResult refused = test::run_program({"info"});
  CHECK(refused.status != 0);
  CHECK(test::contains(refused.err, "KILN_INSTRUCTIONS is \"none\""));
}
