// Quantized tensors: integers of 8 or 4 bits with scales.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/quantize_kernels.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/convert.h"

namespace kiln {
namespace cpu {
namespace {

// Rows in pieces of about kGrain elements.
template <class F>
void for_rows(const QuantLayout& layout, F&& f) {
  parallel_for(layout.rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(layout.cols, 1)), f);
}

double usable(double scale) { return scale > 0.0 ? scale : 1.0; }  // all zeros: any will do

double largest(const float* x, int64_t n) {
  return static_cast<double>(quantize_kernels().largest(x, n));
}

double largest(const double* x, int64_t n) {
  double most = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    const double value = std::abs(x[i]);
    if (value > most && std::isfinite(value)) most = value;
  }
  return most;
}

// The rows of a tensor as floats or doubles, which the loops work on: 16-bit floats go through a
// buffer.
template <class T>
class WideRow {
 public:
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  explicit WideRow(int64_t cols) : cols_(cols), buffer_(sizeof(T) == 2 ? cols : 0) {}
  const Wide* of(const T* row) const {
    if constexpr (sizeof(T) == 2) {
      for (int64_t i = 0; i < cols_; ++i) buffer_[i] = static_cast<float>(row[i]);
      return buffer_.get();
    } else {
      return row;
    }
  }

 private:
  int64_t cols_;
  Scratch<Wide> buffer_;
};

// One scale: by row first, since a row is what a thread works on.
template <class T>
double scale_of_all(const T* x, const QuantLayout& layout) {
  std::vector<double> most(static_cast<size_t>(layout.rows), 0.0);
  for_rows(layout, [&](int64_t begin, int64_t end) {
    const WideRow<T> wide(layout.cols);
    for (int64_t r = begin; r < end; ++r) {
      most[static_cast<size_t>(r)] = largest(wide.of(x + r * layout.cols), layout.cols);
    }
  });
  const double all = most.empty() ? 0.0 : *std::max_element(most.begin(), most.end());
  return usable(all / static_cast<double>(layout.limit));
}

void quantize_block(const float* x, int8_t* out, int64_t n, double scale, int limit) {
  quantize_kernels().quantize(x, out, n, scale, limit);
}

void quantize_block(const double* x, int8_t* out, int64_t n, double scale, int limit) {
  const auto most = static_cast<double>(limit);
  for (int64_t i = 0; i < n; ++i) {
    const double q = std::nearbyint(x[i] / scale);
    out[i] = q != q ? int8_t{0} : static_cast<int8_t>(std::clamp(q, -most, most));
  }
}

void pack_row(const int8_t* values, uint8_t* out, int64_t n) {
  for (int64_t i = 0; i < n / 2; ++i) {
    out[i] = static_cast<uint8_t>((values[2 * i] & 15) | ((values[2 * i + 1] & 15) << 4));
  }
  if (n % 2 != 0) out[n / 2] = static_cast<uint8_t>(values[n - 1] & 15);
}

template <class T>
void quantize_rows(const T* x, const HostTensor& values, const HostTensor& scales,
                   const QuantLayout& layout) {
  const auto limit = static_cast<int>(layout.limit);
  const bool packs = values.dtype() == DType::u8;
  for_rows(layout, [&](int64_t begin, int64_t end) {
    const Scratch<int8_t> row(packs ? layout.cols : 0);
    const WideRow<T> wide(layout.cols);
    for (int64_t r = begin; r < end; ++r) {
      // A channel without values has a scale all the same.
      if (layout.cols == 0 && !layout.one_scale && layout.blocks > 0) {
        scales.data_as<float>()[r] = 1.0f;
      }
      int8_t* out = packs ? row.get() : values.data_as<int8_t>() + r * layout.cols;
      const auto* row_of_x = wide.of(x + r * layout.cols);
      for (int64_t c = 0; c < layout.cols; c += layout.block) {
        const auto* from = row_of_x + c;
        const int64_t n = std::min(layout.block, layout.cols - c);
        double scale = 0.0;
        if (layout.one_scale) {
          scale = *scales.data_as<const double>();
        } else {
          const auto kept = static_cast<float>(usable(largest(from, n) / limit));
          scale = usable(static_cast<double>(kept));
          scales.data_as<float>()[layout.scale_of(r, c)] = static_cast<float>(scale);
        }
        quantize_block(from, out + c, n, scale, limit);
      }
      if (packs) {
        pack_row(out, values.data_as<uint8_t>() + r * layout.bytes_per_row, layout.cols);
      }
    }
  });
}

// S is the scales' type: an 8-bit integer times a float is rounded once either way.
template <class T, class S>
void dequantize_values(const int8_t* from, T* to, int64_t n, S scale) {
  if constexpr (std::is_same_v<T, float> && std::is_same_v<S, float>) {
    quantize_kernels().dequantize(from, to, n, scale);
  } else {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, S>;
    for (int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<T>(static_cast<Wide>(scale) * static_cast<Wide>(from[i]));
    }
  }
}

template <class T, class S>
void dequantize_rows(const HostTensor& values, const S* scales, T* out, const QuantLayout& layout) {
  const bool packed = values.dtype() == DType::u8;
  for_rows(layout, [&](int64_t begin, int64_t end) {
    const Scratch<int8_t> row(packed ? layout.cols : 0);
    for (int64_t r = begin; r < end; ++r) {
      const int8_t* from = row.get();
      if (packed) {
        quantize_kernels().unpack(values.data_as<const uint8_t>() + r * layout.bytes_per_row,
                                  row.get(), layout.cols);
      } else {
        from = values.data_as<const int8_t>() + r * layout.cols;
      }
      T* to = out + r * layout.cols;
      for (int64_t c = 0; c < layout.cols; c += layout.block) {
        dequantize_values(from + c, to + c, std::min(layout.block, layout.cols - c),
                          scales[layout.scale_of(r, c)]);
      }
    }
  });
}

}  // namespace
}  // namespace cpu

