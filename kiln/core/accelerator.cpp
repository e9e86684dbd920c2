#include "kiln/core/accelerator.h"

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

Opened open_plugin() {
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
  const detail::GpuPlugin* plugin = open == nullptr ? nullptr : open(KILN_VERSION);
  if (plugin == nullptr) {
    out.absence = concat(path, " belongs to another version of Kiln than ", KILN_VERSION);
    return out;
  }
  out.absence = plugin->absence();
  out.plugin = plugin;
  return out;
}

const Opened& opened() {
  static const Opened& instance = *new Opened(open_plugin());
  return instance;
}

const detail::GpuPlugin& plugin() {
  const Opened& found = opened();
  if (found.plugin == nullptr || !found.absence.empty()) {
    throw_error<DeviceError>("opencl: no device; ", found.absence);
  }
  return *found.plugin;
}

}  // namespace

namespace opencl {

bool is_available() { return device_count() > 0; }
int device_count() {
  const Opened& found = opened();
  return found.plugin == nullptr ? 0 : found.plugin->device_count();
}
std::string absence() { return opened().absence; }
DeviceProperties device_properties(int index) { return plugin().properties(index); }
void synchronize(int index) { plugin().synchronize(index); }
MemoryStats memory_stats(int index) { return plugin().memory_stats(index); }
void reset_memory_stats(int index) { plugin().reset_memory_stats(index); }
void empty_cache(int index) { plugin().empty_cache(index); }
void set_memory_limit(size_t bytes, int index) { plugin().set_memory_limit(bytes, index); }
Counters counters(int index) { return plugin().counters(index); }

}  // namespace opencl

bool detail::open_device_plugin(std::string_view name) {
  if (name != "opencl") return false;
  static_cast<void>(plugin());
  return true;
}

}  // namespace kiln
