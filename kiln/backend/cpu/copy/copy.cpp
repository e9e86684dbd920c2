// Copies between strided views: contiguous, assign, reshape, flip.
#include <algorithm>
#include <cstring>

#include "kiln/backend/cpu/copy/copy_kernels.h"
#include "kiln/backend/cpu/copy/items.h"
#include "kiln/backend/cpu/copy/transpose.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/convert_kernels.h"
#include "kiln/core/dim_order.h"

namespace kiln {
namespace cpu {
namespace {

// Columns that one task of a transposing copy takes: enough to use whole pages of the source, few
// enough that the lines it writes stay within reach of the TLB.
constexpr int64_t kColumnBlock = 64;

// Two views of one shape, with the dims ordered by the target's strides and merged where both allow
// it. Strides are in elements.
struct CopyPlan {
  int rank = 0;
  int64_t sizes[kMaxRank];
  int64_t from_strides[kMaxRank];
  int64_t to_strides[kMaxRank];
  const char* from;
  char* to;
  int64_t item;
  int64_t numel;
  bool stream = false;  // past the caches: every row of the target starts on a line

  int64_t inner() const { return sizes[rank - 1]; }
};

CopyPlan plan_copy(const char* from, const Strides& from_strides, char* to,
                   const Strides& to_strides, const Shape& shape, int64_t item, bool fresh) {
  CopyPlan plan;
  plan.from = from;
  plan.to = to;
  plan.item = item;
  plan.numel = shape.numel();
  int order[kMaxRank];
  int rank = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != 1) order[rank++] = i;
  }
  sort_by_stride(order, rank, to_strides);
  int merged = 0;
  for (int k = 0; k < rank; ++k) {
    const int i = order[k];
    const int last = merged - 1;
    if (merged > 0 && plan.from_strides[last] == from_strides[i] * shape[i] &&
        plan.to_strides[last] == to_strides[i] * shape[i]) {
      plan.sizes[last] *= shape[i];
      plan.from_strides[last] = from_strides[i];
      plan.to_strides[last] = to_strides[i];
    } else {
      plan.sizes[merged] = shape[i];
      plan.from_strides[merged] = from_strides[i];
      plan.to_strides[merged] = to_strides[i];
      ++merged;
    }
  }
  if (merged == 0) {
    plan.sizes[0] = 1;
    plan.from_strides[0] = plan.to_strides[0] = 1;
    merged = 1;
  }
  plan.rank = merged;
  plan.stream = fresh && should_stream(plan.numel * item) && plan.to_strides[merged - 1] == 1 &&
                reinterpret_cast<uintptr_t>(to) % 64 == 0;
  for (int i = 0; i + 1 < merged; ++i) {
    plan.stream = plan.stream && plan.to_strides[i] * item % 64 == 0;
  }
  return plan;
}

template <class U>
void copy_strided(const U* from, int64_t from_step, U* to, int64_t to_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
}

// to[r * to_step + i] = from[r * from_step - i].
template <class U>
void reverse_rows(const U* from, int64_t from_step, U* to, int64_t to_step, int64_t n,
                  int64_t rows) {
  const CopyKernels& kernels = copy_kernels();
  if constexpr (sizeof(U) == 1) kernels.reverse8(from, from_step, to, to_step, n, rows);
  if constexpr (sizeof(U) == 2) kernels.reverse16(from, from_step, to, to_step, n, rows);
  if constexpr (sizeof(U) == 4) kernels.reverse32(from, from_step, to, to_step, n, rows);
  if constexpr (sizeof(U) == 8) kernels.reverse64(from, from_step, to, to_step, n, rows);
}

// n elements of one row, whatever the steps.
template <class U>
void copy_row(const CopyPlan& plan, const char* from_bytes, char* to_bytes, int64_t n) {
  const int64_t from_step = plan.from_strides[plan.rank - 1];
  const int64_t to_step = plan.to_strides[plan.rank - 1];
  const auto* from = reinterpret_cast<const U*>(from_bytes);
  auto* to = reinterpret_cast<U*>(to_bytes);
  const CopyKernels& kernels = copy_kernels();
  if (to_step != 1) {
    copy_strided(from, from_step, to, to_step, n);
  } else if (from_step == 1) {
    const auto bytes = n * static_cast<int64_t>(sizeof(U));
    if (plan.stream && n >= 1024) {
      convert_kernels().stream_copy(from, to, bytes);
    } else if (bytes <= 256) {
      copy_bytes(to_bytes, from_bytes, bytes);
    } else {
      kernels.copy(from, to, bytes);
    }
  } else if (from_step == 0) {
    kernels.fill(repeated(from_bytes, sizeof(U)), to, n * static_cast<int64_t>(sizeof(U)));
  } else if (from_step == -1) {
    reverse_rows(from, 0, to, 0, n, 1);
  } else if (from_step == 2 && sizeof(U) >= 4) {
    if constexpr (sizeof(U) == 4) kernels.every_other32(from, to, n);
    if constexpr (sizeof(U) == 8) kernels.every_other64(from, to, n);
  } else {
    copy_strided(from, from_step, to, 1, n);
  }
}

// Rows this short are copied element by element.
constexpr int64_t kTinyRow = 12;

template <class U>
void copy_tiny_rows(const CopyPlan& plan, const char* from_bytes, char* to_bytes, int64_t rows) {
  const int last = plan.rank - 1;
  const int64_t width = plan.sizes[last];
  const int64_t from_step = plan.from_strides[last];
  const int64_t to_step = plan.to_strides[last];
  const auto* from = reinterpret_cast<const U*>(from_bytes);
  auto* to = reinterpret_cast<U*>(to_bytes);
  const auto each = [&](auto&& copy) {
    for (int64_t r = 0; r < rows; ++r) {
      copy(from + r * plan.from_strides[last - 1], to + r * plan.to_strides[last - 1]);
    }
  };
  if (width == 2) {
    each([=](const U* x, U* y) {
      const U second = x[from_step];
      y[0] = x[0];
      y[to_step] = second;
    });
  } else if (from_step == 0) {
    each([=](const U* x, U* y) {
      const U value = x[0];
      for (int64_t k = 0; k < width; ++k) y[k * to_step] = value;
    });
  } else {
    each([=](const U* x, U* y) {
      for (int64_t k = 0; k < width; ++k) y[k * to_step] = x[k * from_step];
    });
  }
}

// Whole rows along the dim before the last.
template <class U>
void copy_whole_rows(const CopyPlan& plan, const char* from, char* to, int64_t rows) {
  const int last = plan.rank - 1;
  const int64_t width = plan.sizes[last];
  const int64_t from_step = plan.from_strides[last], to_step = plan.to_strides[last];
  const int64_t from_row = plan.from_strides[last - 1], to_row = plan.to_strides[last - 1];
  const bool is_plain = from_step == 1 && to_step == 1;
  constexpr auto kItem = static_cast<int64_t>(sizeof(U));
  if (is_plain && width * kItem >= 4) {
    copy_kernels().copy_rows(from, from_row * kItem, to, to_row * kItem, width * kItem, rows,
                             plan.stream);
  } else if (width <= kTinyRow) {
    copy_tiny_rows<U>(plan, from, to, rows);
  } else if (from_step == -1 && to_step == 1 && kItem > 1) {
    reverse_rows(reinterpret_cast<const U*>(from), from_row, reinterpret_cast<U*>(to), to_row,
                 width, rows);
  } else {
    for (int64_t r = 0; r < rows; ++r, from += from_row * kItem, to += to_row * kItem) {
      copy_row<U>(plan, from, to, width);
    }
  }
}

// Row by row, where a row is the last dim.
template <class U>
void copy_rows(const CopyPlan& plan) {
  const int last = plan.rank - 1;
  const int64_t width = plan.sizes[last];
  // Long rows are cut, short ones stay whole.
  const bool cut = width > kGrain / 8;
  const int64_t unit = cut ? 1 : width;
  parallel_for(
      plan.numel / unit, std::max<int64_t>(1, kGrain / unit), [&](int64_t begin, int64_t end) {
        int64_t index[kMaxRank] = {};
        const char* from = plan.from;
        char* to = plan.to;
        int64_t flat = begin * unit;
        const auto move = [&](int dim, int64_t by) {
          from += by * plan.from_strides[dim] * plan.item;
          to += by * plan.to_strides[dim] * plan.item;
        };
        for (int i = last; i >= 0; --i) {
          index[i] = i > 0 ? flat % plan.sizes[i] : flat;
          flat /= plan.sizes[i];
          move(i, index[i]);
        }
        for (int64_t left = (end - begin) * unit; left > 0;) {
          if (!cut && last > 0) {
            const int64_t rows = std::min(left / width, plan.sizes[last - 1] - index[last - 1]);
            copy_whole_rows<U>(plan, from, to, rows);
            left -= rows * width;
            index[last - 1] += rows;
            move(last - 1, rows);
            for (int i = last - 1; i > 0 && index[i] == plan.sizes[i]; --i) {
              move(i, -index[i]);
              index[i] = 0;
              ++index[i - 1];
              move(i - 1, 1);
            }
            continue;
          }
          const int64_t n = std::min(left, width - index[last]);
          copy_row<U>(plan, from, to, n);
          left -= n;
          index[last] += n;
          move(last, n);
          for (int i = last; i > 0 && index[i] == plan.sizes[i]; --i) {
            move(i, -index[i]);
            index[i] = 0;
            ++index[i - 1];
            move(i - 1, 1);
          }
        }
      });
}

// The source runs along dim `t` where the target runs along the last: blocks of that matrix are
// exchanged, for every index of the other dims.
void copy_transposed(const CopyPlan& plan, int t) {
  const int last = plan.rank - 1;
  const int64_t rows = plan.sizes[last];
  const int64_t columns = plan.sizes[t];
  const int64_t from_step = plan.from_strides[last];
  const int64_t to_step = plan.to_strides[t];
  const int64_t blocks = (columns + kColumnBlock - 1) / kColumnBlock;
  const int64_t tasks = plan.numel / (rows * columns) * blocks;
  const int64_t grain = std::max<int64_t>(1, kGrain / (rows * std::min(columns, kColumnBlock)));
  parallel_for(tasks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t j = task % blocks * kColumnBlock;
      int64_t rest = task / blocks;
      int64_t from_offset = j;
      int64_t to_offset = j * to_step;
      for (int i = last - 1; i >= 0; --i) {
        if (i == t) continue;
        from_offset += rest % plan.sizes[i] * plan.from_strides[i];
        to_offset += rest % plan.sizes[i] * plan.to_strides[i];
        rest /= plan.sizes[i];
      }
      const int64_t width = std::min(kColumnBlock, columns - j);
      const char* from = plan.from + from_offset * plan.item;
      char* to = plan.to + to_offset * plan.item;
      transpose_items(plan.item, from, from_step, to, to_step, rows, width,
                      plan.stream && plan.item > 1);
    }
  });
}

