// Writing by indices along one dim: scatter, scatter_add, scatter_reduce, index_add, index_copy.
//
// Positions that may meet (those that differ along `dim` only) are written by one thread, in their
// order, so results do not depend on the number of threads. A tensor in place is written only when
// every index was found to be in range.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/binary_kernels.h"
#include "kiln/backend/cpu/index/indices.h"
#include "kiln/backend/cpu/scratch.h"

namespace kiln {
namespace cpu {
namespace {

// Columns that one task of a scatter takes at least.
constexpr int64_t kColumnBlock = 64;

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

// One number as the source for every index.
template <class T>
struct OneNumber {
  T value;
  T operator[](int64_t) const { return value; }
};

bool is_one_number(const HostTensor& x) {
  for (int i = 0; i < x.shape().rank(); ++i) {
    if (x.shape()[i] != 1 && x.strides()[i] != 0) return false;
  }
  return true;
}

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
// One of two numbers, by their bits: a choice of floats becomes a branch, which is guessed wrong.
template <class T>
T chosen(bool first, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return first ? a : b;
  } else {
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t,
                                    std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
    const auto mask = static_cast<Bits>(0 - static_cast<Bits>(first));
    const auto x = std::bit_cast<Bits>(a);
    const auto y = std::bit_cast<Bits>(b);
    return std::bit_cast<T>(static_cast<Bits>(y ^ ((x ^ y) & mask)));
  }
}
// NaN wins.
struct Larger {
  template <class T>
  static void run(T& to, T from) {
    const bool wins =
        static_cast<bool>(static_cast<int>(from >= to) | static_cast<int>(from != from));
    to = chosen(wins, from, to);
  }
};
struct Smaller {
  template <class T>
  static void run(T& to, T from) {
    const bool wins =
        static_cast<bool>(static_cast<int>(from <= to) | static_cast<int>(from != from));
    to = chosen(wins, from, to);
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

// Note [Tables of sums]: sums into one short row are taken in tables of their own for each piece of
// the indices, two for each so that equal neighbours do not wait for each other. The pieces depend
// on the sizes alone, so the result does not depend on the number of threads.
constexpr int64_t kPieces = 8;

template <class Action>
bool fits_tables(int64_t size, int64_t count) {
  return std::is_same_v<Action, Add> && count >= 2 * kGrain && size <= count / (4 * kPieces);
}

template <class T, class From>
void add_in_tables(T* to, int64_t size, const int64_t* indices, int64_t count, From source,
                   IndexCheck& check) {
  const Scratch<T> tables(2 * kPieces * size);
  const int64_t length = (count + kPieces - 1) / kPieces;
  parallel_for(count, length, [&](int64_t begin, int64_t end) {
    T* even = tables.get() + 2 * (begin / length) * size;
    T* odd = even + size;
    std::fill_n(even, 2 * size, T(0));
    int64_t i = begin;
    for (; i + 2 <= end; i += 2) {
      if (!check.fine(indices[i]) || !check.fine(indices[i + 1])) return;
      Add::run(even[indices[i]], source[i]);
      Add::run(odd[indices[i + 1]], source[i + 1]);
    }
    if (i < end && check.fine(indices[i])) Add::run(even[indices[i]], source[i]);
  });
  for (int64_t p = 0; p < 2 * kPieces; ++p) {
    const T* table = tables.get() + p * size;
    for (int64_t k = 0; k < size; ++k) Add::run(to[k], table[k]);
  }
}

// Along the last dim: `count` elements for each row, whose indices start `index_row` after those of
// the row before (0: all rows have the same).
template <class Action, class T, class From>
void scatter_last_dim(T* to, const AroundDim& around, const int64_t* indices, int64_t index_row,
                      int64_t count, From source, IndexCheck& check) {
  if (around.outer == 1 && fits_tables<Action>(around.size, count)) {
    return add_in_tables(to, around.size, indices, count, source, check);
  }
  const int64_t grain = std::max<int64_t>(1, kGrain / 2 / count);
  parallel_for(around.outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      T* row = to + o * around.size;
      const int64_t* places = indices + o * index_row;
      for (int64_t i = 0; i < count; ++i) {
        if (!check.fine(places[i])) return;
        Action::run(row[places[i]], source[o * count + i]);
      }
    }
  });
}

// Index and source have the target's sizes in every dim but `dim`.
template <class Action, class T, class From>
void scatter_aligned(const HostTensor& target, int dim, const HostTensor& index, From source,
                     IndexCheck& check) {
  const AroundDim around(target.shape(), dim);
  const int64_t count = index.shape()[dim];
  const auto* indices = index.data_as<const int64_t>();
  T* to = target.data_as<T>();
  if (around.inner == 1) {
    return scatter_last_dim<Action>(to, around, indices, count, count, source, check);
  }
  for_each_column_block(around.outer, count, around.inner,
                        [&](int64_t o, int64_t column, int64_t columns) {
                          T* base = to + o * around.size * around.inner + column;
                          for (int64_t i = 0; i < count; ++i) {
                            const int64_t from = (o * count + i) * around.inner + column;
                            for (int64_t k = 0; k < columns; ++k) {
                              const int64_t place = indices[from + k];
                              if (!check.fine(place)) return;
                              Action::run(base[place * around.inner + k], source[from + k]);
                            }
                          }
                        });
}

// Index and source are smaller than the target in other dims too: one thread.
template <class Action, class T, class From>
void scatter_within(const HostTensor& target, int dim, const HostTensor& index, From source,
                    IndexCheck& check) {
  const Shape& shape = index.shape();
  const auto* indices = index.data_as<const int64_t>();
  T* to = target.data_as<T>();
  for (int64_t flat = 0; flat < shape.numel(); ++flat) {
    int64_t rest = flat;
    if (!check.fine(indices[flat])) return;
    int64_t offset = indices[flat] * target.strides()[dim];
    for (int i = shape.rank() - 1; i >= 0; --i) {
      if (i != dim) offset += rest % shape[i] * target.strides()[i];
      rest /= shape[i];
    }
    Action::run(to[offset], source[flat]);
  }
}

// One task for each range of a dim's rows, or, where there are few, each stretch of columns:
// f(outer, first row, end of the rows, first column, columns). Each looks at all `count` indices
// and takes those in its range. Rows are written whole if possible: what one thread fetches ahead
// at the end of a part of a row is what another one writes.
template <class F>
void for_each_row_block(const AroundDim& around, int64_t count, F&& f) {
  constexpr int64_t kRanges = 8;
  const int64_t work = count * around.inner;
  // Any number gives the same sums; each range costs a look at all indices.
  const int64_t wanted = num_threads() == 1 ? 1 : std::min<int64_t>(kRanges, 2 * num_threads());
  const int64_t ranges = std::clamp<int64_t>(work / kGrain, 1, wanted);
  if (around.size < ranges * kRanges) {
    return for_each_column_block(
        around.outer, count, around.inner,
        [&](int64_t o, int64_t column, int64_t columns) { f(o, 0, around.size, column, columns); });
  }
  const int64_t length = (around.size + ranges - 1) / ranges;
  const int64_t grain = std::max<int64_t>(1, kGrain * ranges / std::max<int64_t>(1, work));
  parallel_for(around.outer * ranges, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t low = task % ranges * length;
      f(task / ranges, low, std::min(around.size, low + length), 0, around.inner);
    }
  });
}

