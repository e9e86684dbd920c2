// Ops that take indices along one dim: gather, scatter, scatter_add, scatter_reduce, index_select,
// index_add, index_copy.
//
// Every index is checked before anything is written. Positions that may meet (those that differ
// along `dim` only) are written by one thread, in their order, so results do not depend on the
// number of threads.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/core/error.h"

namespace kiln {
namespace cpu {
namespace {

// Columns that one task of a scatter takes at least.
constexpr int64_t kColumnBlock = 64;

// Throws IndexError unless all of `index` (contiguous) lies in [0, size).
void check_indices(const char* op, const HostTensor& index, int64_t size) {
  const auto* values = index.data_as<const int64_t>();
  std::atomic<int64_t> bad{-1};
  parallel_for(index.numel(), kGrain, [&](int64_t begin, int64_t end) {
    bool fine = true;
    for (int64_t i = begin; i < end; ++i) {
      fine &= static_cast<uint64_t>(values[i]) < static_cast<uint64_t>(size);
    }
    if (fine) return;
    while (static_cast<uint64_t>(values[begin]) < static_cast<uint64_t>(size)) ++begin;
    bad.store(begin, std::memory_order_relaxed);
  });
  const int64_t at = bad.load();
  if (at >= 0) {
    throw_error<IndexError>(op, ": index out of range; got ", values[at],
                            "; expected 0 <= index < ", size);
  }
}

// A tensor seen as [outer, size, inner] around one dim.
struct Around {
  int64_t outer = 1;
  int64_t size;
  int64_t inner = 1;

