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

// Rows that are read side by side are short where the next ones stay in the first-level cache.
template <class T>
[[gnu::always_inline]] constexpr bool is_short_row(int64_t length) {
  return length <= int64_t{16384 / sizeof(T)};
}

// How many elements ahead of the one that is multiplied one is fetched, where several rows of
// `length` elements are read side by side: where they are short, in those that come next, `next`
// elements on, since the processor's own guess would start anew there; else a little further in the
// same.
template <class T>
[[gnu::always_inline]] constexpr int64_t fetched_ahead(int64_t length, int64_t next) {
  return is_short_row<T>(length) ? next : 1024 / sizeof(T);
}

// The same of rows that touch, `together` elements in all, where what is fetched goes on from line
// to line.
template <class T>
[[gnu::always_inline]] constexpr int64_t touching_fetched_ahead(int64_t together) {
  return std::max<int64_t>(together, 16384 / sizeof(T));
}

}  // namespace kiln::cpu