// Combines a row with another one, or with one number. They lie apart.
template <class Action, class T>
void combine_rows(T* __restrict to, const T* __restrict source, int64_t from, int64_t n) {
  if constexpr (std::is_same_v<Action, Add> && std::is_floating_point_v<T>) {
    if (n >= kColumnBlock) {
      KernelArgs args;
      args.in[0] = to;
      args.in[1] = source + from;
      args.out = to;
      args.n = n;
      return binary_kernels().kernels[index_of(BinaryOp::add)][sizeof(T) == 8](args);
    }
  }
  const T* __restrict row = source + from;
  for (int64_t k = 0; k < n; ++k) Action::run(to[k], row[k]);
}
template <class Action, class T>
void combine_rows(T* to, OneNumber<T> source, int64_t, int64_t n) {
  for (int64_t k = 0; k < n; ++k) Action::run(to[k], source.value);
}

// Whole slices, one index for each.
template <class Action, class T, class From>
void scatter_rows(const HostTensor& target, int dim, const HostTensor& index, From source,
                  IndexCheck& check) {
  const AroundDim around(target.shape(), dim);
  const int64_t count = index.numel();
  const auto* indices = index.data_as<const int64_t>();
  T* to = target.data_as<T>();
  if (around.inner == 1) {
    return scatter_last_dim<Action>(to, around, indices, 0, count, source, check);
  }
  for_each_row_block(around, count,
                     [&](int64_t o, int64_t low, int64_t high, int64_t column, int64_t columns) {
                       for (int64_t i = 0; i < count; ++i) {
                         const int64_t place = indices[i];
                         if (!check.fine(place)) return;
                         if (place < low || place >= high) continue;
                         const int64_t from = (o * count + i) * around.inner + column;
                         T* row = to + (o * around.size + place) * around.inner + column;
                         combine_rows<Action>(row, source, from, columns);
                       }
                     });
}

enum class Layout { aligned, within, rows };

template <class Action, class T>
void scatter_typed(Layout layout, const HostTensor& target, int dim, const HostTensor& index,
                   const HostTensor& source, bool one_number, IndexCheck& check) {
  const T* values = source.data_as<const T>();
  const auto run = [&](auto from) {
    using From = decltype(from);
    if (layout == Layout::rows) {
      scatter_rows<Action, T, From>(target, dim, index, from, check);
    } else if (layout == Layout::aligned) {
      scatter_aligned<Action, T, From>(target, dim, index, from, check);
    } else {
      scatter_within<Action, T, From>(target, dim, index, from, check);
    }
  };
  if (one_number) return run(OneNumber<T>{*values});
  run(values);
}