  Around(const Shape& shape, int dim) : size(shape[dim]) {
    for (int i = 0; i < dim; ++i) outer *= shape[i];
    for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

// Where an op that changes some elements of x writes: row-major memory that starts out with x's
// values.
class Target {
 public:
  explicit Target(const Arg<HostHandle>& x) {
    if (x.is_in_place()) in_place_ = &x.get();
    if (x.is_in_place() && x->is_contiguous()) {
      tensor_ = x.get();
    } else if (host::can_donate(x, x->shape(), x->dtype())) {
      tensor_ = x.take();
    } else {
      tensor_ = host::empty(x->shape(), x->dtype(), x->device());
      copy_elements(*x.get(), *tensor_, /*fresh=*/true);
    }
  }
  const HostTensor& tensor() const { return *tensor_; }
  HostHandle finish() {
    if (in_place_ == nullptr) return std::move(tensor_);
    if (!(tensor_ == *in_place_)) copy_elements(*tensor_, **in_place_);
    (*in_place_)->storage()->bump_version();
    return *in_place_;
  }

 private:
  HostHandle tensor_;
  const HostHandle* in_place_ = nullptr;
};

// An operand that is read while x is written: row-major, and apart from x.
HostHandle apart_from(const HostHandle& operand, const HostHandle& x) {
  if (!host::may_overlap(*operand, *x)) return contiguous(operand);
  HostHandle copy = host::empty(operand->shape(), operand->dtype(), operand->device());
  copy_elements(*operand, *copy, /*fresh=*/true);
  return copy;
}

template <class F>
decltype(auto) visit_size(size_t item, F&& f) {
  switch (item) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

// -------------------------------------------------------------------------------------------------------
// gather

template <class U>
void gather_rows(const HostTensor& x, int dim, const HostTensor& index, const HostTensor& out) {
  const Shape& shape = index.shape();
  const int last = shape.rank() - 1;
  const int64_t inner = shape[last];
  const U* from = x.data_as<const U>();
  const auto* indices = index.data_as<const int64_t>();
  U* to = out.data_as<U>();
  const int64_t along = x.strides()[dim];
  const int64_t step = dim == last ? 0 : x.strides()[last];
  const int64_t grain = std::max<int64_t>(1, kGrain / 4 / inner);
  parallel_for(shape.numel() / inner, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row;
      const U* base = from;
      for (int i = last - 1; i >= 0; --i) {
        const int64_t at = rest % shape[i];
        rest /= shape[i];
        if (i != dim) base += at * x.strides()[i];
      }
      const int64_t* row_indices = indices + row * inner;
      U* row_out = to + row * inner;
      for (int64_t k = 0; k < inner; ++k) row_out[k] = base[k * step + row_indices[k] * along];
    }
  });
}

HostHandle gather(const HostHandle& x, int dim, const HostHandle& index_arg) {
  const HostHandle index = contiguous(index_arg);
  if (x->shape().rank() == 0) {
    check_indices("gather", *index, 1);
    HostHandle out = host::empty(index->shape(), x->dtype(), x->device());
    copy_elements(*host::expand(x, index->shape()), *out);
    return out;
  }
  check_indices("gather", *index, x->shape()[dim]);
  HostHandle out = host::empty(index->shape(), x->dtype(), x->device());
  if (out->numel() == 0) return out;
  visit_size(size_of(x->dtype()), [&]<class U>() { gather_rows<U>(*x, dim, *index, *out); });
  return out;
}

HostHandle index_select(const HostHandle& x, int dim, const HostHandle& index_arg) {
  const HostHandle index = contiguous(index_arg);
  if (x->shape().rank() == 0) return gather(x, 0, index);
  check_indices("index_select", *index, x->shape()[dim]);
  Shape shape = x->shape();
  shape[dim] = index->numel();
  HostHandle out = host::empty(shape, x->dtype(), x->device());
  if (out->numel() == 0) return out;
  const HostHandle source = contiguous(x);
  const Around around(source->shape(), dim);
  const int64_t count = index->numel();
  const auto* indices = index->data_as<const int64_t>();
  const auto item = static_cast<int64_t>(size_of(x->dtype()));
  if (around.inner == 1) {
    visit_size(size_of(x->dtype()), [&]<class U>() {
      const U* from = source->data_as<const U>();
      U* to = out->data_as<U>();
      const auto pick = [&](int64_t o, int64_t begin, int64_t end) {
        const U* row = from + o * around.size;
        U* picked = to + o * count;
        for (int64_t i = begin; i < end; ++i) picked[i] = row[indices[i]];
      };
      if (around.outer == 1) {
        parallel_for(count, kGrain / 4, [&](int64_t begin, int64_t end) { pick(0, begin, end); });
      } else {
        const int64_t grain = std::max<int64_t>(1, kGrain / 4 / count);
        parallel_for(around.outer, grain, [&](int64_t begin, int64_t end) {
          for (int64_t o = begin; o < end; ++o) pick(o, 0, count);
        });
      }
    });
    return out;
  }
  const int64_t row = around.inner * item;
  const auto* from = source->data_as<const char>();
  auto* to = out->data_as<char>();
  const int64_t grain = std::max<int64_t>(1, kGrain / around.inner);
  parallel_for(around.outer * count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i / count;
      const int64_t at = o * around.size + indices[i - o * count];
      std::memcpy(to + i * row, from + at * row, static_cast<size_t>(row));
    }
  });
  return out;
}

// -------------------------------------------------------------------------------------------------------
// scatter

struct Write {
  template <class T>
  static void run(T& to, T from) {
    to = from;
  }
};
struct Add {
  template <class T>
  static void run(T& to, T from) {
    if constexpr (std::is_integral_v<T>) {
      to = static_cast<T>(static_cast<uint64_t>(to) + static_cast<uint64_t>(from));
    } else {
      to += from;
    }
  }
};

struct Multiply {
  template <class T>
  static void run(T& to, T from) {
    if constexpr (std::is_integral_v<T>) {
      to = static_cast<T>(static_cast<uint64_t>(to) * static_cast<uint64_t>(from));
    } else {
      to *= from;
    }
  }
};
// NaN wins.
struct Larger {
  template <class T>
  static void run(T& to, T from) {
    if (from >= to || from != from) to = from;
  }
};
struct Smaller {
  template <class T>
  static void run(T& to, T from) {
    if (from <= to || from != from) to = from;
  }
};
// Whether an action depends on what the elements mean.
template <class Action>
constexpr bool kComputes = !std::is_same_v<Action, Write>;

// One task for each stretch of columns of each outer index; f(outer, first column, columns).
template <class F>
void for_each_column_block(int64_t outer, int64_t rows, int64_t inner, F&& f) {
  const int64_t width =
      std::max(kColumnBlock, std::min(inner, kGrain / std::max<int64_t>(rows, 1)));
  const int64_t blocks = (inner + width - 1) / width;
  const int64_t grain =
      std::max<int64_t>(1, kGrain / std::max<int64_t>(1, rows * std::min(inner, width)));
  parallel_for(outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t column = task % blocks * width;
      f(task / blocks, column, std::min(width, inner - column));
    }
  });
}

