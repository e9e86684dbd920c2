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

}  // namespace kiln