void run_copy(const CopyPlan& plan) {
  if (plan.numel == 0) return;
  const int last = plan.rank - 1;
  constexpr int64_t least = 2;  // rows or columns: there are vector forms for few ones, too
  const bool repeats = plan.from_strides[last] == 0 && plan.sizes[last] > kTinyRow;
  if (plan.to_strides[last] == 1 && plan.from_strides[last] != 1 && !repeats &&
      plan.sizes[last] >= least) {
    for (int t = 0; t < last; ++t) {
      if (plan.from_strides[t] == 1 && plan.sizes[t] >= least) return copy_transposed(plan, t);
    }
  }
  visit_item(static_cast<size_t>(plan.item), [&]<class U>() { copy_rows<U>(plan); });
}

void assign(const HostHandle& to, const HostHandle& from) {
  HostHandle source = from;
  if (!(from->shape() == to->shape())) source = host::expand(from, to->shape());
  if (source == to) return;
  if (host::may_overlap(*source, *to)) {
    // The target may be written before the source is read: through a copy.
    HostHandle copy = host::empty(to->shape(), to->dtype(), to->device());
    copy_elements(*source, *copy, /*fresh=*/true);
    source = std::move(copy);
  }
  // What is longer than the caches keep is not in them.
  copy_elements(*source, *to, /*fresh=*/true);
  to->storage()->bump_version();
}

