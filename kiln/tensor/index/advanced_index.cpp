#include "kiln/tensor/index/advanced_index.h"

#include <algorithm>

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/autograd/vmap.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/host_memory.h"
#include "kiln/tensor/index/scatter.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"
#include "kiln/tensor/value_check.h"

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

void check_mask(const Tensor& mask, const Shape& shape, int first_dim) {
  for (int i = 0; i < mask.dim(); ++i) {
    if (first_dim + i < shape.rank() && mask.shape()[i] == shape[first_dim + i]) continue;
    throw_error<IndexError>("index: the mask's sizes must be the tensor's; got mask ", mask.shape(),
                            " at dim ", first_dim, " of ", shape);
  }
}

// Turns a mask into the positions where it holds, one tensor for each of its dims.
std::vector<Tensor> positions_of(const Tensor& mask, const Shape& shape, int first_dim) {
  check_mask(mask, shape, first_dim);
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
    throw_error<IndexError>("index: too many indices; got ", used, " for shape ", x.shape());
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

// Whether these are ":" for every dim.
bool takes_all(std::span<const IndexItem> items) {
  return std::all_of(items.begin(), items.end(), [](const IndexItem& item) {
    return item.type == IndexItem::Type::slice && !item.slice.start && !item.slice.end &&
           item.slice.step == 1;
  });
}

// The same indices, counted from the front, in range and i64.
Tensor checked_index(const Tensor& index, int64_t size, int dim) {
  if (!is_integral(index.dtype())) {
    throw_error<DTypeError>("index: a tensor used as an index must hold integers or bools; got ",
                            index.dtype());
  }
  Tensor i = index.to(i64);
  if (i.numel() == 0) return i;
  const auto has_negative = [size, dim](const Tensor& x) {
    const auto low = x.min().item<int64_t>();
    const auto high = x.max().item<int64_t>();
    if (low < -size || high >= size) {
      throw_error<IndexError>("index: index ", low < -size ? low : high,
                              " is out of range for dim ", dim, " of size ", size);
    }
    return low < 0;
  };
  if (detail::is_of_batch(i)) {
    return has_negative(detail::of_whole_batch(i)) ? where(i.lt(0), i.add(size), i) : i;
  }
  if (detail::check_again("index", i, has_negative)) return where(i.lt(0), i.add(size), i);
  return has_negative(i) ? where(i.lt(0), i.add(size), i) : i;
}

// The dims that tensors index, in front or where they stand, as one dim with one index.
struct Merged {
  Tensor view;   // with those dims moved together
  Tensor rows;   // the same with those dims as one
  int dim = 0;   // that one
  Tensor index;  // into it, as one row
  Shape result;  // of what the index picks
};

Merged merged(Tensor view, std::vector<Plan::Gathered> gathered) {
  Merged out;
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
  out.dim = gathered.front().dim;
  const int count = static_cast<int>(gathered.size());
  Shape rows;
  int64_t size = 1;
  for (int k = 0; k < count; ++k) size *= view.shape()[out.dim + k];
  for (int d = 0; d < view.dim(); ++d) {
    if (d == out.dim) {
      rows.push_back(size);
      for (int64_t n : broadcast) out.result.push_back(n);
    }
    if (d >= out.dim && d < out.dim + count) continue;
    rows.push_back(view.shape()[d]);
    out.result.push_back(view.shape()[d]);
  }
  for (const auto& g : gathered) {
    const int64_t n = view.shape()[g.dim];
    const Tensor i = checked_index(g.index, n, g.dim);
    out.index = out.index.defined() ? out.index.mul(n).add(i) : i;
  }
  out.index = out.index.expand(broadcast).reshape({-1});
  out.rows = count > 1 ? view.reshape(rows) : view;
  out.view = std::move(view);
  return out;
}

// One mask over the first dims: they become one, and what is true there an index into it.
bool is_only_mask(std::span<const IndexEntry> entries) {
  if (entries.size() != 1) return false;
  const auto* t = std::get_if<Tensor>(&entries[0]);
  return t != nullptr && is_mask(*t) && t->dim() > 0;
}

Merged masked(const Tensor& x, const Tensor& mask) {
  check_mask(mask, x.shape(), 0);
  Merged out;
  Shape rows{mask.numel()};
  for (int d = mask.dim(); d < x.dim(); ++d) rows.push_back(x.shape()[d]);
  out.view = x;
  out.rows = mask.dim() > 1 ? x.reshape(rows) : x;
  out.index = nonzero(mask.reshape({-1})).reshape({-1});
  out.result = rows;
  out.result[0] = out.index.numel();
  return out;
}

// Whether `rows` of it share x's memory.
bool is_view(const Merged& m) { return m.rows.dim() == m.view.dim() || m.view.is_contiguous(); }

// A value that is written may have more dims of size 1 at the front than what it is written to.
Tensor without_leading_ones(Tensor value, int rank) {
  while (value.dim() > rank && value.shape()[0] == 1) value = value.squeeze(0);
  return value;
}

}  // namespace

