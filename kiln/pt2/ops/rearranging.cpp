// Tensors joined, repeated, turned, padded, and written into.
#include "kiln/tensor/shape/rearranging.h"

#include "kiln/nn/functional.h"
#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/nn/padding.h"
#include "kiln/tensor/sequences.h"

namespace kiln::pt2 {

namespace {

void cat_of(Call& c) {
  // PyTorch passes over empty tensors of one dim, whatever the rank of the others.
  const TensorList all = c.list("tensors");
  TensorList used;
  bool more = false;
  for (const Tensor& x : all) more = more || x.dim() != 1 || x.numel() != 0;
  for (const Tensor& x : all) {
    if (!more || x.dim() != 1 || x.numel() != 0) used.push_back(x);
  }
  c.out(kiln::cat(used, c.i("dim", 0)));
}
void stack_of(Call& c) { c.out(kiln::stack(c.list("tensors"), c.i("dim", 0))); }
template <Tensor (*F)(const std::vector<Tensor>&)>
void joined(Call& c) {
  c.out(F(c.list("tensors")));
}
void meshgrid_of(Call& c) { c.out_list(meshgrid(c.list("tensors"), c.s("indexing", "ij"))); }
void cartesian_prod_of(Call& c) { c.out(cartesian_prod(c.list("tensors"))); }
void combinations_of(Call& c) {
  c.out(combinations(c.x(), c.i("r", 2), c.b("with_replacement", false)));
}
void repeat_of(Call& c) { c.out(kiln::repeat(c.x(), c.ints("repeats"))); }
void tile_of(Call& c) { c.out(kiln::tile(c.x(), c.ints("dims"))); }
void repeat_interleave_of(Call& c) {
  c.ignore("output_size");
  if (c.is_overload("Tensor")) {
    c.out(repeat_interleave(c.t("repeats")));
  } else if (c.value("repeats").tensor() != nullptr) {
    c.out(repeat_interleave(c.x(), c.t("repeats"), c.maybe_i("dim")));
  } else {
    c.out(repeat_interleave(c.x(), c.i("repeats"), c.maybe_i("dim")));
  }
}
void roll_of(Call& c) { c.out(roll(c.x(), c.ints("shifts"), dims_or_all(c, "dims"))); }
void flip_of(Call& c) { c.out(c.x().flip(c.ints("dims"))); }
void rot90_of(Call& c) {
  c.out(rot90(c.x(), c.i("k", 1), c.maybe_ints("dims").value_or(Shape{0, 1})));
}
void tril_of(Call& c) { c.out(kiln::tril(c.x(), c.i("diagonal", 0))); }
void triu_of(Call& c) { c.out(kiln::triu(c.x(), c.i("diagonal", 0))); }
void diag_of(Call& c) { c.out(diag(c.x(), c.i("diagonal", 0))); }
void diag_embed_of(Call& c) {
  c.out(diag_embed(c.x(), c.i("offset", 0), c.i("dim1", -2), c.i("dim2", -1)));
}
void diagflat_of(Call& c) { c.out(diagflat(c.x(), c.i("offset", 0))); }
void select_scatter_of(Call& c) {
  c.out(select_scatter(c.x(), c.t("src"), c.i("dim"), c.i("index")));
}
void slice_scatter_of(Call& c) {
  c.out(slice_scatter(c.x(), c.t("src"), c.i("dim", 0), c.maybe_i("start"), c.maybe_i("end"),
                      c.i("step", 1)));
}
void diagonal_scatter_of(Call& c) {
  c.out(diagonal_scatter(c.x(), c.t("src"), c.i("offset", 0), c.i("dim1", 0), c.i("dim2", 1)));
}
void as_strided_scatter_of(Call& c) {
  Tensor x = c.x().clone();
  Strides stride;
  for (const int64_t s : c.ints("stride")) stride.push_back(s);
  as_strided(x, c.ints("size"), stride, c.maybe_i("storage_offset")).copy_(c.t("src"));
  c.out(x);
}
void copy_of(Call& c) { c.out(c.t("src").to(c.x().dtype()).expand(c.x().shape()).clone()); }
void copy_in_place(Call& c) {
  Tensor x = c.x();
  c.out(x.copy_(c.t("src")));
}
void fill_diagonal_in_place(Call& c) {
  Tensor x = c.x();
  c.out(fill_diagonal_(x, c.scalar("fill_value"), c.b("wrap", false)));
}

void pad_of(Call& c) {
  c.out(functional::pad(c.x(), c.ints("pad"), c.s("mode", "constant"), c.f("value", 0.0)));
}
void constant_pad(Call& c) {
  c.out(functional::pad(c.x(), c.ints("pad"), "constant", c.f("value", 0.0)));
}
void reflection_pad(Call& c) { c.out(functional::pad(c.x(), c.ints("padding"), "reflect")); }
void replication_pad(Call& c) { c.out(functional::pad(c.x(), c.ints("padding"), "replicate")); }
void circular_pad(Call& c) { c.out(functional::pad(c.x(), c.ints("pad"), "circular")); }

constexpr Operator kRearrangingOperators[] = {
    {"cat", "default", cat_of},
    {"concat", "default", cat_of},
    {"concatenate", "default", cat_of},
    {"stack", "default", stack_of},
    {"hstack", "default", joined<kiln::hstack>},
    {"vstack", "default", joined<kiln::vstack>},
    {"row_stack", "default", joined<kiln::vstack>},
    {"dstack", "default", joined<kiln::dstack>},
    {"column_stack", "default", joined<kiln::column_stack>},
    {"block_diag", "default", joined<kiln::block_diag>},
    {"meshgrid", "default indexing", meshgrid_of},
    {"cartesian_prod", "default", cartesian_prod_of},
    {"combinations", "default", combinations_of},
    {"repeat", "default", repeat_of},
    {"tile", "default", tile_of},
    {"repeat_interleave", "Tensor self_Tensor self_int", repeat_interleave_of},
    {"roll", "default", roll_of},
    {"flip", "default", flip_of},
    {"fliplr", "default", unary_of<kiln::fliplr>},
    {"flipud", "default", unary_of<kiln::flipud>},
    {"rot90", "default", rot90_of},
    {"tril", "default", tril_of},
    {"triu", "default", triu_of},
    {"diag", "default", diag_of},
    {"diag_embed", "default", diag_embed_of},
    {"diagflat", "default", diagflat_of},
    {"select_scatter", "default", select_scatter_of},
    {"slice_scatter", "default", slice_scatter_of},
    {"diagonal_scatter", "default", diagonal_scatter_of},
    {"as_strided_scatter", "default", as_strided_scatter_of},
    {"copy", "default", copy_of},
    {"copy_", "default", copy_in_place},
    {"fill_diagonal_", "default", fill_diagonal_in_place},
    {"pad", "default", pad_of},
    {"constant_pad_nd", "default", constant_pad},
    {"reflection_pad1d", "default", reflection_pad},
    {"reflection_pad2d", "default", reflection_pad},
    {"reflection_pad3d", "default", reflection_pad},
    {"replication_pad1d", "default", replication_pad},
    {"replication_pad2d", "default", replication_pad},
    {"replication_pad3d", "default", replication_pad},
    {"_pad_circular", "default", circular_pad},
};

}  // namespace

std::span<const Operator> rearranging_operators() { return kRearrangingOperators; }

}  // namespace kiln::pt2
