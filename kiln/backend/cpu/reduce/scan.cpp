// Running results along a dim: cumsum, cumprod, logcumsumexp, cummax and cummin's indices, linear
// scans. Floats run in double, ints wrap.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/few.h"
#include "kiln/backend/cpu/reduce/scan_kernels.h"
#include "kiln/backend/cpu/scratch.h"

namespace kiln {
namespace cpu {
namespace {

// Columns whose states one task keeps.
constexpr int64_t kColumnBlock = 256;
// Rows that are walked side by side, since each waits for its own last result.
constexpr int64_t kRowsAtOnce = 4;

// A tensor seen as [outer, n, inner] around the dim.
struct Around {
  int64_t outer = 1;
  int64_t n;
  int64_t inner = 1;
  bool reversed = false;

  Around(const Shape& shape, int dim) : n(shape[dim]) {
    for (int i = 0; i < dim; ++i) outer *= shape[i];
    for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
  int64_t place(int64_t step) const { return reversed ? n - 1 - step : step; }
};

template <int64_t kRows, class State, class Body>
void walk_rows(const Around& x, int64_t row, const State& start, Body&& body) {
  State states[kRows];
  std::fill_n(states, kRows, start);
  for (int64_t step = 0; step < x.n; ++step) {
    const int64_t at = row * x.n + x.place(step);
    for (int64_t k = 0; k < kRows; ++k) body(states[k], at + k * x.n, step);
  }
}

// Up to so many columns, their states stay in registers.
constexpr int kFewColumns = 8;

template <int64_t kColumns, class State, class Body>
void walk_few_columns(const Around& x, int64_t outer, const State& start, const Body& body) {
  State states[kColumns];
  std::fill_n(states, kColumns, start);
  for (int64_t step = 0; step < x.n; ++step) {
    const int64_t at = (outer * x.n + x.place(step)) * kColumns;
    for (int64_t c = 0; c < kColumns; ++c) body(states[c], at + c, step);
  }
}

// Calls body(state, position, step) for each element, in order along the dim; each row has a state
// of its own.
template <class State, class Body>
void walk(const Around& x, const State& start, Body&& body) {
  if (x.inner == 1) {
    // Integers wait for one cycle only.
    constexpr int64_t kSideBySide = std::is_integral_v<State> ? 1 : kRowsAtOnce;
    const int64_t groups = (x.outer + kSideBySide - 1) / kSideBySide;
    const int64_t grain = std::max<int64_t>(1, kGrain / (x.n * kSideBySide));
    parallel_for(groups, grain, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        int64_t row = g * kSideBySide;
        if (row + kSideBySide <= x.outer) {
          walk_rows<kSideBySide>(x, row, start, body);
        } else {
          for (; row < x.outer; ++row) walk_rows<1>(x, row, start, body);
        }
      }
    });
    return;
  }
  if (x.inner <= kFewColumns) {
    const int64_t grain = std::max<int64_t>(1, kGrain / (x.n * x.inner));
    parallel_for(x.outer, grain, [&](int64_t begin, int64_t end) {
      with_few<kFewColumns>(x.inner, [&](auto columns) {
        for (int64_t o = begin; o < end; ++o) walk_few_columns<columns()>(x, o, start, body);
      });
    });
    return;
  }
  const int64_t width = std::min(x.inner, kColumnBlock);
  const int64_t blocks = (x.inner + width - 1) / width;
  parallel_for(x.outer * blocks, std::max<int64_t>(1, kGrain / (x.n * width)),
               [&](int64_t begin, int64_t end) {
                 State states[kColumnBlock];
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t column = task % blocks * width;
                   const int64_t columns = std::min(width, x.inner - column);
                   std::fill_n(states, columns, start);
                   const int64_t first = task / blocks * x.n * x.inner + column;
                   for (int64_t step = 0; step < x.n; ++step) {
                     const int64_t at = first + x.place(step) * x.inner;
                     for (int64_t c = 0; c < columns; ++c) body(states[c], at + c, step);
                   }
                 }
               });
}

// Calls f<T>(source, result) on row-major memory; 16-bit floats travel as float.
template <class F>
HostHandle run(const char* op, const HostHandle& x, F&& f) {
  const DType dtype = x->dtype();
  if (convert_of(dtype) != Convert::none) {
    return Cpu::float_cast(run(op, Cpu::float_cast(x, DType::f32), f), dtype);
  }
  HostHandle out = host::empty(x->shape(), dtype, x->device());
  if (x->numel() == 0) return out;
  const HostHandle source = contiguous(x);
  visit_dtype(op, dtype, [&]<class T>() {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      f(source->data_as<const T>(), out->data_as<T>());
    }
  });
  return out;
}

