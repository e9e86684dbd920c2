// Attention, backward: tiles of weights computed anew from the saved logsumexp.
#include <cmath>
#include <limits>

#include "kiln/backend/cpu/attention/attention.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace {

using cpu::AttentionMask;
using cpu::AttentionSizes;
using cpu::HeadRows;
using cpu::kKeys;
using cpu::kQueries;
using cpu::kTileStep;
using cpu::Scratch;
using cpu::TilePlace;

// With weights P and scores S = scale q k^T + mask of a tile, D its dropout mask and delta =
// sum(g out) of each query:
//   gv += (D P)^T g;  dS = P (D (g v^T) - delta);  gq += scale dS k;  gk += scale dS^T q.
template <class T>
class Backward {
 public:
  Backward(const HostTensor& g, const HostTensor& q, const HostTensor& k, const HostTensor& v,
           const HostHandle* mask, const HostTensor& out, const T* lse, const HostTensor& gq,
           const HostTensor& gk, const HostTensor& gv, const AttentionOptions& options)
      : sizes_(q, k, v),
        g_(g),
        q_(q),
        k_(k),
        v_(v),
        out_(out),
        lse_(lse),
        gq_(gq),
        gk_(gk),
        gv_(gv),
        mask_(mask, Shape{sizes_.batch, sizes_.heads, sizes_.queries, sizes_.keys}),
        options_(options) {}