Tensor index(const Tensor& x, std::span<const IndexEntry> entries) {
  detail::impl_of("index", x);  // which throws for an undefined tensor
  if (is_only_mask(entries) && std::get<Tensor>(entries[0]).dim() <= x.dim()) {
    const Merged m = masked(x, std::get<Tensor>(entries[0]));
    return m.rows.index_select(0, m.index);
  }
  Plan plan = plan_of(x, entries);
  if (plan.gathered.empty()) return x.index(plan.basic);
  // A view of all of x would make its gradient a copy more.
  const Merged m =
      merged(takes_all(plan.basic) ? x : x.index(plan.basic), std::move(plan.gathered));
  return m.rows.index_select(m.dim, m.index).reshape(m.result);
}

namespace {

// Writes where `m` says: into x's memory, of which it is a view.
void put(Merged m, const Tensor& value, bool accumulate) {
  Shape slices = m.rows.shape();
  slices[m.dim] = m.index.numel();
  const Tensor source =
      without_leading_ones(value, m.result.rank()).to(m.rows.dtype()).expand(m.result);
  const auto write = [&](Tensor& to) {
    if (accumulate) {
      index_add_(to, m.dim, m.index, source.reshape(slices));
    } else {
      index_copy_(to, m.dim, m.index, source.reshape(slices));
    }
  };
  write(m.rows);
  if (!is_view(m)) m.view.copy_(m.rows.reshape(m.view.shape()));
}

}  // namespace

void index_put_(Tensor& x, std::span<const IndexEntry> entries, const Tensor& value,
                bool accumulate) {
  if (is_only_mask(entries) && std::get<Tensor>(entries[0]).dim() <= x.dim()) {
    const Tensor& mask = std::get<Tensor>(entries[0]);
    const bool is_number = value.numel() == 1 && mask.dim() == x.dim() && !is_complex(x.dtype()) &&
                           !(is_grad_enabled() && value.requires_grad());
    if (is_number && !accumulate) {
      check_mask(mask, x.shape(), 0);
      x.masked_fill_(mask, value.to(x.dtype()).item_scalar());
    } else {
      put(masked(x, mask), value, accumulate);
    }
    return;
  }
  Plan plan = plan_of(x, entries);
  Tensor view = x.index(plan.basic);
  if (!plan.gathered.empty()) {
    put(merged(std::move(view), std::move(plan.gathered)), value, accumulate);
    return;
  }
  const Tensor source = without_leading_ones(value, view.dim());
  if (accumulate) {
    view.add_(source.to(x.dtype()));
  } else {
    view.copy_(source);
  }
}

Tensor IndexEntry::mask_of(bool truth) { return tensor(truth); }

Tensor Tensor::index(std::span<const IndexEntry> entries) const {
  return kiln::index(*this, entries);
}

Tensor Tensor::index(std::initializer_list<IndexEntry> entries) const {
  return kiln::index(*this, std::span(entries.begin(), entries.size()));
}

Tensor Tensor::operator[](const IndexEntry& entry) const {
  return kiln::index(*this, std::span(&entry, 1));
}

Tensor& Tensor::index_put_(std::initializer_list<IndexEntry> entries, const Tensor& value,
                           bool accumulate) {
  kiln::index_put_(*this, std::span(entries.begin(), entries.size()), value, accumulate);
  return *this;
}

Tensor& Tensor::index_put_(std::initializer_list<IndexEntry> entries, Scalar value,
                           bool accumulate) {
  const TensorOptions options{.dtype = value.is_bool() ? bool_ : dtype(), .device = device()};
  return index_put_(entries, full({}, value, options), accumulate);
}

namespace {

// A write to a tensor that nobody else has a part of would be lost.
void check_is_seen(const Tensor& x) {
  if (!x.defined() || !x.impl().unique()) return;
  const auto memory = host_memory(x);
  if (!memory) return;
  // One handle is the tensor's, another `memory`; a third may be that of a tensor of which this one
  // is another shape.
  const Handle<TensorImpl>& root = detail::state_of(x).root;
  if (memory->storage->use_count() > (root.unique() ? 3U : 2U)) return;
  throw_error<ValueError>(
      "operator=: the left side is a temporary with memory of its own, so that the values would be "
      "lost; got ",
      x.shape(),
      "; expected a view, such as x[0] or x.index({Slice(1, 3)}) (behind masks and tensors of "
      "indices: x.index_put_({mask}, values))");
}

}  // namespace

Tensor& Tensor::operator=(const Tensor& values) && {
  check_is_seen(*this);
  return copy_(values);
}

Tensor& Tensor::operator=(Scalar value) && {
  check_is_seen(*this);
  return fill_(value);
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
