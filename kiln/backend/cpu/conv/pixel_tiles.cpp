#include "kiln/backend/cpu/conv/pixel_tiles.h"

#include <algorithm>
#include <memory>

#include "kiln/backend/cpu/rounding.h"

namespace kiln::cpu {
namespace {

// Rows of a tile below which it takes as long as with that many, since its sums wait for one
// another: of one vector, and of two.
constexpr int64_t kLeastRows = 9, kLeastRowsOfTwo = 5;

// What a thread keeps, about.
constexpr size_t kMostKept = 16, kMostBytes = 1024 * 1024;

}  // namespace

std::vector<PatchTile> even_tiles(int64_t rows, int64_t most, const PatchProduct* begin,
                                  const PatchProduct* end) {
  const int64_t count = ceil_div(rows, most);
  std::vector<PatchTile> tiles;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = i * rows / count;
    tiles.push_back({first, (i + 1) * rows / count - first, begin, end});
  }
  return tiles;
}

PixelTiles::TapsAlong::TapsAlong(const TapsOfDim& along) {
  for (int64_t o = 0; o < along.out; ++o) {
    taps.push_back(along.taps(o));
    kind.push_back(o == 0 ? 0 : kind.back() + (taps.back() != taps[taps.size() - 2] ? 1 : 0));
  }
}

PixelTiles::PixelTiles(const ConvSizes& convolution, const PatchCopy& copy, const TileSizes& sizes,
                       bool skips)
    : s_(convolution),
      copy_(copy),
      sizes_(sizes),
      skips_(skips),
      depths_(TapsOfDims(convolution).depths),
      rows_(TapsOfDims(convolution).rows),
      along_(TapsOfDims(convolution).columns) {}

PixelTiles& PixelTiles::of(const ConvSizes& convolution, const PatchCopy& copy,
                           const TileSizes& sizes, bool skips) {
  thread_local std::vector<std::unique_ptr<PixelTiles>> kept;  // the last that was used is last
  for (size_t i = kept.size(); i-- > 0;) {
    const PixelTiles& tiles = *kept[i];
    if (tiles.s_ == convolution && tiles.copy_ == copy && tiles.sizes_ == sizes &&
        tiles.skips_ == skips) {
      std::rotate(kept.begin() + static_cast<std::ptrdiff_t>(i),
                  kept.begin() + static_cast<std::ptrdiff_t>(i) + 1, kept.end());
      return *kept.back();
    }
  }
  size_t bytes = 0;
  for (const auto& tiles : kept) bytes += tiles->bytes();
  size_t dropped = 0;
  while (dropped < kept.size() && (kept.size() - dropped >= kMostKept || bytes > kMostBytes)) {
    bytes -= kept[dropped++]->bytes();
  }
  kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(dropped));
  kept.push_back(std::make_unique<PixelTiles>(convolution, copy, sizes, skips));
  return *kept.back();
}

size_t PixelTiles::bytes() const {
  size_t products = 0;
  for (const Products& known : known_) products += known.list.size();
  return products * sizeof(PatchProduct) + pixels_.size() * (sizeof(Pixel) + 2 * sizeof(int64_t)) +
         tiles_.size() * (sizeof(PatchTile) + sizeof(Window));
}

PixelTiles::Window PixelTiles::united(Window a, const Window& b) {
  for (size_t d = 0; d < 3; ++d) {
    a.of[d].first = std::min(a.of[d].first, b.of[d].first);
    a.of[d].second = std::max(a.of[d].second, b.of[d].second);
  }
  return a;
}

int64_t PixelTiles::products(const Window& w) {
  int64_t count = 1;
  for (const auto& [begin, end] : w.of) count *= std::max<int64_t>(end - begin, 0);
  return count;
}

double PixelTiles::cost(const Window& w, int64_t rows) const {
  const int64_t least = s_.out <= sizes_.columns / 2 ? kLeastRows : kLeastRowsOfTwo;
  // (Beginning and ending a tile costs about as much as two products.)
  return static_cast<double>(products(w) * s_.in / std::max<int64_t>(s_.depths.kernel, 1) + 2) *
         static_cast<double>(std::max(rows, least));
}

PixelTiles::Window PixelTiles::window_of(int64_t pixel) const {
  const int64_t width = s_.out_width, of_image = block_.rows * width;
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  return {{depths_.taps[at((block_.image + pixel / of_image) % s_.depths.out)],
           rows_.taps[at(block_.top + pixel / width % block_.rows)],
           along_.taps[at(pixel % width)]}};
}

