#include "kiln/tensor/advanced_index.h"

#include "kiln/tensor/creation.h"
#include "kiln/tensor/grad_mode.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

namespace {

// An index split into the part that makes a view and the tensors that then gather from it.
struct Plan {
  std::vector<IndexItem> basic;
  struct Gathered {
    int dim;  // of the view
    Tensor index;
  };
  std::vector<Gathered> gathered;
};

bool is_mask(const Tensor& x) { return x.dtype() == bool_; }

// How many dims of x an entry takes.
int dims_of(const IndexEntry& entry) {
  if (const auto* item = std::get_if<IndexItem>(&entry)) {
    return item->type == IndexItem::Type::integer || item->type == IndexItem::Type::slice ? 1 : 0;
  }
  const Tensor& t = std::get<Tensor>(entry);
  return is_mask(t) ? t.dim() : 1;
}

bool is_ellipsis(const IndexEntry& entry) {
  const auto* item = std::get_if<IndexItem>(&entry);
  return item != nullptr && item->type == IndexItem::Type::ellipsis;
}

// Turns a mask into the positions where it holds, one tensor for each of its dims.
std::vector<Tensor> positions_of(const Tensor& mask, const Shape& shape, int first_dim) {
  for (int i = 0; i < mask.dim(); ++i) {
    if (mask.shape()[i] == shape[first_dim + i]) continue;
    throw_error<IndexError>("index: the mask's sizes must be the tensor's; got mask ", mask.shape(),
                            " at dim ", first_dim, " of ", shape);
  }
  return nonzero(mask).unbind(1);
}

Plan plan_of(const Tensor& x, std::span<const IndexEntry> entries) {
  int used = 0;
  int ellipses = 0;
  for (const IndexEntry& entry : entries) {
    used += dims_of(entry);
    ellipses += is_ellipsis(entry);
  }
  if (used > x.dim()) {
    throw_error<IndexError>("index: too many indices; got ", used, " for a tensor of ", x.dim(),
                            " dims");
  }
  if (ellipses > 1) throw_error<IndexError>("index: an index can have only one ellipsis");
  Plan plan;
  int dim = 0;       // of x
  int view_dim = 0;  // of what the basic part makes of it
  const auto gather = [&](Tensor index) {
    plan.basic.emplace_back(Slice());
    plan.gathered.push_back({view_dim++, std::move(index)});
    ++dim;
  };
  for (const IndexEntry& entry : entries) {
    if (const auto* t = std::get_if<Tensor>(&entry)) {
      if (is_mask(*t) && t->dim() == 0) {
        // A bool: a new dim of size 1 or 0.
        plan.basic.emplace_back(None);
        plan.gathered.push_back({view_dim++, arange(t->item<bool>() ? 1 : 0)});
      } else if (is_mask(*t)) {
        for (Tensor& positions : positions_of(*t, x.shape(), dim)) gather(std::move(positions));
      } else {
        gather(*t);
      }
      continue;
    }
    const IndexItem& item = std::get<IndexItem>(entry);
    switch (item.type) {
      case IndexItem::Type::integer:
        ++dim;
        break;
      case IndexItem::Type::slice:
        ++dim;
        ++view_dim;
        break;
      case IndexItem::Type::none:
        ++view_dim;
        break;
      case IndexItem::Type::ellipsis:
        for (int i = x.dim() - used; i > 0; --i, ++dim, ++view_dim) {
          plan.basic.emplace_back(Slice());
        }
        continue;
    }
    plan.basic.push_back(item);
  }
  return plan;
}

// The same indices, counted from the front, in range and i64.
Tensor checked_index(const Tensor& index, int64_t size, int dim) {
  if (!is_integral(index.dtype())) {
    throw_error<DTypeError>("index: a tensor used as an index must hold integers or bools; got ",
                            index.dtype());
  }
  const Tensor i = index.to(i64);
  if (i.numel() == 0) return i;
  const auto low = i.min().item<int64_t>();
  const auto high = i.max().item<int64_t>();
  if (low < -size || high >= size) {
    throw_error<IndexError>("index: index ", low < -size ? low : high, " is out of range for dim ",
                            dim, " of size ", size);
  }
  return low < 0 ? where(i.lt(0), i.add(size), i) : i;
}

Tensor gather_from(Tensor view, std::vector<Plan::Gathered> gathered) {
  Shape broadcast;
  for (const auto& g : gathered) {
    broadcast = broadcast_shapes("index", broadcast, g.index.shape());
  }
  bool adjacent = true;
  for (size_t k = 1; k < gathered.size(); ++k) {
    adjacent = adjacent && gathered[k].dim == gathered[k - 1].dim + 1;
  }
  if (!adjacent) {
    Dims order;
    for (const auto& g : gathered) order.push_back(g.dim);
    for (int d = 0; d < view.dim(); ++d) {
      if (!order.contains(d)) order.push_back(d);
    }
    view = view.permute(order);
    for (size_t k = 0; k < gathered.size(); ++k) gathered[k].dim = static_cast<int>(k);
  }
  // All gathered dims become one, and their indices one index into it.
  const int first = gathered.front().dim;
  const int count = static_cast<int>(gathered.size());
  Shape merged;
  Shape result;
  int64_t merged_size = 1;
  for (int k = 0; k < count; ++k) merged_size *= view.shape()[first + k];
  for (int d = 0; d < view.dim(); ++d) {
    if (d == first) {
      merged.push_back(merged_size);
      for (int64_t size : broadcast) result.push_back(size);
    }
    if (d >= first && d < first + count) continue;
    merged.push_back(view.shape()[d]);
    result.push_back(view.shape()[d]);
  }
  Tensor linear;
  for (const auto& g : gathered) {
    const int64_t size = view.shape()[g.dim];
    const Tensor i = checked_index(g.index, size, g.dim);
    linear = linear.defined() ? linear.mul(size).add(i) : i;
  }
  linear = linear.expand(broadcast).reshape({-1});
  if (count > 1) view = view.reshape(merged);
  return view.index_select(first, linear).reshape(result);
}

// A value that is written may have more dims of size 1 at the front than what it is written to.
Tensor without_leading_ones(Tensor value, int rank) {
  while (value.dim() > rank && value.shape()[0] == 1) value = value.squeeze(0);
  return value;
}

}  // namespace

