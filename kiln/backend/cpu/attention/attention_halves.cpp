#include "kiln/backend/cpu/attention/attention_halves.h"

#include <cmath>
#include <limits>

#include "kiln/backend/cpu/attention/attention.h"
#include "kiln/backend/cpu/matmul/gemm_words.h"
#include "kiln/backend/cpu/matmul/half_vector_kernels.h"
#include "kiln/backend/cpu/matmul/prefetch.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/half.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Queries of a panel: tiles begin with one.
constexpr int64_t kPanel = 8;
static_assert(kCutQueries % kPanel == 0 && kKeys % kWordColumns == 0);

template <class Half>
struct Operands {
  Operands(const HostTensor& q_, const HostTensor& k_, const HostTensor& v_,
           const HostHandle* mask_, const HostTensor& out_, const HostTensor& lse_,
           const AttentionOptions& options_)
      : sizes(q_, k_, v_),
        q(q_),
        k(k_),
        v(v_),
        out(out_),
        lse(lse_.data_as<float>()),
        mask(mask_, Shape{sizes.batch, sizes.heads, sizes.queries, sizes.keys}),
        options(options_) {}

  AttentionSizes<float> sizes;
  HeadRows<const Half> q, k, v;
  HeadRows<Half> out;
  float* lse;
  AttentionMask<float> mask;
  const AttentionOptions& options;
};

// What an online softmax carries along of some queries.
struct Statistics {
  explicit Statistics(int64_t rows) {
    std::fill_n(most, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(sums, rows, 0.0f);
  }
  // The logsumexp of each, and in `sums` what results are to be multiplied with.
  void finish(int64_t rows, float* lse) {
    for (int64_t r = 0; r < rows; ++r) {
      lse[r] = most[r] + std::log(sums[r]);
      sums[r] = sums[r] == 0.0f ? 0.0f : 1.0f / sums[r];
    }
  }
  float most[kPackedFor], sums[kPackedFor], factors[kQueries];
};

// Masks, softmax and dropout of a tile of scores.
template <class Half>
void weigh(const Operands<Half>& o, const TilePlace& at, int64_t row, Statistics& s, float* tile) {
  mask_tile(at, o.mask, o.options.causal, tile);
  attention_kernels<float>().online_softmax(tile, kTileStep, at.rows, at.columns, s.most + row,
                                            s.sums + row, s.factors);
  if (o.options.dropout != 0.0) drop_tile(at, o.sizes, o.options, tile);
}

// A few queries of one head: products of vectors and matrices, limited by reading those.
template <class Half>
void attend_few(const Operands<Half>& o, int64_t n, int64_t h) {
  const AttentionSizes<float>& sizes = o.sizes;
  const AttentionKernels<float>& kernels = attention_kernels<float>();
  const HalfVectorKernels<Half>& products = half_vector_kernels<Half>();
  const int64_t g = h / sizes.group(), rows = sizes.queries;
  const Scratch<float> q(rows * sizes.width), out(rows * sizes.values), sum(sizes.values);
  const Scratch<float> tile(rows * kTileStep);
  Statistics statistics(rows);
  for (int64_t r = 0; r < rows; ++r) {
    const Half* from = o.q.at(n, h, r);
    for (int64_t i = 0; i < sizes.width; ++i) {
      q[r * sizes.width + i] = static_cast<float>(from[i]) * static_cast<float>(o.options.scale);
    }
  }
  std::fill_n(out.get(), rows * sizes.values, 0.0f);
  const bool far = is_far<Half>(sizes.batch * sizes.key_heads * sizes.keys * sizes.width);
  for (int64_t key = 0; key < sizes.keys; key += kKeys) {
    if (o.options.causal && key >= rows) break;
    TilePlace at{n, h, 0, key, rows, std::min(kKeys, sizes.keys - key)};
    if (o.options.causal) at.columns = std::min(at.columns, rows - key);
    for (int64_t r = 0; r < rows; ++r) {
      products.dots(q.get() + r * sizes.width, o.k.at(n, g, key), o.k.row, at.columns, sizes.width,
                    tile.get() + r * kTileStep, r == 0 && far);
    }
    weigh(o, at, 0, statistics, tile.get());
    if (key != 0) {
      kernels.scale_rows(out.get(), sizes.values, rows, sizes.values, statistics.factors);
    }
    for (int64_t r = 0; r < rows; ++r) {
      products.weighted_sum(tile.get() + r * kTileStep, o.v.at(n, g, key), o.v.row, at.columns,
                            sizes.values, sum.get(), r == 0 && far);
      kernels.add(out.get() + r * sizes.values, sum.get(), sizes.values);
    }
  }
  statistics.finish(rows, o.lse + (n * sizes.heads + h) * sizes.queries);
  for (int64_t r = 0; r < rows; ++r) {
    Half* to = o.out.at(n, h, r);
    for (int64_t i = 0; i < sizes.values; ++i) {
      to[i] = Half(out[r * sizes.values + i] * statistics.sums[r]);
    }
  }
}

// The queries [first, last) of a head, by products of words (Note [Tiles of attention]).
class WordBlock {
 public:
  WordBlock(const Operands<bfloat16>& o, int64_t n, int64_t h, int64_t first, int64_t last)
      : o_(o),
        n_(n),
        h_(h),
        first_(first),
        last_(last),
        width_(words_of(o.sizes.width)),
        out_row_(round_up(o.sizes.values, kWordColumns)),
        queries_(round_up(last - first, kPanel) * width_ + 16),
        keys_(kKeys * width_ + 16),
        values_(out_row_ * (kKeys / 2)),
        tile_(kQueries * kTileStep),
        narrow_(kPanel * kTileStep),
        weights_(kPanel * (kKeys / 2) + 16),
        out_(round_up(last - first, kPanel) * out_row_) {}

