// Default forms of the functions of functions.h: on the host.
#pragma once

#include "kiln/backend/defaults_support.h"
#include "kiln/backend/host_functions.h"

namespace kiln::defaults {

template <class Bk>
struct FunctionDefaults {
  template <class X = Bk>
  static FloatOf<X> float_unary(const FloatOf<X>& x, const UnaryFunction& f) {
    return X::float_from_data(host::apply(f, X::float_into_data(x)), X::device(x));
  }

  template <class X = Bk>
  static FloatOf<X> float_binary(const FloatOf<X>& x, const FloatOf<X>& y,
                                 const BinaryFunction& f) {
    const Shape shape = broadcast_shapes("binary", X::shape(x), X::shape(y));
    return X::float_from_data(host::apply(f, X::float_into_data(X::float_expand(x, shape)),
                                          X::float_into_data(X::float_expand(y, shape))),
                              X::device(x));
  }

  template <class X = Bk>
  static FloatOf<X> float_ternary(const FloatOf<X>& x, const FloatOf<X>& y, const FloatOf<X>& z,
                                  const TernaryFunction& f) {
    const Shape shape = broadcast_shapes(
        "ternary", broadcast_shapes("ternary", X::shape(x), X::shape(y)), X::shape(z));
    return X::float_from_data(host::apply(f, X::float_into_data(X::float_expand(x, shape)),
                                          X::float_into_data(X::float_expand(y, shape)),
                                          X::float_into_data(X::float_expand(z, shape))),
                              X::device(x));
  }

  template <class X = Bk>
  static IntOf<X> int_binary(const IntOf<X>& x, const IntOf<X>& y, IntFunction f) {
    const Shape shape = broadcast_shapes("binary", X::shape(x), X::shape(y));
    return X::int_from_data(host::apply(f, X::int_into_data(X::int_expand(x, shape)),
                                        X::int_into_data(X::int_expand(y, shape))),
                            X::device(x));
  }
};

}  // namespace kiln::defaults