  // A head of keys, with the queries that meet it, is a task that needs five products. Where such
  // tasks are too few for the threads, the gradients of keys and of queries are found in two passes
  // with seven.
  void run() const {
    const int64_t tasks = sizes_.batch * sizes_.key_heads;
    const int64_t threads = num_threads();
    const int64_t rounds = (tasks + threads - 1) / threads;
    const int64_t tiles = sizes_.key_tiles(sizes_.keys, false);
    if (rounds * threads * 5 <= tasks * 7 || tiles == 0) {
      parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) run_group(i, 0, tiles, true);
      });
      return;
    }
    parallel_for(tasks * tiles, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run_group(i / tiles, i % tiles, i % tiles + 1, false);
    });
    const int64_t blocks = (sizes_.queries + kBlock - 1) / kBlock;
    parallel_for(sizes_.batch * sizes_.heads * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t head = i / blocks;
        const int64_t first = i % blocks * kBlock;
        run_head(head / sizes_.heads, head % sizes_.heads, first,
                 std::min(first + kBlock, sizes_.queries), 0, tiles, true, false);
      }
    });
  }

 private:
  static constexpr int64_t kBlock = 4 * kQueries;

  // The tiles of keys [first_tile, last_tile) of one head of keys, against all its queries.
  void run_group(int64_t key_head, int64_t first_tile, int64_t last_tile, bool with_queries) const {
    const int64_t n = key_head / sizes_.key_heads;
    const int64_t first_head = key_head % sizes_.key_heads * sizes_.group();
    for (int64_t h = first_head; h < first_head + sizes_.group(); ++h) {
      run_head(n, h, 0, sizes_.queries, first_tile, last_tile, with_queries, true);
    }
  }

  void run_head(int64_t n, int64_t h, int64_t first, int64_t last, int64_t first_tile,
                int64_t last_tile, bool want_queries, bool want_keys) const {
    const auto& kernels = cpu::attention_kernels<T>();
    if (options_.causal) {  // queries that see none of these keys
      first = std::max(first, first_tile * kKeys / kQueries * kQueries);
    }
    const int64_t rows = last - first;
    if (rows <= 0) return;
    const int64_t q_step = sizes_.padded(sizes_.width);
    const int64_t v_step = sizes_.padded(sizes_.values);
    const Scratch<T> qs(rows * q_step);
    const Scratch<T> gs(rows * v_step);
    const Scratch<T> delta(rows), shift(rows);
    const T scale = static_cast<T>(options_.scale);
    kernels.copy_rows(q_.at(n, h, first), q_.row, rows, sizes_.width, scale, qs.get(), q_step);
    kernels.copy_rows(g_.at(n, h, first), g_.row, rows, sizes_.values, T(1), gs.get(), v_step);
    kernels.row_dots(gs.get(), v_step, out_.at(n, h, first), out_.row, rows, sizes_.values,
                     delta.get());
    const T* lse = lse_ + (n * sizes_.heads + h) * sizes_.queries + first;
    for (int64_t r = 0; r < rows; ++r) {  // a query that sees nothing has scores of -inf
      shift[r] = lse[r] == -std::numeric_limits<T>::infinity() ? T(0) : lse[r];
    }
    const Tiles tiles(sizes_);
    for (int64_t tile = first_tile; tile < last_tile; ++tile) {
      const int64_t key = tile * kKeys;
      if (options_.causal && key >= last) break;
      const int64_t columns = std::min(kKeys, sizes_.keys - key);
      const int64_t kv_head = h / sizes_.group();
      const T* k = k_.at(n, kv_head, key);
      if (!few()) {
        cpu::pack_transposed_rows(k, k_.row, columns, sizes_.width, tiles.keys.get());
        cpu::pack_transposed_rows(v_.at(n, kv_head, key), v_.row, columns, sizes_.values,
                                  tiles.values.get());
      }
      if (want_queries && !few()) {
        kernels.copy_rows(k, k_.row, columns, sizes_.width, scale, tiles.key_rows.get(), q_step);
      }
      const int64_t start = options_.causal ? std::max(first, key / kQueries * kQueries) : first;
      TilePlace at{};
      for (int64_t query = start; query < last; query += at.rows) {
        at = cpu::tile_place(n, h, query, last, key, columns, options_.causal);
        const int64_t r = query - first;
        run_tile(at, qs.get() + r * q_step, q_step, gs.get() + r * v_step, v_step, shift.get() + r,
                 delta.get() + r, tiles, want_queries, want_keys);
      }
    }
  }

  // What one thread works with.
  struct Tiles {
    explicit Tiles(const AttentionSizes<T>& s)
        : keys(cpu::packed_size<T>(kKeys, s.width)),
          values(cpu::packed_size<T>(kKeys, s.values)),
          key_rows(kKeys * s.padded(s.width)),
          weights(kQueries * kTileStep),
          grads(kQueries * kTileStep) {}
    Scratch<T> keys, values, key_rows, weights, grads;
  };

  void run_tile(const TilePlace& at, const T* q, int64_t q_step, const T* g, int64_t g_step,
                const T* shift, const T* delta, const Tiles& tiles, bool want_queries,
                bool want_keys) const {
    const auto& kernels = cpu::attention_kernels<T>();
    const int64_t panel = cpu::gemm_kernels<T>().columns;
    const int64_t kv_head = at.h / sizes_.group();
    T* weights = tiles.weights.get();
    T* grads = tiles.grads.get();
    dots_of_tile(at, q, q_step, k_, sizes_.width, tiles.keys.get(), weights);
    cpu::mask_tile(at, mask_, options_.causal, weights);
    kernels.exp_rows(weights, kTileStep, at.rows, at.columns, shift);
    dots_of_tile(at, g, g_step, v_, sizes_.values, tiles.values.get(), grads);
    if (options_.dropout != 0.0) cpu::drop_tile(at, sizes_, options_, grads);
    kernels.softmax_gradient(weights, grads, kTileStep, at.rows, at.columns, delta);
    if (want_queries && few()) {
      add_keys_of_few(at, grads, tiles.key_rows.get());
    } else if (want_queries) {
      cpu::tile_product(at.rows, sizes_.width, at.columns, grads, kTileStep, 1,
                        tiles.key_rows.get(), q_step, panel, gq_.at(at.n, at.h, at.query), gq_.row,
                        true);
    }
    if (!want_keys) return;
    cpu::tile_product(at.columns, sizes_.width, at.rows, grads, 1, kTileStep, q, q_step, panel,
                      gk_.at(at.n, kv_head, at.key), gk_.row, true);
    if (options_.dropout != 0.0) cpu::drop_tile(at, sizes_, options_, weights);
    cpu::tile_product(at.columns, sizes_.values, at.rows, weights, 1, kTileStep, g, g_step, panel,
                      gv_.at(at.n, kv_head, at.key), gv_.row, true);
  }

  // A few queries read keys and values where they lie: packed, they would be used too seldom.
  bool few() const { return sizes_.queries < cpu::kFewQueries; }

  void dots_of_tile(const TilePlace& at, const T* x, int64_t x_step, const HeadRows<const T>& rows,
                    int64_t width, const T* packed, T* tile) const {
    if (!few()) return cpu::tile_of_dots(at.rows, at.columns, width, x, x_step, packed, tile);
    const T* const from = rows.at(at.n, at.h / sizes_.group(), at.key);
    for (int64_t r = 0; r < at.rows; ++r) {
      cpu::gemm_kernels<T>().dots(x + r * x_step, from, rows.row, at.columns, width,
                                  tile + r * kTileStep, false);
    }
  }

  void add_keys_of_few(const TilePlace& at, const T* grads, T* sum) const {
    const auto& kernels = cpu::attention_kernels<T>();
    const T* const keys = k_.at(at.n, at.h / sizes_.group(), at.key);
    const T scale = static_cast<T>(options_.scale);
    for (int64_t r = 0; r < at.rows; ++r) {
      cpu::gemm_kernels<T>().weighted_sum(grads + r * kTileStep, keys, k_.row, at.columns,
                                          sizes_.width, sum, false);
      kernels.scale_rows(sum, sizes_.width, 1, sizes_.width, &scale);
      kernels.add(gq_.at(at.n, at.h, at.query + r), sum, sizes_.width);
    }
  }

  AttentionSizes<T> sizes_;
  HeadRows<const T> g_, q_, k_, v_, out_;
  const T* lse_;
  HeadRows<T> gq_, gk_, gv_;
  AttentionMask<T> mask_;
  const AttentionOptions& options_;
};

