#include "kiln/tensor/index/unique.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/core/parallel.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/host.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/reduce/cumulative.h"
#include "kiln/tensor/shape/rearranging.h"

namespace kiln {

namespace {

// What stands at the starts of runs: `starts` marks them among n things, of which number order[i]
// is thing i (in their own order when undefined).
struct Runs {
  Tensor first;  // which things begin a run
  Tensor inverse;
  Tensor counts;
};

Runs runs_of(const Tensor& starts, const Tensor& order, bool return_inverse, bool return_counts) {
  const int64_t n = starts.numel();
  const Device device = starts.device();
  Runs out;
  const Tensor places = nonzero(starts).reshape({-1});
  out.first = order.defined() ? order.index_select(0, places) : places;
  if (return_inverse) {
    const Tensor run = starts.to(i64).cumsum(0).sub(1);
    out.inverse = order.defined() ? zeros({n}, {i64, device}).scatter(0, order, run) : run;
  }
  if (return_counts) {
    out.counts = diff(cat({places, full({n > 0 ? 1 : 0}, n, {i64, device})}, 0));
  }
  return out;
}

// Elements that one piece of a row has.
constexpr int64_t kPiece = 32768;
// And those that are compared at once.
constexpr int64_t kBlock = 64;

// The runs of a row in host memory, whose element i was number order[i], in two passes over it: how
// many start in each piece, then what they are. Values stand in for `first` of Runs.
template <class T>
Runs runs_of_row(const Tensor& row, const Tensor& order, bool return_inverse, bool return_counts) {
  const int64_t n = row.numel();
  const T* x = row.data_ptr<T>();
  std::vector<int64_t> before(static_cast<size_t>((n + kPiece - 1) / kPiece) + 1, 0);
  const auto starts = [x](int64_t i) { return i == 0 || x[i] != x[i - 1]; };
  parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
    int64_t count = starts(begin) ? 1 : 0;
    for (int64_t i = begin + 1; i < end; ++i) count += x[i] != x[i - 1] ? 1 : 0;
    before[static_cast<size_t>(begin / kPiece) + 1] = count;
  });
  std::partial_sum(before.begin(), before.end(), before.begin());
  const int64_t total = before.back();
  Runs out;
  out.first = empty({total}, {row.dtype(), row.device()});
  T* values = out.first.data_ptr<T>();
  if (return_counts) out.counts = empty({total}, {i64, row.device()});
  int64_t* counts = return_counts ? out.counts.data_ptr<int64_t>() : nullptr;
  if (return_inverse) out.inverse = empty({n}, {i64, row.device()});
  int64_t* inverse = return_inverse ? out.inverse.data_ptr<int64_t>() : nullptr;
  const int64_t* numbers = order.defined() ? order.data_ptr<int64_t>() : nullptr;
  // Of each piece, where its first run starts and its last: that one may end in another piece.
  struct Ends {
    int64_t first = -1;
    int64_t last = -1;
  };
  std::vector<Ends> ends(before.size() - 1);
  parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
    int64_t run = before[static_cast<size_t>(begin / kPiece)] - 1;
    Ends& piece = ends[static_cast<size_t>(begin / kPiece)];
    int64_t last = -1;
    const auto step = [&](int64_t i) {
      if (starts(i)) {
        if (last < 0) {
          piece.first = i;
        } else if (counts != nullptr) {
          counts[run] = i - last;
        }
        last = i;
        ++run;
        values[run] = x[i];
      }
      if (inverse != nullptr) inverse[numbers != nullptr ? numbers[i] : i] = run;
    };
    // Most blocks lie within one run, when runs are long.
    for (int64_t i = begin; i < end;) {
      const int64_t stop = std::min(end, i + kBlock);
      int differing = i == 0 ? 1 : 0;
      for (int64_t k = std::max<int64_t>(i, 1); k < stop; ++k) differing += x[k] != x[k - 1];
      if (differing > 0) {
        for (; i < stop; ++i) step(i);
      } else if (inverse != nullptr && numbers == nullptr) {
        std::fill(inverse + i, inverse + stop, run);
      } else if (inverse != nullptr) {
        for (int64_t k = i; k < stop; ++k) inverse[numbers[k]] = run;
      }
      i = stop;
    }
    piece.last = last;
  });
  if (counts != nullptr) {
    int64_t next = n;
    for (size_t p = ends.size(); p-- > 0;) {
      if (ends[p].last < 0) continue;
      counts[before[p + 1] - 1] = next - ends[p].last;
      next = ends[p].first;
    }
  }
  return out;
}

