// The table that stands before the backends' while there are batched tensors.
#include <mutex>

#include "kiln/backend/batched/below.h"
#include "kiln/backend/batched/rule_list.h"
#include "kiln/backend/dispatch/profiled_table.h"
#include "kiln/backend/dispatch/views.h"
#include "kiln/core/fork.h"

namespace kiln::batched {

std::atomic<int64_t> live{0};

BatchedTensor::BatchedTensor(ErasedTensor inner, const Region& region)
    : TensorBase(without_front(inner->shape()), inner->dtype(), inner->device()),
      inner_(std::move(inner)),
      region_(region) {
  live.fetch_add(1, std::memory_order_relaxed);
  if (const Layout of_all = layout_of(inner_)) {
    for (int i = 1; i < of_all.strides->rank(); ++i) strides_.push_back((*of_all.strides)[i]);
  }
}
BatchedTensor::~BatchedTensor() { live.fetch_sub(1, std::memory_order_relaxed); }

std::vector<Region>& regions() {
  thread_local std::vector<Region> all;
  return all;
}

namespace {

// What was there before, by device type.
std::atomic<const BackendTable*> backends[detail::kDeviceTypeValues];
std::atomic<const ViewTable*> views[detail::kDeviceTypeValues];
ViewTable batched_views[detail::kDeviceTypeValues];

const BackendTable& backend_of(Device device) {
  return *backends[device.type].load(std::memory_order_relaxed);
}

template <auto kOp>
inline constexpr bool kDraws = false;
template <>
inline constexpr bool kDraws<& BackendTable::float_dropout> = true;
template <>
inline constexpr bool kDraws<& BackendTable::float_random> = true;
template <>
inline constexpr bool kDraws<& BackendTable::int_random> = true;

// Ops that make memory: what they make in a region may be written to with values of its batch, so
// that it is one.
template <auto kOp>
inline constexpr bool kMakes = false;
template <>
inline constexpr bool kMakes<& BackendTable::float_empty> = true;
template <>
inline constexpr bool kMakes<& BackendTable::float_full> = true;
template <>
inline constexpr bool kMakes<& BackendTable::int_empty> = true;
template <>
inline constexpr bool kMakes<& BackendTable::int_full> = true;
template <>
inline constexpr bool kMakes<& BackendTable::bool_empty> = true;
template <>
inline constexpr bool kMakes<& BackendTable::bool_full> = true;

template <class Call, class... Rest>
ErasedTensor made(const Region& region, const Shape& shape, const Rest&... rest) {
  return wrapped(Call::run(with_front(region.size, shape), rest...), region);
}
// A number, which nobody writes to.
template <class... Rest>
bool is_number(const Shape& shape, const Rest&...) {
  return shape.rank() == 0 && sizeof...(Rest) == 3;
}

// Ops of the batch itself are called with this thread's regions hidden: what they make is theirs.
class Outside {
 public:
  explicit Outside(const Region& region) : hidden_(regions()) {
    std::erase_if(regions(), [&](const Region& r) { return r.level >= region.level; });
  }
  ~Outside() { regions() = std::move(hidden_); }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  std::vector<Region> hidden_;
};

template <class R, class... P>
struct Entry {
  using Result = typename op::Return<DispatchTypes, R>::Type;

  template <auto kOp, class Call>
  static Result run(typename op::Param<DispatchTypes, P>::Type... args) {
    if constexpr (kMakes<kOp>) {
      if (!regions().empty() && !is_number(args...)) {
        const Region region = regions().back();
        const Outside outside(region);
        return made<Call>(region, args...);
      }
    }
    if (live.load(std::memory_order_relaxed) != 0 || kDraws<kOp>) [[unlikely]] {
      Highest highest;
      (highest.see(args), ...);
      if (kDraws<kOp> && highest.region.level == 0 && !regions().empty()) {
        highest.region = regions().back();
      }
      // A draw of the same numbers is one for the whole batch.
      const bool plain = kDraws<kOp> && highest.region.level != 0 && !is_any_of(highest, args...) &&
                         highest.region.randomness == Randomness::same;
      if (highest.region.level != 0 && !plain) {
        if constexpr (std::is_same_v<typename RuleOf<kOp>::Type, Compose>) {
          return Compose::apply<Call>(highest.region, args...);
        } else {
          const Outside outside(highest.region);
          return RuleOf<kOp>::Type::template apply<Call>(highest.region, args...);
        }
      }
    }
    Device device;
    (void)(detail::find_device(args, &device) || ...);
    return (backend_of(device).*
            kOp)(static_cast<typename op::Param<DispatchTypes, P>::Type>(args)...);
  }