QuantizedHandle CpuOps::float_quantize(Arg<HostHandle> x, const QuantScheme& scheme) {
  const QuantLayout layout(x->shape(), scheme);
  HostHandle values = host::empty(layout.values_shape, layout.values_dtype, x->device());
  HostHandle scales = host::empty(layout.scales_shape, layout.scales_dtype, x->device());
  const HostHandle source = cpu::contiguous(x);
  visit_float("quantize", source->dtype(), [&]<class T>() {
    const T* from = source->data_as<const T>();
    if (layout.one_scale) {
      *scales->data_as<double>() =
          scheme.scale > 0.0 ? scheme.scale : cpu::scale_of_all(from, layout);
    }
    cpu::quantize_rows(from, *values, *scales, layout);
  });
  return make_handle<HostQuantized>(std::move(values), std::move(scales), scheme, x->shape());
}

HostHandle CpuOps::q_dequantize(Arg<QuantizedHandle> x, DType dtype) {
  const QuantLayout layout(x->shape(), x->scheme());
  const DType computed = dtype == DType::f64 ? dtype : DType::f32;
  HostHandle out = host::empty(x->shape(), computed, x->device());
  const HostHandle values = cpu::contiguous(x->values());
  const HostHandle scales = cpu::contiguous(x->scales());
  const auto run = [&]<class T>(T* to) {
    if (layout.one_scale) {
      cpu::dequantize_rows(*values, scales->data_as<const double>(), to, layout);
    } else {
      cpu::dequantize_rows(*values, scales->data_as<const float>(), to, layout);
    }
  };
  if (computed == DType::f64) {
    run(out->data_as<double>());
  } else {
    run(out->data_as<float>());
  }
  return float_cast(std::move(out), dtype);
}

QuantizedHandle CpuOps::q_from_parts(Arg<HostHandle> values, Arg<HostHandle> scales,
                                     const QuantScheme& scheme, const Shape& shape) {
  return make_handle<HostQuantized>(values.get(), scales.get(), scheme, shape);
}

HostHandle CpuOps::q_values(Arg<QuantizedHandle> x) { return x->values(); }
HostHandle CpuOps::q_scales(Arg<QuantizedHandle> x) { return x->scales(); }
QuantScheme CpuOps::q_scheme(Arg<QuantizedHandle> x) { return x->scheme(); }

QuantizedHandle CpuOps::q_reshape(Arg<QuantizedHandle> x, const Shape& shape) {
  return make_handle<HostQuantized>(int_reshape(x->values(), shape), x->scales(), x->scheme(),
                                    shape);
}

}  // namespace kiln
