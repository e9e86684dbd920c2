// Reading and writing at indices and masks.
#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/index/index_ops.h"
#include "kiln/tensor/index/scatter.h"

namespace kiln::pt2 {

namespace {

// A tensor, or the whole dim where there is none.
std::vector<IndexEntry> entries_of(Call& c) {
  std::vector<IndexEntry> out;
  for (const Tensor& x : c.maybe_list("indices")) {
    if (x.defined()) {
      out.emplace_back(x);
    } else {
      out.emplace_back(IndexItem(Slice()));
    }
  }
  return out;
}
void index_of(Call& c) { c.out(kiln::index(c.x(), entries_of(c))); }
void index_put_of(Call& c) {
  c.ignore("unsafe");
  Tensor y = c.x().clone();
  index_put_(y, entries_of(c), c.t("values"), c.b("accumulate", false));
  c.out(y);
}
void index_put_in_place(Call& c) {
  c.ignore("unsafe");
  Tensor x = c.x();
  index_put_(x, entries_of(c), c.t("values"), c.b("accumulate", false));
  c.out(x);
}
void index_select_of(Call& c) { c.out(c.x().index_select(c.i("dim"), c.t("index"))); }
void index_add_of(Call& c) {
  Tensor y = c.x().clone();
  c.out(index_add_(y, c.i("dim"), c.t("index"), c.t("source"), c.scalar("alpha", 1)));
}
void index_copy_of(Call& c) { c.out(index_copy(c.x(), c.i("dim"), c.t("index"), c.t("source"))); }
void index_fill_of(Call& c) {
  c.out(with_operand(c, c.x(), "value", [&](const Tensor& x, const auto& v) {
    return index_fill(x, c.i("dim"), c.t("index"), v);
  }));
}
void index_reduce_of(Call& c) {
  c.out(index_reduce(c.x(), c.i("dim"), c.t("index"), c.t("source"), c.s("reduce"),
                     c.b("include_self", true)));
}
void gather_of(Call& c) { c.out(c.x().gather(c.i("dim"), c.t("index"))); }
void scatter_of(Call& c) {
  const std::string reduce = c.s("reduce", "");
  if (c.has("src")) {
    c.out(kiln::scatter(c.x(), c.i("dim"), c.t("index"), c.t("src"), reduce));
  } else {
    c.out(kiln::scatter(c.x(), c.i("dim"), c.t("index"), c.scalar("value"), reduce));
  }
}
void scatter_add_of(Call& c) { c.out(c.x().scatter_add(c.i("dim"), c.t("index"), c.t("src"))); }
void scatter_reduce_of(Call& c) {
  c.out(scatter_reduce(c.x(), c.i("dim"), c.t("index"), c.t("src"), c.s("reduce"),
                       c.b("include_self", true)));
}
void masked_fill_of(Call& c) {
  const Tensor mask = c.t("mask");
  c.out(with_operand(c, c.x(), "value", [&](const Tensor& x, const auto& v) {
    if constexpr (std::is_same_v<std::decay_t<decltype(v)>, Tensor>) {
      return kiln::masked_fill(x, mask, v);
    } else {
      return x.masked_fill(mask, v);
    }
  }));
}
void masked_select_of(Call& c) { c.out(kiln::masked_select(c.x(), c.t("mask"))); }
void masked_scatter_of(Call& c) { c.out(masked_scatter(c.x(), c.t("mask"), c.t("source"))); }
void take_of(Call& c) { c.out(take(c.x(), c.t("index"))); }
void take_along_dim_of(Call& c) { c.out(take_along_dim(c.x(), c.t("indices"), c.maybe_i("dim"))); }
void put_of(Call& c) { c.out(put(c.x(), c.t("index"), c.t("source"), c.b("accumulate", false))); }
void nonzero_numpy(Call& c) { c.out_list(kiln::where(c.x())); }

constexpr Operator kIndexingOperators[] = {
    {"index", "Tensor", index_of},
    {"_unsafe_index", "Tensor", index_of},
    {"index_put", "default", index_put_of},
    {"index_put_", "default", index_put_in_place},
    {"_unsafe_index_put", "default", index_put_of},
    {"index_select", "default", index_select_of},
    {"index_add", "default", index_add_of},
    {"index_copy", "default", index_copy_of},
    {"index_fill", "int_Scalar int_Tensor", index_fill_of},
    {"index_reduce", "default", index_reduce_of},
    {"gather", "default", gather_of},
    {"scatter", "src value reduce value_reduce", scatter_of},
    {"scatter_add", "default", scatter_add_of},
    {"scatter_reduce", "two", scatter_reduce_of},
    {"masked_fill", "Scalar Tensor", masked_fill_of},
    {"masked_select", "default", masked_select_of},
    {"masked_scatter", "default", masked_scatter_of},
    {"take", "default", take_of},
    {"take_along_dim", "default", take_along_dim_of},
    {"put", "default", put_of},
    {"nonzero", "default", unary_of<kiln::nonzero>},
    {"nonzero_numpy", "default", nonzero_numpy},
    {"argwhere", "default", unary_of<kiln::argwhere>},
};

}  // namespace

std::span<const Operator> index_operators() { return kIndexingOperators; }

}  // namespace kiln::pt2
