// Elementwise ops, fills and copies: kernels/map.k.
#include <algorithm>

#include "kiln/backend/gpu/loops.h"
#include "kiln/backend/window_math.h"
#include "kiln/core/error.h"

namespace kiln::gpu {

namespace {

bool is_same_view(const GpuTensor& a, const GpuTensor& b) {
  return &a.storage()->root() == &b.storage()->root() && a.offset() == b.offset() &&
         a.shape() == b.shape() && a.strides() == b.strides();
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

Device one_device(Inputs inputs) {
  const Device device = (*inputs.begin())->device();
  for (const T& x : inputs) {
    if (!(x->device() == device)) {
      throw_error<DeviceError>("gpu: operands on different devices; got ", device, " and ",
                               x->device(), "; expected one device");
    }
  }
  return device;
}

// Where the result of an elementwise op goes.
H destination(const Shape& shape, DType dtype, Inputs inputs) {
  const T& first = *inputs.begin();
  const Device device = one_device(inputs);
  const bool fits = first->shape() == shape && first->dtype() == dtype;
  if (fits && first.is_in_place() && has_distinct_elements(*first.get())) {
    bool apart = true;
    for (const T* x = inputs.begin() + 1; x != inputs.end(); ++x) {
      apart = apart && (!window::may_overlap(*first.get(), *x->get()) ||
                        is_same_view(*first.get(), *x->get()));
    }
    if (apart) {
      first->storage()->bump_version();
      return first.get();
    }
  }
  if (fits && first.is_donated() && first.get().unique() && first->storage().unique() &&
      (first->is_contiguous() || is_channels_last(*first.get()))) {
    return first.get();
  }
  const bool last = std::ranges::any_of(
      inputs, [&](const T& x) { return x->shape() == shape && is_channels_last(*x.get()); });
  return empty(shape, dtype, device, last);
}

constexpr size_t kMostInputs = 3;

// The tensors that a map reads.
struct Read {
  explicit Read(Inputs inputs) {
    for (const T& x : inputs) add(x.get());
  }
  explicit Read(std::initializer_list<H> inputs) {
    for (const H& x : inputs) add(x);
  }
  void add(const H& x) { at[count++] = x.operator->(); }
  DType dtype(size_t k) const { return k < count ? at[k]->dtype() : DType::boolean; }

  std::array<const GpuTensor*, kMostInputs> at{};
  size_t count = 0;
};

// Elements that a work-item takes at once (VECTOR of map.k), and which inputs are read so (WIDE).
struct Vector {
  int64_t count = 1;
  int wide = 0;
};

Vector vector_of(const MapArgument& m, DType out, const Read& inputs) {
  Vector v{pack_of(out), 0};
  for (size_t k = 0; k < inputs.count; ++k) v.count = std::min(v.count, pack_of(inputs.dtype(k)));
  const int64_t last = m.rank - 1;
  if (m.n < kFewElements || (m.rank > 1 && m.size[last] % v.count != 0)) return {};
  for (size_t k = 0; k <= inputs.count; ++k) {
    if (m.step[k][last] == 0 && k > 0) continue;
    if (m.step[k][last] != 1 || m.offset[k] % v.count != 0) return {};
    for (int64_t d = 0; d < last; ++d) {
      if (m.step[k][d] % v.count != 0) return {};
    }
    if (k > 0) v.wide |= 1 << (k - 1);
  }
  return v;
}

template <class Number>
void launch_map(const H& to, const Body& body, const Read& inputs, Number s0, Number s1, Number s2,
                const char* op) {
  if (to->numel() == 0) return;
  const DType type = inputs.count == 0 ? to->dtype() : inputs.dtype(0);
  Loop loop(to->shape());
  loop.add(*to);
  for (size_t k = 0; k < inputs.count; ++k) loop.add(*inputs.at[k]);
  const MapArgument m = loop.argument(true);
  // Functions of a library take longer than reading and writing, and long to compile.
  const Vector vector = body.library ? Vector() : vector_of(m, to->dtype(), inputs);
  const auto defines = [&] {
    std::string out = define("INDEX", index_type(loop.is_wide())) +
                      define("OUT", dialect_name(to->dtype())) +
                      define("INPUTS", std::to_string(inputs.count)) +
                      define("VECTOR", std::to_string(vector.count)) +
                      define("WIDE", std::to_string(vector.wide));
    for (size_t k = 0; k < inputs.count; ++k) {
      const char name[] = {'I', 'N', static_cast<char>('0' + k), 0};
      out += define(name, dialect_name(inputs.dtype(k)));
    }
    out += define("SCALAR", scalar_type(type)) + arithmetic(type);
    if (op != nullptr) out += define("FAULT", "RAISE(fault, fault_code)");
    return out + define("BODY", body.text.get());
  };
  const Kernel kernel{
      .file = "map",
      .parts = {body.text},
      .choice = choice(loop.is_wide(), to->dtype(), inputs.count, inputs.dtype(0), inputs.dtype(1),
                       inputs.dtype(2), op != nullptr, vector.count, vector.wide),
      .libraries = {body.library},
      .defines = defines};
  GpuDevice& gpu = to->gpu();
  const ScalarArgument numbers[] = {{type, s0}, {type, s1}, {type, s2}};
  const int32_t code = op == nullptr ? 0 : gpu.fault_code(op, FaultKind::divisor);
  std::array<Argument, 2 + kMostInputs + 2 + 3> arguments{};
  size_t count = 0;
  arguments[count++] = Argument::bytes(m);
  arguments[count++] = Argument::memory(to->storage()->memory());
  for (size_t k = 0; k < inputs.count; ++k) {
    arguments[count++] = Argument::memory(inputs.at[k]->storage()->memory());
  }
  if (op != nullptr) {
    arguments[count++] = Argument::memory(gpu.fault_word());
    arguments[count++] = Argument::bytes(code);
  }
  for (const ScalarArgument& s : numbers) arguments[count++] = s.argument();
  const int64_t items = (m.n + vector.count - 1) / vector.count;
  gpu.launch(kernel, static_cast<size_t>(items), std::span(arguments).first(count));
}

template <class Number>
H map_with(const Body& body, DType out, Inputs inputs, Number s0, Number s1, Number s2,
           const char* op) {
  const T& first = *inputs.begin();
  Shape shape = first->shape();
  for (const T* x = inputs.begin() + 1; x != inputs.end(); ++x) {
    if (!((*x)->shape() == shape)) shape = broadcast_shapes("gpu", shape, (*x)->shape());
  }
  // An operand keeps its values where the op turns out to be an error.
  H to = op == nullptr ? destination(shape, out, inputs) : empty(shape, out, one_device(inputs));
  launch_map(to, body, Read(inputs), s0, s1, s2, op);
  return to;
}

}  // namespace

H map(const Body& body, DType out, Inputs inputs, Numbers n) {
  return map_with(body, out, inputs, n.s0, n.s1, n.s2, nullptr);
}
H map(const Body& body, DType out, Inputs inputs, Integers n) {
  return map_with(body, out, inputs, n.s0, n.s1, int64_t{0}, nullptr);
}
H map_checked(const char* op, const Body& body, DType out, Inputs inputs) {
  return map_with(body, out, inputs, 0.0, 0.0, 0.0, op);
}
void map_into(const H& to, const Body& body, std::initializer_list<H> inputs, Numbers n) {
  launch_map(to, body, Read(inputs), n.s0, n.s1, n.s2, nullptr);
}
void map_into(const H& to, const Body& body, std::initializer_list<H> inputs, Integers n) {
  launch_map(to, body, Read(inputs), n.s0, n.s1, int64_t{0}, nullptr);
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
