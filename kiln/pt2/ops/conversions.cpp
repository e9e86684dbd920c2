// Dtypes, sizes as numbers, values as numbers, and what a program asserts.
#include "kiln/core/utf8.h"
#include "kiln/pt2/ops/forms.h"

namespace kiln::pt2 {

namespace {

// What the file says of devices means nothing here: all is where the inputs are.
void to_of(Call& c) {
  c.ignore("device");
  Tensor x = c.x();
  Tensor y = c.has("other") ? x.to(c.t("other").dtype()) : in_dtype(x, c.dtype());
  if (c.b("copy", false) && y.is_same(x)) y = x.clone();
  c.out(y);
}
void to_copy(Call& c) {
  const Tensor x = c.x(), y = in_dtype(x, c.dtype());
  c.out(y.is_same(x) ? x.clone() : y);
}
void type_as_of(Call& c) { c.out(c.x().to(c.t("other").dtype())); }
template <DType kType>
void cast(Call& c) {
  c.out(c.x().to(kType));
}
void contiguous_of(Call& c) { c.out(c.x().contiguous()); }

void size_of_dim(Call& c) { c.out(Scalar(c.x().size(c.i("dim")))); }
void numel_of(Call& c) { c.out(Scalar(c.x().numel())); }
void item_of(Call& c) { c.out(c.x().item_scalar()); }
void shape_as_tensor(Call& c) {
  std::vector<int64_t> sizes;
  for (const int64_t d : c.x().shape()) sizes.push_back(d);
  c.out(tensor(sizes));
}

[[noreturn]] void broken(Call& c) {
  c.fail("an assertion of the program does not hold: " +
         printable(c.s("assert_msg", "(no message)"), 300));
}
void assert_scalar(Call& c) {
  c.ignore("assert_msg");
  if (!c.b("self")) broken(c);
}
void assert_async(Call& c) {
  c.ignore("assert_msg");
  if (!is_nonzero(c.x())) broken(c);
}
void assert_metadata(Call& c) {
  const Tensor x = c.x();
  const auto dtype = c.dtype();
  for (const char* one : {"size", "stride", "device", "layout"}) c.ignore(one);
  if (dtype && *dtype != x.dtype()) {
    c.fail(concat("a tensor is ", x.dtype(), "; the program expects ", *dtype));
  }
}
void constrain_range(Call& c) {
  const int64_t size = c.i("size");
  const auto least = c.maybe_i("min"), most = c.maybe_i("max");
  if ((least && size < *least) || (most && size > *most)) {
    c.fail(concat("a number that follows from values is ", size, ", which the program excludes"));
  }
}

constexpr Operator kConversionsOperators[] = {
    {"to", "dtype dtype_layout device other", to_of},
    {"_to_copy", "default", to_copy},
    {"type_as", "default", type_as_of},
    {"_cast_Float", "default", cast<DType::f32>},
    {"_cast_Double", "default", cast<DType::f64>},
    {"_cast_Half", "default", cast<DType::f16>},
    {"_cast_Long", "default", cast<DType::i64>},
    {"_cast_Int", "default", cast<DType::i32>},
    {"contiguous", "default", contiguous_of},
    {"sym_size", "int", size_of_dim},
    {"sym_numel", "default", numel_of},
    {"item", "default", item_of},
    {"_local_scalar_dense", "default", item_of},
    {"_shape_as_tensor", "default", shape_as_tensor},
    {"_assert_scalar", "default", assert_scalar},
    {"_assert_async", "msg", assert_async},
    {"_assert_tensor_metadata", "default", assert_metadata},
    {"sym_constrain_range", "default", constrain_range},
    {"sym_constrain_range_for_size", "default", constrain_range},
};

}  // namespace

std::span<const Operator> conversion_operators() { return kConversionsOperators; }

}  // namespace kiln::pt2