HostHandle zero_heads(const Shape& shape, DType dtype, Device device) {
  return host::permute(
      CpuOps::float_full(Shape{shape[0], shape[2], shape[1], shape[3]}, Scalar(0.0), dtype, device),
      Dims{0, 2, 1, 3});
}

}  // namespace

std::tuple<HostHandle, HostHandle, HostHandle> CpuOps::float_attention_backward(
    Arg<HostHandle> g, Arg<HostHandle> q, Arg<HostHandle> k, Arg<HostHandle> v,
    const HostHandle* mask, Arg<HostHandle> out, Arg<HostHandle> lse,
    const AttentionOptions& options) {
  const DType dtype = q.get()->dtype();
  if (cpu::is_half(dtype)) {
    const cpu::OptionalOperand m(mask, cpu::widened);
    auto [gq, gk, gv] =
        float_attention_backward(cpu::widened(g), cpu::widened(q), cpu::widened(k), cpu::widened(v),
                                 m.get(), cpu::widened(out), lse, options);
    return {cpu::narrowed(std::move(gq), dtype), cpu::narrowed(std::move(gk), dtype),
            cpu::narrowed(std::move(gv), dtype)};
  }
  const HostHandle gs = cpu::with_adjacent_rows(g.get());
  const HostHandle qs = cpu::with_adjacent_rows(q.get());
  const HostHandle ks = cpu::with_adjacent_rows(k.get());
  const HostHandle vs = cpu::with_adjacent_rows(v.get());
  const HostHandle os = cpu::with_adjacent_rows(out.get());
  const HostHandle ls = cpu::contiguous(lse.get());
  HostHandle gq = zero_heads(qs->shape(), dtype, qs->device());
  HostHandle gk = zero_heads(ks->shape(), dtype, qs->device());
  HostHandle gv = zero_heads(vs->shape(), dtype, qs->device());
  const auto run = [&]<class T>(T) {
    if (qs->shape()[0] * qs->shape()[1] * qs->shape()[2] * ks->shape()[2] == 0) return;
    Backward<T>(*gs, *qs, *ks, *vs, mask, *os, ls->data_as<const T>(), *gq, *gk, *gv, options)
        .run();
  };
  if (dtype == DType::f64) {
    run(double());
  } else {
    run(float());
  }
  return {std::move(gq), std::move(gk), std::move(gv)};
}

}  // namespace kiln
