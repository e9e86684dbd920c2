#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

// Ops whose result for integers is an integer.
ErasedTensor int_neg(const ErasedTensor& x) { return Dispatch::int_neg(x); }
ErasedTensor int_abs(const ErasedTensor& x) { return Dispatch::int_abs(x); }
ErasedTensor int_sign(const ErasedTensor& x) { return Dispatch::int_sign(x); }
ErasedTensor int_square(const ErasedTensor& x) { return Dispatch::int_mul(x, x); }
ErasedTensor int_same(const ErasedTensor& x) { return x; }
ErasedTensor int_relu(const ErasedTensor& x) {
  return Dispatch::int_clamp(x, 0, std::numeric_limits<int64_t>::max());
}
constexpr auto int_floor = int_same;
constexpr auto int_ceil = int_same;
constexpr auto int_round = int_same;
constexpr auto int_trunc = int_same;

// The backend's name for reciprocal is Burn's.
struct Float : AD {
  static Value float_reciprocal(const ValueArg& x) { return AD::float_recip(x); }
};

struct keeps {
  template <class FloatOp, class IntOp>
  static Value run(const char* op, const ValueArg& x, FloatOp f, IntOp i) {
    const DType dtype = dtype_of_value(x);
    if (kind_of(dtype) == Kind::floating) return f(x);
    if (kind_of(dtype) == Kind::integer) {
      ErasedTensor out = i(x->inner);
      // An op that changes nothing for integers still gives a tensor of its own.
      return out == x->inner ? Value{Dispatch::int_add_scalar(x->inner, Scalar(0))}
                             : Value{std::move(out)};
    }
    const std::string_view name(op);
    if (dtype == bool_ && name.starts_with("sign")) return {Dispatch::bool_or(x->inner, x->inner)};
    if (dtype == bool_ && name.starts_with("square")) return cast(x, i64);  // as pow(x, 2)
    throw_wrong_dtype(op, dtype, "a floating point or integer tensor");
  }
};

struct floats {
  template <class FloatOp, class IntOp>
  static Value run(const char* op, const ValueArg& x, FloatOp f, IntOp) {
    const Kind kind = kind_of_value(x);
    if (kind == Kind::floating) return f(x);
    if (kind == Kind::quantized) throw_wrong_dtype(op, DType::q8, "dequantize() first");
    return f(cast(x, default_dtype()));
  }
};

}  // namespace

// The int form of an op in the `floats` group is never used; any function will do.
#define KILN_INT_FORM_keeps(name) int_##name
#define KILN_INT_FORM_floats(name) nullptr
#define KILN_FLOAT_FORM(name) [](const ValueArg& v) { return Float::float_##name(v); }

#define KILN_UNARY(name, group, doc)                                                              \
  Tensor name(TensorArg x) {                                                                      \
    if (has_complex(x)) [[unlikely]]                                                              \
      return complex_ops::unary(#name, x);                                                        \
    return wrap(                                                                                  \
        group::run(#name, arg_of(#name, x), KILN_FLOAT_FORM(name), KILN_INT_FORM_##group(name))); \
  }                                                                                               \
  Tensor Tensor::name() const { return kiln::name(*this); }                                       \
  Tensor& Tensor::name##_() {                                                                     \
    check_writable(#name "_", *this, false);                                                      \
    if (has_complex(*this)) [[unlikely]]                                                          \
      return complex_ops::assign(#name "_", *this,                                                \
                                 complex_ops::unary(#name, complex_ops::kept(*this, *this)));     \
    const ValueArg self = ValueArg::in_place(value_of(#name "_", *this));                         \
    finish_in_place(                                                                              \
        #name "_", *this,                                                                         \
        group::run(#name "_", self, KILN_FLOAT_FORM(name), KILN_INT_FORM_##group(name)));         \
    return *this;                                                                                 \
  }
#include "kiln/backend/functions.def"

Tensor gelu(TensorArg x, const std::string& approximate) {
  if (approximate != "none" && approximate != "tanh") {
    throw_error<ValueError>("gelu: unknown approximation; got \"", approximate,
                            "\"; expected \"none\" or \"tanh\"");
  }
  const ValueArg value = arg_of("gelu", x);
  if (kind_of_value(value) != Kind::floating) {
    throw_wrong_dtype("gelu", dtype_of_value(value), "a floating point tensor");
  }
  return wrap(AD::float_gelu(value, approximate == "tanh"));
}
Tensor Tensor::gelu(const std::string& approximate) const { return kiln::gelu(*this, approximate); }

}  // namespace kiln