// ---- Sums and products

template <class T>
using AccOf = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

struct Plus {
  static constexpr int kStart = 0;
  template <class Acc>
  static Acc apply(Acc a, Acc b) {
    return a + b;
  }
};
struct Times {
  static constexpr int kStart = 1;
  template <class Acc>
  static Acc apply(Acc a, Acc b) {
    return a * b;
  }
};

constexpr int64_t kPiece = 8192;

// The result of one piece alone, from several chains.
template <class Op, class Acc, class T>
Acc total_of(const T* x, int64_t n) {
  constexpr int kChains = 8;
  Acc chains[kChains];
  std::fill_n(chains, kChains, Acc(Op::kStart));
  int64_t i = 0;
  for (; i + kChains <= n; i += kChains) {
    for (int k = 0; k < kChains; ++k) {
      chains[k] = Op::apply(chains[k], static_cast<Acc>(x[i + k]));
    }
  }
  for (; i < n; ++i) chains[0] = Op::apply(chains[0], static_cast<Acc>(x[i]));
  for (int k = 1; k < kChains; ++k) chains[0] = Op::apply(chains[0], chains[k]);
  return chains[0];
}

// Whether pieces of a product may be combined: not where one left the range of double, which the
// running product need not do.
template <class Acc>
bool stays_in_range(Acc total) {
  if constexpr (std::is_floating_point_v<Acc>) return std::isnormal(total);
  return true;
}

// A long row in pieces: what each starts from is known from the totals of those before it. False
// when that would not give what a walk from the front gives.
template <class Op, class T>
bool run_in_pieces(const T* x, T* out, int64_t n) {
  using Acc = AccOf<T>;
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  const Scratch<Acc> starts(pieces + 1);
  starts[0] = Acc(Op::kStart);
  parallel_for(pieces, 4, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      starts[p + 1] = total_of<Op, Acc>(x + p * kPiece, std::min(kPiece, n - p * kPiece));
    }
  });
  for (int64_t p = 1; p <= pieces; ++p) {
    if (std::is_same_v<Op, Times> && !stays_in_range(starts[p])) return false;
    starts[p] = Op::apply(starts[p - 1], starts[p]);
    if (std::is_same_v<Op, Times> && !stays_in_range(starts[p])) return false;
  }
  const int64_t whole = n / kPiece / kRowsAtOnce * kRowsAtOnce;
  parallel_for(whole / kRowsAtOnce, 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g * kRowsAtOnce * kPiece;
      Acc sums[kRowsAtOnce];
      std::copy_n(starts.get() + g * kRowsAtOnce, kRowsAtOnce, sums);
      for (int64_t i = first; i < first + kPiece; ++i) {
        for (int64_t k = 0; k < kRowsAtOnce; ++k) {
          const int64_t at = i + k * kPiece;
          sums[k] = Op::apply(sums[k], static_cast<Acc>(x[at]));
          out[at] = static_cast<T>(sums[k]);
        }
      }
    }
  });
  Acc sum = starts[whole];
  for (int64_t i = whole * kPiece; i < n; ++i) {
    sum = Op::apply(sum, static_cast<Acc>(x[i]));
    out[i] = static_cast<T>(sum);
  }
  return true;
}

template <class Op, class T>
void cumulate_row(const T* x, int64_t n, T* out) {
  AccOf<T> acc = Op::kStart;
  for (int64_t i = 0; i < n; ++i) {
    acc = Op::apply(acc, static_cast<AccOf<T>>(x[i]));
    out[i] = static_cast<T>(acc);
  }
}

