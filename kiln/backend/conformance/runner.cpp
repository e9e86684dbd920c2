#include "kiln/backend/conformance/runner.h"

#include <algorithm>

#include "kiln/backend/host_tensor.h"

namespace kiln::conformance {
namespace {

// ---- Arguments to parameters

// A case may hand an int where the op takes a double only by mistake: then std::get throws.
template <class P>
decltype(auto) pass(Live& live, Handing handing, Device device, bool first) {
  using T = std::remove_cvref_t<P>;
  if constexpr (std::is_same_v<T, Arg<ErasedTensor>>) {
    ErasedTensor& x = live.views.at(0);
    if (handing == Handing::donated) return T(std::move(x));
    return first && handing == Handing::in_place ? T::in_place(x) : T(x);
  } else if constexpr (std::is_same_v<T, const ErasedTensor*>) {
    return static_cast<T>(live.views.empty() ? nullptr : &live.views[0]);
  } else if constexpr (std::is_same_v<T, std::span<const ErasedTensor>> ||
                       std::is_same_v<T, std::span<ErasedTensor>>) {
    return T(live.views);
  } else if constexpr (std::is_same_v<T, Device>) {
    return device;
  } else if constexpr (std::is_same_v<T, TensorData>) {
    return static_cast<const TensorData&>(std::get<HostData>(*live.argument).data);
  } else {
    return static_cast<const T&>(std::get<T>(*live.argument));
  }
}

using Outputs = std::vector<TensorData>;

void collect(const Runner& runner, const ErasedTensor& x, Outputs* outputs) {
  outputs->push_back(runner.into_data(x));
  if (kind_of(x->dtype()) == Kind::quantized) {
    outputs->push_back(runner.into_data(runner.table().q_scales(x)));
  }
}
void collect(const Runner&, const TensorData& data, Outputs* outputs) { outputs->push_back(data); }
void collect(const Runner&, const QuantScheme& scheme, Outputs* outputs) {
  outputs->push_back(TensorData(
      std::vector<double>{scheme.scale, static_cast<double>(scheme.bits),
                          static_cast<double>(scheme.level), static_cast<double>(scheme.block)},
      Shape{4}));
}
template <class A, class C>
void collect(const Runner& runner, const std::pair<A, C>& pair, Outputs* outputs) {
  collect(runner, pair.first, outputs);
  collect(runner, pair.second, outputs);
}
template <class... T>
void collect(const Runner& runner, const std::tuple<T...>& tuple, Outputs* outputs) {
  std::apply([&](const auto&... x) { (collect(runner, x, outputs), ...); }, tuple);
}

template <class R, class... P, size_t... I>
void call(R (*op)(P...), const Runner& runner, std::vector<Live>& live, Handing handing,
          Outputs* outputs, std::index_sequence<I...>) {
  if (live.size() != sizeof...(P)) throw std::logic_error("wrong number of arguments");
  const Device device = runner.device();
  if constexpr (std::is_void_v<R>) {
    op(pass<P>(live[I], handing, device, I == 0)...);
  } else {
    collect(runner, op(pass<P>(live[I], handing, device, I == 0)...), outputs);
  }
}

// One entry for each op: how it is called.
struct Entry {
  const char* name;
  void (*call)(const Runner&, std::vector<Live>&, Handing, Outputs*);
};

template <class R, class... P>
void call(R (*op)(P...), const Runner& runner, std::vector<Live>& live, Handing handing,
          Outputs* outputs) {
  call(op, runner, live, handing, outputs, std::index_sequence_for<P...>());
}

const Entry kEntries[] = {
#define KILN_OP(level, op_name, ...)                                                          \
  {#op_name, [](const Runner& runner, std::vector<Live>& live, Handing handing, Outputs* o) { \
     call(runner.table().op_name, runner, live, handing, o);                                  \
   }},
#include "kiln/backend/ops.def"
};

const Entry& entry_of(const std::string& op) {
  for (const Entry& entry : kEntries) {
    if (op == entry.name) return entry;
  }
  throw std::logic_error("no such op: " + op);
}

// ---- Layouts, on the host

HostHandle on_host(const TensorData& data) { return host::from_data(data, Device()); }
TensorData off_host(const HostHandle& x) { return host::into_data(x); }

// Fills with something that must never show: NaN, or 77.
void fill_with_filler(TensorData& data) {
  const Scalar filler = kind_of(data.dtype()) == Kind::floating
                            ? Scalar(std::numeric_limits<double>::quiet_NaN())
                            : Scalar(77);
  visit_dtype("filler", data.dtype(), [&]<class T>() {
    std::ranges::fill(data.as_mutable<T>(), static_cast<T>(filler.to_double()));
  });
}

// Copies `data` into the strided view `to`.
void copy_into(const HostHandle& to, const TensorData& data) {
  visit_dtype("copy", data.dtype(), [&]<class T>() {
    const auto values = data.as<T>();
    Shape index = Shape::filled(to->shape().rank(), 0);
    for (const T& value : values) {
      int64_t offset = 0;
      for (int d = 0; d < index.rank(); ++d) offset += index[d] * to->strides()[d];
      to->data_as<T>()[offset] = value;
      for (int d = index.rank() - 1; d >= 0; --d) {
        if (++index[d] < to->shape()[d]) break;
        index[d] = 0;
      }
    }
  });
}

}  // namespace

