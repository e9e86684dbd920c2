// The structs that kernels of functions without parameters are instantiated with. To be used inside
// a target's namespace, which has V<D> for hn::Vec<D>; the body computes from d and x (and y).
#pragma once

#define KILN_OP_OF_ONE(Name, ...)                             \
  struct Name {                                               \
    explicit Name(const void*) {}                             \
    template <class D>                                        \
    HWY_INLINE V<D> operator()(D d, V<D> x) const __VA_ARGS__ \
  };

#define KILN_OP_OF_TWO(Name, ...)                                     \
  struct Name {                                                       \
    explicit Name(const void*) {}                                     \
    template <class D>                                                \
    HWY_INLINE V<D> operator()(D d, V<D> x, V<D> y) const __VA_ARGS__ \
  };
