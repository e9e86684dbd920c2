#include "kiln/backend/gpu/loops.h"

#include <algorithm>
#include <cstring>

#include "kiln/core/convert.h"
#include "kiln/core/error.h"

namespace kiln::gpu {

// ---- Loops

void Loop::add(const Strides& s, int64_t offset) {
  strides[static_cast<size_t>(operands)] = s;
  offsets[static_cast<size_t>(operands)] = offset;
  ++operands;
}

void Loop::add(const H& x) {
  Strides read = Shape::filled(shape.rank(), 0);
  const int lead = shape.rank() - x->shape().rank();
  for (int d = lead; d < shape.rank(); ++d) {
    if (x->shape()[d - lead] != 1) read[d] = x->strides()[d - lead];
  }
  add(read, x->offset());
}

MapArgument Loop::argument() const {
  MapArgument m;
  m.n = shape.numel();
  m.rank = 0;
  const auto stride = [&](int k, int d) {
    const Strides& s = strides[static_cast<size_t>(k)];
    return d < s.rank() ? s[d] : 0;
  };
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1) continue;
    bool joins = m.rank > 0;
    for (int k = 0; k < operands && joins; ++k) {
      joins = m.step[k][m.rank - 1] == stride(k, d) * shape[d];
    }
    if (!joins) ++m.rank;
    const int64_t at = m.rank - 1;
    m.size[at] = (joins ? m.size[at] : 1) * shape[d];
    for (int k = 0; k < operands; ++k) m.step[k][at] = stride(k, d);
  }
  if (m.rank == 0) {
    m.rank = 1;
    m.size[0] = 1;
  }
  for (size_t k = 0; k < 4; ++k) m.offset[k] = offsets[k];
  return m;
}

const char* Loop::index_type() const { return shape.numel() < (int64_t{1} << 31) ? "u32" : "u64"; }

const char* dialect_name(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::i16:
      return "i16";
    case DType::i8:
      return "i8";
    case DType::u8:
      return "u8";
    case DType::boolean:
      return "boolean";
    default:
      throw_unsupported_dtype("opencl", dtype);
  }
}

const char* scalar_type(DType dtype) {
  if (dtype == DType::f64) return "f64";
  return kind_of(dtype) == Kind::floating ? "f32" : "i64";
}

ScalarArgument::ScalarArgument(DType dtype, double value) {
  if (dtype == DType::f64) {
    std::memcpy(bytes_.data(), &value, 8);
  } else if (kind_of(dtype) == Kind::floating) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(bytes_.data(), &narrow, 4);
    size_ = 4;
  } else {
    const auto whole = convert_element<int64_t>(value);
    std::memcpy(bytes_.data(), &whole, 8);
  }
}
ScalarArgument::ScalarArgument(DType dtype, int64_t value) {
  if (kind_of(dtype) == Kind::floating) {
    *this = ScalarArgument(dtype, static_cast<double>(value));
  } else {
    std::memcpy(bytes_.data(), &value, 8);
  }
}

double rounded(Scalar value, DType dtype) {
  return visit_dtype("scalar", dtype, [&]<class E>() {
    return convert_element<double>(convert_element<E>(value.to_double()));
  });
}