std::string to_string(Layout layout) {
  switch (layout) {
    case Layout::contiguous:
      return "contiguous";
    case Layout::permuted:
      return "permuted";
    case Layout::sliced:
      return "sliced";
    case Layout::expanded:
      return "expanded";
  }
  return "";
}

std::string to_string(Handing handing) {
  switch (handing) {
    case Handing::borrowed:
      return "borrowed";
    case Handing::donated:
      return "donated";
    case Handing::in_place:
      return "in place";
  }
  return "";
}

Dims reversed_dims(int rank) {
  Dims dims = all_dims(rank);
  std::reverse(dims.begin(), dims.end());
  return dims;
}

TensorData transposed(const TensorData& data) {
  return off_host(host::permute(on_host(data), reversed_dims(data.shape().rank())));
}

TensorData first_row(const TensorData& data) {
  return off_host(host::slice(on_host(data), 0, {0, 1, 1}));
}

TensorData embedded(const TensorData& data, std::vector<Range>* ranges) {
  Shape shape = data.shape();
  const int last = shape.rank() - 1;
  for (int d = 0; d <= last; ++d) {
    const int64_t n = shape[d];
    // Every other element of the last dim; of the first, all but the ends.
    const Range range = d == last ? Range{1, std::max<int64_t>(2 * n, 1), 2}
                        : d == 0  ? Range{1, n + 1, 1}
                                  : Range{0, n, 1};
    ranges->push_back(range);
    if (d == last) {
      shape[d] = 2 * n + 1;
    } else if (d == 0) {
      shape[d] = n + 2;
    }
  }
  TensorData big(shape, data.dtype());
  fill_with_filler(big);
  const HostHandle base = on_host(big);
  HostHandle view = base;
  for (int d = 0; d <= last; ++d) view = host::slice(view, d, (*ranges)[static_cast<size_t>(d)]);
  copy_into(view, data);
  return off_host(base);
}

// ---- Tensors by kind

namespace {

TensorData portrait(const ViewTable& views, const ErasedTensor& x) {
  const kiln::Layout layout = views.layout(x);
  const Shape& shape = x->shape();
  std::vector<int64_t> numbers{static_cast<int64_t>(x->dtype()), shape.rank()};
  numbers.insert(numbers.end(), shape.begin(), shape.end());
  for (int d = 0; layout && d < shape.rank(); ++d) {
    numbers.push_back(shape[d] == 1 || shape.contains(0) ? 0 : (*layout.strides)[d]);
  }
  return TensorData(numbers, Shape{static_cast<int64_t>(numbers.size())});
}

}  // namespace

ErasedTensor Runner::from_data(const TensorData& data) const {
  switch (kind_of(data.dtype())) {
    case Kind::floating:
      return table_->float_from_data(data, device_);
    case Kind::integer:
      return table_->int_from_data(data, device_);
    default:
      return table_->bool_from_data(data, device_);
  }
}

TensorData Runner::into_data(const ErasedTensor& x) const {
  if (!values_) {
    return portrait(*views_, kind_of(x->dtype()) == Kind::quantized ? table_->q_values(x) : x);
  }
  switch (kind_of(x->dtype())) {
    case Kind::floating:
      return table_->float_into_data(x);
    case Kind::integer:
      return table_->int_into_data(x);
    case Kind::boolean:
      return table_->bool_into_data(x);
    default:
      return table_->int_into_data(table_->q_values(x));
  }
}