  void run() {
    const AttentionSizes<float>& sizes = o_.sizes;
    const int64_t rows = last_ - first_;
    Statistics statistics(rows);
    for (int64_t r = 0; r < rows; r += kPanel) {
      pack_words(std::min(kPanel, rows - r), sizes.width, bits_of(o_.q.at(n_, h_, first_ + r)),
                 o_.q.row, 1, queries_.get() + r * width_, kPanel);
    }
    for (int64_t key = 0; key < sizes.keys; key += kKeys) {
      if (o_.options.causal && key >= last_) break;
      const int64_t columns = std::min(kKeys, sizes.keys - key);
      pack_keys(key, columns);
      TilePlace at{};
      for (int64_t query = first_; query < last_; query += at.rows) {
        at = tile_place(n_, h_, query, last_, key, columns, o_.options.causal);
        if (at.columns <= 0) continue;
        const int64_t row = query - first_;
        score(at);
        weigh(o_, at, row, statistics, tile_.get());
        if (key != 0) {
          attention_kernels<float>().scale_rows(out_.get() + row * out_row_, out_row_, at.rows,
                                                sizes.values, statistics.factors);
        }
        add_values(at, words_of(columns));
      }
    }
    statistics.finish(rows, o_.lse + (n_ * sizes.heads + h_) * sizes.queries + first_);
    finish(rows, statistics.sums);
  }

 private:
  static int64_t words_of(int64_t k) { return (k + 1) / 2; }
  static const Bf16Kernels& kernels() { return *bf16_kernels(); }

  // The keys as columns over the width, and the values as columns over the keys.
  void pack_keys(int64_t key, int64_t columns) {
    const AttentionSizes<float>& sizes = o_.sizes;
    const int64_t g = h_ / sizes.group();
    for (int64_t c = 0; c < columns; c += kWordColumns) {
      pack_words(std::min(kWordColumns, columns - c), sizes.width, bits_of(o_.k.at(n_, g, key + c)),
                 o_.k.row, 1, keys_.get() + c * width_, kWordColumns);
    }
    const int64_t words = words_of(columns);
    for (int64_t c = 0; c < sizes.values; c += kWordColumns) {
      const int64_t count = std::min(kWordColumns, sizes.values - c);
      for (int64_t q = 0; q < words; ++q) {
        const bfloat16* even = o_.v.at(n_, g, key + 2 * q) + c;
        kernels().join(bits_of(even), 2 * q + 1 < columns ? bits_of(even + o_.v.row) : nullptr,
                       count, values_.get() + c * words + q * kWordColumns);
      }
    }
  }

