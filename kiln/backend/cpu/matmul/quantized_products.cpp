// Products of quantized matrices: on their integers, or a block of rows at a time in float.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise/quantize_kernels.h"
#include "kiln/backend/cpu/matmul/amx.h"
#include "kiln/backend/cpu/matmul/gemm_int8.h"
#include "kiln/backend/cpu/matmul/gemm_words.h"
#include "kiln/backend/cpu/matmul/prefetch.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/kept_data.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace {

using cpu::Scratch;

// The int8 and scales of a quantized matrix.
class Integers {
 public:
  explicit Integers(const HostQuantized& x) : layout(x.shape(), x.scheme()) {
    values_ = cpu::contiguous(x.values());
    scales_ = cpu::contiguous(x.scales());
  }

  bool is_packed() const { return layout.values_dtype == DType::u8; }
  float scale(int64_t i) const {
    return layout.one_scale ? static_cast<float>(*scales_->data_as<const double>())
                            : scales_->data_as<const float>()[i];
  }
  // Those of `count` rows from row r on, of which each has one.
  void copy_scales(int64_t r, int64_t count, float* to) const {
    if (layout.one_scale) {
      std::fill_n(to, count, scale(0));
    } else {
      std::copy_n(scales_->data_as<const float>() + r, count, to);
    }
  }
  // A row's values; `room` for layout.cols of them is used where they lie two in a byte.
  const int8_t* row(int64_t r, int8_t* room) const {
    if (!is_packed()) return values_->data_as<const int8_t>() + r * layout.cols;
    cpu::quantize_kernels().unpack(values_->data_as<const uint8_t>() + r * layout.bytes_per_row,
                                   room, layout.cols);
    return room;
  }
  // All of them, row after row; `room` for rows * cols.
  const int8_t* all(int8_t* room) const {
    if (!is_packed()) return values_->data_as<const int8_t>();
    parallel_for(layout.rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(layout.cols, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) row(r, room + r * layout.cols);
                 });
    return room;
  }
  // Where its values begin.
  const std::byte* values_at() const { return values_->data_as<const std::byte>(); }
  const Storage& storage() const { return *values_->storage(); }
  int64_t room() const { return is_packed() ? layout.rows * layout.cols : 0; }

  const QuantLayout layout;

 private:
  HostHandle values_, scales_;
};

// Runs of k over which the scales of both are the same. A matrix whose scales belong to its columns
// (not transposed, one scale for all) has blocks of all of k.
std::vector<int64_t> runs_of(int64_t k, int64_t a_block, int64_t b_block) {
  std::vector<int64_t> ends;
  int64_t at = 0;
  while (at < k) {
    const int64_t a_end = (at / a_block + 1) * a_block;
    const int64_t b_end = (at / b_block + 1) * b_block;
    at = std::min({a_end, b_end, at + cpu::kInt8Run, k});
    ends.push_back(at);
  }
  return ends;
}

// [runs, rows]: the scales of a matrix's rows in each run.
void spread_scales(const Integers& x, const std::vector<int64_t>& ends, int64_t rows, float* to) {
  int64_t begin = 0;
  for (const int64_t end : ends) {
    for (int64_t i = 0; i < rows; ++i) {
      *to++ = x.scale(x.layout.one_scale ? 0 : x.layout.scale_of(i, begin));
    }
    begin = end;
  }
}

// Rows up to which a packed weight is kept; beside more of them it is packed in no time.
constexpr int64_t kMostRowsOfKeptQuantized = 8192;

// The right matrix in panels, where it is kept (Note [Kept data]); else null. g.b lacks its data.
std::shared_ptr<const void> kept_columns(const Integers& right, const cpu::Int8Gemm& g) {
  if (g.m > kMostRowsOfKeptQuantized || !cpu::takes_packed_b(g)) return nullptr;
  for (size_t r = 0; r < g.run_ends.size();
       ++r) {  // all but the last are of the first one's length
    if (g.run_ends[r] != std::min(static_cast<int64_t>(r + 1) * g.run_ends[0], g.k)) return nullptr;
  }
  using kiln::detail::KeptKey;
  const Storage& storage = right.storage();
  const int64_t offset = right.values_at() - static_cast<const std::byte*>(storage.data());
  const KeptKey key{KeptKey::matrix,
                    {offset, g.k, g.n, g.b.row, right.is_packed() ? 4 : 8, int64_t{sizeof(int8_t)},
                     cpu::kAmxSide, g.run_ends.front()}};
  return kiln::detail::kept_data(storage, key, [&] {
    const Scratch<int8_t> room(right.room());
    cpu::Int8Gemm with_data = g;
    with_data.b.data = right.all(room.get());
    auto packed = std::make_shared<Scratch<uint32_t>>(cpu::packed_b_words(g));
    cpu::pack_whole_b(with_data, packed->get());
    const uint32_t* const data = packed->get();
    return std::shared_ptr<const void>(std::move(packed), data);
  });
}

