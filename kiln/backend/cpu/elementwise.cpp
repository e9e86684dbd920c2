#include "kiln/backend/cpu/elementwise.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "kiln/backend/cpu/elementwise/convert_kernels.h"
#include "kiln/backend/cpu/elementwise/gather.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/backend/result_layout.h"
#include "kiln/core/dim_order.h"

namespace kiln::cpu {
namespace {

// Elements that go through buffers at a time: few enough to stay in the first-level cache.
constexpr int64_t kChunk = 1024;
// Room after a chunk for what is written beyond it.
constexpr int64_t kSlack = 64;
// Rows shorter than this are gathered into chunks rather than given to the kernel one by one; of
// operands that are gathered by whole rows, those shorter than that, or than that where they are
// converted.
constexpr int64_t kShortRow = 16, kShortWholeRow = 80, kShortConvertedRow = 128;
// An operand that is one row for all rows is repeated up to so many elements, where its rows are
// not longer than that and there are some of them.
constexpr int64_t kRepeated = 1024, kLongestRepeated = 128, kLeastRepetitions = 8;
// Elements from which an operand with its dims in another order is copied to row-major order first.
constexpr int64_t kReorderFrom = 2048;

// Runs one op over pieces of a plan.
class Runner {
 public:
  Runner(const ElementwiseOp& op, const Plan& plan, bool stream) : op_(op), plan_(plan) {
    bool converts = false;
    for (int k = 0; k < plan.count; ++k) {
      converts = converts || plan.operands[k].convert != Convert::none;
    }
    converts_ = converts;
    stream_ = stream;
    stream_direct_ = stream && op.streams && !converts;
    buffered_ = converts || (stream && !stream_direct_);
    repeats_ = has_repeated_row();
    rows_ = plan.rank == 1 || plan.inner() >= kShortRow;
    for (int k = 0; k < plan.count; ++k) {
      const Operand& o = plan.operands[k];
      const int64_t step = o.strides[plan.rank - 1];
      rows_ = rows_ && (step == o.item || (step == 0 && k > 0));
    }
    if (rows_ && plan.rank > 1 && plan.inner() < (converts ? kShortConvertedRow : kShortWholeRow)) {
      rows_ = !gathers_quickly();
    }
  }

  void run(int64_t begin, int64_t end) const {
    Position at(plan_, begin);
    if (repeats_) {
      run_repeated(begin, end - begin);
    } else if (rows_) {
      run_rows(at, end - begin);
    } else {
      run_gathered(at, end - begin);
    }
  }

 private:
  // Whether no operand but whole rows has to be gathered, and nothing scattered.
  bool gathers_quickly() const {
    if (!plan_.operands[0].linear) return false;
    for (int k = 1; k < plan_.count; ++k) {
      const Operand& o = plan_.operands[k];
      if (!o.constant && !o.linear && !has_whole_rows(plan_, o)) return false;
    }
    return true;
  }

  // Whether operands are walked through, are one element, or are one row for all rows.
  bool has_repeated_row() const {
    if (plan_.rank != 2 || plan_.inner() > kLongestRepeated || plan_.sizes[0] < kLeastRepetitions)
      return false;
    if (!plan_.operands[0].linear) return false;
    bool repeats = false;
    for (int k = 1; k < plan_.count; ++k) {
      const Operand& o = plan_.operands[k];
      if (o.constant || o.linear) continue;
      if (o.strides[0] != 0 || o.strides[1] != o.item) return false;
      repeats = true;
    }
    return repeats;
  }

  static void repeat(const char* row, int64_t bytes, int64_t rows, char* to) {
    std::memcpy(to, row, static_cast<size_t>(bytes));
    for (int64_t done = 1; done < rows; done *= 2) {
      const int64_t more = std::min(done, rows - done);
      std::memcpy(to + done * bytes, to, static_cast<size_t>(more * bytes));
    }
  }

  // Many rows at a time, beside as many copies of the row that is all of an operand's.
  void run_repeated(int64_t begin, int64_t n) const {
    const int64_t inner = plan_.inner(), first = begin % inner;
    const int64_t rows = std::min(kRepeated / inner, n / inner + 1);
    const Scratch<char> copies((plan_.count - 1) * (rows + 1) * inner * 8);
    KernelArgs args = start();
    for (int k = 1; k < plan_.count; ++k) {
      const Operand& o = plan_.operands[k];
      if (o.constant) {
        args.in[k - 1] = o.data;
        args.scalars |= 1u << (k - 1);
      } else if (!o.linear) {
        char* const row = copies.get() + (k - 1) * (rows + 1) * inner * 8;
        repeat(o.data, inner * o.item, rows + 1, row);
        args.in[k - 1] = row + first * o.item;
      }
    }
    for (const int64_t end = begin + n; begin < end; begin += args.n) {
      args.n = std::min(rows * inner, end - begin);
      args.out = plan_.operands[0].data + begin * plan_.operands[0].item;
      for (int k = 1; k < plan_.count; ++k) {
        const Operand& o = plan_.operands[k];
        if (o.linear && !o.constant) args.in[k - 1] = o.data + begin * o.item;
      }
      run_piece(args);
    }
  }

