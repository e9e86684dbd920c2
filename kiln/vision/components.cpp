#include "kiln/vision/components.h"

#include <algorithm>
#include <vector>

#include "kiln/core/error.h"
#include "kiln/core/parallel.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/vision/border.h"

namespace kiln::vision {

namespace {

// Sets of provisional labels; a set's name is its smallest member, which is that of its first
// pixel.
class Sets {
 public:
  int64_t add() {
    parent_.push_back(static_cast<int64_t>(parent_.size()));
    return parent_.back();
  }
  int64_t find(int64_t i) {
    while (parent_[static_cast<size_t>(i)] != i) {
      int64_t& up = parent_[static_cast<size_t>(i)];
      up = parent_[static_cast<size_t>(up)];
      i = up;
    }
    return i;
  }
  int64_t unite(int64_t a, int64_t b) {
    a = find(a);
    b = find(b);
    if (a > b) std::swap(a, b);
    return parent_[static_cast<size_t>(b)] = a;
  }
  size_t size() const { return parent_.size(); }

 private:
  std::vector<int64_t> parent_;
};

// Labels one image in two passes (Rosenfeld and Pfaltz, 1966) -> how many components there are.
int64_t label(const bool* x, int64_t* out, int64_t rows, int64_t columns, bool corners) {
  Sets sets;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t i = r * columns + c;
      if (!x[i]) {
        out[i] = -1;
        continue;
      }
      int64_t found = -1;
      const auto join = [&](bool inside, int64_t other) {
        if (!inside || !x[other]) return;
        found = found < 0 ? out[other] : sets.unite(found, out[other]);
      };
      join(c > 0, i - 1);
      join(r > 0, i - columns);
      if (corners) {
        join(r > 0 && c > 0, i - columns - 1);
        join(r > 0 && c + 1 < columns, i - columns + 1);
      }
      out[i] = found < 0 ? sets.add() : found;
    }
  }
  std::vector<int64_t> number(sets.size(), 0);
  int64_t count = 0;
  for (int64_t i = 0; i < rows * columns; ++i) {
    if (out[i] < 0) {
      out[i] = 0;
      continue;
    }
    int64_t& n = number[static_cast<size_t>(sets.find(out[i]))];
    if (n == 0) n = ++count;
    out[i] = n;
  }
  return count;
}

struct Labelled {
  Tensor labels;
  std::vector<int64_t> counts;  // of each image
};

Labelled labelled(const char* op, const Tensor& x, int64_t connectivity) {
  detail::require_image(op, x);
  if (x.is_complex()) throw_error<DTypeError>(op, ": expected real numbers or bools");
  if (connectivity != 4 && connectivity != 8) {
    throw_error<ValueError>(op, ": connectivity must be 4 or 8; got ", connectivity);
  }
  const Tensor set = x.detach().ne(0).to(Device(kCpu)).contiguous();
  const int64_t rows = x.size(-2), columns = x.size(-1), plane = rows * columns;
  Labelled out{empty(x.shape(), {.dtype = i64}),
               std::vector<int64_t>(static_cast<size_t>(x.numel() / plane))};
  const bool* from = set.data_ptr<bool>();
  auto* into = out.labels.data_ptr<int64_t>();
  parallel_for(static_cast<int64_t>(out.counts.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out.counts[static_cast<size_t>(i)] =
          label(from + i * plane, into + i * plane, rows, columns, connectivity == 8);
    }
  });
  return out;
}

}  // namespace

Tensor connected_components(const Tensor& x, int64_t connectivity) {
  return labelled("connected_components", x, connectivity).labels.to(x.device());
}

ComponentStats connected_components_with_stats(const Tensor& x, int64_t connectivity) {
  const Labelled found = labelled("connected_components_with_stats", x, connectivity);
  const int64_t rows = x.size(-2), columns = x.size(-1);
  int64_t most = 0;
  for (const int64_t count : found.counts) most = std::max(most, count);
  Shape batch;
  for (int i = 0; i + 2 < x.dim(); ++i) batch.push_back(x.shape()[i]);
  Shape each = batch;
  each.push_back(most + 1);
  Shape pairs = each;
  pairs.push_back(2);
  ComponentStats out;
  out.labels = found.labels.to(x.device());
  out.count = from_vector(found.counts, batch);
  for (Tensor* t : {&out.area, &out.left, &out.top, &out.right, &out.bottom}) {
    *t = zeros(each, {.dtype = i64});
  }
  out.centroid = zeros(pairs, {.dtype = f64});
  const auto* label = found.labels.data_ptr<int64_t>();
  for (int64_t image = 0; image < static_cast<int64_t>(found.counts.size()); ++image) {
    const int64_t base = image * (most + 1);
    auto* area = out.area.data_ptr<int64_t>() + base;
    auto* left = out.left.data_ptr<int64_t>() + base;
    auto* top = out.top.data_ptr<int64_t>() + base;
    auto* right = out.right.data_ptr<int64_t>() + base;
    auto* bottom = out.bottom.data_ptr<int64_t>() + base;
    auto* centroid = out.centroid.data_ptr<double>() + 2 * base;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t k = *label++;
        left[k] = area[k] == 0 ? c : std::min(left[k], c);
        top[k] = area[k] == 0 ? r : top[k];
        right[k] = std::max(right[k], c);
        bottom[k] = r;
        centroid[2 * k] += static_cast<double>(c);
        centroid[2 * k + 1] += static_cast<double>(r);
        ++area[k];
      }
    }
    for (int64_t k = 0; k <= most; ++k) {
      const auto pixels = static_cast<double>(std::max<int64_t>(area[k], 1));
      centroid[2 * k] /= pixels;
      centroid[2 * k + 1] /= pixels;
    }
  }
  return out;
}

}  // namespace kiln::vision
