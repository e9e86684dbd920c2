// Sums of rows of a table: float_bag_sum.
#include <algorithm>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/index/bag_kernels.h"
#include "kiln/backend/cpu/index/indices.h"

namespace kiln {
namespace cpu {
namespace {

template <class T>
HostHandle bag_sum(const HostHandle& table, const HostHandle& rows, const HostHandle& starts,
                   bool mean) {
  const int64_t bags = starts->numel() - 1;
  const int64_t width = table->shape()[1];
  HostHandle out = host::empty(Shape{bags, width}, table->dtype(), table->device());
  const T* from = table->data_as<const T>();
  const auto* indices = rows->data_as<const int64_t>();
  const auto* bounds = starts->data_as<const int64_t>();
  // A graph from a file may hold any.
  bool rises = bounds[0] == 0 && bounds[bags] == rows->numel();
  for (int64_t b = 0; b < bags; ++b) rises = rises && bounds[b] <= bounds[b + 1];
  if (!rises) {
    throw_error<IndexError>("embedding_bag: got starts of bags that do not rise from 0 to ",
                            rows->numel(), "; expected places among the rows, in order");
  }
  T* to = out->data_as<T>();
  const int64_t work = std::max<int64_t>(1, rows->numel() * width / std::max<int64_t>(1, bags));
  IndexCheck check(table->shape()[0]);
  parallel_for(bags, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t i = bounds[begin]; i < bounds[end]; ++i) {
      if (!check.fine(indices[i])) return;
    }
    for (int64_t b = begin; b < end; ++b) {
      const int64_t count = bounds[b + 1] - bounds[b];
      const auto divisor = static_cast<double>(mean ? std::max<int64_t>(1, count) : 1);
      bag_kernels<T>().sum(from, width, indices + bounds[b], count, bounds[end] - bounds[b],
                           divisor, to + b * width);
    }
  });
  check.finish("embedding_bag");
  return out;
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_bag_sum(Arg<HostHandle> table, Arg<HostHandle> rows,
                                 Arg<HostHandle> starts, bool mean) {
  if (cpu::convert_of(table->dtype()) != cpu::Convert::none) {
    return BackendDefaults<Cpu>::float_bag_sum(table, rows, starts, mean);
  }
  const HostHandle source = cpu::contiguous(table);
  const HostHandle index = cpu::contiguous(rows);
  const HostHandle bounds = cpu::contiguous(starts);
  return table->dtype() == DType::f64 ? cpu::bag_sum<double>(source, index, bounds, mean)
                                      : cpu::bag_sum<float>(source, index, bounds, mean);
}

}  // namespace kiln
