// How far ahead products of rows ask for what they will read.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// How many elements ahead of the one that is multiplied one is fetched, where several rows of
// `length` elements are read side by side: where they are short, in those that come next, `next`
// elements on, since the processor's own guess would start anew there; else a little further in the
// same.
template <class T>
[[gnu::always_inline]] constexpr int64_t fetched_ahead(int64_t length, int64_t next) {
  constexpr int64_t kShort = 16384 / sizeof(T), kNear = 1024 / sizeof(T);
  return length <= kShort ? next : kNear;
}

}  // namespace kiln::cpu
