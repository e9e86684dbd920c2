#include "kiln/backend/cpu/reduce/int_reduce_kernels.h"

#include <algorithm>
#include <limits>

#include "kiln/backend/cpu/few.h"
#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/reduce/int_reduce_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Wrapping arithmetic: unsigned, and at least 32 bits wide.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

struct Sum {
  template <class T>
  static constexpr T kStart = 0;
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Add(a, b);
  }
};
struct Product {
  template <class T>
  static constexpr T kStart = 1;
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Mul(a, b);
  }
};
struct Most {
  template <class T>
  static constexpr T kStart = std::numeric_limits<T>::lowest();
  template <class T>
  static T combine(T a, T b) {
    return a < b ? b : a;
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Max(a, b);
  }
};
struct Least {
  template <class T>
  static constexpr T kStart = std::numeric_limits<T>::max();
  template <class T>
  static T combine(T a, T b) {
    return b < a ? b : a;
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Min(a, b);
  }
};

// Not every instruction set multiplies lanes of 8 bits, or of 64.
template <class Op, class T>
constexpr bool kVectorized = !std::is_same_v<Op, Product> || sizeof(T) == 4
#if HWY_TARGET <= HWY_AVX3
                             || sizeof(T) == 8
#endif
    ;

template <class Op, class T>
T plain_row(const T* x, int64_t n, T result) {
  for (int64_t i = 0; i < n; ++i) result = Op::combine(result, x[i]);
  return result;
}

template <class Op, class T>
HWY_INLINE T vector_row(const T* HWY_RESTRICT x, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto start = hn::Set(d, Op::template kStart<T>);
  auto a = start, b = start, c = start, e = start;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = Op::apply(d, a, hn::LoadU(d, x + i));
    b = Op::apply(d, b, hn::LoadU(d, x + i + lanes));
    c = Op::apply(d, c, hn::LoadU(d, x + i + 2 * lanes));
    e = Op::apply(d, e, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = Op::apply(d, a, hn::LoadU(d, x + i));
  HWY_ALIGN T all[hn::MaxLanes(d)];
  hn::Store(Op::apply(d, Op::apply(d, a, b), Op::apply(d, c, e)), d, all);
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) all[k] = Op::combine(all[k], all[k + half]);
  }
  return plain_row<Op>(x + i, n - i, all[0]);
}

// Rows of kLength elements, which are few.
template <int kLength, class Op, class T>
void few_elements(const T* HWY_RESTRICT x, int64_t count, T* HWY_RESTRICT out) {
  for (int64_t r = 0; r < count; ++r, x += kLength) {
    T result = x[0];
#pragma GCC unroll 8
    for (int i = 1; i < kLength; ++i) result = Op::combine(result, x[i]);
    out[r] = result;
  }
}

template <class Op, class T>
void rows(const T* x, int64_t n, int64_t count, T* out, const double*) {
  const auto of_length = [&](auto length) { few_elements<length(), Op>(x, count, out); };
  if (with_few<8>(n, of_length)) return;
  const hn::ScalableTag<T> d;
  const bool plain = !kVectorized<Op, T> || n < 2 * static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < count; ++r) {
    const T* row = x + r * n;
    if constexpr (kVectorized<Op, T>) {
      out[r] = plain ? plain_row<Op>(row, n, Op::template kStart<T>) : vector_row<Op>(row, n);
    } else {
      out[r] = plain_row<Op>(row, n, Op::template kStart<T>);
    }
  }
}

// Combines the rows of kColumns columns, whose results stay in registers.
template <int kColumns, class Op, class T>
void few_columns(const T* HWY_RESTRICT x, int64_t rows, int64_t step, T* HWY_RESTRICT out) {
  using Wide = std::conditional_t<(sizeof(T) < 4), int32_t, T>;  // a register each
  Wide results[kColumns];
  std::copy_n(x, kColumns, results);
  for (int64_t r = 1; r < rows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      results[c] = Op::combine(results[c], static_cast<Wide>(x[r * step + c]));
    }
  }
  for (int c = 0; c < kColumns; ++c) out[c] = static_cast<T>(results[c]);
}

