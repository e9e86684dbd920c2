// Default sorts: on the host.
#pragma once

#include <utility>

#include "kiln/backend/defaults_support.h"
#include "kiln/backend/host_sort.h"

namespace kiln::defaults {

template <class Bk>
struct SortDefaults {
  template <class X = Bk>
  static std::pair<FloatOf<X>, IntOf<X>> float_sort(const FloatOf<X>& x, int dim, bool descending) {
    const Device device = X::device(x);
    const IntOf<X> index =
        X::int_from_data(host::argsort(X::float_into_data(x), dim, descending), device);
    return {X::float_gather(x, dim, index), index};
  }

  template <class X = Bk>
  static IntOf<X> int_argsort(const IntOf<X>& x, int dim, bool descending) {
    return X::int_from_data(host::argsort(X::int_into_data(x), dim, descending), X::device(x));
  }

  template <class X = Bk>
  static IntOf<X> float_argtopk(const FloatOf<X>& x, int64_t k, int dim, bool largest) {
    return X::int_contiguous(
        X::int_slice(X::float_sort(x, dim, largest).second, dim, Range{0, k, 1}));
  }
  template <class X = Bk>
  static IntOf<X> int_argtopk(const IntOf<X>& x, int64_t k, int dim, bool largest) {
    return X::int_contiguous(X::int_slice(X::int_argsort(x, dim, largest), dim, Range{0, k, 1}));
  }

  template <class X = Bk>
  static IntOf<X> float_argplace(const FloatOf<X>& x, const IntOf<X>& places, int dim) {
    return X::int_gather(X::float_sort(x, dim, false).second, dim, places);
  }
  template <class X = Bk>
  static IntOf<X> int_argplace(const IntOf<X>& x, const IntOf<X>& places, int dim) {
    return X::int_gather(X::int_argsort(x, dim, false), dim, places);
  }

  template <class X = Bk>
  static IntOf<X> float_searchsorted(const FloatOf<X>& sorted, const FloatOf<X>& values,
                                     bool right) {
    return X::int_from_data(
        host::searchsorted(X::float_into_data(sorted), X::float_into_data(values), right),
        X::device(values));
  }
  template <class X = Bk>
  static IntOf<X> int_searchsorted(const IntOf<X>& sorted, const IntOf<X>& values, bool right) {
    return X::int_from_data(
        host::searchsorted(X::int_into_data(sorted), X::int_into_data(values), right),
        X::device(values));
  }
};

}  // namespace kiln::defaults