// b [k, n] with one scale or, transposed, [n, k]. a [m, k].
HostHandle multiply_integers(const HostQuantized& a, const HostQuantized& b, bool transposed,
                             const float* bias) {
  const Integers left(a), right(b);
  cpu::Int8Gemm g;
  g.m = a.shape()[0];
  g.k = a.shape()[1];
  g.n = b.shape()[transposed ? 0 : 1];
  HostHandle out = host::empty({g.m, g.n}, DType::f32, a.device());
  if (g.m == 0 || g.n == 0) return out;
  const Scratch<int8_t> left_room(left.room());
  g.a = {left.all(left_room.get()), g.k, 1};
  g.b = transposed ? cpu::MatrixView<int8_t>{nullptr, 1, g.k}
                   : cpu::MatrixView<int8_t>{nullptr, g.n, 1};
  const int64_t whole = std::max<int64_t>(g.k, 1);
  g.run_ends = runs_of(g.k, left.layout.one_scale ? whole : left.layout.block,
                       right.layout.one_scale ? whole : right.layout.block);
  const std::shared_ptr<const void> packed = kept_columns(right, g);
  g.packed_b = static_cast<const uint32_t*>(packed.get());
  const Scratch<int8_t> right_room(packed == nullptr ? right.room() : 0);
  if (packed == nullptr) g.b.data = right.all(right_room.get());
  const auto runs = static_cast<int64_t>(g.run_ends.size());
  const Scratch<float> a_scales(runs * g.m), b_scales(runs * g.n);
  spread_scales(left, g.run_ends, g.m, a_scales.get());
  spread_scales(right, g.run_ends, g.n, b_scales.get());
  g.a_scales = a_scales.get();
  g.b_scales = b_scales.get();
  g.one_a_scale = left.layout.one_scale || left.layout.blocks == 1;
  g.column_bias = bias;
  g.c = out->data_as<float>();
  g.c_row = g.n;
  cpu::gemm(g);
  return out;
}

// Rows that multiply a weight where it lies rather than have it packed.
constexpr int64_t kFewRows = 4;

// A few quantized rows [m, k] times a weight [n, k] transposed that has one scale for a row, which
// is read once. Returns whether this machine can.
bool multiply_integer_rows(const Integers& x, const Integers& weight, const float* bias,
                           float* out) {
  const cpu::Int8Kernels& kernels = cpu::int8_kernels();
  const int64_t m = x.layout.rows, n = weight.layout.rows, k = weight.layout.cols;
  if (kernels.dots == nullptr || weight.layout.blocks != 1 || k > cpu::kInt8Run) return false;
  const Scratch<int8_t> x_room(x.room());
  const int8_t* left = x.all(x_room.get());
  const bool far = !weight.is_packed() && cpu::is_far<int8_t>(n * k);
  // What of the weight is in use at once stays in the second-level cache.
  const int64_t most = std::clamp<int64_t>(128 * 1024 / k / 4 * 4, 4, 64);
  parallel_for(n, std::max(2 * kGrain / k / most * most, most), [&](int64_t begin, int64_t end) {
    const Scratch<int8_t> room(weight.is_packed() ? most * k : 0);
    int32_t sums[64];
    float scales[64];
    for (int64_t j = begin; j < end; j += most) {
      const int64_t count = std::min(most, end - j);
      const int8_t* rows = weight.row(j, room.get());
      if (weight.is_packed()) {
        for (int64_t i = 1; i < count; ++i) weight.row(j + i, room.get() + i * k);
      }
      for (int64_t r = 0; r < m; ++r) {
        kernels.dots(left + r * k, rows, k, count, k, sums, r == 0 && far);
        weight.copy_scales(j, count, scales);
        const float x_scale = x.scale(r);
        float* to = out + r * n + j;
        for (int64_t i = 0; i < count; ++i) {
          to[i] = static_cast<float>(sums[i]) * (x_scale * scales[i]);
        }
        // A number plus 0 is that number; -0 becomes 0.
        for (int64_t i = 0; i < count; ++i) to[i] += bias == nullptr ? 0.0f : bias[j + i];
      }
    }
  });
  return true;
}