// Index and source have the target's sizes in every dim but `dim`.
template <class Action, class T>
void scatter_aligned(const HostTensor& target, int dim, const int64_t* indices, int64_t count,
                     const T* source) {
  const Around around(target.shape(), dim);
  T* to = target.data_as<T>();
  for_each_column_block(
      around.outer, count, around.inner, [&](int64_t o, int64_t column, int64_t columns) {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t from = (o * count + i) * around.inner + column;
          T* base = to + o * around.size * around.inner + column;
          for (int64_t k = 0; k < columns; ++k) {
            Action::run(base[indices[from + k] * around.inner + k], source[from + k]);
          }
        }
      });
}

// Index and source are smaller than the target in other dims too: one thread.
template <class Action, class T>
void scatter_within(const HostTensor& target, int dim, const HostTensor& index, const T* source) {
  const Shape& shape = index.shape();
  const auto* indices = index.data_as<const int64_t>();
  T* to = target.data_as<T>();
  for (int64_t flat = 0; flat < shape.numel(); ++flat) {
    int64_t rest = flat;
    int64_t offset = indices[flat] * target.strides()[dim];
    for (int i = shape.rank() - 1; i >= 0; --i) {
      if (i != dim) offset += rest % shape[i] * target.strides()[i];
      rest /= shape[i];
    }
    Action::run(to[offset], source[flat]);
  }
}

template <class Action, class T>
void scatter_typed(const HostTensor& target, int dim, const HostTensor& index,
                   const HostTensor& source) {
  bool aligned = true;
  for (int i = 0; i < index.shape().rank(); ++i) {
    aligned = aligned && (i == dim || index.shape()[i] == target.shape()[i]);
  }
  const T* values = source.data_as<const T>();
  if (aligned) {
    scatter_aligned<Action, T>(target, dim, index.data_as<const int64_t>(), index.shape()[dim],
                               values);
  } else {
    scatter_within<Action, T>(target, dim, index, values);
  }
}

HostHandle as_row(const HostHandle& x) { return host::view(x, Shape{1}, Strides{1}, x->offset()); }

// The part of the source that the index covers.
HostHandle covered(const HostHandle& source, const Shape& shape) {
  HostHandle out = source;
  for (int i = 0; i < shape.rank(); ++i) {
    if (out->shape()[i] != shape[i]) out = host::slice(out, i, Range{0, shape[i], 1});
  }
  return out;
}

template <class Action>
HostHandle scatter(const char* op, const Arg<HostHandle>& x, int dim, const HostHandle& index_arg,
                   const HostHandle& source_arg) {
  if (x->shape().rank() == 0) {
    const HostHandle row = scatter<Action>(op, as_row(x), 0, as_row(index_arg), as_row(source_arg));
    return host::view(row, Shape{}, Strides{}, row->offset());
  }
  if (kComputes<Action> && convert_of(x->dtype()) != Convert::none) {
    // In float, rounded once.
    const HostHandle wide = Cpu::float_cast(x, DType::f32);
    const HostHandle source = Cpu::float_cast(source_arg, DType::f32);
    return Cpu::float_cast(scatter<Action>(op, wide, dim, index_arg, source), x->dtype());
  }
  const HostHandle index = apart_from(index_arg, x);
  check_indices(op, *index, x->shape()[dim]);
  const HostHandle source = apart_from(covered(source_arg, index->shape()), x);
  Target target(x);
  if (index->numel() == 0) return target.finish();
  const DType dtype = source->dtype();
  if constexpr (kComputes<Action>) {
    const auto run = [&]<class T>() {
      if constexpr (std::is_arithmetic_v<T>) {
        scatter_typed<Action, T>(target.tensor(), dim, *index, *source);
      }
    };
    visit_dtype(op, dtype, run);
  } else {
    visit_size(size_of(dtype),
               [&]<class U>() { scatter_typed<Action, U>(target.tensor(), dim, *index, *source); });
  }
  return target.finish();
}

