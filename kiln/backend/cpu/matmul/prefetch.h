// Asking for memory before it is needed: for what is written, and how far ahead products of rows
// ask for what they will read.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kiln::cpu {

// Brings a line into the cache as this core's own. (A compiler makes an ordinary prefetch of
// __builtin_prefetch(p, 1) unless it is told of this instruction, which every x86-64 executes or
// skips; when the line is written, another core's copy has to be called back then.)
[[gnu::always_inline]] inline void fetch_to_write(const void* p) {
#if defined(__x86_64__) || defined(__i386__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(p)));
#else
  __builtin_prefetch(p, 1);
#endif
}

// Whether so many elements, which are read once, are expected to come from memory. That they may
// still be in the second-level cache matters little.
template <class T>
constexpr bool is_far(int64_t elements) {
  return elements * static_cast<int64_t>(sizeof(T)) > 128 * 1024;
}
// The same where they are read as one stream, in which processors fetch ahead by themselves: it
// pays where that cache is too small.
template <class T>
constexpr bool is_far_stream(int64_t elements) {
  return elements * static_cast<int64_t>(sizeof(T)) > 1024 * 1024;
}

// Asks for a line: from memory into the second-level cache, since more such requests can be under
// way than of those for the first level (one core reads memory a third faster); from the
// second-level cache into the first.
template <bool kFar>
[[gnu::always_inline]] inline void fetch_ahead(const void* p) {
  if constexpr (kFar) {
    __builtin_prefetch(p, 0, 2);
  } else {
    __builtin_prefetch(p, 0, 3);
  }
}

// How many elements ahead of the one that is multiplied one is fetched, where several rows of
// `length` elements are read side by side: where they are short (the next ones stay in the
// first-level cache), in those that come next, `next` elements on, since the processor's own guess
// would start anew there; else a little further in the same.
template <class T>
[[gnu::always_inline]] constexpr int64_t fetched_ahead(int64_t length, int64_t next) {
  return length <= int64_t{16384 / sizeof(T)} ? next : 1024 / sizeof(T);
}

// The same of rows that touch, read one after another.
template <class T>
inline constexpr int64_t kTouchingFetchedAhead = 4096 / sizeof(T);

}  // namespace kiln::cpu
