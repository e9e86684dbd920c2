// Attention, forward: blocks of queries against tiles of keys, with an online softmax.
#include "kiln/backend/cpu/attention/attention.h"

#include <cmath>
#include <limits>

#include "kiln/backend/cpu/attention/attention_halves.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/matmul/prefetch.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace {

using cpu::AttentionKernels;
using cpu::AttentionMask;
using cpu::AttentionSizes;
using cpu::HeadRows;
using cpu::kFewQueries;
using cpu::kKeys;
using cpu::kPackedFor;
using cpu::kQueries;
using cpu::kTileStep;
using cpu::Scratch;
using cpu::TilePlace;

template <class T>
class Forward {
 public:
  Forward(const HostTensor& q, const HostTensor& k, const HostTensor& v, const HostHandle* mask,
          const HostTensor& out, const HostTensor& lse, const AttentionOptions& options)
      : sizes_(q, k, v),
        q_(q),
        k_(k),
        v_(v),
        out_(out),
        lse_(lse.data_as<T>()),
        mask_(mask, Shape{sizes_.batch, sizes_.heads, sizes_.queries, sizes_.keys}),
        options_(options) {}

  void run() const {
    const int64_t blocks = (sizes_.queries + kPackedFor - 1) / kPackedFor;
    parallel_for(sizes_.batch * sizes_.heads * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t head = i / blocks;
        const int64_t first = i % blocks * kPackedFor;
        run_queries(head / sizes_.heads, head % sizes_.heads, first,
                    std::min(first + kPackedFor, sizes_.queries));
      }
    });
  }

 private:
  // The queries [first, last) of a head.
  void run_queries(int64_t n, int64_t h, int64_t first, int64_t last) const {
    const AttentionKernels<T>& kernels = cpu::attention_kernels<T>();
    const int64_t g = h / sizes_.group();
    const int64_t rows = last - first;
    const bool few = sizes_.queries < kFewQueries;
    const int64_t q_step = sizes_.padded(sizes_.width);
    const int64_t v_step = sizes_.padded(sizes_.values);
    const Scratch<T> scaled(rows * q_step);
    const Scratch<T> keys(few ? 0 : cpu::packed_size<T>(kKeys, sizes_.width));
    const Scratch<T> values(few ? sizes_.values : kKeys * v_step);
    const Scratch<T> tile(kQueries * kTileStep);
    T most[kPackedFor], sums[kPackedFor], factors[kQueries];
    std::fill_n(most, rows, -std::numeric_limits<T>::infinity());
    std::fill_n(sums, rows, T(0));
    kernels.copy_rows(q_.at(n, h, first), q_.row, rows, sizes_.width,
                      static_cast<T>(options_.scale), scaled.get(), q_step);

    for (int64_t key = 0; key < sizes_.keys; key += kKeys) {
      if (options_.causal && key >= last) break;
      const int64_t columns = std::min(kKeys, sizes_.keys - key);
      if (!few) {
        cpu::pack_transposed_rows(k_.at(n, g, key), k_.row, columns, sizes_.width, keys.get());
        kernels.copy_rows(v_.at(n, g, key), v_.row, columns, sizes_.values, T(1), values.get(),
                          v_step);
      }
      TilePlace at{};
      for (int64_t query = first; query < last; query += at.rows) {
        at = cpu::tile_place(n, h, query, last, key, columns, options_.causal);
        if (at.columns <= 0) continue;
        const T* q = scaled.get() + (query - first) * q_step;
        if (few) {
          dots_of_few(at, q, q_step, tile.get());
        } else {
          cpu::tile_of_dots(at.rows, at.columns, sizes_.width, q, q_step, keys.get(), tile.get());
        }
        cpu::mask_tile(at, mask_, options_.causal, tile.get());
        kernels.online_softmax(tile.get(), kTileStep, at.rows, at.columns, most + (query - first),
                               sums + (query - first), factors);
        if (options_.dropout != 0.0) cpu::drop_tile(at, sizes_, options_, tile.get());
        T* out = out_.at(n, h, query);
        if (key != 0) kernels.scale_rows(out, out_.row, at.rows, sizes_.values, factors);
        if (few) {
          add_values_of_few(at, tile.get(), values.get(), out);
        } else {
          cpu::tile_product(at.rows, sizes_.values, at.columns, tile.get(), kTileStep, 1,
                            values.get(), v_step, int64_t{gemm().columns}, out, out_.row, key != 0);
        }
      }
    }
    finish(n, h, first, rows, most, sums);
  }

  bool are_far() const {
    return cpu::is_far<T>(sizes_.batch * sizes_.key_heads * sizes_.keys * sizes_.width);
  }

  static const cpu::GemmKernels<T>& gemm() { return cpu::gemm_kernels<T>(); }

  void dots_of_few(const TilePlace& at, const T* q, int64_t q_step, T* tile) const {
    const int64_t g = at.h / sizes_.group();
    for (int64_t r = 0; r < at.rows; ++r) {
      gemm().dots(q + r * q_step, k_.at(at.n, g, at.key), k_.row, at.columns, sizes_.width,
                  tile + r * kTileStep, r == 0 && are_far());
    }
  }

  void add_values_of_few(const TilePlace& at, const T* tile, T* sum, T* out) const {
    const int64_t g = at.h / sizes_.group();
    for (int64_t r = 0; r < at.rows; ++r) {
      const T* weights = tile + r * kTileStep;
      T* to = at.key == 0 ? out + r * out_.row : sum;
      gemm().weighted_sum(weights, v_.at(at.n, g, at.key), v_.row, at.columns, sizes_.values, to,
                          r == 0 && are_far());
      if (at.key != 0) cpu::attention_kernels<T>().add(out + r * out_.row, sum, sizes_.values);
    }
  }

  // The division that softmax was left without, and the logsumexp.
  void finish(int64_t n, int64_t h, int64_t first, int64_t rows, const T* most, T* sums) const {
    T* lse = lse_ + (n * sizes_.heads + h) * sizes_.queries + first;
    for (int64_t r = 0; r < rows; ++r) {
      lse[r] = most[r] + std::log(sums[r]);
      sums[r] = sums[r] == T(0) ? T(0) : T(1) / sums[r];
    }
    T* out = out_.at(n, h, first);
    if (sizes_.keys == 0) {
      for (int64_t r = 0; r < rows; ++r) std::fill_n(out + r * out_.row, sizes_.values, T(0));
    } else {
      cpu::attention_kernels<T>().scale_rows(out, out_.row, rows, sizes_.values, sums);
    }
  }

  AttentionSizes<T> sizes_;
  HeadRows<const T> q_, k_, v_;
  HeadRows<T> out_;
  T* lse_;
  AttentionMask<T> mask_;
  const AttentionOptions& options_;
};

