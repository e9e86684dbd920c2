#include "kiln/backend/dispatch/profile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <list>
#include <mutex>
#include <tuple>

#include "kiln/backend/dispatch/device_times.h"
#include "kiln/backend/dispatch/profile_text.h"
#include "kiln/backend/dispatch/profiled_table.h"
#include "kiln/backend/flops.h"
#include "kiln/core/allocator.h"
#include "kiln/core/fork.h"

namespace kiln {

namespace {
struct ThreadLog;
}

struct profiled::DeviceLine {
  DeviceClock* clock;
  std::string name;
  std::shared_ptr<ThreadLog> log;  // of no thread
};

namespace {

using profiled::DeviceLine;

// ---- What is recorded

// What is counted by itself: an op, and an op with one of the functions of functions.def.
const char* const kRowNames[] = {
#define KILN_OP(level, name, ...) #name,
#include "kiln/backend/ops.def"
#define KILN_UNARY_FUNCTION(type, ...) "float_unary(" #type ")",
#include "kiln/backend/functions.def"
#define KILN_BINARY_FUNCTION(type, ...) "float_binary(" #type ")",
#include "kiln/backend/functions.def"
#define KILN_BINARY_FUNCTION(type, ...) "float_binary_sum(" #type ")",
#include "kiln/backend/functions.def"
#define KILN_TERNARY_FUNCTION(type, ...) "float_ternary(" #type ")",
#include "kiln/backend/functions.def"
#define KILN_COMPLEX_FUNCTION(type) "float_complex_unary(" #type ")",
#include "kiln/backend/functions.def"
#define KILN_INT_FUNCTION(type) "int_binary(" #type ")",
#include "kiln/backend/functions.def"
    "outside ops",  // what a device does then: copies that nobody waits for
};
constexpr size_t kRows = std::size(kRowNames);

enum OpIndex : size_t {
#define KILN_OP(level, name, ...) kIndexOf_##name,
#include "kiln/backend/ops.def"
  kUnaryRows,
  kBinaryRows = kUnaryRows + static_cast<size_t>(UnaryFunction::Type::count),
  kBinarySumRows = kBinaryRows + static_cast<size_t>(BinaryFunction::Type::count),
  kTernaryRows = kBinarySumRows + static_cast<size_t>(BinaryFunction::Type::count),
  kComplexRows = kTernaryRows + static_cast<size_t>(TernaryFunction::Type::count),
  kIntRows = kComplexRows + static_cast<size_t>(ComplexFunction::count),
  kOutsideRow = kIntRows + static_cast<size_t>(IntFunction::count),
  kAllRows,
};
static_assert(kAllRows == kRows);

struct Count {
  int64_t calls = 0, nanoseconds = 0, bytes = 0, allocations = 0, flops = 0;
  int64_t device_nanoseconds = 0;