template <class Op>
HostHandle cumulate(const char* op, const HostHandle& x, int dim) {
  return run(op, x, [&]<class T>(const T* from, T* to) {
    using Acc = AccOf<T>;
    const Around around(x->shape(), dim);
    if (around.inner == 1 && around.n >= kRowsAtOnce * kPiece && around.outer < kRowsAtOnce) {
      bool done = true;
      for (int64_t r = 0; done && r < around.outer; ++r) {
        done = run_in_pieces<Op>(from + r * around.n, to + r * around.n, around.n);
      }
      if (done) return;
    }
    if constexpr (std::is_integral_v<T>) {
      if (around.inner == 1) {  // each element waits for one cycle only
        const int64_t n = around.n;
        parallel_for(around.outer, std::max<int64_t>(1, kGrain / n),
                     [=](int64_t begin, int64_t end) {
                       for (int64_t r = begin; r < end; ++r)
                         cumulate_row<Op>(from + r * n, n, to + r * n);
                     });
        return;
      }
    }
    walk(around, Acc(Op::kStart), [=](Acc& acc, int64_t at, int64_t) {
      acc = Op::apply(acc, static_cast<Acc>(from[at]));
      to[at] = static_cast<T>(acc);
    });
  });
}

// ---- The others

// sum exp(x - largest), with the largest so far.
struct LogSum {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0.0;

  double add(double x) {
    if (x == largest) {  // equal infinities would give inf - inf
      sum += 1.0;
    } else if (x < largest) {
      sum += std::exp(x - largest);
    } else if (largest == largest) {  // NaN stays
      sum = sum * std::exp(largest - x) + 1.0;
      largest = x;
    }
    return std::isinf(largest) ? largest : largest + std::log(sum);
  }
};

template <class T>
const CumargKernels<T>& cumarg_kernels(bool largest) {
  const ScanTable& table = scan_kernels();
  if constexpr (std::is_same_v<T, float>) return table.f32[largest];
  if constexpr (std::is_same_v<T, double>) return table.f64[largest];
  if constexpr (std::is_same_v<T, int32_t>) return table.i32[largest];
  if constexpr (std::is_same_v<T, int64_t>) return table.i64[largest];
}

// A long row in pieces: each alone first; then the places of its elements move by its start, and
// where the best of the pieces before it is not beaten yet, that one's place stands.
template <class T>
void cumarg_in_pieces(const CumargKernels<T>& kernels, bool largest, const T* x, int64_t n,
                      int64_t* out) {
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  parallel_for(pieces, 4, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      kernels.row(x + p * kPiece, std::min(kPiece, n - p * kPiece), out + p * kPiece);
    }
  });
  const auto beats = [=](T a, T b) { return a != a || (b == b && (largest ? a >= b : a <= b)); };
  const Scratch<int64_t> best(pieces);  // of the pieces before
  best[0] = 0;
  for (int64_t p = 1; p < pieces; ++p) {
    const int64_t last = (p - 1) * kPiece + out[p * kPiece - 1];
    best[p] = p == 1 || beats(x[last], x[best[p - 1]]) ? last : best[p - 1];
  }
  parallel_for(pieces - 1, 4, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin + 1; p < end + 1; ++p) {
      int64_t* to = out + p * kPiece;
      const int64_t start = p * kPiece;
      const int64_t count = std::min(kPiece, n - start);
      const T before = x[best[p]];
      int64_t* const first = std::partition_point(
          to, to + count, [&](int64_t place) { return !beats(x[start + place], before); });
      std::fill(to, first, best[p]);
      for (int64_t* at = first; at < to + count; ++at) *at += start;
    }
  });
}