#define KILN_BY_KIND(name, ...)                    \
  switch (kind_of(x->dtype())) {                   \
    case Kind::floating:                           \
      return table_->float_##name(x, __VA_ARGS__); \
    case Kind::integer:                            \
      return table_->int_##name(x, __VA_ARGS__);   \
    default:                                       \
      return table_->bool_##name(x, __VA_ARGS__);  \
  }
ErasedTensor Runner::permute(const ErasedTensor& x, const Dims& dims) const {
    KILN_BY_KIND(permute, dims)} ErasedTensor Runner::slice(const ErasedTensor& x, int dim,
                                                            Range range) const {
    KILN_BY_KIND(slice, dim, range)} ErasedTensor Runner::expand(const ErasedTensor& x,
                                                                 const Shape& shape) const {
    KILN_BY_KIND(expand, shape)} ErasedTensor Runner::reshape(const ErasedTensor& x,
                                                              const Shape& shape) const {
  KILN_BY_KIND(reshape, shape)
}
void Runner::assign(const ErasedTensor& x, const ErasedTensor& value) const {
  KILN_BY_KIND(assign, value)
}
#undef KILN_BY_KIND

// ---- Runs

void Runner::add(const Operand& operand, Layout layout, Live* live) const {
  const TensorData& data = operand.data;
  const int rank = data.shape().rank();
  if (data.dtype() == DType::q8) {
    const DType stored = QuantLayout(operand.shape, operand.scheme).values_dtype;
    const TensorData values(data.shape(), stored, data.storage(), data.byte_offset());
    live->bases.push_back(table_->q_from_parts(table_->int_from_data(values, device_),
                                               table_->float_from_data(operand.scales, device_),
                                               operand.scheme, operand.shape));
    live->views.push_back(live->bases.back());
    return;
  }
  if (rank == 0 || (layout == Layout::expanded && data.shape()[0] < 2)) {
    layout = Layout::contiguous;
  }
  ErasedTensor base;
  ErasedTensor view;
  switch (layout) {
    case Layout::contiguous:
      base = view = from_data(data);
      break;
    case Layout::permuted:
      base = from_data(transposed(data));
      view = permute(base, reversed_dims(rank));
      break;
    case Layout::sliced: {
      std::vector<Range> ranges;
      base = view = from_data(embedded(data, &ranges));
      for (int d = 0; d < rank; ++d) view = slice(view, d, ranges[static_cast<size_t>(d)]);
      break;
    }
    case Layout::expanded:
      base = from_data(first_row(data));
      view = expand(base, data.shape());
      break;
  }
  live->bases.push_back(std::move(base));
  live->views.push_back(std::move(view));
}

std::vector<Live> Runner::materialize(const Case& c, Layout layout, Handing handing,
                                      Outcome* outcome) const {
  std::vector<Live> live(c.arguments.size());
  for (size_t i = 0; i < live.size(); ++i) {
    live[i].argument = &c.arguments[i];
    if (const auto* operand = std::get_if<Operand>(live[i].argument)) {
      add(*operand, layout, &live[i]);
    } else if (const auto* list = std::get_if<OperandList>(live[i].argument)) {
      for (const Operand& each : *list) add(each, layout, &live[i]);
    }
    // A donated tensor must be its holder's only one.
    if (handing == Handing::donated) live[i].bases.clear();
    for (const ErasedTensor& base : live[i].bases) outcome->before.push_back(into_data(base));
  }
  return live;
}

Outcome Runner::run(const Case& c, Layout layout, Handing handing) const {
  Outcome outcome;
  std::vector<Live> live;
  uint32_t version = 0;
  const auto version_of_first = [&] {
    const bool asked = handing == Handing::in_place && !live.empty() && !live[0].bases.empty();
    return asked ? table_->version(live[0].bases[0]) : 0;
  };
  try {
    live = materialize(c, layout, handing, &outcome);
    version = version_of_first();
    entry_of(c.op).call(*this, live, handing, &outcome.outputs);
  } catch (const IndexError&) {
    outcome.error = "IndexError";
  } catch (const ValueError&) {
    outcome.error = "ValueError";
  } catch (const std::exception& e) {
    outcome.error = e.what();
  }
  for (const Live& each : live) {
    for (const ErasedTensor& base : each.bases) outcome.after.push_back(into_data(base));
  }
  if (handing == Handing::in_place && !live.empty()) {
    outcome.view_after = into_data(live[0].views.at(0));
    outcome.version_rose = version_of_first() != version;
  }
  return outcome;
}

}  // namespace kiln::conformance