// Whether each row of a matrix (or element of a row) differs from the one before; the first does.
Tensor differs_from_last(const Tensor& x) {
  const int64_t n = x.shape()[0];
  if (n == 0) return zeros({0}, {bool_, x.device()});
  Tensor differs = x.narrow(0, 1, n - 1).ne(x.narrow(0, 0, n - 1));
  if (x.dim() == 2) differs = differs.any(1);
  return cat({ones({1}, {bool_, x.device()}), differs}, 0);
}

// The order of the rows of a matrix, compared element by element.
Tensor order_of_rows(const Tensor& rows) {
  const TensorData data = detail::host_values(rows);
  const auto n = static_cast<size_t>(rows.shape()[0]);
  const auto width = static_cast<size_t>(rows.shape()[1]);
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  visit_dtype("unique", data.dtype(), [&]<class T>() {
    const std::span<const T> values = data.as<T>();
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const auto row_a = values.subspan(static_cast<size_t>(a) * width, width);
      const auto row_b = values.subspan(static_cast<size_t>(b) * width, width);
      for (size_t i = 0; i < width; ++i) {
        const bool nan_a = row_a[i] != row_a[i];
        const bool nan_b = row_b[i] != row_b[i];
        if (nan_a != nan_b) return nan_b;  // NaN is larger than everything
        if (!nan_a && row_a[i] != row_b[i]) return row_a[i] < row_b[i];
      }
      return false;
    });
  });
  return tensor(order, {i64, rows.device()});
}

struct Slices {
  int dim;
  Tensor rows;  // [n, elements of a slice]
};

Slices slices_of(const char* op, const Tensor& x, int64_t dim) {
  if (x.dim() == 0) throw_error<ShapeError>(op, ": a 0-d tensor has no dim");
  const int d = normalize_dim(op, dim, x.dim());
  const int64_t n = x.shape()[d];
  int64_t size = 1;
  for (int k = 0; k < x.dim(); ++k) size *= k == d ? 1 : x.shape()[k];
  if (size == 0) {
    throw_error<ShapeError>(op, ": has no slices to compare; got shape ", x.shape());
  }
  return {d, movedim(x, {d}, {0}).reshape({n, size})};
}

// What the runs of a row hold; `order` as in runs_of.
Unique unique_of_row(const Tensor& x, const Tensor& row, const Tensor& order, bool return_inverse,
                     bool return_counts) {
  Runs runs;
  if (x.device().type == kCpu) {
    runs = visit_dtype("unique", x.dtype(), [&]<class T>() {
      return runs_of_row<T>(row, order, return_inverse, return_counts);
    });
  } else {
    const Tensor starts = differs_from_last(row);
    runs = runs_of(starts, return_inverse ? order : Tensor(), return_inverse, return_counts);
    runs.first = masked_select(row, starts);
  }
  if (return_inverse) runs.inverse = runs.inverse.reshape(x.shape());
  return {runs.first, runs.inverse, runs.counts};
}