// Scatters what has been checked to fit; `index` is row-major, `source` may be one number. Writes
// in place only after a look at all indices.
template <class Action>
HostHandle scatter_into(const char* op, const Arg<HostHandle>& x, int dim, Layout layout,
                        const HostHandle& index, const HostHandle& source) {
  const int64_t size = x->shape()[dim];
  if (x.is_in_place() || index->numel() == 0) check_indices(op, *index, size);
  Target target(x);
  if (source->numel() == 0 || index->numel() == 0) return target.finish();
  IndexCheck check(size);
  const bool one_number = is_one_number(*source);
  const DType dtype = source->dtype();
  if constexpr (kComputes<Action>) {
    visit_dtype(op, dtype, [&]<class T>() {
      if constexpr (std::is_arithmetic_v<T>) {
        scatter_typed<Action, T>(layout, target.tensor(), dim, *index, *source, one_number, check);
      }
    });
  } else {
    visit_item(size_of(dtype), [&]<class U>() {
      scatter_typed<Action, U>(layout, target.tensor(), dim, *index, *source, one_number, check);
    });
  }
  check.finish(op);
  return target.finish();
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

// A source that is read while x is written: row-major unless it is one number, and apart from x.
HostHandle source_beside(const HostHandle& source, const HostHandle& x) {
  if (source->numel() > 0 && is_one_number(*source) && !host::may_overlap(*source, *x)) {
    return source;
  }
  return apart_from(source, x);
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
  bool aligned = true;
  for (int i = 0; i < index_arg->shape().rank(); ++i) {
    aligned = aligned && (i == dim || index_arg->shape()[i] == x->shape()[i]);
  }
  const HostHandle source = source_beside(covered(source_arg, index_arg->shape()), x);
  if (aligned && index_arg->numel() > 0 && !host::may_overlap(*index_arg, *x.get())) {
    if (const HostHandle rows = row_index(index_arg, dim)) {
      return scatter_into<Action>(op, x, dim, Layout::rows, rows, source);
    }
  }
  return scatter_into<Action>(op, x, dim, aligned ? Layout::aligned : Layout::within,
                              apart_from(index_arg, x), source);
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
  const HostHandle source = source_beside(source_arg, x);
  const AroundDim around(x->shape(), dim);
  if (around.inner == 1 || is_one_number(*source)) {
    return scatter_into<Write>("index_copy", x, dim, Layout::rows, index, source);
  }
  check_indices("index_copy", *index, around.size);
  Target target(x);
  if (source->numel() == 0) return target.finish();
  const int64_t count = index->numel();
  const auto* indices = index->data_as<const int64_t>();
  const auto item = static_cast<int64_t>(size_of(source->dtype()));
  auto* to = target.tensor().data_as<char>();
  const auto* from = source->data_as<const char>();
  for_each_row_block(
      around, count, [&](int64_t o, int64_t low, int64_t high, int64_t column, int64_t columns) {
        for (int64_t i = 0; i < count; ++i) {
          if (indices[i] < low || indices[i] >= high) continue;
          const int64_t row = (o * count + i) * around.inner + column;
          const int64_t place = (o * around.size + indices[i]) * around.inner + column;
          copy_bytes(to + place * item, from + row * item, columns * item);
        }
      });
  return target.finish();
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
  return scatter_into<Add>("index_add", x, dim, Layout::rows, apart_from(index_arg, x),
                           source_beside(source_arg, x));
}

}  // namespace
}  // namespace cpu

#define KILN_SCATTER(kind)                                                                \
  HostHandle CpuOps::kind##_scatter(Arg<HostHandle> x, int dim, Arg<HostHandle> index,    \
                                    Arg<HostHandle> source) {                             \
    return cpu::scatter<cpu::Write>("scatter", x, dim, index, source);                    \
  }                                                                                       \
  HostHandle CpuOps::kind##_index_copy(Arg<HostHandle> x, int dim, Arg<HostHandle> index, \
                                       Arg<HostHandle> source) {                          \
    return cpu::index_copy(x, dim, index, source);                                        \
  }
KILN_SCATTER(float)
KILN_SCATTER(int)
KILN_SCATTER(bool)
#undef KILN_SCATTER

#define KILN_SCATTER_NUMBERS(kind)                                                               \
  HostHandle CpuOps::kind##_scatter_add(Arg<HostHandle> x, int dim, Arg<HostHandle> index,       \
                                        Arg<HostHandle> source) {                                \
    return cpu::scatter<cpu::Add>("scatter_add", x, dim, index, source);                         \
  }                                                                                              \
  HostHandle CpuOps::kind##_index_add(Arg<HostHandle> x, int dim, Arg<HostHandle> index,         \
                                      Arg<HostHandle> source) {                                  \
    return cpu::index_add(x, dim, index, source);                                                \
  }                                                                                              \
  HostHandle CpuOps::kind##_scatter_reduce(Arg<HostHandle> x, int dim, Arg<HostHandle> index,    \
                                           Arg<HostHandle> source, ScatterReduction reduction) { \
    return cpu::scatter_reduce(x, dim, index, source, reduction);                                \
  }
KILN_SCATTER_NUMBERS(float)
KILN_SCATTER_NUMBERS(int)
#undef KILN_SCATTER_NUMBERS

}  // namespace kiln