// x [m, k] in float times a quantized weight [n, k] transposed.
void multiply_rows(const float* x, int64_t m, const Integers& weight, const float* bias,
                   float* out) {
  const cpu::QuantizeKernels& kernels = cpu::quantize_kernels();
  const QuantLayout& layout = weight.layout;
  const int64_t n = layout.rows, k = layout.cols;
  const int64_t block = layout.one_scale ? std::max<int64_t>(k, 1) : layout.block;
  // As many rows as stay in the second-level cache, dequantized.
  constexpr int64_t kElements = 64 * 1024;
  const int64_t rows =
      m == 1 ? std::max<int64_t>(kGrain / std::max<int64_t>(k, 1), 1)
             : std::clamp<int64_t>(kElements / std::max<int64_t>(k, 1) / 32 * 32, 32, 512);
  parallel_for(n, rows, [&](int64_t begin, int64_t end) {
    const Scratch<int8_t> room(weight.is_packed() ? k : 0);
    if (m == 1) {
      std::vector<float> scales(static_cast<size_t>(layout.blocks));
      for (int64_t j = begin; j < end; ++j) {
        for (int64_t b = 0; b < layout.blocks; ++b) {
          scales[static_cast<size_t>(b)] =
              weight.scale(layout.one_scale ? 0 : j * layout.blocks + b);
        }
        out[j] = kernels.dot(x, weight.row(j, room.get()), k, scales.data(), block) +
                 (bias == nullptr ? 0.0f : bias[j]);
      }
      return;
    }
    const Scratch<float> dense((end - begin) * k);
    for (int64_t j = begin; j < end; ++j) {
      const int8_t* values = weight.row(j, room.get());
      float* to = dense.get() + (j - begin) * k;
      for (int64_t c = 0; c < k; c += block) {
        kernels.dequantize(values + c, to + c, std::min(block, k - c),
                           weight.scale(layout.one_scale ? 0 : layout.scale_of(j, c)));
      }
    }
    cpu::Gemm<float> g;
    g.m = m;
    g.n = end - begin;
    g.k = k;
    g.a = {x, k, 1};
    g.b = {dense.get(), 1, k};
    if (g.n == 1) g.b.column = 1;
    g.c = out + begin;
    g.c_row = n;
    g.column_bias = bias == nullptr ? nullptr : bias + begin;
    cpu::gemm_serial(g);
  });
}

}  // namespace

HostHandle CpuOps::q_matmul(Arg<QuantizedHandle> a, Arg<QuantizedHandle> b, bool transposed,
                            DType dtype) {
  // Scales that change along k in every column leave nothing to sum as integers.
  const bool in_integers =
      dtype != DType::f64 && (transposed || b->scheme().level == QuantLevel::tensor);
  if (in_integers) {
    return CpuOps::float_cast(multiply_integers(*a.get(), *b.get(), transposed, nullptr), dtype);
  }
  const DType wide = dtype == DType::f64 ? dtype : DType::f32;
  HostHandle left = CpuOps::q_dequantize(a, wide);
  HostHandle right = CpuOps::q_dequantize(b, wide);
  if (transposed) right = CpuOps::float_permute(right, Dims{1, 0});
  return CpuOps::float_cast(float_matmul(std::move(left), std::move(right)), dtype);
}

HostHandle CpuOps::float_linear_quantized(Arg<HostHandle> x, Arg<QuantizedHandle> weight,
                                          const HostHandle* bias) {
  const HostHandle input = x.get();
  const DType dtype = input->dtype();
  const Shape shape = input->shape();
  Shape out_shape = shape;
  out_shape.back() = weight->shape()[0];
  int64_t m = 1;
  for (int d = 0; d + 1 < shape.rank(); ++d) m *= shape[d];
  const Shape flat = {m, shape.back()};
  const bool dynamic = weight->scheme().activations == QuantActivations::dynamic;
  const QuantScheme by_row = {.level = QuantLevel::channel};
  if (dtype == DType::f64) {
    HostHandle rows = cpu::contiguous(input);
    if (dynamic && rows->numel() != 0) {
      rows = CpuOps::q_dequantize(CpuOps::float_quantize(CpuOps::float_reshape(rows, flat), by_row),
                                  dtype);
    }
    HostHandle out = float_linear(CpuOps::float_reshape(std::move(rows), flat),
                                  CpuOps::q_dequantize(weight, dtype), bias);
    return CpuOps::float_reshape(std::move(out), out_shape);
  }

  const cpu::OptionalOperand wide_bias(
      bias, [](const HostHandle& b) { return cpu::contiguous(CpuOps::float_cast(b, DType::f32)); });
  const float* each = wide_bias.data<float>();
  HostHandle out;
  HostHandle rows;
  if (dynamic && input->numel() != 0) {
    const QuantizedHandle quantized =
        CpuOps::float_quantize(CpuOps::float_reshape(cpu::contiguous(input), flat), by_row);
    if (m <= kFewRows) {
      out = host::empty({m, out_shape.back()}, DType::f32, input->device());
    }
    if (m > kFewRows || !multiply_integer_rows(Integers(*quantized), Integers(*weight.get()), each,
                                               out->data_as<float>())) {
      if (m > 1) {
        out = multiply_integers(*quantized, *weight.get(), true, each);
      } else {
        rows = CpuOps::q_dequantize(quantized, DType::f32);
      }
    }
  } else {
    rows = cpu::contiguous(CpuOps::float_cast(input, DType::f32));
    out = host::empty({m, out_shape.back()}, DType::f32, input->device());
  }
  if (rows && m != 0) {
    multiply_rows(rows->data_as<const float>(), m, Integers(*weight.get()), each,
                  out->data_as<float>());
  }
  return CpuOps::float_reshape(CpuOps::float_cast(std::move(out), dtype), out_shape);
}

}  // namespace kiln