Tensor index(const Tensor& x, std::span<const IndexEntry> entries) {
  Plan plan = plan_of(x, entries);
  const Tensor view = x.index(plan.basic);
  return plan.gathered.empty() ? view : gather_from(view, std::move(plan.gathered));
}

void index_put_(Tensor& x, std::span<const IndexEntry> entries, const Tensor& value,
                bool accumulate) {
  Plan plan = plan_of(x, entries);
  const bool tracked = is_grad_enabled() && (x.requires_grad() || value.requires_grad());
  if (plan.gathered.empty() && !tracked) {
    Tensor view = x.index(plan.basic);
    const Tensor source = without_leading_ones(value, view.dim());
    if (accumulate) {
      view.add_(source.to(x.dtype()));
    } else {
      view.copy_(source);
    }
    return;
  }
  Tensor positions;
  {
    const NoGradGuard no_grad;
    positions = index(arange(x.numel(), {i64, x.device()}).reshape(x.shape()), entries);
  }
  const Tensor source =
      without_leading_ones(value, positions.dim()).to(x.dtype()).expand(positions.shape());
  const Tensor flat = x.reshape({-1});
  const Tensor where_to = positions.reshape({-1});
  const Tensor written = accumulate ? flat.scatter_add(0, where_to, source.reshape({-1}))
                                    : flat.scatter(0, where_to, source.reshape({-1}));
  x.copy_(written.reshape(x.shape()));
}

Tensor nonzero(const Tensor& x) {
  const Tensor truth = x.detach().to(bool_);
  return detail::wrap(Dispatch::bool_nonzero(detail::value_of("nonzero", truth).inner));
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  if (!is_mask(mask)) {
    throw_error<DTypeError>("masked_select: wrong dtype; got ", mask.dtype(),
                            "; expected a bool mask");
  }
  const Shape shape = broadcast_shapes("masked_select", x.shape(), mask.shape());
  const Tensor places = nonzero(mask.expand(shape).reshape({-1})).reshape({-1});
  return x.expand(shape).reshape({-1}).index_select(0, places);
}

}  // namespace kiln