  void run_rows(Position at, int64_t n) const {
    const int last = plan_.rank - 1;
    KernelArgs args = start();
    for (int k = 1; k < plan_.count; ++k) {
      if (plan_.operands[k].strides[last] == 0) args.scalars |= 1u << (k - 1);
    }
    while (n > 0) {
      // Where a row begins, and how many follow it at even distances.
      const int64_t skipped = std::exchange(at.index[last], 0);
      char* row[4];
      for (int k = 0; k < plan_.count; ++k) row[k] = at.address(plan_, plan_.operands[k]);
      int64_t rows = last > 0 ? plan_.sizes[last - 1] - at.index[last - 1] : 1;
      at.index[last] = skipped;
      for (; n > 0 && rows > 0; --rows) {
        const int64_t from = at.index[last];
        args.n = std::min(n, plan_.inner() - from);
        args.out = row[0] + from * plan_.operands[0].strides[last];
        for (int k = 1; k < plan_.count; ++k) {
          args.in[k - 1] = row[k] + from * plan_.operands[k].strides[last];
        }
        run_piece(args);
        at.advance(plan_, args.n);
        n -= args.n;
        if (last == 0) break;
        for (int k = 0; k < plan_.count; ++k) row[k] += plan_.operands[k].strides[last - 1];
      }
    }
  }

  void run_gathered(Position at, int64_t n) const {
    alignas(64) char in[3][kChunk * 8 + kSlack];
    alignas(64) char out[kChunk * 8];
    const Operand& to = plan_.operands[0];
    // Whole rows, as soon as one begins.
    const int64_t inner = plan_.inner();
    const int64_t chunk = inner <= kChunk ? kChunk / inner * inner : kChunk;
    while (n > 0) {
      const bool inside = inner <= kChunk && at.index[plan_.rank - 1] != 0;
      const int64_t count = std::min(n, inside ? at.left_in_row(plan_) : chunk);
      KernelArgs args = start();
      for (int k = 1; k < plan_.count; ++k) {
        const Operand& o = plan_.operands[k];
        if (o.constant) {
          args.in[k - 1] = o.data;
          args.scalars |= 1u << (k - 1);
        } else if (o.linear) {
          args.in[k - 1] = at.address(plan_, o);
        } else {
          gather(plan_, o, at, count, in[k - 1]);
          args.in[k - 1] = in[k - 1];
        }
      }
      args.out = to.linear ? at.address(plan_, to) : out;
      args.n = count;
      run_piece(args);
      if (!to.linear) scatter(plan_, to, at, count, out);
      at.skip(plan_, count);
      n -= count;
    }
  }

  void run_piece(const KernelArgs& args) const {
    if (buffered_) {
      run_buffered(args);
    } else {
      op_.kernel(args);
    }
  }

  // Through buffers: 16-bit floats are converted on the way in and out, and an output that goes
  // past the caches is made complete here first.
  void run_buffered(const KernelArgs& whole) const {
    const ConvertKernels& convert = convert_kernels();
    alignas(64) float in[3][kChunk];
    alignas(64) char out[kChunk * 8];
    alignas(64) char narrow[kChunk * 2];
    const Operand& to = plan_.operands[0];
    for (int64_t begin = 0; begin < whole.n; begin += kChunk) {
      KernelArgs args = whole;
      args.n = std::min(kChunk, whole.n - begin);
      for (int k = 1; k < plan_.count; ++k) {
        const Operand& o = plan_.operands[k];
        const bool constant = (whole.scalars >> (k - 1) & 1) != 0;
        const char* from = static_cast<const char*>(whole.in[k - 1]);
        if (!constant) from += begin * o.item;
        if (o.convert == Convert::none) {
          args.in[k - 1] = from;
        } else {
          convert.to_float(o.convert, from, in[k - 1], constant ? 1 : args.n);
          args.in[k - 1] = in[k - 1];
        }
      }
      char* const target = static_cast<char*>(whole.out) + begin * to.item;
      const bool narrows = to.convert != Convert::none;
      args.stream = false;
      args.out = narrows || stream_ ? out : target;
      op_.kernel(args);
      if (narrows) {
        convert.from_float(to.convert, reinterpret_cast<const float*>(out),
                           stream_ ? narrow : target, args.n);
      }
      if (stream_) convert.stream_copy(narrows ? narrow : out, target, args.n * to.item);
    }
  }

  KernelArgs start() const {
    KernelArgs args;
    args.params = op_.params;
    args.stream = stream_direct_;
    return args;
  }

