#include "kiln/backend/meta/meta.h"

#include "kiln/backend/result_layout.h"

namespace kiln {

namespace op {
namespace {

// As first_missing(), but all of them.
template <class Bk>
std::vector<const char*> rows_missing() {
  std::vector<const char*> out;
#define KILN_OP(level, name, ...)                                                            \
  {                                                                                          \
    constexpr auto call =                                                                    \
        []<class X = Bk, class... A>(A && ... a)->decltype(X::name(std::forward<A>(a)...)) { \
      return X::name(std::forward<A>(a)...);                                                 \
    };                                                                                       \
    if (!accepts<Bk, decltype(call)>(Words<__VA_ARGS__>{})) out.push_back(#name);            \
  }
#include "kiln/backend/ops.def"
  return out;
}

}  // namespace
}  // namespace op

namespace meta {

// The rules alone: no row comes from BackendDefaults.
struct OwnRows : Rows<MetaTypes> {};

namespace {

MetaHandle fresh_strided(const Shape& shape, const Strides& strides, DType dtype, Device device) {
  int64_t bytes = 0;
  const int64_t numel = checked_numel("empty", shape);
  if (__builtin_mul_overflow(numel, static_cast<int64_t>(size_of(dtype)), &bytes)) {
    throw_error<ValueError>("empty: the tensor is too large; got shape ", shape, " of ", dtype);
  }
  return make_handle<MetaTensor>(shape, dtype, device, strides, 0, make_handle<MetaStorage>(bytes));
}

}  // namespace

MetaHandle fresh(const Shape& shape, DType dtype, Device device) {
  return fresh_strided(shape, contiguous_strides(shape), dtype, device);
}

MetaHandle fresh_as(const Shape& shape, DType dtype, std::initializer_list<MetaHandle> operands) {
  const MetaHandle& x = *operands.begin();
  const auto lying = [&](size_t i) {  // one that is absent says what the first one says
    const MetaHandle& y = i < operands.size() ? operands.begin()[i] : x;
    return Lying{&y->shape(), &y->strides()};
  };
  return fresh_strided(shape, result_strides(shape, {lying(0), lying(1), lying(2)}), dtype,
                       x->device());
}

MetaHandle view(const MetaHandle& x, const Shape& shape, const Strides& strides, int64_t offset) {
  return make_handle<MetaTensor>(shape, x->dtype(), x->device(), strides, offset, x->storage());
}

void throw_no_values(const char* op) {
  throw_error<NotImplementedError>(
      op,
      ": needs values, and a meta tensor has none; got a tensor on device 'meta'; expected one "
      "on a device that computes, try empty_like(x, device) or Module.to_empty(device)");
}

std::vector<const char*> rows_without_rule() { return op::rows_missing<OwnRows>(); }

}  // namespace meta

Layout Meta::layout(const MetaHandle& x) {
  return {&x->strides(), x->offset(), &x->storage()->root(),
          x->storage()->bytes() / static_cast<int64_t>(size_of(x->dtype()))};
}

}  // namespace kiln