  template <class... A>
  static bool is_any_of(const Highest&, const A&... args) {
    Highest found;
    (found.see(args), ...);
    return found.region.level != 0;
  }
};

#define KILN_OP(level, op_name, ...)              \
  struct Call_##op_name {                         \
    template <class... A>                         \
    static decltype(auto) run(const A&... args) { \
      return Dispatch::op_name(args...);          \
    }                                             \
    template <class C = Composed, class... A>     \
    static auto composed(const A&... args) {      \
      return C::op_name(args...);                 \
    }                                             \
  };
#include "kiln/backend/ops.def"

consteval BackendTable make_batched_table() {
  BackendTable table{};
  table.name = [](Device device) { return backend_of(device).name(device); };
  table.seed = [](Device device, uint64_t seed) { backend_of(device).seed(device, seed); };
  table.sync = [](Device device) { backend_of(device).sync(device); };
  table.version = [](const ErasedTensor& x) {
    const BatchedTensor* found = as_batched(x);
    return found != nullptr ? Dispatch::version(found->inner())
                            : backend_of(x->device()).version(x);
  };
  table.own_version = [](const ErasedTensor& x) -> ErasedTensor {
    const BatchedTensor* found = as_batched(x);
    if (found == nullptr) return backend_of(x->device()).own_version(x);
    return make_handle<BatchedTensor>(Dispatch::own_version(found->inner()), found->region());
  };
  table.owns_memory = [](const ErasedTensor& x) {
    return as_batched(x) == nullptr && backend_of(x->device()).owns_memory(x);
  };
#define KILN_OP(level, op_name, ...)                                                           \
  {                                                                                            \
    using namespace op;                                                                        \
    table.op_name = &Entry<__VA_ARGS__>::template run<&BackendTable::op_name, Call_##op_name>; \
  }
#include "kiln/backend/ops.def"
  return table;
}
constinit const BackendTable kBatchedTable = make_batched_table();

// ---- Views

const ViewTable& views_before(const ErasedTensor& x) { return *views[x->device().type].load(); }

Layout layout(const ErasedTensor& x) {
  const BatchedTensor* found = as_batched(x);
  if (found == nullptr) return views_before(x).layout(x);
  Layout out = layout_of(found->inner());
  if (out) out.strides = &found->strides();
  return out;
}

// Of every element, at the same place in it.
ErasedTensor as_strided(const ErasedTensor& x, const Shape& shape, const Strides& strides,
                        int64_t offset) {
  const BatchedTensor* found = as_batched(x);
  if (found == nullptr) return views_before(x).as_strided(x, shape, strides, offset);
  Strides all{(*layout_of(found->inner()).strides)[0]};
  for (const int64_t step : strides) all.push_back(step);
  const ErasedTensor& inner = found->inner();
  return wrapped(detail::views_of(inner).as_strided(inner, with_front(found->region().size, shape),
                                                    all, offset),
                 found->region());
}

ErasedTensor reinterpret(const ErasedTensor& x, DType dtype, const Shape& shape,
                         const Strides& strides, int64_t offset) {
  if (as_batched(x) != nullptr) {
    throw_error<NotImplementedError>(
        "vmap: the memory of a tensor of a batch cannot be seen as another dtype");
  }
  return views_before(x).reinterpret(x, dtype, shape, strides, offset);
}

}  // namespace

void check_has_memory(const char* op, const ErasedTensor& x) {
  if (as_batched(x) == nullptr) return;
  throw_error<NotImplementedError>(
      op,
      ": vmap: an op that reads memory (LAPACK's, numpy()) cannot have a tensor of a batch; ops "
      "on matrices take batches by themselves, outside of vmap");
}

namespace {
// Never destroyed, as all that fork() knows.
auto& install_mutex() {
  static auto& mutex = *new detail::ForkSafeMutex(detail::ForkOrder::batched_tables);
  return mutex;
}
}  // namespace

void put_below(DeviceType type, const BackendTable* rows,
               const ViewTable* (*views_over)(DeviceType type, const ViewTable& before),
               Below& before) {
  const std::lock_guard lock(install_mutex());
  const bool batches = backends[type].load() != nullptr;
  std::atomic<const ViewTable*>& place = batches ? views[type] : detail::view_tables[type];
  const ViewTable* const known = place.load();
  if (known == nullptr || before.views.load() != nullptr) return;
  before.views.store(known);
  if (batches) {
    before.rows.store(backends[type].load());
    backends[type].store(rows);
  } else {
    profiled::put_before(type, rows, before.rows);
  }
  place.store(views_over(type, *known));
}

void install() {
  const std::lock_guard lock(install_mutex());
  for (int type = 0; type < detail::kDeviceTypeValues; ++type) {
    const ViewTable* const known = detail::view_tables[type].load();
    if (known == nullptr || known == &batched_views[type]) continue;
    views[type].store(known);
    batched_views[type] = {&layout, known->as_strided == nullptr ? nullptr : &as_strided,
                           known->reinterpret == nullptr ? nullptr : &reinterpret};
    detail::view_tables[type].store(&batched_views[type]);
    profiled::put_before(static_cast<DeviceType>(type), &kBatchedTable, backends[type]);
  }
}

}  // namespace kiln::batched
