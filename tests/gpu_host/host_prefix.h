// What stands before a kernel's text when it becomes plain C++: the standard headers, which are
// compiled once, and (KILN_CHECK_ACCESSES) what the compiler calls at every load and store. Behind
// the text goes host_suffix.h.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

extern "C" {
void (*kiln_barrier)(int line);
int64_t kiln_local[3];
int64_t kiln_group[3];
int64_t kiln_size;
// stores, atomic
void (*kiln_access)(const void* address, std::size_t bytes, bool stores, bool atomic);
}

#ifdef KILN_CHECK_ACCESSES
#define KILN_HOOK extern "C" __attribute__((no_sanitize("thread", "undefined"))) void
#define KILN_HOOKS_OF(n)                                                           \
  KILN_HOOK __tsan_read##n(void* p) { kiln_access(p, n, false, false); }           \
  KILN_HOOK __tsan_write##n(void* p) { kiln_access(p, n, true, false); }           \
  KILN_HOOK __tsan_unaligned_read##n(void* p) { kiln_access(p, n, false, false); } \
  KILN_HOOK __tsan_unaligned_write##n(void* p) { kiln_access(p, n, true, false); } \
  KILN_HOOK __tsan_volatile_read##n(void* p) { kiln_access(p, n, false, false); }  \
  KILN_HOOK __tsan_volatile_write##n(void* p) { kiln_access(p, n, true, false); }
KILN_HOOKS_OF(1)
KILN_HOOKS_OF(2)
KILN_HOOKS_OF(4)
KILN_HOOKS_OF(8)
KILN_HOOKS_OF(16)
KILN_HOOK __tsan_read_range(void* p, std::size_t n) { kiln_access(p, n, false, false); }
KILN_HOOK __tsan_write_range(void* p, std::size_t n) { kiln_access(p, n, true, false); }
KILN_HOOK __tsan_init() {}
KILN_HOOK __tsan_func_entry(void*) {}
KILN_HOOK __tsan_func_exit(void*) {}
extern "C" __attribute__((no_sanitize("thread", "undefined"))) bool
__tsan_atomic32_compare_exchange_strong(volatile int* p, int* expected, int wanted, int, int) {
  kiln_access(const_cast<int*>(p), 4, true, true);
  if (*p == *expected) {
    *p = wanted;
    return true;
  }
  *expected = *p;
  return false;
}
#endif

// ---- How a kernel is called with pointers at its arguments, and what they are. Before the text,
// whose macros have short names.

#define KILN_NO_HOOKS __attribute__((no_sanitize("thread")))
template <class... A, std::size_t... I>
KILN_NO_HOOKS static inline void kiln_call_with(void (*kernel)(A...), void* const* arguments,
                                                std::index_sequence<I...>) {
  kernel(*static_cast<A*>(arguments[I])...);
}
template <class... A>
KILN_NO_HOOKS static inline void kiln_call_all(void (*kernel)(A...), void* const* arguments) {
  kiln_call_with(kernel, arguments, std::index_sequence_for<A...>{});
}
template <class... A>
KILN_NO_HOOKS static inline int kiln_describe_all(void (*)(A...), std::size_t* sizes,
                                                  bool* pointers) {
  const std::size_t all[] = {sizeof(A)...};
  const bool kinds[] = {std::is_pointer_v<A>...};
  for (std::size_t i = 0; i < sizeof...(A); i++) {
    sizes[i] = all[i];
    pointers[i] = kinds[i];
  }
  return sizeof...(A);
}
extern "C" {
// Of the section that SHARED variables are in.
extern char __start_kiln_shared[] __attribute__((weak));
extern char __stop_kiln_shared[] __attribute__((weak));
}