  void score(const TilePlace& at) {
    WordTile<float> tile = tile_of(width_);
    for (int64_t r = 0; r < at.rows; r += kPanel) {
      tile.rows = static_cast<int>(std::min(kPanel, at.rows - r));
      tile.a = queries_.get() + (at.query - first_ + r) * width_;
      for (int64_t c = 0; c < at.columns; c += kWordColumns) {
        tile.b = keys_.get() + c * width_;
        kernels().tile(tile);
        kernels().store_float(tile, static_cast<float>(o_.options.scale), false,
                              tile_.get() + r * kTileStep + c, kTileStep);
      }
    }
  }

  // `words`: of a panel of values.
  void add_values(const TilePlace& at, int64_t words) {
    WordTile<float> tile = tile_of(words_of(at.columns));
    tile.a = weights_.get();
    for (int64_t r = 0; r < at.rows; r += kPanel) {
      tile.rows = static_cast<int>(std::min(kPanel, at.rows - r));
      for (int64_t i = 0; i < tile.rows; ++i) {
        kernels().narrow(tile_.get() + (r + i) * kTileStep, at.columns,
                         narrow_.get() + i * kTileStep);
      }
      pack_words(tile.rows, at.columns, narrow_.get(), kTileStep, 1, weights_.get(), kPanel);
      float* const out = out_.get() + (at.query - first_ + r) * out_row_;
      for (int64_t c = 0; c < o_.sizes.values; c += kWordColumns) {
        tile.b = values_.get() + c * words;
        kernels().tile(tile);
        kernels().store_float(tile, 1.0f, at.key != 0, out + c, out_row_);
      }
    }
  }

  void finish(int64_t rows, const float* factors) {
    const int64_t count = o_.sizes.values;
    if (o_.sizes.keys == 0) std::fill_n(out_.get(), rows * out_row_, 0.0f);
    attention_kernels<float>().scale_rows(out_.get(), out_row_, rows, count, factors);
    for (int64_t r = 0; r < rows; ++r) {
      kernels().narrow(out_.get() + r * out_row_, count, &o_.out.at(n_, h_, first_ + r)->bits);
    }
  }

  WordTile<float> tile_of(int64_t k) {
    WordTile<float> tile;
    tile.k = k;
    tile.a_step = kPanel;
    tile.sums = sums_;
    return tile;
  }

  const Operands<bfloat16>& o_;
  int64_t n_, h_, first_, last_;
  int64_t width_, out_row_;
  Scratch<uint32_t> queries_, keys_, values_;
  Scratch<float> tile_;
  Scratch<uint16_t> narrow_;
  Scratch<uint32_t> weights_;
  Scratch<float> out_;
  alignas(64) float sums_[kPanel * kWordColumns];
};

template <class Half>
void attend(const Operands<Half>& o) {
  const AttentionSizes<float>& sizes = o.sizes;
  const bool few = sizes.queries < kFewQueries;
  const int64_t blocks = few ? 1 : ceil_div(sizes.queries, kPackedFor);
  parallel_for(sizes.batch * sizes.heads * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / blocks / sizes.heads, h = i / blocks % sizes.heads;
      if (few) {
        attend_few(o, n, h);
      } else if constexpr (std::is_same_v<Half, bfloat16>) {
        const int64_t first = i % blocks * kPackedFor;
        WordBlock(o, n, h, first, std::min(first + kPackedFor, sizes.queries)).run();
      }
    }
  });
}

}  // namespace

bool attends_halves(DType dtype, int64_t queries) {
  return queries < kFewQueries || (dtype == DType::bf16 && bf16_kernels() != nullptr);
}

void attend_halves(const HostTensor& q, const HostTensor& k, const HostTensor& v,
                   const HostHandle* mask, const HostTensor& out, const HostTensor& lse,
                   const AttentionOptions& options) {
  if (out.shape()[0] * out.shape()[1] * out.shape()[2] == 0) return;
  if (q.dtype() == DType::bf16) {
    attend(Operands<bfloat16>(q, k, v, mask, out, lse, options));
  } else {
    attend(Operands<float16>(q, k, v, mask, out, lse, options));
  }
}

}  // namespace kiln::cpu
