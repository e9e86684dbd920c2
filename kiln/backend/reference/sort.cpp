// Sorting: the standard library's stable sort is the oracle.
#include "kiln/backend/host_sort.h"
#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::Ops;
using reference::Tensor;

HostHandle Ops::int_argsort(Tensor x, int dim, bool descending) {
  return host::from_data(host::argsort(host::into_data(x), dim, descending), x->device());
}
std::pair<HostHandle, HostHandle> Ops::float_sort(Tensor x, int dim, bool descending) {
  HostHandle indices = int_argsort(x, dim, descending);
  HostHandle values = float_gather(x, dim, indices);
  return {std::move(values), std::move(indices)};
}

HostHandle Ops::int_argtopk(Tensor x, int64_t k, int dim, bool largest) {
  return int_contiguous(int_slice(int_argsort(x, dim, largest), dim, Range{0, k, 1}));
}
HostHandle Ops::float_argtopk(Tensor x, int64_t k, int dim, bool largest) {
  return int_argtopk(x, k, dim, largest);
}

HostHandle Ops::int_argplace(Tensor x, Tensor places, int dim) {
  return int_gather(int_argsort(x, dim, false), dim, places);
}
HostHandle Ops::float_argplace(Tensor x, Tensor places, int dim) {
  return int_argplace(x, places, dim);
}

HostHandle Ops::int_searchsorted(Tensor sorted, Tensor values, bool right) {
  return host::from_data(
      host::searchsorted(host::into_data(sorted), host::into_data(values), right),
      values->device());
}
HostHandle Ops::float_searchsorted(Tensor sorted, Tensor values, bool right) {
  return int_searchsorted(sorted, values, right);
}

}  // namespace kiln
