// Optimizer steps: one parallel loop over the elements of all parameters, as if they lay one after
// another.
#include <algorithm>
#include <vector>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/optim/optimizer_kernels.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace {

constexpr int64_t kPiece = 16 * 1024;

// Whether these can be walked as plain arrays of `dtype`.
bool are_plain(std::span<const HostHandle> tensors, DType dtype) {
  return std::all_of(tensors.begin(), tensors.end(), [&](const HostHandle& x) {
    return x->dtype() == dtype && x->is_contiguous();
  });
}

// Calls f(tensor, first element, count) for the parts of each piece of all parameters laid end to
// end.
template <class F>
void for_each_part(std::span<const HostHandle> params, F&& f) {
  const auto count = static_cast<int64_t>(params.size());
  const cpu::Scratch<int64_t> starts(count + 1);
  starts[0] = 0;
  for (int64_t i = 0; i < count; ++i) {
    starts[i + 1] = starts[i] + params[static_cast<size_t>(i)]->numel();
  }
  parallel_for(starts[count], kPiece, [&](int64_t begin, int64_t end) {
    int64_t i = std::upper_bound(starts.get(), starts.get() + count + 1, begin) - starts.get() - 1;
    while (begin < end) {
      const int64_t part = std::min(end, starts[i + 1]) - begin;
      if (part > 0) f(static_cast<size_t>(i), begin - starts[i], part);
      begin += part;
      ++i;
    }
  });
}

void mark_written(std::span<const HostHandle> tensors) {
  for (const HostHandle& x : tensors) x->storage()->bump_version();
}

// The gradients, row-major; `copies` keeps those that had to be copied.
std::span<const HostHandle> plain_gradients(std::span<const HostHandle> grads,
                                            std::vector<HostHandle>& copies) {
  const bool plain = std::all_of(grads.begin(), grads.end(),
                                 [](const HostHandle& g) { return g->is_contiguous(); });
  if (plain) return grads;
  copies.reserve(grads.size());
  for (const HostHandle& g : grads) copies.push_back(cpu::contiguous(g));
  return copies;
}

template <class T>
void run(std::span<const HostHandle> params, std::span<const HostHandle> grads,
         std::span<const HostHandle> state, const OptimizerStep& step) {
  const auto& kernels = cpu::optimizer_kernels<T>();
  const size_t slots = slots_of(step);
  for_each_part(params, [&](size_t i, int64_t at, int64_t n) {
    cpu::Slots<T> parts = {};
    for (size_t s = 0; s < slots; ++s) {
      parts[s] = state[s * params.size() + i]->data_as<T>() + at;
    }
    kernels.step(params[i]->data_as<T>() + at, grads[i]->data_as<const T>() + at, parts, step, n);
  });
}

}  // namespace

void CpuOps::float_optimizer_step(std::span<HostHandle> params, std::span<const HostHandle> grads,
                                  std::span<HostHandle> state, const OptimizerStep& step) {
  if (params.empty()) return;
  const DType dtype = params[0]->dtype();
  if (cpu::is_half(dtype) || !are_plain(params, dtype) || !are_plain(state, dtype)) {
    return BackendDefaults<Cpu>::float_optimizer_step(params, grads, state, step);
  }
  std::vector<HostHandle> copies;
  const std::span<const HostHandle> plain = plain_gradients(grads, copies);
  if (dtype == DType::f64) {
    run<double>(params, plain, state, step);
  } else {
    run<float>(params, plain, state, step);
  }
  mark_written(params);
  mark_written(state);
}

}  // namespace kiln
