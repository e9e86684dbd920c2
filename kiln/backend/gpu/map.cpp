// Elementwise ops, fills and copies: kernels/map.k.
#include <algorithm>

#include "kiln/backend/gpu/loops.h"
#include "kiln/backend/window_math.h"
#include "kiln/core/error.h"

namespace kiln::gpu {

namespace {

bool is_same_view(const GpuTensor& a, const GpuTensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.shape() == b.shape() &&
         a.strides() == b.strides();
}

bool has_distinct_elements(const GpuTensor& x) {
  for (int d = 0; d < x.shape().rank(); ++d) {
    if (x.shape()[d] > 1 && x.strides()[d] == 0) return false;
  }
  // as_strided may make windows that overlap; a row-major one has none.
  return x.is_contiguous() || x.shape().rank() <= 1 || [&] {
    std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
    for (int d = 0; d < x.shape().rank(); ++d) {
      if (x.shape()[d] > 1) dims.emplace_back(std::abs(x.strides()[d]), x.shape()[d]);
    }
    std::ranges::sort(dims);
    int64_t reach = 0;
    for (const auto& [stride, size] : dims) {
      if (stride <= reach) return false;
      reach += stride * (size - 1);
    }
    return true;
  }();
}

// Where the result of an elementwise op goes.
H destination(const Shape& shape, DType dtype, const std::vector<T>& inputs) {
  const T& first = inputs[0];
  const Device device = first->device();
  for (const T& x : inputs) {
    if (!(x->device() == device)) {
      throw_error<DeviceError>("opencl: operands on different devices; got ", device, " and ",
                               x->device(), "; expected one device");
    }
  }
  const bool fits = first->shape() == shape && first->dtype() == dtype;
  if (fits && first.is_in_place() && has_distinct_elements(*first.get())) {
    bool apart = true;
    for (size_t k = 1; k < inputs.size(); ++k) {
      apart = apart && (!window::may_overlap(*first.get(), *inputs[k].get()) ||
                        is_same_view(*first.get(), *inputs[k].get()));
    }
    if (apart) {
      first->storage()->bump_version();
      return first.get();
    }
  }
  if (fits && first.is_donated() && first.get().unique() && first->storage().unique() &&
      first->is_contiguous()) {
    return first.get();
  }
  return empty(shape, dtype, device);
}

template <class Number>
void launch_map(const H& to, const std::string& body, const std::vector<H>& inputs, Number s0,
                Number s1, Number s2, const char* op) {
  if (to->numel() == 0) return;
  const DType type = inputs.empty() ? to->dtype() : inputs[0]->dtype();
  Loop loop(to->shape());
  loop.add(to);
  KernelText kernel{"map", {}};
  kernel.defines = define("INDEX", loop.index_type()) + define("OUT", dialect_name(to->dtype())) +
                   define("INPUTS", std::to_string(inputs.size()));
  for (size_t k = 0; k < inputs.size(); ++k) {
    loop.add(inputs[k]);
    const char name[] = {'I', 'N', static_cast<char>('0' + k), 0};
    kernel.defines += define(name, dialect_name(inputs[k]->dtype()));
  }
  kernel.defines += define("SCALAR", scalar_type(type)) + arithmetic(type);
  GpuDevice& gpu = to->gpu();
  if (op != nullptr) kernel.defines += define("FAULT", "RAISE(fault, fault_code)");
  kernel.defines += define("BODY", body);
  const MapArgument m = loop.argument();
  const ScalarArgument a(type, s0);
  const ScalarArgument b(type, s1);
  const ScalarArgument c(type, s2);
  int32_t code = 0;
  std::vector<Argument> arguments = {Argument::bytes(m), Argument::memory(to->storage()->memory())};
  for (const H& x : inputs) arguments.push_back(Argument::memory(x->storage()->memory()));
  if (op != nullptr) {
    code = gpu.fault_code(op, FaultKind::divisor);
    arguments.push_back(Argument::memory(gpu.fault_word()));
    arguments.push_back(Argument::bytes(code));
  }
  for (const ScalarArgument* s : {&a, &b, &c}) arguments.push_back(s->argument());
  gpu.launch(kernel, static_cast<size_t>(m.n), arguments);
}

template <class Number>
H map_with(const std::string& body, DType out, const std::vector<T>& inputs, Number s0, Number s1,
           Number s2, const char* op) {
  Shape shape = inputs[0]->shape();
  for (size_t k = 1; k < inputs.size(); ++k) {
    shape = broadcast_shapes("opencl", shape, inputs[k]->shape());
  }
  H to = destination(shape, out, inputs);
  std::vector<H> handles;
  for (const T& x : inputs) handles.push_back(x.get());
  launch_map(to, body, handles, s0, s1, s2, op);
  return to;
}

}  // namespace

H map(const std::string& body, DType out, std::vector<T> inputs, Numbers n) {
  return map_with(body, out, inputs, n.s0, n.s1, n.s2, nullptr);
}
H map(const std::string& body, DType out, std::vector<T> inputs, Integers n) {
  return map_with(body, out, inputs, n.s0, n.s1, int64_t{0}, nullptr);
}
// An operand keeps its values where the op turns out to be an error.
H map_checked(const char* op, const std::string& body, DType out, std::vector<T> inputs) {
  for (T& x : inputs) x = T(x.get());
  return map_with(body, out, inputs, 0.0, 0.0, 0.0, op);
}
void map_into(const H& to, const std::string& body, std::vector<H> inputs, Numbers n) {
  launch_map(to, body, inputs, n.s0, n.s1, n.s2, nullptr);
}
void map_into(const H& to, const std::string& body, std::vector<H> inputs, Integers n) {
  launch_map(to, body, inputs, n.s0, n.s1, int64_t{0}, nullptr);
}

void fill_into(const H& to, Scalar value) {
  if (kind_of(to->dtype()) == Kind::floating) {
    map_into(to, "y = s0;", {}, Numbers{value.to_double()});
  } else {
    const int64_t whole =
        kind_of(to->dtype()) == Kind::boolean ? int64_t{value.to_bool()} : value.to_int();
    map_into(to, "y = (ACC(OUT))s0;", {}, Integers{whole});
  }
}

// Bits, whatever they stand for.
void copy_elements(const H& to, const H& from) {
  const size_t size = size_of(to->dtype());
  const DType bits = size == 8   ? DType::i64
                     : size == 4 ? DType::i32
                     : size == 2 ? DType::i16
                                 : DType::i8;
  const auto as_bits = [&](const H& x) {
    return make_handle<GpuTensor>(x->shape(), bits, x->device(), x->strides(), x->offset(),
                                  x->storage());
  };
  map_into(as_bits(to), "y = x0;", {as_bits(from)}, Integers{});
}

}  // namespace kiln::gpu
