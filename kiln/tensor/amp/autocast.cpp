#include "kiln/tensor/amp/autocast.h"

#include <unordered_map>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::amp {

using namespace kiln::detail;

namespace detail {

constinit thread_local bool casting = false;

}  // namespace detail

namespace {

// A parameter's values in the lower dtype. Each use gets a node of its own over them, so that a
// backward pass, which frees the nodes that it meets, frees none of another graph.
struct CastParameter {
  Tensor parameter;   // keeps its address from being another tensor's
  ErasedTensor from;  // the values that were cast,
  uint32_t version;   // when they were written to so often
  ErasedTensor value;
};

struct Region {
  DType dtype = DType::bf16;
  bool cache = true;
  int depth = 0;
  std::unordered_map<const TensorImpl*, CastParameter> parameters;
};

Region& region() {
  thread_local Region state;
  return state;
}

bool is_parameter(const Tensor& x, const TensorImpl& state) {
  return state.value.node && state.is_leaf() && !state.root && state.dtype() == f32 &&
         x.requires_grad();
}

// `lower`, as the cast of x that autodiff records.
Value recorded_cast(const Value& x, ErasedTensor lower) {
  if (!AD::tracked(x)) return Value{std::move(lower)};
  auto formula = [from = dtype_of_value(x)](autodiff::Pass<Dispatch>& pass) {
    pass.give(0, AD::float_cast(pass.take(), from));
  };
  return AD::attach("cast", std::move(lower), AD::edges(x), std::move(formula));
}

Tensor cast_parameter(const Tensor& x, const TensorImpl& state, DType dtype) {
  auto& known = region().parameters;
  const Value& value = state.value;
  const uint32_t version = x.version();
  auto it = known.find(x.impl().get());
  if (it == known.end() || it->second.from.get() != value.inner.get() ||
      it->second.version != version || it->second.value->dtype() != dtype) {
    CastParameter entry{x, value.inner, version, Dispatch::float_cast(value.inner, dtype)};
    it = known.insert_or_assign(x.impl().get(), std::move(entry)).first;
  }
  return wrap(recorded_cast(value, it->second.value));
}

}  // namespace

AutocastState autocast_state() {
  return {.enabled = detail::casting, .dtype = region().dtype, .cache = region().cache};
}

void set_autocast_state(const AutocastState& state) {
  if (state.dtype != bf16 && state.dtype != f16) {
    throw_error<DTypeError>("autocast: expected dtype bf16 or f16; got ", state.dtype);
  }
  Region& now = region();
  now.dtype = state.dtype;
  now.cache = state.cache;
  detail::casting = state.enabled;
}

void clear_autocast_cache() { region().parameters.clear(); }

int enter_autocast_region() { return ++region().depth; }
int leave_autocast_region() { return --region().depth; }

Autocast::Autocast(DType dtype, bool enabled, std::optional<bool> cache_enabled)
    : before_(autocast_state()) {
  set_autocast_state({enabled, dtype, cache_enabled.value_or(before_.cache)});
  enter_autocast_region();
}

Autocast::~Autocast() {
  if (leave_autocast_region() == 0) clear_autocast_cache();
  Region& now = region();
  now.dtype = before_.dtype;
  now.cache = before_.cache;
  detail::casting = before_.enabled;
}

namespace detail {

DType lower_dtype() { return region().dtype; }

bool may_cast(const Tensor& x) {
  if (!x.defined()) return false;
  const TensorImpl& state = state_of(x);
  if (!state.value.inner || state.is_complex()) return false;
  const DType dtype = state.dtype();
  return dtype == f32 || dtype == f16 || dtype == bf16;
}

DType wider(DType known, const Tensor& x) {
  if (!may_cast(x)) return known;
  return state_of(x).dtype() == known ? known : f32;
}

Tensor cast_operand(const Tensor& x, DType dtype) {
  if (!may_cast(x)) return x;
  const TensorImpl& state = impl_of("autocast", x);
  if (state.dtype() == dtype) return x;
  if (region().cache && region().depth > 0 && dtype == region().dtype && is_parameter(x, state)) {
    return cast_parameter(x, state, dtype);
  }
  return wrap(cast(state.value, dtype));
}

}  // namespace detail
}  // namespace kiln::amp