HostHandle cumarg(const HostHandle& x, int dim, bool largest) {
  const DType dtype = x->dtype();
  if (convert_of(dtype) != Convert::none) {
    return cumarg(Cpu::float_cast(x, DType::f32), dim, largest);
  }
  if (kind_of(dtype) == Kind::integer && size_of(dtype) < 4) {
    return cumarg(Cpu::int_cast(x, DType::i32), dim, largest);
  }
  HostHandle out = host::empty(x->shape(), DType::i64, x->device());
  if (x->numel() == 0) return out;
  const HostHandle source = contiguous(x);
  auto* to = out->data_as<int64_t>();
  const Around around(x->shape(), dim);
  visit_dtype("cumarg", dtype, [&]<class T>() {
    if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) {
      const T* from = source->data_as<const T>();
      const CumargKernels<T>& kernels = cumarg_kernels<T>(largest);
      if (around.inner == 1 && around.n >= 4 * kPiece && around.outer < kRowsAtOnce) {
        for (int64_t r = 0; r < around.outer; ++r) {
          cumarg_in_pieces(kernels, largest, from + r * around.n, around.n, to + r * around.n);
        }
        return;
      }
      if (around.inner == 1) {
        const int64_t grain = std::max<int64_t>(1, kGrain / around.n);
        parallel_for(around.outer, grain, [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            kernels.row(from + r * around.n, around.n, to + r * around.n);
          }
        });
        return;
      }
      if (around.n >= kScanRows) {
        throw_error<ShapeError>("cumarg: the dim is too long; got ", around.n,
                                "; expected less than 2^31");
      }
      const int64_t width = std::min(around.inner, kScanColumns);
      const int64_t blocks = (around.inner + width - 1) / width;
      const int64_t grain = std::max<int64_t>(1, kGrain / (around.n * width));
      parallel_for(around.outer * blocks, grain, [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t column = task % blocks * width;
          const int64_t first = task / blocks * around.n * around.inner + column;
          kernels.columns(from + first, around.n, std::min(width, around.inner - column),
                          around.inner, to + first);
        }
      });
    }
  });
  return out;
}

HostHandle linear_scan(const HostHandle& a, const HostHandle& b, int dim, bool reversed) {
  if (convert_of(b->dtype()) != Convert::none) {
    return Cpu::float_cast(
        linear_scan(Cpu::float_cast(a, DType::f32), Cpu::float_cast(b, DType::f32), dim, reversed),
        b->dtype());
  }
  const HostHandle factors = contiguous(a);
  return run("linear_scan", b, [&]<class T>(const T* added, T* to) {
    const T* factor = factors->data_as<const T>();
    Around around(b->shape(), dim);
    around.reversed = reversed;
    walk(around, 0.0, [=](double& h, int64_t at, int64_t step) {
      h = step == 0 ? static_cast<double>(added[at])
                    : static_cast<double>(factor[at]) * h + static_cast<double>(added[at]);
      to[at] = static_cast<T>(h);
    });
  });
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_cumsum(Arg<HostHandle> x, int dim) {
  return cpu::cumulate<cpu::Plus>("cumsum", x, dim);
}
HostHandle CpuOps::int_cumsum(Arg<HostHandle> x, int dim) {
  return cpu::cumulate<cpu::Plus>("cumsum", x, dim);
}
HostHandle CpuOps::float_cumprod(Arg<HostHandle> x, int dim) {
  return cpu::cumulate<cpu::Times>("cumprod", x, dim);
}
HostHandle CpuOps::int_cumprod(Arg<HostHandle> x, int dim) {
  return cpu::cumulate<cpu::Times>("cumprod", x, dim);
}

HostHandle CpuOps::float_logcumsumexp(Arg<HostHandle> x, int dim) {
  return cpu::run("logcumsumexp", x, [&]<class T>(const T* from, T* to) {
    cpu::walk(cpu::Around(x->shape(), dim), cpu::LogSum(),
              [=](cpu::LogSum& state, int64_t at, int64_t) {
                to[at] = static_cast<T>(state.add(static_cast<double>(from[at])));
              });
  });
}

HostHandle CpuOps::float_cumarg(Arg<HostHandle> x, int dim, bool largest) {
  return cpu::cumarg(x, dim, largest);
}
HostHandle CpuOps::int_cumarg(Arg<HostHandle> x, int dim, bool largest) {
  return cpu::cumarg(x, dim, largest);
}

HostHandle CpuOps::float_linear_scan(Arg<HostHandle> a, Arg<HostHandle> b, int dim, bool reversed) {
  return cpu::linear_scan(a, b, dim, reversed);
}

}  // namespace kiln
