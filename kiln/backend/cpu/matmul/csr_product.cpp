// Products with sparse matrices in compressed rows: float_csr_matmul, float_csr_sampled_matmul.
#include <algorithm>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/index/indices.h"
#include "kiln/backend/cpu/matmul/csr_kernels.h"
#include "kiln/backend/cpu/scratch.h"

namespace kiln {
namespace cpu {
namespace {

// The entries of a sparse matrix: those of row i are [starts[i], starts[i + 1]), at these columns.
struct Entries {
  const int64_t* starts;
  const int64_t* columns;
  int64_t rows;
  int64_t count;
};

// A graph from a file may hold any numbers.
Entries checked_entries(const HostHandle& crow, const HostHandle& col, int64_t columns) {
  const Entries out{crow->data_as<const int64_t>(), col->data_as<const int64_t>(),
                    crow->numel() - 1, col->numel()};
  bool rises = out.starts[0] == 0 && out.starts[out.rows] == out.count;
  for (int64_t i = 0; i < out.rows; ++i) rises = rises && out.starts[i] <= out.starts[i + 1];
  if (!rises) {
    throw_error<IndexError>("csr_matmul: got starts of rows that do not rise from 0 to ", out.count,
                            "; expected places among the entries, in order");
  }
  check_indices("csr_matmul", *col, columns);
  return out;
}

int64_t rows_of_piece(const Entries& entries, int64_t width) {
  const int64_t work = entries.count * width / std::max<int64_t>(1, entries.rows);
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work + width));
}

// out [entries.rows, width]
template <class T>
void combine_rows(const Entries& entries, const T* values, const T* dense, int64_t width, T* out) {
  const CsrKernels<T>& kernels = csr_kernels<T>();
  parallel_for(entries.rows, rows_of_piece(entries, width), [&](int64_t begin, int64_t end) {
    const int64_t last = entries.starts[end];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t start = entries.starts[i];
      kernels.combine(dense, width, entries.columns + start, values + start,
                      entries.starts[i + 1] - start, last - start, out + i * width);
    }
  });
}

// The transposed matrix: entries by columns, those of a column in the order of rows.
template <class T>
class Transposed {
 public:
  Transposed(const Entries& of, const T* values, int64_t columns)
      : starts_(columns + 1), rows_(of.count), values_(of.count), columns_(columns) {
    std::fill_n(starts_.get(), columns + 1, int64_t{0});
    for (int64_t e = 0; e < of.count; ++e) ++starts_[of.columns[e]];
    int64_t before = 0;
    for (int64_t c = 0; c <= columns; ++c) {
      const int64_t count = starts_[c];
      starts_[c] = before;
      before += count;
    }
    for (int64_t i = 0; i < of.rows; ++i) {
      for (int64_t e = of.starts[i]; e < of.starts[i + 1]; ++e) {
        const int64_t to = starts_[of.columns[e]]++;
        rows_[to] = i;
        values_[to] = values[e];
      }
    }
    // Each start has become the next one.
    for (int64_t c = columns; c > 0; --c) starts_[c] = starts_[c - 1];
    starts_[0] = 0;
  }

  Entries entries() const { return {starts_.get(), rows_.get(), columns_, starts_[columns_]}; }
  const T* values() const { return values_.get(); }

 private:
  Scratch<int64_t> starts_;
  Scratch<int64_t> rows_;
  Scratch<T> values_;
  int64_t columns_;
};

template <class T>
HostHandle csr_matmul(const HostHandle& crow, const HostHandle& col, const HostHandle& values,
                      const HostHandle& dense, int64_t columns, bool transposed) {
  const Entries entries = checked_entries(crow, col, columns);
  const int64_t width = dense->shape()[1];
  HostHandle out = host::empty(Shape{transposed ? columns : entries.rows, width}, values->dtype(),
                               values->device());
  if (out->numel() == 0) return out;
  const T* factors = values->data_as<const T>();
  const T* from = dense->data_as<const T>();
  if (transposed) {
    const Transposed<T> turned(entries, factors, columns);
    combine_rows(turned.entries(), turned.values(), from, width, out->data_as<T>());
  } else {
    combine_rows(entries, factors, from, width, out->data_as<T>());
  }
  return out;
}

template <class T>
HostHandle csr_sampled_matmul(const HostHandle& crow, const HostHandle& col, const HostHandle& x,
                              const HostHandle& y) {
  const Entries entries = checked_entries(crow, col, y->shape()[0]);
  const int64_t width = x->shape()[1];
  HostHandle out = host::empty(col->shape(), x->dtype(), x->device());
  const T* left = x->data_as<const T>();
  const T* right = y->data_as<const T>();
  T* to = out->data_as<T>();
  const CsrKernels<T>& kernels = csr_kernels<T>();
  parallel_for(entries.rows, rows_of_piece(entries, width), [&](int64_t begin, int64_t end) {
    const int64_t last = entries.starts[end];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t start = entries.starts[i];
      kernels.dots(left + i * width, right, width, entries.columns + start,
                   entries.starts[i + 1] - start, last - start, to + start);
    }
  });
  return out;
}

}  // namespace
}  // namespace cpu

// 16-bit floats are computed in f32.
HostHandle CpuOps::float_csr_matmul(Arg<HostHandle> crow, Arg<HostHandle> col,
                                    Arg<HostHandle> values, Arg<HostHandle> dense, int64_t columns,
                                    bool transposed) {
  const DType dtype = values->dtype();
  if (cpu::convert_of(dtype) != cpu::Convert::none) {
    return float_cast(float_csr_matmul(crow, col, float_cast(values, DType::f32),
                                       float_cast(dense, DType::f32), columns, transposed),
                      dtype);
  }
  const HostHandle starts = cpu::contiguous(crow);
  const HostHandle places = cpu::contiguous(col);
  const HostHandle factors = cpu::contiguous(values);
  const HostHandle from = cpu::contiguous(dense);
  return dtype == DType::f64
             ? cpu::csr_matmul<double>(starts, places, factors, from, columns, transposed)
             : cpu::csr_matmul<float>(starts, places, factors, from, columns, transposed);
}

HostHandle CpuOps::float_csr_sampled_matmul(Arg<HostHandle> crow, Arg<HostHandle> col,
                                            Arg<HostHandle> x, Arg<HostHandle> y) {
  const DType dtype = x->dtype();
  if (cpu::convert_of(dtype) != cpu::Convert::none) {
    return float_cast(
        float_csr_sampled_matmul(crow, col, float_cast(x, DType::f32), float_cast(y, DType::f32)),
        dtype);
  }
  const HostHandle starts = cpu::contiguous(crow);
  const HostHandle places = cpu::contiguous(col);
  const HostHandle left = cpu::contiguous(x);
  const HostHandle right = cpu::contiguous(y);
  return dtype == DType::f64 ? cpu::csr_sampled_matmul<double>(starts, places, left, right)
                             : cpu::csr_sampled_matmul<float>(starts, places, left, right);
}

}  // namespace kiln