HostHandle reshape(const Arg<HostHandle>& x, const Shape& shape) {
  if (HostHandle view = host::try_reshape(x, shape)) return view;
  return host::try_reshape(contiguous(x), shape);
}

HostHandle flip(const HostHandle& x, const Dims& dims) {
  HostHandle out = host::empty(x->shape(), x->dtype(), x->device());
  if (x->numel() == 0) return out;
  // Walks the source backwards along the flipped dims.
  Strides strides = x->strides();
  int64_t start = 0;
  for (int64_t dim : dims) {
    const int d = static_cast<int>(dim);
    start += (x->shape()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  const auto item = static_cast<int64_t>(size_of(x->dtype()));
  run_copy(plan_copy(static_cast<const char*>(x->data()) + start * item, strides,
                     static_cast<char*>(out->data()), out->strides(), x->shape(), item,
                     /*fresh=*/true));
  return out;
}

}  // namespace

void copy_elements(const HostTensor& from, const HostTensor& to, bool fresh) {
  run_copy(plan_copy(static_cast<const char*>(from.data()), from.strides(),
                     static_cast<char*>(to.data()), to.strides(), to.shape(),
                     static_cast<int64_t>(size_of(to.dtype())), fresh));
}

}  // namespace cpu

using cpu::assign;
using cpu::contiguous;
using cpu::flip;
using cpu::reshape;

HostHandle CpuOps::float_reshape(Arg<HostHandle> x, const Shape& shape) {
  return reshape(x, shape);
}
HostHandle CpuOps::int_reshape(Arg<HostHandle> x, const Shape& shape) { return reshape(x, shape); }
HostHandle CpuOps::bool_reshape(Arg<HostHandle> x, const Shape& shape) { return reshape(x, shape); }
HostHandle CpuOps::float_contiguous(Arg<HostHandle> x) { return contiguous(x); }
HostHandle CpuOps::int_contiguous(Arg<HostHandle> x) { return contiguous(x); }
HostHandle CpuOps::float_flip(Arg<HostHandle> x, const Dims& dims) { return flip(x, dims); }
HostHandle CpuOps::int_flip(Arg<HostHandle> x, const Dims& dims) { return flip(x, dims); }
HostHandle CpuOps::bool_flip(Arg<HostHandle> x, const Dims& dims) { return flip(x, dims); }
HostHandle CpuOps::bool_contiguous(Arg<HostHandle> x) { return contiguous(x); }
void CpuOps::float_assign(Arg<HostHandle> to, Arg<HostHandle> from) { assign(to, from); }
void CpuOps::int_assign(Arg<HostHandle> to, Arg<HostHandle> from) { assign(to, from); }
void CpuOps::bool_assign(Arg<HostHandle> to, Arg<HostHandle> from) { assign(to, from); }

}  // namespace kiln