// ---- Elementwise

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
  if (!inputs.empty()) {
    const T& first = inputs[0];
    const bool fits = first->shape() == shape && first->dtype() == dtype;
    if (fits && first.is_in_place() && has_distinct_elements(*first.get())) {
      bool apart = true;
      for (size_t k = 1; k < inputs.size(); ++k) {
        apart = apart && (!may_overlap(*first.get(), *inputs[k].get()) ||
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
    const Device device = first->device();
    for (const T& x : inputs) {
      if (!(x->device() == device)) {
        throw_error<DeviceError>("opencl: operands on different devices; got ", device, " and ",
                                 x->device(), "; expected one device");
      }
    }
  }
  return empty(shape, dtype, inputs[0]->device());
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
  kernel.defines += define("SCALAR", scalar_type(type)) +
                    define("A", concat("ACC(", dialect_name(type), ")")) +
                    define("W", concat("WRAP(", dialect_name(type), ")"));
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

void fill_into(const H& to, Scalar value) {
  if (kind_of(to->dtype()) == Kind::floating) {
    launch_map(to, "y = s0;", {}, value.to_double(), 0.0, 0.0, nullptr);
  } else {
    const int64_t whole =
        kind_of(to->dtype()) == Kind::boolean ? int64_t{value.to_bool()} : value.to_int();
    launch_map(to, "y = (ACC(OUT))s0;", {}, whole, int64_t{0}, int64_t{0}, nullptr);
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
  launch_map(as_bits(to), "y = x0;", {as_bits(from)}, int64_t{0}, int64_t{0}, int64_t{0}, nullptr);
}

// ---- Reductions

namespace {

struct ReductionArgument {
  int64_t outputs = 1;
  int64_t length = 1;
  int64_t chunk = 1;
  int64_t chunks = 1;
  int64_t offset = 0;
  int64_t outer_rank = 0;
  int64_t outer_size[kMaxRank] = {};
  int64_t outer_step[kMaxRank] = {};
  int64_t inner_rank = 0;
  int64_t inner_size[kMaxRank] = {};
  int64_t inner_step[kMaxRank] = {};
};

void add_dim(int64_t* rank, int64_t* sizes, int64_t* steps, int64_t size, int64_t step) {
  if (size == 1) return;
  if (*rank > 0 && steps[*rank - 1] == step * size) {
    sizes[*rank - 1] *= size;
    steps[*rank - 1] = step;
    return;
  }
  sizes[*rank] = size;
  steps[*rank] = step;
  ++*rank;
}

ReductionArgument reduction_of(const H& x, const Dims& dims) {
  ReductionArgument r;
  r.offset = x->offset();
  for (int d = 0; d < x->shape().rank(); ++d) {
    const bool inner = std::ranges::find(dims, d) != dims.end();
    (inner ? r.length : r.outputs) *= x->shape()[d];
    if (inner) {
      add_dim(&r.inner_rank, r.inner_size, r.inner_step, x->shape()[d], x->strides()[d]);
    } else {
      add_dim(&r.outer_rank, r.outer_size, r.outer_step, x->shape()[d], x->strides()[d]);
    }
  }
  for (auto [rank, sizes] :
       {std::pair{&r.outer_rank, r.outer_size}, {&r.inner_rank, r.inner_size}}) {
    if (*rank == 0) {
      *rank = 1;
      sizes[0] = 1;
    }
  }
  r.chunk = std::max<int64_t>(r.length, 1);
  return r;
}

// What is joined: 16-bit floats in f32, small integers in i32.
DType total_dtype(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
      return DType::f32;
    case DType::i16:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return DType::i32;
    default:
      return dtype;
  }
}

const char* reduction_index(const ReductionArgument& r) {
  return r.outputs * r.length < (int64_t{1} << 31) ? "u32" : "u64";
}

constexpr int64_t kColumnLength = 64;  // rows this short are one work-item's
constexpr int64_t kRowLength = 1 << 14;
constexpr int64_t kFewOutputs = 256;

void launch_reduction(const Reducer& reducer, const H& x, const ReductionArgument& r, const H& to,
                      DType total, const char* each, const char* finish, bool columns,
                      double number) {
  KernelText kernel{"reduce", {}};
  kernel.defines = define("INDEX", reduction_index(r)) + define("IN0", dialect_name(x->dtype())) +
                   define("OUT", dialect_name(to->dtype())) +
                   define("TOTAL", concat("ACC(", dialect_name(total), ")")) +
                   define("A", concat("ACC(", dialect_name(total), ")")) +
                   define("W", concat("WRAP(", dialect_name(total), ")")) +
                   define("SCALAR", scalar_type(total)) + define("FIRST", reducer.first) +
                   define("EACH", each) + define("JOINED", reducer.joined) +
                   define("FINISH", finish);
  if (columns) kernel.defines += define("COLUMNS", "1");
  const ScalarArgument s(total, number);
  const Argument arguments[] = {Argument::bytes(r), Argument::memory(to->storage()->memory()),
                                Argument::memory(x->storage()->memory()), s.argument()};
  const auto count = static_cast<size_t>(r.outputs * r.chunks);
  if (columns) {
    x->gpu().launch(kernel, count, arguments);
  } else {
    x->gpu().launch_groups(kernel, {count, 1, 1}, {kGroup, 1, 1}, arguments);
  }
}

}  // namespace

H reduce(const Reducer& reducer, const H& x, const Dims& dims, bool keepdim, DType out,
         double number) {
  H to = empty(reduced_shape(x->shape(), dims, keepdim), out, x->device());
  if (to->numel() == 0) return to;
  ReductionArgument r = reduction_of(x, dims);
  const DType total = total_dtype(x->dtype());
  // Where neighbours among the rows are neighbours in memory, work-items side by side read side by
  // side.
  const bool side_by_side = r.outer_step[r.outer_rank - 1] == 1 && r.outputs >= kFewOutputs;
  const bool columns = r.length <= kColumnLength || side_by_side;
  const int64_t longest = columns ? kColumnLength * 2 : kRowLength;
  if (r.length <= longest || (r.length <= 2 * kRowLength && !columns)) {
    launch_reduction(reducer, x, r, to, total, reducer.each, reducer.finish, columns, number);
    return to;
  }
  r.chunk = longest;
  r.chunks = (r.length + longest - 1) / longest;
  const H parts = empty(Shape{r.outputs, r.chunks}, total, x->device());
  launch_reduction(reducer, x, r, parts, total, reducer.each, "a", columns, number);
  const Reducer rest{reducer.first, "x", reducer.joined, reducer.finish};
  const H result = reduce(rest, parts, Dims{1}, false, out, number);
  return view(result, to->shape(), to->strides(), 0);
}

H arg_reduce(const char* better, const H& x, int dim, bool keepdim) {
  const Dims dims{dim};
  H to = empty(reduced_shape(x->shape(), dims, keepdim), DType::i64, x->device());
  if (to->numel() == 0) return to;
  const ReductionArgument r = reduction_of(x, dims);
  KernelText kernel{"arg", {}};
  kernel.defines = define("INDEX", reduction_index(r)) + define("IN0", dialect_name(x->dtype())) +
                   define("BETTER", better);
  if (kind_of(x->dtype()) == Kind::floating) kernel.defines += define("FLOATS", "1");
  const Argument arguments[] = {Argument::bytes(r), Argument::memory(to->storage()->memory()),
                                Argument::memory(x->storage()->memory())};
  x->gpu().launch_groups(kernel, {static_cast<size_t>(r.outputs), 1, 1}, {kGroup, 1, 1}, arguments);
  return to;
}

// ---- Products

namespace {

struct ProductArgument {
  int64_t n = 0;
  int64_t m = 0;
  int64_t depth = 0;
  int64_t batch_first = 0;
  int64_t a_offset = 0;
  int64_t a_row = 0;
  int64_t a_column = 0;
  int64_t b_offset = 0;
  int64_t b_row = 0;
  int64_t b_column = 0;
  int64_t rank = 0;
  int64_t size[kMaxRank] = {};
  int64_t a_step[kMaxRank] = {};
  int64_t b_step[kMaxRank] = {};
};

Shape batch_of(const Shape& shape) {
  Shape out = shape;
  out.erase(out.rank() - 1);
  out.erase(out.rank() - 1);
  return out;
}

constexpr int64_t kSide = 16;
constexpr int64_t kMostBatches = 65535;  // CUDA's grids end there

}  // namespace

H matmul(const H& x, const H& y) {
  const int xr = x->shape().rank();
  const int yr = y->shape().rank();
  ProductArgument p;
  p.n = x->shape()[xr - 2];
  p.depth = x->shape()[xr - 1];
  p.m = y->shape()[yr - 1];
  const Shape batch = broadcast_shapes("matmul", batch_of(x->shape()), batch_of(y->shape()));
  Shape shape = batch;
  shape.push_back(p.n);
  shape.push_back(p.m);
  H to = empty(shape, x->dtype(), x->device());
  if (to->numel() == 0) return to;
  p.a_offset = x->offset();
  p.a_row = x->strides()[xr - 2];
  p.a_column = x->strides()[xr - 1];
  p.b_offset = y->offset();
  p.b_row = y->strides()[yr - 2];
  p.b_column = y->strides()[yr - 1];
  p.rank = std::max(batch.rank(), 1);
  p.size[0] = 1;
  const auto steps = [&](const H& t, int64_t* out) {
    const int lead = batch.rank() - (t->shape().rank() - 2);
    for (int d = lead; d < batch.rank(); ++d) {
      if (t->shape()[d - lead] != 1) out[d] = t->strides()[d - lead];
    }
  };
  for (int d = 0; d < batch.rank(); ++d) p.size[d] = batch[d];
  steps(x, p.a_step);
  steps(y, p.b_step);
  const bool large = p.n >= 64 && p.m >= 64;
  const int64_t tile = large ? 4 * kSide : kSide;
  KernelText kernel{"matmul", {}};
  kernel.defines =
      define("INDEX", "u32") + define("IN0", dialect_name(x->dtype())) +
      define("OUT", dialect_name(x->dtype())) + define("PER", large ? "4" : "1") +
      define("PRODUCT_SUM(v, w, s)",
             kind_of(x->dtype()) == Kind::floating ? "fma(v, w, s)" : "((v) * (w) + (s))");
  const int64_t batches = batch.numel();
  for (; p.batch_first < batches; p.batch_first += kMostBatches) {
    const Argument arguments[] = {Argument::bytes(p), Argument::memory(to->storage()->memory()),
                                  Argument::memory(x->storage()->memory()),
                                  Argument::memory(y->storage()->memory())};
    const Extent groups{static_cast<size_t>((p.m + tile - 1) / tile),
                        static_cast<size_t>((p.n + tile - 1) / tile),
                        static_cast<size_t>(std::min(kMostBatches, batches - p.batch_first))};
    x->gpu().launch_groups(kernel, groups, {kSide, kSide, 1}, arguments);
  }
  return to;
}

// ---- Indices

namespace {

// The strides of x but for a dim.
Strides without(const Strides& strides, int dim) {
  Strides out = strides;
  out.erase(dim);
  return out;
}

struct FaultArguments {
  FaultArguments(GpuDevice& gpu, const char* op, FaultKind kind)
      : word(gpu.fault_word()), code(gpu.fault_code(op, kind)) {}
  Memory word;
  int32_t code;
};

}  // namespace

H gather(const char* op, const H& x, int dim, const H& index) {
  H to = empty(index->shape(), x->dtype(), x->device());
  if (to->numel() == 0) return to;
  Loop loop(index->shape());
  loop.add(to);
  loop.add(index);
  Strides strides = x->strides();
  strides[dim] = 0;
  loop.add(strides, x->offset());
  KernelText kernel{"gather",
                    define("INDEX", loop.index_type()) + define("IN0", dialect_name(x->dtype()))};
  const MapArgument m = loop.argument();
  const int64_t size = x->shape()[dim];
  const int64_t step = x->strides()[dim];
  const FaultArguments fault(x->gpu(), op, FaultKind::index);
  const Argument arguments[] = {Argument::bytes(m),
                                Argument::memory(to->storage()->memory()),
                                Argument::memory(index->storage()->memory()),
                                Argument::memory(x->storage()->memory()),
                                Argument::bytes(size),
                                Argument::bytes(step),
                                Argument::memory(fault.word),
                                Argument::bytes(fault.code)};
  x->gpu().launch(kernel, static_cast<size_t>(m.n), arguments);
  return to;
}

H spread_index(const H& index, int dim, const Shape& shape) {
  Strides strides = Shape::filled(shape.rank(), 0);
  strides[dim] = index->strides()[0];
  return view(index, shape, strides, index->offset());
}

H scatter(const char* op, const char* combined, const H& x, int dim, const H& index, const H& src) {
  H to = empty(x->shape(), x->dtype(), x->device());
  if (to->numel() != 0) copy_elements(to, x);
  if (index->numel() == 0) return to;
  Shape lines = index->shape();
  lines.erase(dim);
  Loop loop(lines);
  // A result of no elements has no place for any index: every one is out of range.
  loop.add(without(to->strides(), dim), 0);
  loop.add(without(index->strides(), dim), index->offset());
  loop.add(without(src->strides(), dim), src->offset());
  KernelText kernel{"scatter", define("INDEX", loop.index_type()) +
                                   define("IN0", dialect_name(x->dtype())) +
                                   define("W", concat("WRAP(", dialect_name(x->dtype()), ")")) +
                                   define("A", concat("ACC(", dialect_name(x->dtype()), ")")) +
                                   define("COMBINED", combined)};
  const MapArgument m = loop.argument();
  const int64_t count = index->shape()[dim];
  const int64_t index_step = index->strides()[dim];
  const int64_t src_step = src->strides()[dim];
  const int64_t size = x->shape()[dim];
  const int64_t step = to->strides()[dim];
  const FaultArguments fault(x->gpu(), op, FaultKind::index);
  const Argument arguments[] = {Argument::bytes(m),
                                Argument::memory(to->storage()->memory()),
                                Argument::memory(index->storage()->memory()),
                                Argument::memory(src->storage()->memory()),
                                Argument::bytes(count),
                                Argument::bytes(index_step),
                                Argument::bytes(src_step),
                                Argument::bytes(size),
                                Argument::bytes(step),
                                Argument::memory(fault.word),
                                Argument::bytes(fault.code)};
  x->gpu().launch(kernel, static_cast<size_t>(m.n), arguments);
  return to;
}

// ---- Along a dim

H scan(const char* state, const char* body, const H& x, int dim, DType out, const H* second,
       bool reversed) {
  H to = empty(x->shape(), out, x->device());
  if (to->numel() == 0) return to;
  const int64_t count = x->shape()[dim];
  Shape lines = x->shape();
  lines.erase(dim);
  Loop loop(lines);
  const auto add = [&](const H& t) {
    const int64_t step = t->strides()[dim];
    loop.add(without(t->strides(), dim), t->offset() + (reversed ? (count - 1) * step : 0));
    return reversed ? -step : step;
  };
  const int64_t out_step = add(to);
  const int64_t step0 = add(x);
  int64_t step1 = 0;
  KernelText kernel{"scan", {}};
  kernel.defines = define("INPUTS", second == nullptr ? "1" : "2") +
                   define("OUT", dialect_name(out)) + define("IN0", dialect_name(x->dtype()));
  if (second != nullptr) {
    step1 = add(*second);
    kernel.defines += define("IN1", dialect_name((*second)->dtype()));
  }
  kernel.defines += define("INDEX", loop.index_type()) +
                    define("A", concat("ACC(", dialect_name(x->dtype()), ")")) +
                    define("W", concat("WRAP(", dialect_name(x->dtype()), ")")) +
                    define("STATE", state) + define("BODY", body);
  const MapArgument m = loop.argument();
  std::vector<Argument> arguments = {Argument::bytes(m), Argument::memory(to->storage()->memory()),
                                     Argument::memory(x->storage()->memory())};
  if (second != nullptr) {
    arguments.push_back(Argument::memory((*second)->storage()->memory()));
    arguments.push_back(Argument::bytes(step1));
  }
  for (const int64_t* each : {&count, &out_step, &step0})
    arguments.push_back(Argument::bytes(*each));
  x->gpu().launch(kernel, static_cast<size_t>(m.n), arguments);
  return to;
}

H argsort(const H& x, int dim, bool descending) {
  const int rank = x->shape().rank();
  if (x->numel() == 0 || rank == 0) {
    H to = empty(x->shape(), DType::i64, x->device());
    if (x->numel() != 0) fill_into(to, int64_t{0});
    return to;
  }
  const int64_t count = x->shape()[dim];
  int64_t width = 2;
  while (width < count) width *= 2;
  Shape lines = x->shape();
  lines.erase(dim);
  const int64_t rows = lines.numel();
  Shape wide = lines;
  wide.push_back(width);
  const H places = empty(wide, DType::i64, x->device());
  launch_map(places, "y = i % s0;", {}, width, int64_t{0}, int64_t{0}, nullptr);
  Loop loop(lines);
  loop.add(Shape::filled(lines.rank(), 0), 0);
  loop.add(without(x->strides(), dim), x->offset());
  KernelText kernel{"sort", define("INDEX", loop.index_type()) +
                                define("IN0", dialect_name(x->dtype())) +
                                define("DESCENDING", descending ? "1" : "0")};
  if (kind_of(x->dtype()) == Kind::floating) kernel.defines += define("FLOATS", "1");
  const MapArgument m = loop.argument();
  const int64_t step = x->strides()[dim];
  for (int64_t run = 2; run <= width; run *= 2) {
    for (int64_t gap = run / 2; gap > 0; gap /= 2) {
      const Argument arguments[] = {Argument::bytes(m),
                                    Argument::memory(x->storage()->memory()),
                                    Argument::memory(places->storage()->memory()),
                                    Argument::bytes(step),
                                    Argument::bytes(count),
                                    Argument::bytes(width),
                                    Argument::bytes(run),
                                    Argument::bytes(gap)};
      x->gpu().launch(kernel, static_cast<size_t>(rows * (width / 2)), arguments);
    }
  }
  // The dim goes back to its place, and what stands for nothing goes.
  Strides strides = places->strides();
  const int64_t last = strides.back();
  strides.erase(rank - 1);
  strides.insert(dim, last);
  return contiguous(view(places, x->shape(), strides, 0));
}

H searchsorted(const H& sorted, const H& values, bool right) {
  H to = empty(values->shape(), DType::i64, values->device());
  if (to->numel() == 0) return to;
  Loop loop(values->shape());
  loop.add(to);
  loop.add(values);
  Strides starts = Shape::filled(values->shape().rank(), 0);
  if (sorted->shape().rank() > 1) {
    for (int d = 0; d + 1 < sorted->shape().rank(); ++d) starts[d] = sorted->strides()[d];
  }
  loop.add(starts, sorted->offset());
  KernelText kernel{"search", define("INDEX", loop.index_type()) +
                                  define("IN0", dialect_name(values->dtype())) +
                                  define("RIGHT", right ? "1" : "0")};
  if (kind_of(values->dtype()) == Kind::floating) kernel.defines += define("FLOATS", "1");
  const MapArgument m = loop.argument();
  const int64_t count = sorted->shape().back();
  const int64_t step = sorted->strides().back();
  const Argument arguments[] = {Argument::bytes(m),
                                Argument::memory(to->storage()->memory()),
                                Argument::memory(values->storage()->memory()),
                                Argument::memory(sorted->storage()->memory()),
                                Argument::bytes(count),
                                Argument::bytes(step)};
  values->gpu().launch(kernel, static_cast<size_t>(m.n), arguments);
  return to;
}

namespace {

// Running sums of n numbers: of rows of them side by side, then of the rows' sums.
H running_count(const H& flat) {
  constexpr int64_t kRow = 128;
  const int64_t n = flat->shape()[0];
  const char* body = "h = (A)((W)h + (W)x0); y = h;";
  if (n <= kRow) return scan("A h = 0;", body, flat, 0, DType::i64);
  const int64_t rows = (n + kRow - 1) / kRow;
  const H padded = empty(Shape{rows, kRow}, DType::i64, flat->device());
  fill_into(padded, int64_t{0});
  copy_elements(view(padded, Shape{n}, Strides{1}, 0), flat);
  const H within = scan("A h = 0;", body, padded, 1, DType::i64);
  const H sums = running_count(contiguous(view(within, Shape{rows}, Strides{kRow}, kRow - 1)));
  // Row r goes on from the sum of rows before it.
  const H later = view(within, Shape{rows - 1, kRow}, Strides{kRow, 1}, kRow);
  map_into(later, "y = (A)((W)x0 + (W)x1);",
           {later, view(sums, Shape{rows - 1, 1}, Strides{1, 1}, 0)});
  return view(within, Shape{n}, Strides{1}, 0);
}

}  // namespace

H nonzero(const H& mask) {
  const int64_t n = mask->numel();
  const int rank = mask->shape().rank();
  if (n == 0) return empty(Shape{0, rank}, DType::i64, mask->device());
  const H rows = contiguous(mask);
  const H flat = view(rows, Shape{n}, Strides{1}, rows->offset());
  const H ones = empty(Shape{n}, DType::i64, mask->device());
  map_into(ones, "y = x0 != 0;", {flat});
  const H counts = running_count(ones);
  int64_t found = 0;
  const auto last = static_cast<size_t>(counts->offset() + n - 1) * sizeof(int64_t);
  mask->gpu().read(*counts->storage(), last, &found, sizeof found);
  H to = empty(Shape{found, rank}, DType::i64, mask->device());
  if (to->numel() == 0) return to;
  Loop loop(Shape{n});
  loop.add(Strides{0}, 0);
  loop.add(flat);
  loop.add(counts);
  MapArgument shape;
  shape.rank = rank;
  for (int d = 0; d < rank; ++d) shape.size[d] = mask->shape()[d];
  const MapArgument m = loop.argument();
  const Argument arguments[] = {Argument::bytes(m), Argument::memory(to->storage()->memory()),
                                Argument::memory(flat->storage()->memory()),
                                Argument::memory(counts->storage()->memory()),
                                Argument::bytes(shape)};
  mask->gpu().launch({"nonzero", define("INDEX", loop.index_type())}, static_cast<size_t>(n),
                     arguments);
  return to;
}

}  // namespace kiln::gpu