  const ElementwiseOp& op_;
  const Plan& plan_;
  bool converts_;
  bool stream_;         // write past the caches
  bool stream_direct_;  // and the kernel does that itself
  bool buffered_;
  bool rows_;     // the kernel runs on rows where they lie
  bool repeats_;  // and on copies of a row
};

// Whether walking through x in the order of `shape` jumps from cache line to cache line although x
// is dense.
bool is_transposed(const HostTensor& x, const Shape& shape) {
  if (!(x.shape() == shape) || shape.rank() < 2 || x.strides().back() == 1 || shape.back() == 1) {
    return false;
  }
  for (int i = 0; i + 1 < shape.rank(); ++i) {
    if (x.strides()[i] == 1 && shape[i] != 1) return true;
  }
  return false;
}

// x, read in the shape, with its dims in another order.
HostHandle turned(const HostTensor& x, const Shape& shape, const Dims& order) {
  return make_handle<HostTensor>(permuted(shape, order), x.dtype(), x.device(),
                                 permuted(host::broadcast_strides(x, shape), order), x.offset(),
                                 x.storage());
}

bool gives_row_major(const HostTensor& x, const HostTensor& y, const Shape& shape) {
  return is_contiguous(
      shape, result_strides(shape, {{&x.shape(), &x.strides()}, {&y.shape(), &y.strides()}}));
}

}  // namespace

void run_elementwise(const ElementwiseOp& op, const HostTensor& out,
                     const HostTensor* const* inputs, bool fresh) {
  const Shape& shape = out.shape();
  const int64_t n = shape.numel();
  if (n == 0) return;
  if (!std::ranges::is_sorted(out.strides(), std::greater<>())) {
    // With the dims in the order of the output's, which is then walked through as it lies.
    const Dims order = by_stride(out.strides());
    const HostHandle to = turned(out, shape, order);
    HostHandle now[3];
    const HostTensor* turned_inputs[3] = {};
    for (int k = 0; k < op.inputs; ++k) {
      now[k] = turned(*inputs[k], shape, order);
      turned_inputs[k] = now[k].get();
    }
    return run_elementwise(op, *to, turned_inputs, fresh);
  }
  const auto plan_of = [&](const HostTensor* const* xs) {
    Plan plan;
    add_operand(plan, out, shape, op.raw);
    for (int k = 0; k < op.inputs; ++k) add_operand(plan, *xs[k], shape, op.raw);
    merge_dims(plan, shape);
    return plan;
  };
  Plan plan = plan_of(inputs);
  HostHandle reordered[3];
  if (plan.rank > 1 && n >= kReorderFrom) {
    const HostTensor* now[3] = {};
    for (int k = 0; k < op.inputs; ++k) {
      now[k] = inputs[k];
      if (!out.is_contiguous() || !is_transposed(*now[k], shape)) continue;
      reordered[k] = host::empty(shape, now[k]->dtype(), now[k]->device());
      copy_elements(*now[k], *reordered[k], /*fresh=*/true);
      now[k] = reordered[k].get();
    }
    if (!std::equal(now, now + op.inputs, inputs)) plan = plan_of(now);
  }
  const Operand& to = plan.operands[0];
  const bool stream = fresh && to.linear && should_stream(n * to.item) &&
                      (plan.rank == 1 || plan.inner() * to.item % 64 == 0) &&
                      reinterpret_cast<uintptr_t>(to.data) % 64 == 0;
  const Runner runner(op, plan, stream);
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) { runner.run(begin, end); });
}

Output::Output(const Arg<HostHandle>& x, const Shape& shape, DType dtype, const HostTensor* other,
               const HostTensor* third) {
  choose(x, shape, dtype, other, third);
  if (!tensor_) {
    tensor_ = host::empty_as(shape, dtype, x->device(), *x.get(), other, third);
    fresh_ = true;
  }
}

Output::Output(const Arg<HostHandle>& x, const Arg<HostHandle>& y, const Shape& shape,
               DType dtype) {
  choose(x, shape, dtype, y.get().get(), nullptr);
  if (!tensor_ && host::can_donate(y, shape, dtype) && gives_row_major(*x.get(), *y.get(), shape)) {
    tensor_ = y.take();
  }
  if (!tensor_) {
    tensor_ = host::empty_as(shape, dtype, x->device(), *x.get(), y.get().get());
    fresh_ = true;
  }
}

namespace {

// Whether writing `to` element by element would change elements of `from` that are still to be
// read.
bool is_in_the_way(const HostTensor& to, const HostTensor* from) {
  if (from == nullptr || !host::may_overlap(to, *from)) return false;
  return !(from->shape() == to.shape() && from->strides() == to.strides() &&
           from->offset() == to.offset() && from->dtype() == to.dtype());
}

}  // namespace

void Output::choose(const Arg<HostHandle>& x, const Shape& shape, DType dtype,
                    const HostTensor* other, const HostTensor* third) {
  if (x.is_in_place() && x->dtype() == dtype && x->shape() == shape) {
    in_place_ = &x.get();
    if (is_in_the_way(*x.get(), other) || is_in_the_way(*x.get(), third)) return;
    tensor_ = x.get();
  } else if (host::can_donate(x, shape, dtype)) {
    tensor_ = x.take();
  }
}

HostHandle Output::finish_in_place() {
  const HostHandle& target = *in_place_;
  if (!(tensor_ == target)) copy_elements(*tensor_, *target);
  target->storage()->bump_version();
  return target;
}

HostHandle contiguous(const HostHandle& x) {
  if (x->is_contiguous()) return x;
  HostHandle out = host::empty(x->shape(), x->dtype(), x->device());
  copy_elements(*x, *out, /*fresh=*/true);
  return out;
}

}  // namespace kiln::cpu
