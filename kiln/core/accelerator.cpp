#include "kiln/core/accelerator.h"

#include <atomic>
#include <utility>

#include <dlfcn.h>

#include "kiln/core/error.h"

namespace kiln {
namespace {

struct Opened {
  const detail::GpuPlugin* plugin = nullptr;
  std::string absence;
};

// Beside the library that this function is in.
std::string plugin_path() {
  Dl_info info{};
  std::string path;
  if (dladdr(reinterpret_cast<void*>(&plugin_path), &info) != 0 && info.dli_fname != nullptr) {
    path = info.dli_fname;
    const size_t slash = path.rfind('/');
    path = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  }
  return path + "libkiln_gpu.so";
}

Opened open_plugin(const char* runtime) {
  Opened out;
  const std::string path = plugin_path();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    out.absence = concat("Kiln's library for GPUs cannot be opened (", why == nullptr ? path : why,
                         "); it is built with KILN_GPU=ON and a shared libkiln");
    return out;
  }
  const auto open = reinterpret_cast<detail::OpenGpuPlugin>(dlsym(library, "kiln_open_gpu"));
  const detail::GpuPlugin* plugin = open == nullptr ? nullptr : open(KILN_VERSION, runtime);
  if (plugin == nullptr) {
    out.absence = concat(path, " belongs to another version of Kiln than ", KILN_VERSION);
    return out;
  }
  out.absence = plugin->absence();
  out.plugin = plugin;
  return out;
}

constexpr const char* kNames[] = {"opencl", "cuda"};

// Those with a device.
constinit std::atomic<const detail::GpuPlugin*> known[2] = {};

Opened open_named(int which) {
  Opened out = open_plugin(kNames[which]);
  if (out.plugin != nullptr && out.absence.empty()) known[which].store(out.plugin);
  return out;
}

// Each is opened when it is first asked for.
const Opened& opened(int which) {
  if (which == 0) {
    static const Opened& instance = *new Opened(open_named(0));
    return instance;
  }
  static const Opened& instance = *new Opened(open_named(1));
  return instance;
}

const detail::GpuPlugin& plugin(int which) {
  const Opened& found = opened(which);
  if (found.plugin == nullptr || !found.absence.empty()) {
    throw_error<DeviceError>(kNames[which], ": no device; ", found.absence);
  }
  return *found.plugin;
}

int count(int which) {
  const Opened& found = opened(which);
  return found.plugin == nullptr ? 0 : found.plugin->device_count();
}

}  // namespace

void accelerator::finish() noexcept {
  for (const auto& plugin : known) {
    if (const detail::GpuPlugin* found = plugin.load()) found->finish();
  }
}

namespace accelerator {

// Of one of kNames.
Event record_event(const char* runtime, int index) {
  Event out;
  out.plugin_ = &plugin(runtime == kNames[0] ? 0 : 1);
  out.index_ = index;
  out.mark_ = out.plugin_->mark(index);
  return out;
}

Event::Event(Event&& other) noexcept { *this = std::move(other); }
Event& Event::operator=(Event&& other) noexcept {
  std::swap(plugin_, other.plugin_);
  std::swap(index_, other.index_);
  std::swap(mark_, other.mark_);
  return *this;
}
Event::~Event() {
  if (mark_ != 0) plugin_->release_mark(index_, mark_);
}

const detail::GpuPlugin& Event::plugin() const {
  if (mark_ == 0) throw_error<DeviceError>("Event: it was not recorded");
  return *plugin_;
}
bool Event::is_passed() const { return plugin().is_passed(index_, mark_); }
void Event::wait() const { plugin().wait(index_, mark_); }
double Event::milliseconds_since(const Event& earlier) const {
  const detail::GpuPlugin& mine = plugin();
  if (&mine != &earlier.plugin() || index_ != earlier.index_) {
    throw_error<DeviceError>("Event: events of different devices have no time between them");
  }
  if (!is_passed() || !earlier.is_passed()) {
    throw_error<DeviceError>("Event: one of the two is not passed yet; wait for it first");
  }
  return mine.milliseconds(index_, earlier.mark_, mark_);
}

}  // namespace accelerator

#define KILN_ACCELERATOR(space, which)                                                             \
  namespace space {                                                                                \
  bool is_available() { return count(which) > 0; }                                                 \
  int device_count() { return count(which); }                                                      \
  std::string absence() { return opened(which).absence; }                                          \
  DeviceProperties device_properties(int index) { return plugin(which).properties(index); }        \
  void synchronize(int index) { plugin(which).synchronize(index); }                                \
  MemoryStats memory_stats(int index) { return plugin(which).memory_stats(index); }                \
  MemoryStats pinned_memory_stats(int index) { return plugin(which).pinned_memory_stats(index); }  \
  void reset_memory_stats(int index) { plugin(which).reset_memory_stats(index); }                  \
  void empty_cache(int index) { plugin(which).empty_cache(index); }                                \
  void set_memory_limit(size_t bytes, int index) { plugin(which).set_memory_limit(bytes, index); } \
  Counters counters(int index) { return plugin(which).counters(index); }                           \
  accelerator::Event record_event(int index) {                                                     \
    return accelerator::record_event(kNames[which], index);                                        \
  }                                                                                                \
  }
KILN_ACCELERATOR(opencl, 0)
KILN_ACCELERATOR(cuda, 1)
#undef KILN_ACCELERATOR

const detail::GpuPlugin* detail::gpu_plugin(std::string_view name) {
  for (int which = 0; which < 2; ++which) {
    if (name == kNames[which] && count(which) > 0) return opened(which).plugin;
  }
  return nullptr;
}

const detail::GpuPlugin* detail::opened_gpu_plugin(std::string_view name) {
  for (int which = 0; which < 2; ++which) {
    if (name == kNames[which]) return known[which].load();
  }
  return nullptr;
}

bool detail::open_device_plugin(std::string_view name) {
  for (int which = 0; which < 2; ++which) {
    if (name == kNames[which]) {
      static_cast<void>(plugin(which));
      return true;
    }
  }
  return false;
}

}  // namespace kiln