  void add(const Count& other, int64_t sign = 1) {
    calls += sign * other.calls;
    nanoseconds += sign * other.nanoseconds;
    bytes += sign * other.bytes;
    allocations += sign * other.allocations;
    flops += sign * other.flops;
    device_nanoseconds += sign * other.device_nanoseconds;
  }
};
using Counts = std::array<Count, kRows>;

struct Event {
  uint32_t row;
  uint32_t thread;
  int64_t begin, end;  // nanoseconds
  int64_t bytes, allocations;
  Shape shape;
};
constexpr size_t kMaxEvents = 1'000'000;

// One thread's part. Its lock is free but while a profile is read.
struct ThreadLog {
  detail::ForkSafeMutex mutex{detail::ForkOrder::profile_logs};
  uint32_t thread = 0;
  Counts counts;
  std::vector<Event> events;
};

struct Logs {
  detail::ForkSafeMutex mutex{detail::ForkOrder::profiles};
  std::vector<std::shared_ptr<ThreadLog>> threads;
  std::list<DeviceLine> devices;
  int profiles = 0;  // being taken
  std::atomic<size_t> events{0};
};
Logs& logs() {
  static Logs* all = new Logs;  // outlives every thread that may still compute at exit
  return *all;
}

// With the lock of logs() held.
void add_log(const std::shared_ptr<ThreadLog>& log) {
  log->thread = static_cast<uint32_t>(logs().threads.size());
  logs().threads.push_back(log);
}

ThreadLog& own_log() {
  thread_local std::shared_ptr<ThreadLog> log;
  if (!log) {
    log = std::make_shared<ThreadLog>();
    const std::lock_guard lock(logs().mutex);
    add_log(log);
  }
  return *log;
}

const std::array<Product, kRows>& products() {
  static const std::array<Product, kRows> all = [] {
    std::array<Product, kRows> out;
    for (size_t i = 0; i < kRows; ++i) out[i] = product_of(kRowNames[i]);
    return out;
  }();
  return all;
}

constinit thread_local uint32_t this_row = kOutsideRow;

void keep_event(ThreadLog& log, Event&& event) {
  if (logs().events.fetch_add(1, std::memory_order_relaxed) >= kMaxEvents) return;
  event.thread = log.thread;
  log.events.push_back(std::move(event));
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One call of an op, from its entry to its return.
class Call {
 public:
  explicit Call(size_t op) : product_(products()[op]) {
    event_.row = static_cast<uint32_t>(op);
    if (product_ != Product::none) [[unlikely]]
      shapes_.reserve(16);
  }

  void see(const ErasedTensor& x) {
    if (product_ != Product::none && shapes_.size() < shapes_.capacity()) {
      shapes_.push_back(x ? x->shape() : Shape());
    }
    if (!x) return;
    if (event_.bytes == 0) event_.shape = x->shape();
    event_.bytes += x->shape().numel() * static_cast<int64_t>(size_of(x->dtype()));
  }
  void see(const Arg<ErasedTensor>& x) { see(x.get()); }
  void see(const ErasedTensor* x) { see(x == nullptr ? ErasedTensor() : *x); }
  void see(std::span<const ErasedTensor> xs) {
    for (const ErasedTensor& x : xs) see(x);
  }
  void see(std::span<ErasedTensor> xs) { see(std::span<const ErasedTensor>(xs)); }
  template <class A, class C>
  void see(const std::pair<A, C>& both) {
    see(both.first);
    see(both.second);
  }
  template <class... T>
  void see(const std::tuple<T...>& all) {
    std::apply([&](const auto&... x) { (see(x), ...); }, all);
  }
  void see(const UnaryFunction& f) { see_function(kUnaryRows, f.type); }
  void see(const BinaryFunction& f) {
    see_function(event_.row == kIndexOf_float_binary ? kBinaryRows : kBinarySumRows, f.type);
  }
  void see(const TernaryFunction& f) { see_function(kTernaryRows, f.type); }
  void see(const ComplexFunction& f) { see_function(kComplexRows, f); }
  void see(const IntFunction& f) { see_function(kIntRows, f); }
  template <class T>
  void see(const T&) {}

  void begin() {
    row_before_ = std::exchange(this_row, event_.row);
    allocations_ = memory_stats().allocations;
    operands_ = shapes_.size();
    event_.begin = now();
  }
  void end() {
    event_.end = now();
    event_.allocations = static_cast<int64_t>(memory_stats().allocations - allocations_);
  }

  // Calls that throw are recorded too.
  ~Call() {
    if (event_.end == 0) end();
    this_row = row_before_;
    ThreadLog& log = own_log();
    const std::lock_guard lock(log.mutex);
    log.counts[event_.row].add(
        {1, event_.end - event_.begin, event_.bytes, event_.allocations, flops()});
    keep_event(log, std::move(event_));
  }

 private:
  template <class Type>
  void see_function(size_t first, Type type) {
    event_.row = static_cast<uint32_t>(first + static_cast<size_t>(type));
  }

  // Of a call that gave a result.
  int64_t flops() const {
    if (shapes_.size() == operands_) return 0;
    return flops_of(product_, std::span(shapes_).first(operands_), shapes_[operands_]);
  }

  Event event_ = {};
  Product product_;
  std::vector<Shape> shapes_;  // of a product's operands, then of its results
  size_t operands_ = 0;
  uint64_t allocations_ = 0;
  uint32_t row_before_ = kOutsideRow;
};

// ---- The table whose ops measure and call the backend's

std::atomic<const BackendTable*> real_tables[detail::kDeviceTypeValues];

const BackendTable& real_table(Device device) { return *real_tables[device.type].load(); }

template <class R, class... P>
struct ProfiledEntry {
  using Result = typename op::Return<DispatchTypes, R>::Type;

  template <size_t kOp, auto kMember>
  static Result run(typename op::Param<DispatchTypes, P>::Type... args) {
    Device device;
    (void)(detail::find_device(args, &device) || ...);
    const auto function = real_table(device).*kMember;
    Call call(kOp);
    (call.see(args), ...);
    call.begin();
    if constexpr (std::is_void_v<Result>) {
      function(static_cast<typename op::Param<DispatchTypes, P>::Type>(args)...);
      call.end();
    } else {
      Result result = function(static_cast<typename op::Param<DispatchTypes, P>::Type>(args)...);
      call.end();
      call.see(result);
      return result;
    }
  }
};

consteval BackendTable make_profiling_table() {
  BackendTable table{};
  table.name = [](Device device) { return real_table(device).name(device); };
  table.seed = [](Device device, uint64_t seed) { real_table(device).seed(device, seed); };
  table.sync = [](Device device) { real_table(device).sync(device); };
  table.version = [](const ErasedTensor& x) { return real_table(x->device()).version(x); };
  table.own_version = [](const ErasedTensor& x) { return real_table(x->device()).own_version(x); };
  table.owns_memory = [](const ErasedTensor& x) { return real_table(x->device()).owns_memory(x); };
#define KILN_OP(level, op_name, ...)                                                           \
  {                                                                                            \
    using namespace op;                                                                        \
    table.op_name =                                                                            \
        &ProfiledEntry<__VA_ARGS__>::template run<kIndexOf_##op_name, &BackendTable::op_name>; \
  }
#include "kiln/backend/ops.def"
  return table;
}
constinit const BackendTable kProfilingTable = make_profiling_table();

// Both with the lock of logs() held.
void put_profiler_between() {
  for (int type = 0; type < detail::kDeviceTypeValues; ++type) {
    const BackendTable* table = detail::backend_tables[type].load();
    if (table == nullptr) continue;
    real_tables[type].store(table);
    detail::backend_tables[type].store(&kProfilingTable);
  }
  for (const DeviceLine& device : logs().devices) device.clock->start();
}

void take_profiler_away() {
  for (int type = 0; type < detail::kDeviceTypeValues; ++type) {
    if (real_tables[type].load() != nullptr) {
      detail::backend_tables[type].store(real_tables[type].load());
    }
  }
  for (const DeviceLine& device : logs().devices) device.clock->stop();
}

void forget_everything() {
  for (const auto& log : logs().threads) {
    const std::lock_guard lock(log->mutex);
    log->counts = {};
    log->events.clear();
    log->events.shrink_to_fit();
  }
  logs().events.store(0);
}

void collect_devices() {
  for (const DeviceLine& device : logs().devices) device.clock->collect();
}

Counts sum_counts() {
  collect_devices();
  Counts sum;
  for (const auto& log : logs().threads) {
    const std::lock_guard lock(log->mutex);
    for (size_t i = 0; i < kRows; ++i) sum[i].add(log->counts[i]);
  }
  return sum;
}

std::vector<Event> events_since(int64_t start) {
  std::vector<Event> events;
  for (const auto& log : logs().threads) {
    const std::lock_guard lock(log->mutex);
    for (const Event& event : log->events) {
      if (event.begin >= start) events.push_back(event);
    }
  }
  return events;
}

// ---- Text

std::string format_count(const char* pattern, auto... values) {
  char text[160];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string dims_of(const Shape& shape) {
  std::string text = "[";
  for (int d = 0; d < shape.rank(); ++d) {
    text += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  }
  return text + "]";
}

}  // namespace

namespace profiled {

void add_table(DeviceType type, const BackendTable* table) {
  const std::lock_guard lock(logs().mutex);
  real_tables[type].store(table);
  detail::backend_tables[type].store(logs().profiles > 0 ? &kProfilingTable : table);
}

uint32_t current_row() { return this_row; }

DeviceLine& add_device_clock(DeviceClock* clock, const std::string& name) {
  const std::lock_guard lock(logs().mutex);
  DeviceLine& line = logs().devices.emplace_back(clock, name, std::make_shared<ThreadLog>());
  add_log(line.log);
  if (logs().profiles > 0) clock->start();
  return line;
}

void add_device_time(DeviceLine& line, uint32_t row, int64_t begin, int64_t end) {
  const std::lock_guard lock(line.log->mutex);
  line.log->counts[row].device_nanoseconds += end - begin;
  keep_event(*line.log, {row, 0, begin, end, 0, 0, {}});
}

void put_before(DeviceType type, const BackendTable* table,
                std::atomic<const BackendTable*>& before) {
  const std::lock_guard lock(logs().mutex);
  const bool profiling = logs().profiles > 0;
  std::atomic<const BackendTable*>& place =
      profiling ? real_tables[type] : detail::backend_tables[type];
  before.store(place.load());
  place.store(table);
  if (!profiling) real_tables[type].store(table);
}

}  // namespace profiled

struct Profile::State {
  int64_t start = 0;
  Counts before;
  bool running = true;
  Counts counts;              // once it is stopped
  std::vector<Event> events;  // likewise

  Counts counts_now() const {
    Counts now = sum_counts();
    for (size_t i = 0; i < kRows; ++i) now[i].add(before[i], -1);
    return now;
  }
};

Profile::Profile() : state_(std::make_unique<State>()) {
  const std::lock_guard lock(logs().mutex);
  if (logs().profiles++ == 0) {
    forget_everything();
    put_profiler_between();
  }
  state_->before = sum_counts();
  state_->start = now();
}

Profile::~Profile() { stop(); }

void Profile::stop() {
  const std::lock_guard lock(logs().mutex);
  if (!state_->running) return;
  state_->running = false;
  state_->counts = state_->counts_now();
  state_->events = events_since(state_->start);
  if (--logs().profiles == 0) take_profiler_away();
}

std::vector<ProfileRow> Profile::rows() const {
  Counts counts;
  {
    const std::lock_guard lock(logs().mutex);
    counts = state_->running ? state_->counts_now() : state_->counts;
  }
  std::vector<ProfileRow> rows;
  for (size_t i = 0; i < kRows; ++i) {
    const Count& c = counts[i];
    if (c.calls == 0 && c.device_nanoseconds == 0) continue;
    rows.push_back({kRowNames[i], c.calls, static_cast<double>(c.nanoseconds) * 1e-9, c.bytes,
                    c.allocations, c.flops, static_cast<double>(c.device_nanoseconds) * 1e-9});
  }
  const auto longer = [](const ProfileRow& a, const ProfileRow& b) {
    return std::max(a.seconds, a.device_seconds) > std::max(b.seconds, b.device_seconds);
  };
  std::stable_sort(rows.begin(), rows.end(), longer);
  return rows;
}

std::string Profile::table() const { return profiled::table_of(rows()); }

std::string Profile::trace() const {
  std::vector<Event> events;
  std::vector<std::pair<uint32_t, std::string>> lines;
  {
    const std::lock_guard lock(logs().mutex);
    if (state_->running) collect_devices();
    events = state_->running ? events_since(state_->start) : state_->events;
    for (const DeviceLine& device : logs().devices) {
      lines.emplace_back(device.log->thread, device.name);
    }
  }
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  text += "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": \"kiln\"}}";
  for (const auto& [line, name] : lines) {
    text += format_count(
        ",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": %u, \"args\": "
        "{\"name\": \"%s\"}}",
        line, name.c_str());
  }
  for (const Event& event : events) {
    const auto since_start = static_cast<double>(event.begin - state_->start);
    text += format_count(
        ",\n{\"name\": \"%s\", \"cat\": \"op\", \"ph\": \"X\", \"pid\": 1, \"tid\": %u, "
        "\"ts\": %.3f, \"dur\": %.3f, \"args\": ",
        kRowNames[event.row], event.thread, since_start / 1e3,
        static_cast<double>(event.end - event.begin) / 1e3);
    text += format_count("{\"bytes\": %lld, \"allocations\": %lld, \"shape\": \"",
                         static_cast<long long>(event.bytes),
                         static_cast<long long>(event.allocations)) +
            dims_of(event.shape) + "\"}}";
  }
  return text + "\n]}\n";
}

void Profile::write_trace(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  file << trace();
  file.close();
  if (!file) throw_error<IoError>("write_trace: cannot write the file; got '", path, "'");
}

namespace {

// KILN_PROFILE: a profile of the whole program.
[[gnu::constructor]] void profile_program_if_asked() {
  static std::string trace_path;
  const char* asked = std::getenv("KILN_PROFILE");
  if (asked == nullptr || *asked == '\0' || std::string_view(asked) == "0") return;
  if (std::string_view(asked) != "1") trace_path = asked;
  static Profile* program = new Profile;
  std::atexit([] {
    program->stop();
    std::fputs(program->table().c_str(), stderr);
    if (trace_path.empty()) return;
    try {
      program->write_trace(trace_path);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
  });
}

}  // namespace
}  // namespace kiln
