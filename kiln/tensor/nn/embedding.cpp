#include "kiln/tensor/nn/embedding.h"

#include <algorithm>
#include <limits>

#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/host.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/value_check.h"

namespace kiln::functional {

using namespace detail;

namespace {

int64_t checked_padding(const char* op, int64_t padding_idx, int64_t rows) {
  if (padding_idx < -rows || padding_idx >= rows) {
    throw_error<ValueError>(op, ": padding_idx is no row; got ", padding_idx, "; expected ", -rows,
                            " <= padding_idx < ", rows);
  }
  return padding_idx < 0 ? padding_idx + rows : padding_idx;
}

void require_table(const char* op, const Tensor& weight) {
  require_floating(op, weight);
  if (weight.dim() != 2) {
    throw_error<ShapeError>(op, ": expected a weight [n, d]; got ", weight.shape());
  }
}

// The flat index as i64, all of it in [0, rows).
Tensor checked_index(const char* op, const Tensor& index, const Tensor& weight) {
  const Tensor flat = wrap(index_value(op, index, value_of(op, weight))).reshape({-1});
  if (flat.numel() == 0) return flat;
  check_values(op, flat, [op, rows = weight.size(0)](const Tensor& i) {
    const int64_t low = i.min().item<int64_t>(), high = i.max().item<int64_t>();
    if (low < 0 || high >= rows) {
      throw_error<IndexError>(op, ": index out of range; got ", low < 0 ? low : high,
                              "; expected 0 <= index < ", rows);
    }
  });
  return flat;
}

// Scales down the rows named by the index, in place.
void renormalize(Tensor weight, const Tensor& flat, double max_norm, double norm_type) {
  if (flat.numel() == 0) return;
  const autodiff::RecordingGuard<Dispatch> no_grad(false);
  const Tensor used = weight.index_select(0, flat);
  const Tensor norm = p_norm(used, norm_type, {1}, true);
  const Tensor scale = where(norm.gt(max_norm), max_norm / (norm + 1e-7), ones_like(norm));
  const Tensor all = ones({weight.size(0), 1}, {weight.dtype(), weight.device()});
  weight.mul_(all.scatter(0, flat.unsqueeze(1), scale));
}

// x with `part` of its gradient: part [n, 1].
Tensor with_gradient_scaled(const Tensor& x, const Tensor& part) {
  if (!x.requires_grad()) return x;
  const Tensor fixed = x.detach();
  return fixed + (x - fixed) * part;
}

// The rows of a flat index, with a gradient as the options say.
Tensor rows_of(const Tensor& flat, const Tensor& weight, bool scale_grad_by_freq) {
  Tensor rows = weight.index_select(0, flat);
  if (!scale_grad_by_freq || !rows.requires_grad()) return rows;
  const TensorOptions options{weight.dtype(), weight.device()};
  const Tensor counts =
      zeros({weight.size(0)}, options).index_add(0, flat, ones({flat.numel()}, options));
  return with_gradient_scaled(rows, kiln::reciprocal(counts.index_select(0, flat)).unsqueeze(1));
}

// Without options.
Tensor rows_by_index(const Tensor& index, const Tensor& weight) {
  if (has_complex(weight) && weight.dim() == 2) {
    Shape shape = impl_of("embedding", index).shape();
    shape.push_back(weight.size(1));
    const Tensor rows = parts_of(weight).reshape({weight.size(0), 2 * weight.size(1)});
    return from_parts(rows_by_index(index, rows).reshape(parts_shape(shape)));
  }
  const Value& w = value_of("embedding", weight);
  const Kind kind = kind_of_value(w);
  if (kind == Kind::quantized) {
    throw_wrong_dtype("embedding", dtype_of_value(w), "a floating point tensor");
  }
  if (shape_of(w).rank() != 2) {
    throw_error<ShapeError>("embedding: expected a weight [n, d]; got ", shape_of(w));
  }
  const ErasedTensor rows = index_value("embedding", index, w);
  Shape out = index.shape();
  if (kind != Kind::floating) {  // a table to look up
    out.push_back(shape_of(w)[1]);
    return naming<IndexError>("embedding", [&] {
      return weight.index_select(0, index.reshape({index.numel()})).reshape(out);
    });
  }
  const Value picked = naming<IndexError>("embedding", [&] {
    return AD::float_index_select(w, 0, Dispatch::int_reshape(rows, Shape{index.numel()}));
  });
  out.push_back(shape_of(w)[1]);
  return wrap(AD::float_reshape(picked, out));
}

}  // namespace

Tensor embedding(const Tensor& index, const Tensor& weight, std::optional<int64_t> padding_idx,
                 std::optional<double> max_norm, double norm_type, bool scale_grad_by_freq) {
  constexpr const char* op = "embedding";
  const bool plain = !padding_idx && !max_norm && !scale_grad_by_freq;
  if (plain || (!max_norm && !is_floating_point(weight.dtype()))) {
    return rows_by_index(index, weight);
  }
  require_table(op, weight);
  const int64_t padding = padding_idx ? checked_padding(op, *padding_idx, weight.size(0)) : 0;
  const Tensor flat = checked_index(op, index, weight);
  if (max_norm) renormalize(weight, flat, *max_norm, norm_type);
  Tensor rows = rows_of(flat, weight, scale_grad_by_freq);
  if (padding_idx && rows.requires_grad()) {
    rows = where(flat.eq(padding).unsqueeze(1), rows.detach(), rows);
  }
  Shape out = index.shape();
  out.push_back(weight.size(1));
  return rows.reshape(out);
}

namespace {

// Which entries of a flat index belong to which bag.
struct Bags {
  std::vector<int64_t> starts;  // and the end
  int64_t count() const { return static_cast<int64_t>(starts.size()) - 1; }
  int64_t start(int64_t bag) const { return starts[static_cast<size_t>(bag)]; }
  int64_t length(int64_t bag) const { return start(bag + 1) - start(bag); }
};

Bags bags_of(const Tensor& index, const Tensor& offsets, bool include_last_offset) {
  constexpr const char* op = "embedding_bag";
  Bags bags;
  if (index.dim() == 2) {
    if (offsets.defined()) {
      throw_error<ValueError>(op, ": an index of 2 dims has no offsets; got offsets ",
                              offsets.shape());
    }
    for (int64_t i = 0; i <= index.size(0); ++i) bags.starts.push_back(i * index.size(1));
    return bags;
  }
  if (index.dim() != 1) {
    throw_error<ValueError>(op, ": expected an index of 1 or 2 dims; got ", index.shape());
  }
  if (!offsets.defined() || offsets.dim() != 1) {
    throw_error<ValueError>(op, ": an index of 1 dim needs offsets [bags]");
  }
  static_cast<void>(index_value(op, offsets));
  bags.starts = host_numbers(offsets);
  if (include_last_offset && bags.starts.empty()) {
    throw_error<ValueError>(op, ": include_last_offset needs at least one offset; got none");
  }
  if (!include_last_offset) bags.starts.push_back(index.numel());
  bool ordered = bags.starts.front() == 0;
  for (size_t i = 1; i < bags.starts.size(); ++i) {
    ordered = ordered && bags.starts[i] >= bags.starts[i - 1];
  }
  if (!ordered || bags.starts.back() > index.numel()) {
    throw_error<ValueError>(op, ": offsets must start at 0 and rise to at most the length of the ",
                            "index, ", index.numel());
  }
  return bags;
}

// [bags, longest, d] of the rows, with -inf where a bag is shorter; and which bags are not empty.
Tensor bag_maxima(const Tensor& rows, const Bags& bags, const std::vector<int64_t>& skipped) {
  int64_t longest = 0;
  for (int64_t b = 0; b < bags.count(); ++b) longest = std::max(longest, bags.length(b));
  const Shape out{bags.count(), rows.size(1)};
  if (longest == 0 || rows.size(0) == 0) return zeros(out, {rows.dtype(), rows.device()});
  std::vector<int64_t> places;
  std::vector<int64_t> missing, empty;
  for (int64_t b = 0; b < bags.count(); ++b) {
    bool any = false;
    for (int64_t j = 0; j < longest; ++j) {
      const int64_t at = bags.start(b) + j;
      const bool there = j < bags.length(b) && skipped[static_cast<size_t>(at)] == 0;
      places.push_back(there ? at : 0);
      missing.push_back(!there);
      any = any || there;
    }
    empty.push_back(!any);
  }
  const Tensor mask = beside(rows, missing).ne(0).reshape({bags.count(), longest, 1});
  const Tensor all = rows.index_select(0, beside(rows, places))
                         .reshape({bags.count(), longest, rows.size(1)})
                         .masked_fill(mask, -std::numeric_limits<double>::infinity());
  const Tensor none = beside(rows, empty).ne(0).unsqueeze(1);
  return all.max(1).first.masked_fill(none, 0.0);
}

// The sums of bags of rows of a weight, or their means.
Tensor sums_of_bags(const Tensor& weight, const Tensor& flat, const Bags& bags, bool mean) {
  constexpr const char* op = "embedding_bag";
  const Tensor starts = beside(weight, bags.starts);
  return wrap(AD::float_bag_sum(value_of(op, weight), value_of(op, flat).inner,
                                value_of(op, starts).inner, mean));
}

}  // namespace

Tensor embedding_bag(const Tensor& index, const Tensor& weight, const Tensor& offsets,
                     const EmbeddingBagOptions& options) {
  constexpr const char* op = "embedding_bag";
  require_table(op, weight);
  static_cast<void>(value_of(op, index));
  const Bags bags = bags_of(index, offsets, options.include_last_offset);
  const Tensor entries = wrap(index_value(op, index, value_of(op, weight))).reshape({-1});
  Tensor flat = entries.narrow(0, 0, bags.starts.back());
  if (options.max_norm)
    renormalize(weight, checked_index(op, flat, weight), *options.max_norm, options.norm_type);
  if (options.mode != BagMode::max && !options.scale_grad_by_freq && !options.padding_idx &&
      !options.per_sample_weights.defined()) {
    return sums_of_bags(weight, flat, bags, options.mode == BagMode::mean);
  }
  flat = checked_index(op, flat, weight);
  Tensor rows = rows_of(flat, weight, options.scale_grad_by_freq);
  if (options.per_sample_weights.defined()) {
    if (options.mode != BagMode::sum) {
      throw_error<NotImplementedError>(op, ": per_sample_weights work with mode 'sum' only");
    }
    require_alike(op, weight, options.per_sample_weights, "per_sample_weights");
    if (!(options.per_sample_weights.shape() == index.shape())) {
      throw_error<ShapeError>(op, ": per_sample_weights must have the index's shape; got ",
                              options.per_sample_weights.shape(), "; expected ", index.shape());
    }
    rows = rows * options.per_sample_weights.reshape({-1}).narrow(0, 0, flat.numel()).unsqueeze(1);
  }
  const DType dtype = weight.dtype();
  const DType wide = wide_dtype(dtype);
  if (index.dim() == 2 && !options.padding_idx && index.size(1) > 0) {  // bags of one size
    const Tensor all = rows.reshape({index.size(0), index.size(1), weight.size(1)});
    if (options.mode == BagMode::max) return all.max(1).first;
    const Tensor sum = all.to(wide).sum(1);
    const auto size = static_cast<double>(index.size(1));
    return (options.mode == BagMode::mean ? sum / size : sum).to(dtype);
  }
  std::vector<int64_t> skipped(static_cast<size_t>(flat.numel()), 0);
  if (options.padding_idx) {
    const int64_t row = checked_padding(op, *options.padding_idx, weight.size(0));
    const Tensor padding = flat.eq(row);
    skipped = host_numbers(padding.to(i64));
    rows = rows.masked_fill(padding.unsqueeze(1), 0.0);
  }
  if (options.mode == BagMode::max) return bag_maxima(rows, bags, skipped);
  std::vector<int64_t> owners;
  std::vector<double> sizes;
  for (int64_t b = 0; b < bags.count(); ++b) {
    double size = 0;
    for (int64_t i = bags.start(b); i < bags.start(b + 1); ++i) {
      owners.push_back(b);
      size += skipped[static_cast<size_t>(i)] == 0;
    }
    sizes.push_back(std::max(1.0, size));
  }
  const Tensor zero = zeros({bags.count(), weight.size(1)}, {wide, weight.device()});
  Tensor out = zero.index_add(0, beside(weight, owners), rows.to(wide));
  if (options.mode == BagMode::mean) {
    out = out / from_vector(sizes, {bags.count(), 1}, {wide, weight.device()});
  }
  return out.to(dtype);
}

}  // namespace kiln::functional