void PixelTiles::place(const PixelBlock& block) {
  // Images lie at the same places in the copy; only what is left out depends on where they are.
  const bool same_depth =
      !s_.is_volume() || block.image % s_.depths.out == block_.image % s_.depths.out;
  const bool same_taps = !skips_ || (same_depth && block.top == block_.top);
  if (placed_ && same_taps && block.images == block_.images && block.rows == block_.rows) {
    block_ = block;
    return;
  }
  block_ = block;
  placed_ = false;
  const PatchGeometry& g = s_.geometry;
  const auto count = static_cast<size_t>(block.images * block.rows * s_.out_width);
  offsets_.clear();
  for (int64_t i = 0; i < block.images; ++i) {
    for (int64_t r = 0; r < block.rows; ++r) {
      for (int64_t c = 0; c < s_.out_width; ++c) {
        offsets_.push_back(i * copy_.image + r * g.stride[0] * copy_.row + c * g.stride[1]);
      }
    }
  }
  tiles_.clear();
  windows_.clear();
  channels_ = 0;
  if (skips_) {
    pixels_.resize(count);
    results_.resize(count);
    sort();
    fill_tiles();
  } else {
    add_tiles(0, static_cast<int64_t>(count),
              {{{0, std::max<int64_t>(s_.depths.kernel, 1)}, {0, g.kernel[0]}, {0, g.kernel[1]}}});
  }
  placed_ = true;
}

void PixelTiles::sort() {
  const int64_t width = s_.out_width, of_image = block_.rows * width;
  for (int64_t i = 0; i < static_cast<int64_t>(pixels_.size()); ++i) {
    const auto at = [](int64_t n) { return static_cast<size_t>(n); };
    const uint64_t depth = depths_.kind[at((block_.image + i / of_image) % s_.depths.out)];
    const uint64_t row = rows_.kind[at(block_.top + i / width % block_.rows)];
    pixels_[at(i)] = {(depth << 42) | (row << 21) | along_.kind[at(i % width)], i};
  }
  std::sort(pixels_.begin(), pixels_.end(), [](const Pixel& a, const Pixel& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.number < b.number;
  });
  const std::vector<int64_t> in_order = offsets_;
  for (size_t i = 0; i < pixels_.size(); ++i) {
    offsets_[i] = in_order[static_cast<size_t>(pixels_[i].number)];
    results_[i] = pixels_[i].number * sizes_.results;
  }
}

// Pixels of one window are shared out evenly; few of them join their neighbours where that takes
// less than a tile of their own.
void PixelTiles::fill_tiles() {
  const auto count = static_cast<int64_t>(pixels_.size());
  const auto pixel = [&](int64_t i) { return pixels_[static_cast<size_t>(i)]; };
  int64_t first = 0, rows = 0;  // of the tile that is being filled
  Window window{};
  const auto end_tile = [&] {
    if (rows > 0) add_tiles(first, rows, window);
    first += rows;
    rows = 0;
  };
  for (int64_t begin = 0, end = 0; begin < count; begin = end) {
    while (end < count && pixel(end).kind == pixel(begin).kind) ++end;
    const Window seen = window_of(pixel(begin).number);
    const int64_t n = end - begin;
    if (rows > 0 && rows + n <= sizes_.most_rows) {
      const Window both = united(window, seen);
      if (cost(both, rows + n) < cost(window, rows) + cost(seen, n)) {
        window = both;
        rows += n;
        continue;
      }
    }
    end_tile();
    window = seen;
    rows = n;
    if (n >= sizes_.most_rows) end_tile();
  }
  end_tile();
}

void PixelTiles::add_tiles(int64_t first, int64_t rows, const Window& window) {
  for (PatchTile tile : even_tiles(rows, sizes_.most_rows, nullptr, nullptr)) {
    tile.first += first;
    tiles_.push_back(tile);
    windows_.push_back(window);
  }
}

void PixelTiles::multiply(int64_t channels) {
  if (channels == channels_) return;
  channels_ = 0;
  // So many that their lists stay in the second-level cache.
  constexpr size_t kMostKnown = 32;
  if (known_.size() > kMostKnown) known_.clear();
  // (Lists do not move when others are added.)
  for (size_t i = 0; i < tiles_.size(); ++i) {
    const std::vector<PatchProduct>& list = products_of(windows_[i], channels).list;
    tiles_[i].begin = list.data();
    tiles_[i].end = list.data() + list.size();
  }
  channels_ = channels;
}

const PixelTiles::Products& PixelTiles::products_of(const Window& w, int64_t channels) {
  for (auto known = known_.rbegin(); known != known_.rend(); ++known) {
    if (known->channels == channels && known->window == w) return *known;
  }
  const PatchGeometry& g = s_.geometry;
  Products made{w, channels, {}};
  const int64_t depths = std::max<int64_t>(s_.depths.kernel, 1);
  made.list.reserve(static_cast<size_t>(products(w) * (channels / depths)));
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t depth = c % depths;
    if (depth < w.of[0].first || depth >= w.of[0].second) continue;
    for (int64_t r = w.of[1].first; r < w.of[1].second; ++r) {
      const int64_t row = (c * copy_.rows + r * g.dilation[0]) * copy_.row;
      const int64_t tap = (c * g.kernel[0] + r) * g.kernel[1];
      for (int64_t t = w.of[2].first; t < w.of[2].second; ++t) {
        made.list.push_back({row + t * g.dilation[1], (tap + t) * sizes_.columns});
      }
    }
  }
  return known_.emplace_back(std::move(made));
}

}  // namespace kiln::cpu
