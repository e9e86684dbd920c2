// Views of a tensor's memory, whose writes the tensor sees.
#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/shape/rearranging.h"

namespace kiln::pt2 {

namespace {

void view_of(Call& c) {
  if (c.is_overload("dtype")) {
    c.out(view_as_dtype(c.x(), c.needed_dtype()));
    return;
  }
  const Tensor x = c.x();
  const Shape size = c.ints("size");
  // PyTorch's tensor may lie in memory otherwise than Kiln's, whose ops give dense rows.
  try {
    c.out(x.view(size));
  } catch (const ShapeError&) {
    c.out(x.reshape(size));
  }
}
void reshape_of(Call& c) {
  c.out(c.x().reshape(c.has("shape") ? c.ints("shape") : c.ints("size")));
}
void expand_of(Call& c) { c.out(c.x().expand(c.ints("size"))); }
void broadcast_to_of(Call& c) { c.out(c.x().expand(c.ints("size"))); }
void permute_of(Call& c) { c.out(c.x().permute(c.ints("dims"))); }
void transpose_of(Call& c) { c.out(c.x().transpose(c.i("dim0"), c.i("dim1"))); }
void swapaxes_of(Call& c) { c.out(c.x().transpose(c.i("axis0"), c.i("axis1"))); }
void t_of(Call& c) { c.out(c.x().dim() < 2 ? c.x() : c.x().t()); }
void last_two(Call& c) { c.out(c.x().transpose(-2, -1)); }
void numpy_t(Call& c) {
  Dims dims;
  for (int64_t d = c.x().dim() - 1; d >= 0; --d) dims.push_back(d);
  c.out(c.x().permute(dims));
}
void movedim_of(Call& c) { c.out(movedim(c.x(), c.ints("source"), c.ints("destination"))); }
void squeeze_of(Call& c) {
  if (!c.has("dim")) {
    c.out(c.x().squeeze());
  } else {
    c.out(kiln::squeeze(c.x(), c.ints("dim")));
  }
}
void unsqueeze_of(Call& c) { c.out(c.x().unsqueeze(c.i("dim"))); }
void flatten_of(Call& c) { c.out(c.x().flatten(c.i("start_dim", 0), c.i("end_dim", -1))); }
void unflatten_of(Call& c) { c.out(unflatten(c.x(), c.i("dim"), c.ints("sizes"))); }
void ravel_of(Call& c) { c.out(ravel(c.x())); }
void select_of(Call& c) { c.out(c.x().select(c.i("dim"), c.i("index"))); }
void slice_of(Call& c) {
  c.out(c.x().slice(c.i("dim", 0), c.maybe_i("start"), c.maybe_i("end"), c.i("step", 1)));
}
void narrow_of(Call& c) {
  const int64_t start = c.is_overload("Tensor") ? c.t("start").item<int64_t>() : c.i("start");
  c.out(c.x().narrow(c.i("dim"), start, c.i("length")));
}
void split_of(Call& c) {
  const Value size = c.value("split_size");
  if (size.is_none()) {
    c.out_list(kiln::split(c.x(), c.ints("split_sizes"), c.i("dim", 0)));
  } else if (size.scalar() != nullptr) {
    c.out_list(c.x().split(c.i("split_size"), c.i("dim", 0)));
  } else {
    c.out_list(kiln::split(c.x(), c.ints("split_size"), c.i("dim", 0)));
  }
}
void chunk_of(Call& c) { c.out_list(c.x().chunk(c.i("chunks"), c.i("dim", 0))); }
void tensor_split_of(Call& c) {
  const int64_t dim = c.i("dim", 0);
  if (c.has("sections")) {
    c.out_list(tensor_split(c.x(), c.i("sections"), dim));
  } else {
    c.out_list(tensor_split(c.x(), c.ints("indices"), dim));
  }
}
template <std::vector<Tensor> (*Sections)(const Tensor&, int64_t),
          std::vector<Tensor> (*Indices)(const Tensor&, const Shape&)>
void split_along(Call& c) {
  if (c.has("sections")) {
    c.out_list(Sections(c.x(), c.i("sections")));
  } else {
    c.out_list(Indices(c.x(), c.ints("indices")));
  }
}
void unbind_of(Call& c) { c.out_list(c.x().unbind(c.i("dim", 0))); }
void diagonal_of(Call& c) {
  const bool last = c.target().find("linalg_") != std::string::npos;
  c.out(diagonal(c.x(), c.i("offset", 0), c.i("dim1", last ? -2 : 0), c.i("dim2", last ? -1 : 1)));
}
void unfold_of(Call& c) { c.out(unfold(c.x(), c.i("dimension"), c.i("size"), c.i("step"))); }
void as_strided_of(Call& c) {
  Strides stride;
  for (const int64_t s : c.ints("stride")) stride.push_back(s);
  c.out(as_strided(c.x(), c.ints("size"), stride, c.maybe_i("storage_offset")));
}
void same_view(Call& c) { c.out(c.x()); }
void detach_of(Call& c) { c.out(c.x().detach()); }
void clone_of(Call& c) { c.out(c.x().clone()); }
void like(Call& c) { c.out(c.x().reshape(c.t("other").shape())); }
void expand_like(Call& c) { c.out(c.x().expand(c.t("other").shape())); }
void broadcast_of(Call& c) { c.out_list(broadcast_tensors(c.list("tensors"))); }

std::vector<Tensor> hsplit_n(const Tensor& x, int64_t n) { return hsplit(x, n); }
std::vector<Tensor> hsplit_at(const Tensor& x, const Shape& at) { return hsplit(x, at); }
std::vector<Tensor> vsplit_n(const Tensor& x, int64_t n) { return vsplit(x, n); }
std::vector<Tensor> vsplit_at(const Tensor& x, const Shape& at) { return vsplit(x, at); }
std::vector<Tensor> dsplit_n(const Tensor& x, int64_t n) { return dsplit(x, n); }
std::vector<Tensor> dsplit_at(const Tensor& x, const Shape& at) { return dsplit(x, at); }

// In place: the tensor becomes the view, for which the node's result stands.
constexpr Operator kViewsOperators[] = {
    {"view", "default dtype", view_of},
    {"_unsafe_view", "default", view_of},
    {"reshape", "default", reshape_of},
    {"_reshape_alias", "default", as_strided_of},
    {"view_as", "default", like},
    {"reshape_as", "default", like},
    {"expand", "default", expand_of},
    {"expand_as", "default", expand_like},
    {"broadcast_to", "default", broadcast_to_of},
    {"broadcast_tensors", "default", broadcast_of},
    {"permute", "default", permute_of},
    {"transpose", "int", transpose_of},
    {"transpose_", "default", transpose_of},
    {"swapaxes", "default", swapaxes_of},
    {"swapdims", "default", transpose_of},
    {"t", "default", t_of},
    {"t_", "default", t_of},
    {"mT", "default", last_two},
    {"numpy_T", "default", numpy_t},
    {"adjoint", "default", unary_of<kiln::adjoint>},
    {"movedim", "int intlist", movedim_of},
    {"moveaxis", "int intlist", movedim_of},
    {"squeeze", "default dim dims", squeeze_of},
    {"squeeze_", "default dim dims", squeeze_of},
    {"unsqueeze", "default", unsqueeze_of},
    {"unsqueeze_", "default", unsqueeze_of},
    {"flatten", "using_ints", flatten_of},
    {"unflatten", "int", unflatten_of},
    {"ravel", "default", ravel_of},
    {"select", "int", select_of},
    {"slice", "Tensor", slice_of},
    {"narrow", "default Tensor", narrow_of},
    {"split", "Tensor sizes", split_of},
    {"unsafe_split", "Tensor", split_of},
    {"split_with_sizes", "default", split_of},
    {"unsafe_split_with_sizes", "default", split_of},
    {"chunk", "default", chunk_of},
    {"unsafe_chunk", "default", chunk_of},
    {"tensor_split", "sections indices", tensor_split_of},
    {"hsplit", "int array", split_along<hsplit_n, hsplit_at>},
    {"vsplit", "int array", split_along<vsplit_n, vsplit_at>},
    {"dsplit", "int array", split_along<dsplit_n, dsplit_at>},
    {"unbind", "int", unbind_of},
    {"diagonal", "default", diagonal_of},
    {"linalg_diagonal", "default", diagonal_of},
    {"unfold", "default", unfold_of},
    {"as_strided", "default", as_strided_of},
    {"alias", "default", same_view},
    {"detach", "default", detach_of},
    {"detach_", "default", detach_of},
    {"clone", "default", clone_of},
    {"lift", "default", same_view},
    {"lift_fresh", "default", same_view},
    {"atleast_1d", "default", unary_of<kiln::atleast_1d>},
    {"atleast_2d", "default", unary_of<kiln::atleast_2d>},
    {"atleast_3d", "default", unary_of<kiln::atleast_3d>},
};

}  // namespace

std::span<const Operator> view_operators() { return kViewsOperators; }

}  // namespace kiln::pt2
