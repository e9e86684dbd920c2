// Running results along a dim.
#include "kiln/backend/host_scan.h"
#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::map_rows;
using reference::Ops;
using reference::Tensor;

namespace {

double sum(double a, double b) { return a + b; }
int64_t sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
double product(double a, double b) { return a * b; }
int64_t product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Each element combined with the result before it.
template <class V, class Fn>
HostHandle running(const Tensor& x, int dim, Fn&& fn) {
  return map_rows<V>(x, Dims{dim}, [&](std::span<V> row) {
    for (size_t i = 1; i < row.size(); ++i) row[i] = fn(row[i - 1], row[i]);
  });
}

}  // namespace

#define KILN_RUNNING(kind, V)                                                            \
  HostHandle Ops::kind##_cumsum(Tensor x, int dim) {                                     \
    return running<V>(x, dim, [](V a, V b) { return sum(a, b); });                       \
  }                                                                                      \
  HostHandle Ops::kind##_cumprod(Tensor x, int dim) {                                    \
    return running<V>(x, dim, [](V a, V b) { return product(a, b); });                   \
  }                                                                                      \
  HostHandle Ops::kind##_cumarg(Tensor x, int dim, bool largest) {                       \
    return host::from_data(host::cumarg(host::into_data(x), dim, largest), x->device()); \
  }
KILN_RUNNING(float, double)
KILN_RUNNING(int, int64_t)
#undef KILN_RUNNING

HostHandle Ops::float_logcumsumexp(Tensor x, int dim) {
  return host::from_data(host::logcumsumexp(host::into_data(x), dim), x->device());
}

HostHandle Ops::float_linear_scan(Tensor a, Tensor b, int dim, bool reversed) {
  return map_rows(a, b, Dims{dim}, [=](std::span<double> row, std::span<const double> added) {
    double h = 0.0;
    for (size_t k = 0; k < row.size(); ++k) {
      const size_t i = reversed ? row.size() - 1 - k : k;
      h = k == 0 ? added[i] : row[i] * h + added[i];
      row[i] = h;
    }
  });
}

}  // namespace kiln