HostHandle scatter_reduce(const Arg<HostHandle>& x, int dim, const HostHandle& index,
                          const HostHandle& source, ScatterReduction reduction) {
  switch (reduction) {
    case ScatterReduction::prod:
      return scatter<Multiply>("scatter_reduce", x, dim, index, source);
    case ScatterReduction::amax:
      return scatter<Larger>("scatter_reduce", x, dim, index, source);
    default:
      return scatter<Smaller>("scatter_reduce", x, dim, index, source);
  }
}

// Rows that one index names twice are written by one thread, in their order.
HostHandle index_copy(const Arg<HostHandle>& x, int dim, const HostHandle& index_arg,
                      const HostHandle& source_arg) {
  const HostHandle index = apart_from(index_arg, x);
  check_indices("index_copy", *index, x->shape()[dim]);
  const HostHandle source = apart_from(source_arg, x);
  Target target(x);
  if (source->numel() == 0) return target.finish();
  const Around around(target.tensor().shape(), dim);
  const int64_t count = index->numel();
  const auto* indices = index->data_as<const int64_t>();
  const auto item = static_cast<int64_t>(size_of(source->dtype()));
  auto* to = target.tensor().data_as<char>();
  const auto* from = source->data_as<const char>();
  for_each_column_block(
      around.outer, count, around.inner, [&](int64_t o, int64_t column, int64_t columns) {
        const auto bytes = static_cast<size_t>(columns * item);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t row = (o * count + i) * around.inner + column;
          const int64_t place = (o * around.size + indices[i]) * around.inner + column;
          std::memcpy(to + place * item, from + row * item, bytes);
        }
      });
  return target.finish();
}

template <class T>
void add_rows(const HostTensor& target, int dim, const HostTensor& index, const T* source) {
  const Around around(target.shape(), dim);
  const int64_t count = index.numel();
  const auto* indices = index.data_as<const int64_t>();
  T* to = target.data_as<T>();
  for_each_column_block(around.outer, count, around.inner,
                        [&](int64_t o, int64_t column, int64_t columns) {
                          for (int64_t i = 0; i < count; ++i) {
                            const T* from = source + (o * count + i) * around.inner + column;
                            T* row = to + (o * around.size + indices[i]) * around.inner + column;
                            for (int64_t k = 0; k < columns; ++k) Add::run(row[k], from[k]);
                          }
                        });
}

HostHandle index_add(const Arg<HostHandle>& x, int dim, const HostHandle& index_arg,
                     const HostHandle& source_arg) {
  if (x->shape().rank() == 0) {
    const HostHandle source = source_arg->shape().rank() == 0 ? as_row(source_arg) : source_arg;
    const HostHandle index = index_arg->shape().rank() == 0 ? as_row(index_arg) : index_arg;
    const HostHandle row = index_add(as_row(x), 0, index, source);
    return host::view(row, Shape{}, Strides{}, row->offset());
  }
  if (convert_of(x->dtype()) != Convert::none) {
    const HostHandle wide = Cpu::float_cast(x, DType::f32);
    const HostHandle source = Cpu::float_cast(source_arg, DType::f32);
    return Cpu::float_cast(index_add(wide, dim, index_arg, source), x->dtype());
  }
  const HostHandle index = apart_from(index_arg, x);
  check_indices("index_add", *index, x->shape()[dim]);
  const HostHandle source = apart_from(source_arg, x);
  Target target(x);
  if (source->numel() == 0) return target.finish();
  visit_dtype("index_add", source->dtype(), [&]<class T>() {
    if constexpr (std::is_arithmetic_v<T>) {
      add_rows<T>(target.tensor(), dim, *index, source->data_as<const T>());
    }
  });
  return target.finish();
}

}  // namespace
}  // namespace cpu

