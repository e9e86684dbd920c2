// Moving and casting modules.
#include <unordered_set>

#include "kiln/core/complex.h"
#include "kiln/core/error.h"
#include "kiln/nn/module.h"
#include "kiln/nn/module_tree.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/pinned_memory.h"

namespace kiln::nn {
namespace {

// x itself when it lies so already.
Tensor in_format(const Tensor& x, MemoryFormat format) {
  if (format == MemoryFormat::preserve_format || x.dim() != 4) return x;
  if (format == MemoryFormat::contiguous_format) {
    return x.is_contiguous() ? x : x.detach().contiguous();
  }
  const Tensor rows = x.detach().permute({0, 2, 3, 1});
  return rows.is_contiguous() ? x : rows.contiguous().permute({0, 3, 1, 2});
}

bool has_gradients(DType dtype) { return is_floating_point(dtype) || is_complex(dtype); }

struct Target {
  std::optional<Device> device;
  std::optional<DType> dtype;
  bool all_kinds = false;  // integers and bools are cast too
  MemoryFormat format = MemoryFormat::preserve_format;
  bool without_values = false;
  bool non_blocking = false;

  bool casts(DType from) const {
    return dtype && *dtype != from && (all_kinds || has_gradients(from));
  }
  Tensor operator()(const Tensor& x) const {
    const Device to_device = device.value_or(x.device());
    const DType to_dtype = casts(x.dtype()) ? *dtype : x.dtype();
    if (without_values) return empty(x.shape(), {.dtype = to_dtype, .device = to_device});
    Tensor out = x;
    if (to_dtype != x.dtype()) out = x.detach().to(to_dtype);
    if (to_device != x.device()) {
      out = non_blocking ? to_non_blocking(out.detach(), to_device) : out.detach().to(to_device);
    }
    return in_format(out, format);
  }
};

void convert_lazy(Param<Tensor>& param, const Target& target) {
  if (target.device) param.set_lazy_device(*target.device);
  const std::optional<DType> made_as = param.lazy_dtype();
  // An initializer whose dtype nobody said is taken to make floats.
  if (target.dtype && (!made_as || target.casts(*made_as))) {
    param.set_lazy_dtype(*target.dtype, [cast = Target{.device = {},
                                                       .dtype = target.dtype,
                                                       .all_kinds = target.all_kinds}](Tensor x) {
      if (!cast.casts(x.dtype())) return x;
      NoGradGuard no_grad;
      Tensor out = cast(x);
      if (x.requires_grad() && has_gradients(out.dtype())) out.requires_grad_();
      return out;
    });
  }
  if (target.format != MemoryFormat::preserve_format && param.lazy_shape().rank() == 4) {
    param.init_mapper([format = target.format](Tensor x) {
      NoGradGuard no_grad;
      Tensor out = in_format(x, format);
      if (x.requires_grad()) out.requires_grad_();
      return out;
    });
  }
}

// The tensor stays the same object: whoever holds it, as an optimizer does, sees what it became.
// Only one with a history, which to_device() leaves, gives way to a leaf.
void convert(Param<Tensor>& param, const Target& target) {
  Tensor& x = *param;
  Tensor after = target(x);
  if (after.is_same(x)) return;
  const bool wants_grad = x.requires_grad() && has_gradients(after.dtype());
  if (!x.is_leaf()) {
    if (wants_grad) after.requires_grad_();
    param.replace(std::move(after));
    return;
  }
  const Tensor grad = x.grad();
  if (grad.defined()) x.set_grad({});
  if (!wants_grad) x.requires_grad_(false);
  interop::set_data(x, after);
  if (wants_grad && grad.defined() && !target.without_values) x.set_grad(target(grad));
}

void convert(Module& module, const Target& target, bool recurse = true) {
  NoGradGuard no_grad;
  // A tensor that several parameters share is converted once.
  std::unordered_set<const void*> converted;
  for (Param<Tensor>* param : detail::all_params(module, recurse)) {
    if (!param->defined()) continue;
    if (!param->is_initialized()) {
      convert_lazy(*param, target);
    } else if (converted.insert((*param)->impl().address()).second) {
      convert(*param, target);
    }
  }
  detail::tree_of(module, recurse)
      .for_each("", [&](const std::string&, const detail::ModuleTree& node) {
        for (const auto& [name, buffer] : node.buffers) {
          if (buffer->defined()) *buffer = target(buffer->get());
        }
      });
}

// What PyTorch called tensors of one dtype before there were dtypes.
constexpr std::pair<std::string_view, DType> kTensorNames[] = {
    {"HalfTensor", f16},      {"FloatTensor", f32},        {"DoubleTensor", f64},
    {"BFloat16Tensor", bf16}, {"LongTensor", i64},         {"IntTensor", i32},
    {"ShortTensor", i16},     {"CharTensor", i8},          {"ByteTensor", u8},
    {"BoolTensor", bool_},    {"ComplexFloatTensor", c64}, {"ComplexDoubleTensor", c128}};

void check_floating(DType dtype) {
  if (has_gradients(dtype)) return;
  throw_error<TypeError>("Module::to: only floating point and complex dtypes are accepted; got ",
                         dtype, "; try type(), which casts integers too");
}

}  // namespace

Module& Module::to(DType dtype, bool) {
  check_floating(dtype);
  convert(*this, {.device = {}, .dtype = dtype});
  return *this;
}

Module& Module::to(Device device, bool non_blocking) {
  convert(*this, {.device = device, .dtype = {}, .non_blocking = non_blocking});
  return *this;
}

Module& Module::to(Device device, DType dtype, bool non_blocking) {
  check_floating(dtype);
  convert(*this, {.device = device, .dtype = dtype, .non_blocking = non_blocking});
  return *this;
}

Module& Module::to(const Tensor& like, bool non_blocking) {
  return has_gradients(like.dtype()) ? to(like.device(), like.dtype(), non_blocking)
                                     : to(like.device(), non_blocking);
}

Module& Module::to(MemoryFormat format) {
  convert(*this, {.device = {}, .dtype = {}, .format = format});
  return *this;
}

Module& Module::to_empty(Device device, bool recurse) {
  convert(*this, {.device = device, .dtype = {}, .without_values = true}, recurse);
  return *this;
}

Module& Module::type(DType dtype) {
  convert(*this, {.device = {}, .dtype = dtype, .all_kinds = true});
  return *this;
}

Module& Module::type(std::string_view dtype) {
  for (const std::string_view prefix : {"torch.", "kiln."}) {
    if (dtype.starts_with(prefix)) dtype.remove_prefix(prefix.size());
  }
  for (const auto& [name, known] : kTensorNames) {
    if (dtype == name) return type(known);
  }
  return type(parse_dtype(dtype));
}

Module& Module::cuda(int index) {
  return to(Device(index == 0 ? std::string("cuda") : concat("cuda:", index)));
}

Module& Module::share_memory() {
  for (Param<Tensor>* param : detail::all_params(*this)) {
    if (!param->defined()) continue;
    (**param).share_memory_();
    if (Tensor grad = (**param).grad(); grad.defined() && !grad.is_shared()) {
      grad = grad.detach();
      (**param).set_grad(grad.share_memory_());
    }
  }
  detail::tree_of(*this).for_each("", [](const std::string&, const detail::ModuleTree& node) {
    for (const auto& [name, buffer] : node.buffers) {
      if (buffer->defined()) (**buffer).share_memory_();
    }
  });
  return *this;
}

}  // namespace kiln::nn