// out = out combined with `rows` rows, 4 at a time.
template <class Op, class T>
void columns(const T* HWY_RESTRICT x, int64_t rows, int64_t columns, int64_t step,
             T* HWY_RESTRICT out, const double*) {
  const auto of_count = [&](auto count) { few_columns<count(), Op>(x, rows, step, out); };
  if (with_few<7>(columns, of_count)) return;
  std::copy_n(x, columns, out);
  int64_t c = 0;
  if constexpr (kVectorized<Op, T>) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const int64_t whole = columns / lanes * lanes;
    int64_t r = 1;
    for (; r + 4 <= rows; r += 4) {
      const T* row = x + r * step;
      for (c = 0; c < whole; c += lanes) {
        const auto a = Op::apply(d, hn::LoadU(d, row + c), hn::LoadU(d, row + step + c));
        const auto b =
            Op::apply(d, hn::LoadU(d, row + 2 * step + c), hn::LoadU(d, row + 3 * step + c));
        hn::StoreU(Op::apply(d, hn::LoadU(d, out + c), Op::apply(d, a, b)), d, out + c);
      }
    }
    for (; r < rows; ++r) {
      for (c = 0; c < whole; c += lanes) {
        hn::StoreU(Op::apply(d, hn::LoadU(d, out + c), hn::LoadU(d, x + r * step + c)), d, out + c);
      }
    }
    c = whole;
  }
  for (int64_t r = 1; c < columns && r < rows; ++r) {
    for (int64_t k = c; k < columns; ++k) out[k] = Op::combine(out[k], x[r * step + k]);
  }
}

// ---- Counts of bytes 0 and 1

HWY_INLINE int64_t count_row(const uint8_t* HWY_RESTRICT x, int64_t n) {
  int64_t total = 0;
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint8_t> d;
  const hn::Repartition<uint64_t, decltype(d)> wide;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n >= 4 * lanes) {
    auto sum = hn::Zero(wide);
    while (i + 4 * lanes <= n) {
      // Bytes hold what up to 252 additions give.
      const int64_t end = i + std::min((n - i) / (4 * lanes), int64_t{63}) * 4 * lanes;
      auto bytes = hn::Zero(d);
      for (; i < end; i += 4 * lanes) {
        const auto a = hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, x + i + lanes));
        const auto b = hn::Add(hn::LoadU(d, x + i + 2 * lanes), hn::LoadU(d, x + i + 3 * lanes));
        bytes = hn::Add(bytes, hn::Add(a, b));
      }
      sum = hn::Add(sum, hn::SumsOf8(bytes));
    }
    total = static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(wide, sum)));
  }
#endif
  for (; i < n; ++i) total += x[i];
  return total;
}

void count_rows(const uint8_t* x, int64_t n, int64_t count, int64_t* out, const double*) {
  for (int64_t r = 0; r < count; ++r) out[r] = count_row(x + r * n, n);
}

void count_columns(const uint8_t* HWY_RESTRICT x, int64_t rows, int64_t columns, int64_t step,
                   int64_t* HWY_RESTRICT out, const double*) {
  uint8_t bytes[kReduceColumns];
  std::fill_n(out, columns, int64_t{0});
  for (int64_t r = 0; r < rows;) {
    const int64_t end = std::min(rows, r + 255);
    std::fill_n(bytes, columns, uint8_t{0});
    for (; r < end; ++r) {
      const uint8_t* row = x + r * step;
      for (int64_t c = 0; c < columns; ++c) bytes[c] = static_cast<uint8_t>(bytes[c] + row[c]);
    }
    for (int64_t c = 0; c < columns; ++c) out[c] += bytes[c];
  }
}

int64_t add_counts(int64_t a, int64_t b) { return a + b; }

// ---- Sums of narrow numbers in 64 bits