template <class T>
void run_forward(const HostTensor& q, const HostTensor& k, const HostTensor& v,
                 const HostHandle* mask, const HostTensor& out, const HostTensor& lse,
                 const AttentionOptions& options) {
  if (out.shape()[0] * out.shape()[1] * out.shape()[2] == 0) return;
  Forward<T>(q, k, v, mask, out, lse, options).run();
}

}  // namespace

std::pair<HostHandle, HostHandle> CpuOps::float_attention(Arg<HostHandle> q, Arg<HostHandle> k,
                                                          Arg<HostHandle> v, const HostHandle* mask,
                                                          const AttentionOptions& options) {
  const DType dtype = q.get()->dtype();
  const bool is_half = cpu::is_half(dtype);
  const cpu::OptionalOperand wide_mask(is_half ? mask : nullptr, cpu::widened);
  if (is_half && !cpu::attends_halves(dtype, q.get()->shape()[2])) {
    auto [out, lse] = float_attention(cpu::widened(q), cpu::widened(k), cpu::widened(v),
                                      wide_mask.get(), options);
    // Rounded as it lies in memory.
    const Dims beside{0, 2, 1, 3};
    HostHandle narrow = cpu::narrowed(host::permute(out, beside), dtype);
    return {host::permute(narrow, beside), std::move(lse)};
  }
  const HostHandle qs = cpu::with_adjacent_rows(q.get());
  const HostHandle ks = cpu::with_adjacent_rows(k.get());
  const HostHandle vs = cpu::with_adjacent_rows(v.get());
  const Shape& s = qs->shape();
  HostHandle out = cpu::empty_heads(Shape{s[0], s[1], s[2], vs->shape()[3]}, dtype, qs->device());
  HostHandle lse = host::empty(Shape{s[0], s[1], s[2]}, is_half ? DType::f32 : dtype, qs->device());
  if (is_half) {
    cpu::attend_halves(*qs, *ks, *vs, wide_mask.get(), *out, *lse, options);
  } else if (dtype == DType::f64) {
    run_forward<double>(*qs, *ks, *vs, mask, *out, *lse, options);
  } else {
    run_forward<float>(*qs, *ks, *vs, mask, *out, *lse, options);
  }
  return {std::move(out), std::move(lse)};
}

}  // namespace kiln