using cpu::index_add;
using cpu::index_select;

HostHandle CpuBasic::float_gather(Arg<HostHandle> x, int dim, Arg<HostHandle> index) {
  return cpu::gather(x, dim, index);
}
HostHandle CpuBasic::int_gather(Arg<HostHandle> x, int dim, Arg<HostHandle> index) {
  return cpu::gather(x, dim, index);
}
HostHandle CpuBasic::bool_gather(Arg<HostHandle> x, int dim, Arg<HostHandle> index) {
  return cpu::gather(x, dim, index);
}
HostHandle CpuBasic::float_scatter(Arg<HostHandle> x, int dim, Arg<HostHandle> index,
                                   Arg<HostHandle> source) {
  return cpu::scatter<cpu::Write>("scatter", x, dim, index, source);
}
HostHandle CpuBasic::int_scatter(Arg<HostHandle> x, int dim, Arg<HostHandle> index,
                                 Arg<HostHandle> source) {
  return cpu::scatter<cpu::Write>("scatter", x, dim, index, source);
}
HostHandle CpuBasic::bool_scatter(Arg<HostHandle> x, int dim, Arg<HostHandle> index,
                                  Arg<HostHandle> source) {
  return cpu::scatter<cpu::Write>("scatter", x, dim, index, source);
}
HostHandle CpuBasic::float_scatter_add(Arg<HostHandle> x, int dim, Arg<HostHandle> index,
                                       Arg<HostHandle> source) {
  return cpu::scatter<cpu::Add>("scatter_add", x, dim, index, source);
}
HostHandle CpuBasic::int_scatter_add(Arg<HostHandle> x, int dim, Arg<HostHandle> index,
                                     Arg<HostHandle> source) {
  return cpu::scatter<cpu::Add>("scatter_add", x, dim, index, source);
}
HostHandle CpuBasic::float_index_select(Arg<HostHandle> x, int dim, Arg<HostHandle> index) {
  return index_select(x, dim, index);
}
HostHandle CpuBasic::int_index_select(Arg<HostHandle> x, int dim, Arg<HostHandle> index) {
  return index_select(x, dim, index);
}
HostHandle CpuBasic::bool_index_select(Arg<HostHandle> x, int dim, Arg<HostHandle> index) {
  return index_select(x, dim, index);
}
HostHandle CpuBasic::float_index_add(Arg<HostHandle> x, int dim, Arg<HostHandle> index,
                                     Arg<HostHandle> source) {
  return index_add(x, dim, index, source);
}
HostHandle CpuBasic::int_index_add(Arg<HostHandle> x, int dim, Arg<HostHandle> index,
                                   Arg<HostHandle> source) {
  return index_add(x, dim, index, source);
}

#define KILN_SCATTER_REDUCE(kind)                                                                  \
  HostHandle CpuBasic::kind##_scatter_reduce(Arg<HostHandle> x, int dim, Arg<HostHandle> index,    \
                                             Arg<HostHandle> source, ScatterReduction reduction) { \
    return cpu::scatter_reduce(x, dim, index, source, reduction);                                  \
  }
KILN_SCATTER_REDUCE(float)
KILN_SCATTER_REDUCE(int)
#undef KILN_SCATTER_REDUCE

#define KILN_INDEX_COPY(kind)                                                               \
  HostHandle CpuBasic::kind##_index_copy(Arg<HostHandle> x, int dim, Arg<HostHandle> index, \
                                         Arg<HostHandle> source) {                          \
    return cpu::index_copy(x, dim, index, source);                                          \
  }
KILN_INDEX_COPY(float)
KILN_INDEX_COPY(int)
KILN_INDEX_COPY(bool)
#undef KILN_INDEX_COPY

}  // namespace kiln