// What adds up parts of at most kReduceLength numbers, or kReduceRows rows, without overflow.
template <class T>
using PartSum = std::conditional_t<(sizeof(T) < 4), int32_t, int64_t>;
static_assert(kReduceLength <= 1 << 15 && kReduceRows <= kReduceLength);

template <class T>
HWY_INLINE int64_t narrow_sum_of_part(const T* HWY_RESTRICT x, int64_t n) {
  const hn::ScalableTag<PartSum<T>> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto at = [&](int64_t i) HWY_ATTR { return hn::PromoteTo(d, hn::LoadU(narrow, x + i)); };
  PartSum<T> total = 0;
  int64_t i = 0;
  if (n >= 2 * lanes) {
    auto a = hn::Zero(d), b = a, c = a, e = a;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      a = hn::Add(a, at(i));
      b = hn::Add(b, at(i + lanes));
      c = hn::Add(c, at(i + 2 * lanes));
      e = hn::Add(e, at(i + 3 * lanes));
    }
    for (; i + lanes <= n; i += lanes) a = hn::Add(a, at(i));
    HWY_ALIGN PartSum<T> all[hn::MaxLanes(d)];
    hn::Store(hn::Add(hn::Add(a, b), hn::Add(c, e)), d, all);
    for (int64_t k = 0; k < lanes; ++k) total += all[k];
  }
  for (; i < n; ++i) total += x[i];
  return total;
}

template <class T>
void narrow_sum_rows(const T* x, int64_t n, int64_t count, int64_t* out, const double*) {
  for (int64_t r = 0; r < count; ++r, x += n) {
    int64_t total = 0;
    for (int64_t i = 0; i < n; i += kReduceLength) {
      total += narrow_sum_of_part(x + i, std::min(n - i, kReduceLength));
    }
    out[r] = total;
  }
}

template <class T>
void narrow_sum_columns(const T* HWY_RESTRICT x, int64_t rows, int64_t columns, int64_t step,
                        int64_t* HWY_RESTRICT out, const double*) {
  const hn::ScalableTag<PartSum<T>> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  PartSum<T> sums[kReduceColumns] = {};
  const int64_t whole = columns / lanes * lanes;
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    const T* row = x + r * step;
    for (int64_t c = 0; c < whole; c += lanes) {
      const auto both = hn::Add(hn::PromoteTo(d, hn::LoadU(narrow, row + c)),
                                hn::PromoteTo(d, hn::LoadU(narrow, row + step + c)));
      hn::StoreU(hn::Add(hn::LoadU(d, sums + c), both), d, sums + c);
    }
    for (int64_t c = whole; c < columns; ++c) {
      sums[c] += static_cast<PartSum<T>>(row[c]) + row[step + c];
    }
  }
  for (; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) sums[c] += x[r * step + c];
  }
  for (int64_t c = 0; c < columns; ++c) out[c] = sums[c];
}

template <class T>
constexpr ReduceKernels<T, int64_t> kSumOfNarrow = {narrow_sum_rows<T>, narrow_sum_columns<T>,
                                                    add_counts};

template <class T>
constexpr IntReduceKernels<T> kIntReduce = {{
    {rows<Sum, T>, columns<Sum, T>, Sum::combine<T>},
    {rows<Product, T>, columns<Product, T>, Product::combine<T>},
    {rows<Most, T>, columns<Most, T>, Most::combine<T>},
    {rows<Least, T>, columns<Least, T>, Least::combine<T>},
}};

const IntReduceTable* int_reduce_table() {
  static constexpr IntReduceTable table = {
      kIntReduce<int64_t>,   kIntReduce<int32_t>,   kIntReduce<int16_t>,
      kIntReduce<int8_t>,    kIntReduce<uint8_t>,   {count_rows, count_columns, add_counts},
      kSumOfNarrow<int32_t>, kSumOfNarrow<int16_t>, kSumOfNarrow<int8_t>,
      kSumOfNarrow<uint8_t>};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(IntReduceTable, int_reduce_kernels, int_reduce_table)
}  // namespace kiln::cpu
#endif
