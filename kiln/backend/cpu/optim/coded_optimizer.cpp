// AdamW with coded state: one parallel loop over the blocks of a parameter. It reads and writes all
// that belongs to a block once.
#include <algorithm>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise/convert_kernels.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/optim/coded_kernels.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace {

constexpr int64_t kCodedPiece = 16 * 1024;

struct CodedTensors {
  const HostHandle& p;
  const HostHandle& g;
  const HostHandle& codes1;
  const HostHandle& largest1;
  const HostHandle& codes2;
  const HostHandle& largest2;
};

// Calls f(first element, count, m, v) for pieces of whole blocks.
template <class T, class F>
void for_each_piece(const CodedTensors& x, int64_t block, F&& f) {
  const int64_t n = x.p->numel();
  const int64_t blocks = (n - 1) / block + 1;
  parallel_for(blocks, std::max<int64_t>(1, kCodedPiece / block), [&](int64_t begin, int64_t end) {
    const int64_t at = begin * block;
    const int64_t count = std::min(n, end * block) - at;
    const cpu::Scratch<T> numbers(2 * std::min(block, count));
    f(at, count,
      cpu::CodedState<T>{x.codes1->data_as<uint8_t>() + at, x.largest1->data_as<float>() + begin,
                         numbers.get()},
      cpu::CodedState<T>{x.codes2->data_as<uint8_t>() + at, x.largest2->data_as<float>() + begin,
                         numbers.get() + std::min(block, count)});
  });
}

template <class T>
void run(const CodedTensors& x, const AdamW8bitStep& step) {
  const auto& kernels = cpu::coded_kernels<T>();
  T* p = x.p->data_as<T>();
  const T* g = x.g->data_as<const T>();
  for_each_piece<T>(
      x, step.block,
      [&](int64_t at, int64_t n, const cpu::CodedState<T>& m, const cpu::CodedState<T>& v) {
        kernels.step(p + at, g + at, m, v, step, n);
      });
}

// 16-bit floats: a piece at a time in float.
void run_half(const CodedTensors& x, const AdamW8bitStep& step, cpu::Convert type) {
  const auto& kernels = cpu::coded_kernels<float>();
  const auto& convert = cpu::convert_kernels();
  auto* p = x.p->data_as<uint16_t>();
  const auto* g = x.g->data_as<const uint16_t>();
  for_each_piece<float>(
      x, step.block,
      [&](int64_t at, int64_t n, const cpu::CodedState<float>& m, const cpu::CodedState<float>& v) {
        const cpu::Scratch<float> wide(2 * n);
        convert.to_float(type, p + at, wide.get(), n);
        convert.to_float(type, g + at, wide.get() + n, n);
        kernels.step(wide.get(), wide.get() + n, m, v, step, n);
        convert.from_float(type, wide.get(), p + at, n);
      });
}

}  // namespace

void CpuOps::float_adamw_8bit(Arg<HostHandle> p, Arg<HostHandle> g, Arg<HostHandle> codes1,
                              Arg<HostHandle> largest1, Arg<HostHandle> codes2,
                              Arg<HostHandle> largest2, const AdamW8bitStep& step) {
  if (p->numel() == 0) return;
  const HostHandle* written[] = {&p.get(), &codes1.get(), &largest1.get(), &codes2.get(),
                                 &largest2.get()};
  const bool plain = std::all_of(std::begin(written), std::end(written),
                                 [](const HostHandle* x) { return (*x)->is_contiguous(); });
  if (!plain) {
    return BackendDefaults<Cpu>::float_adamw_8bit(p.get(), g.get(), codes1.get(), largest1.get(),
                                                  codes2.get(), largest2.get(), step);
  }
  const HostHandle gradient = cpu::contiguous(g.get());
  const CodedTensors all{p.get(),        gradient,     codes1.get(),
                         largest1.get(), codes2.get(), largest2.get()};
  switch (p->dtype()) {
    case DType::f64:
      run<double>(all, step);
      break;
    case DType::f32:
      run<float>(all, step);
      break;
    default:
      run_half(all, step, p->dtype() == DType::f16 ? cpu::Convert::f16 : cpu::Convert::bf16);
  }
  for (const HostHandle* x : written) (*x)->storage()->bump_version();
}

}  // namespace kiln