// Of bytes in host memory, which are counted rather than sorted.
template <class T>
Unique unique_of_bytes(const Tensor& x, bool return_inverse, bool return_counts) {
  constexpr int kValues = 256;
  constexpr int kLowest = std::is_same_v<T, int8_t> ? -128 : 0;
  const Tensor row = x.reshape({-1}).contiguous();
  const int64_t n = row.numel();
  const T* from = row.data_ptr<T>();
  const int64_t piece = std::max(kPiece, (n + 63) / 64);
  std::vector<std::array<int64_t, kValues>> of_pieces(static_cast<size_t>((n + piece - 1) / piece));
  const auto place = [](T value) { return static_cast<size_t>(static_cast<int>(value) - kLowest); };
  parallel_for(n, piece, [&](int64_t begin, int64_t end) {
    // Several sets of counters: equal neighbours would wait for each other.
    uint32_t sets[4][kValues] = {};
    std::array<int64_t, kValues>& total = of_pieces[static_cast<size_t>(begin / piece)];
    total.fill(0);
    for (int64_t i = begin; i < end;) {
      const int64_t stop = std::min(end, i + (int64_t{1} << 31));
      for (; i + 4 <= stop; i += 4) {
        for (int k = 0; k < 4; ++k) ++sets[k][place(from[i + k])];
      }
      for (; i < stop; ++i) ++sets[0][place(from[i])];
      for (auto& set : sets) {
        for (size_t v = 0; v < kValues; ++v) total[v] += std::exchange(set[v], 0);
      }
    }
  });
  std::array<int64_t, kValues> counts{}, numbers{};  // of each value, and which of the unique ones
  for (const auto& part : of_pieces) {
    for (size_t v = 0; v < kValues; ++v) counts[v] += part[v];
  }
  std::vector<size_t> seen;
  for (size_t v = 0; v < kValues; ++v) {
    numbers[v] = static_cast<int64_t>(seen.size());
    if (counts[v] > 0) seen.push_back(v);
  }
  const auto total = static_cast<int64_t>(seen.size());
  Unique out;
  out.values = empty({total}, {row.dtype(), row.device()});
  if (return_counts) out.counts = empty({total}, {i64, row.device()});
  for (int64_t i = 0; i < total; ++i) {
    const size_t v = seen[static_cast<size_t>(i)];
    out.values.data_ptr<T>()[i] = static_cast<T>(static_cast<int>(v) + kLowest);
    if (return_counts) out.counts.data_ptr<int64_t>()[i] = counts[v];
  }
  if (return_inverse) {
    out.inverse = empty(x.shape(), {i64, row.device()});
    int64_t* to = out.inverse.data_ptr<int64_t>();
    parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = numbers[place(from[i])];
    });
  }
  return out;
}

Unique nothing_unique(const Tensor& x, bool return_inverse, bool return_counts) {
  const auto none = [&](bool wanted) { return wanted ? empty({0}, {i64, x.device()}) : Tensor(); };
  return {x.clone(), none(return_inverse), none(return_counts)};
}

}  // namespace

Unique unique(const Tensor& given, bool return_inverse, bool return_counts,
              std::optional<int64_t> dim) {
  const Tensor x = given.detach();
  if (dim) {
    const Slices slices = slices_of("unique", x, *dim);
    if (x.numel() == 0) return nothing_unique(x, return_inverse, return_counts);
    const Tensor order = order_of_rows(slices.rows);
    const Tensor starts = differs_from_last(slices.rows.index_select(0, order));
    Runs runs = runs_of(starts, order, return_inverse, return_counts);
    return {x.index_select(slices.dim, runs.first), runs.inverse, runs.counts};
  }
  if (x.device().type == kCpu) {
    if (x.dtype() == bool_) return unique_of_bytes<bool>(x, return_inverse, return_counts);
    if (x.dtype() == u8) return unique_of_bytes<uint8_t>(x, return_inverse, return_counts);
    if (x.dtype() == i8) return unique_of_bytes<int8_t>(x, return_inverse, return_counts);
  }
  const auto [sorted, order] = x.reshape({-1}).sort(0);
  return unique_of_row(x, sorted, order, return_inverse, return_counts);
}

Unique unique_consecutive(const Tensor& given, bool return_inverse, bool return_counts,
                          std::optional<int64_t> dim) {
  const Tensor x = given.detach();
  if (dim) {
    const Slices slices = slices_of("unique_consecutive", x, *dim);
    if (x.numel() == 0) return nothing_unique(x, return_inverse, return_counts);
    Runs runs = runs_of(differs_from_last(slices.rows), {}, return_inverse, return_counts);
    return {x.index_select(slices.dim, runs.first), runs.inverse, runs.counts};
  }
  return unique_of_row(x, x.reshape({-1}).contiguous(), {}, return_inverse, return_counts);
}

}  // namespace kiln
