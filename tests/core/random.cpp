#include "kiln/core/random.h"

#include <array>
#include <cstdint>

#include <doctest/doctest.h>

#include "kiln/core/error.h"

using namespace kiln;
using Block = std::array<uint32_t, 4>;

TEST_CASE("philox gives the published vectors") {
  // kat_vectors of the Random123 library, philox4x32 with 10 rounds.
  CHECK(philox(0, 0, 0) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(~0ull, ~0ull, ~0ull) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("bits become uniform numbers below one") {
  CHECK(uniform_f32(0) == 0.0f);
  CHECK(uniform_f32(0xffffffff) == 1.0f - 0x1p-24f);
  CHECK(uniform_f32(0x80000000) == 0.5f);
  CHECK(uniform_f64(0, 0) == 0.0);
  CHECK(uniform_f64(0xffffffff, 0xffffffff) == 1.0 - 0x1p-53);
  CHECK(uniform_f64(0x40000000, 0) == 0.25);
}

TEST_CASE("a generator reserves whole blocks of four") {
  Generator g(7);
  CHECK(g.seed() == 7);
  CHECK(g.reserve(1).offset == 0);
  CHECK(g.reserve(4).offset == 1);
  CHECK(g.reserve(5).offset == 2);
  CHECK(g.reserve(0).offset == 4);
  CHECK(g.reserve(1).offset == 4);
  CHECK(g.reserve(1).seed == 7);
  CHECK_THROWS_AS(g.reserve(-1), ValueError);
  CHECK(g.reserve(INT64_MAX).offset == 6);
}

TEST_CASE("a generator's state can be kept and set") {
  Generator g(3);
  g.reserve(100);
  const RandomStream state = g.state();
  const RandomStream next = g.reserve(8);
  CHECK(state.offset == 25);
  CHECK(state.offset == next.offset);
  g.set_state(state);
  const RandomStream again = g.reserve(8);
  CHECK(again.block(1) == next.block(1));
  CHECK(next.block(1) == philox(3, 26));
  g.manual_seed(9);
  CHECK(g.state().offset == 0);
  CHECK(g.seed() == 9);
}

TEST_CASE("the default generator is one and can be seeded") {
  const RandomStream before = default_generator().state();
  manual_seed(42);
  const RandomStream first = default_generator().reserve(4);
  manual_seed(42);
  CHECK(default_generator().reserve(4).block(0) == first.block(0));
  CHECK(first.block(0) == philox(42, 0));
  default_generator().set_state(before);
}
