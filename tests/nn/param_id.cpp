#include "kiln/nn/param_id.h"

#include <set>

#include <doctest/doctest.h>

#include "kiln/core/error.h"

using namespace kiln;
using kiln::nn::ParamId;

TEST_CASE("ParamId: text is base 32 of the bytes, lowest first") {
  // Worked out by hand: 13 digits of 5 bits, from the highest bit of the first byte on.
  CHECK(to_string(ParamId(0)) == "0000000000000");
  CHECK(to_string(ParamId(7)) == "0s00000000000");  // 00000 111 00...
  CHECK(to_string(ParamId(0xff)) == "vs00000000000");
  CHECK(to_string(ParamId(~uint64_t{0})) == "vvvvvvvvvvvvu");
  CHECK(to_string(ParamId(uint64_t{1} << 56)) == "0000000000002");
}

TEST_CASE("ParamId: parse is the inverse of to_string") {
  for (const uint64_t value :
       {uint64_t{0}, uint64_t{1}, uint64_t{0x0123456789abcdef}, ~uint64_t{0}}) {
    CHECK(ParamId::parse(to_string(ParamId(value))) == ParamId(value));
  }
  for (const char* bad :
       {"", "0", "00000000000000", "000000000000z", "0000000000001", "vvvvvvvvvvvvv"}) {
    CHECK_THROWS_AS(ParamId::parse(bad), ValueError);
  }
}

TEST_CASE("ParamId: fresh ids differ") {
  std::set<ParamId> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(ParamId());
  CHECK(seen.size() == 1000);
}
