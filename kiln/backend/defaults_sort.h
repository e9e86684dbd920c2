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
};

}  // namespace kiln::defaults
