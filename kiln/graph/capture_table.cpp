// The table that stands before the backends' once something was captured.
#include "kiln/backend/batched/below.h"
#include "kiln/backend/dispatch/views.h"
#include "kiln/graph/recorder.h"

namespace kiln::graph {

namespace {

// What was there before, by device type.
batched::Below below[kiln::detail::kDeviceTypeValues];
ViewTable capture_views[kiln::detail::kDeviceTypeValues];

const BackendTable& backend_of(Device device) {
  return *below[device.type].rows.load(std::memory_order_relaxed);
}

void add_results(Recorder& recorder, Node node, const ErasedTensor& y) {
  recorder.add(std::move(node), std::span(&y, 1));
}
template <class A, class B>
void add_results(Recorder& recorder, Node node, const std::pair<A, B>& y) {
  const ErasedTensor all[] = {y.first, y.second};
  recorder.add(std::move(node), all);
}
template <class... T>
void add_results(Recorder& recorder, Node node, const std::tuple<T...>& y) {
  std::apply(
      [&](const auto&... part) {
        const ErasedTensor all[] = {part...};
        recorder.add(std::move(node), all);
      },
      y);
}

// One for each signature.
template <class Result, class... A>
[[gnu::noinline]] Result recorded(int32_t row, Result (*function)(A...), Recorder& recorder,
                                  A... args) {
  if constexpr (std::is_same_v<Result, TensorData>) {
    TensorData values = function(static_cast<A>(args)...);
    (recorder.add_read(row, args, values), ...);
    return values;
  } else if constexpr (std::is_same_v<Result, QuantScheme>) {
    return function(static_cast<A>(args)...);
  } else {
    Node node;
    node.row = row;
    node.name = row_name(row);
    node.arguments.reserve(sizeof...(A));
    (node.arguments.push_back(recorder.argument(args)), ...);
    if constexpr (std::is_void_v<Result>) {
      function(static_cast<A>(args)...);
      recorder.add(std::move(node), {});
    } else {
      Result result = function(static_cast<A>(args)...);
      add_results(recorder, std::move(node), result);
      return result;
    }
  }
}

template <class R, class... P>
struct Entry {
  using Result = typename op::Return<DispatchTypes, R>::Type;

  template <int32_t kRow, auto kMember>
  static Result run(typename op::Param<DispatchTypes, P>::Type... args) {
    Device device;
    (void)(kiln::detail::find_device(args, &device) || ...);
    const auto function = backend_of(device).*kMember;
    Recorder* const recorder = detail::recorder;
    if (recorder == nullptr) [[likely]] {
      return function(static_cast<typename op::Param<DispatchTypes, P>::Type>(args)...);
    }
    return recorded<Result, typename op::Param<DispatchTypes, P>::Type...>(
        kRow, function, *recorder,
        static_cast<typename op::Param<DispatchTypes, P>::Type>(args)...);
  }
};

consteval BackendTable make_capture_table() {
  BackendTable table{};
  table.name = [](Device device) { return backend_of(device).name(device); };
  table.seed = [](Device device, uint64_t seed) { backend_of(device).seed(device, seed); };
  table.sync = [](Device device) { backend_of(device).sync(device); };
  table.version = [](const ErasedTensor& x) { return backend_of(x->device()).version(x); };
  table.own_version = [](const ErasedTensor& x) {
    // A value of the graph stays one.
    return detail::recorder == nullptr ? backend_of(x->device()).own_version(x) : x;
  };
  table.owns_memory = [](const ErasedTensor& x) {
    const auto ask = [&x] { return backend_of(x->device()).owns_memory(x); };
    return detail::recorder == nullptr ? ask() : detail::recorder->without_own(x, ask);
  };
#define KILN_OP(level, op_name, ...)                                                           \
  {                                                                                            \
    using namespace op;                                                                        \
    table.op_name = &Entry<__VA_ARGS__>::template run<kRow_##op_name, &BackendTable::op_name>; \
  }
#include "kiln/backend/ops.def"
  return table;
}
constinit const BackendTable kCaptureTable = make_capture_table();

// ---- Views

const ViewTable& views_before(const ErasedTensor& x) {
  return *below[x->device().type].views.load();
}

Layout layout(const ErasedTensor& x) { return views_before(x).layout(x); }

template <class... A>
void add_view(NodeKind kind, const char* name, const ErasedTensor& x, const ErasedTensor& y,
              const A&... attributes) {
  Recorder* const recorder = detail::recorder;
  if (recorder == nullptr) return;
  Node node;
  node.kind = kind;
  node.name = name;
  node.arguments.push_back(recorder->argument(Arg<ErasedTensor>(x)));
  (node.arguments.push_back(recorder->argument(attributes)), ...);
  add_results(*recorder, std::move(node), y);
}

ErasedTensor as_strided(const ErasedTensor& x, const Shape& shape, const Strides& strides,
                        int64_t offset) {
  ErasedTensor y = views_before(x).as_strided(x, shape, strides, offset);
  add_view(NodeKind::as_strided, "as_strided", x, y, shape, strides, offset);
  return y;
}

ErasedTensor reinterpret(const ErasedTensor& x, DType dtype, const Shape& shape,
                         const Strides& strides, int64_t offset) {
  ErasedTensor y = views_before(x).reinterpret(x, dtype, shape, strides, offset);
  add_view(NodeKind::reinterpret, "reinterpret", x, y, dtype, shape, strides, offset);
  return y;
}

const ViewTable* views_over(DeviceType type, const ViewTable& before) {
  capture_views[type] = {&layout, before.as_strided == nullptr ? nullptr : &as_strided,
                         before.reinterpret == nullptr ? nullptr : &reinterpret};
  return &capture_views[type];
}

}  // namespace

void install_capture_table() {
  for (int type = 0; type < kiln::detail::kDeviceTypeValues; ++type) {
    batched::put_below(static_cast<DeviceType>(type), &kCaptureTable, &views_over, below[type]);
  }
}

}  // namespace kiln::graph
