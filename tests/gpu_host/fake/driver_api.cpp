// The functions themselves, with the types of NVIDIA's ABI.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tests/gpu_host/fake/fake_cuda.h"

using namespace kiln::fake_cuda;

namespace {

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kNoDevice = 100;
constexpr int kInvalidContext = 201;
constexpr int kNoBinary = 209;
constexpr int kNotFound = 500;
constexpr int kNotReady = 600;
constexpr int kIllegalAddress = 700;

using Lock = std::lock_guard<std::recursive_mutex>;

template <class T>
T* known(const std::map<void*, T*>& all, void* handle, const char* what) {
  const auto found = all.find(handle);
  if (found == all.end()) violation(std::string(what) + " is none, or no more");
  if (found->second->context != current_context()) {
    violation(std::string(what) + " belongs to another context than the thread's");
  }
  return found->second;
}

uint64_t checksum(const void* data, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto* p = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ p[i]) * 0x100000001b3u;
  return hash;
}

// The block that holds all of [address, address + bytes).
bool holds(const std::map<uintptr_t, size_t>& blocks, uintptr_t address, size_t bytes) {
  auto found = blocks.upper_bound(address);
  if (found == blocks.begin()) return false;
  --found;
  return address - found->first <= found->second &&
         bytes <= found->second - (address - found->first);
}

void queue(Stream& stream, Work work) {
  stream.queue.push_back(std::move(work));
  ++stream.queued;
}

// Of the copy that is queued next.
std::shared_ptr<uint64_t> note_host_copy(const Stream& stream, const void* memory, size_t bytes,
                                         bool is_source) {
  auto& copies = driver().host_copies;
  std::erase_if(copies, [](const HostCopy& c) { return c.stream->done >= c.position; });
  const auto sum = std::make_shared<uint64_t>(checksum(memory, bytes));
  copies.push_back(
      {&stream, stream.queued + 1, reinterpret_cast<uintptr_t>(memory), bytes, is_source, sum});
  return sum;
}

bool overlap(const HostCopy& c, uintptr_t address, size_t bytes) {
  return c.stream->done < c.position && c.address < address + bytes &&
         address < c.address + c.bytes;
}

// A copy has written there: others that wait see that.
void wrote_host(const void* memory, size_t bytes, bool to_sources) {
  for (const HostCopy& c : driver().host_copies) {
    if (c.is_source && !to_sources) continue;
    if (overlap(c, reinterpret_cast<uintptr_t>(memory), bytes)) {
      *c.checksum = checksum(reinterpret_cast<const void*>(c.address), c.bytes);
    }
  }
}

double now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

// Kernels come as text, from the library that plays NVRTC.
constexpr char kTextMagic[8] = {'K', 'I', 'L', 'N', 'T', 'E', 'X', 'T'};

constexpr unsigned char kFatbinMagic[4] = {0x50, 0xed, 0x55, 0xba};

// Of a kernel of a fatbin, from $KILN_FAKE_CUDA_TEXTS.
std::string text_ahead(const std::string& name) {
  const char* folder = std::getenv("KILN_FAKE_CUDA_TEXTS");
  if (folder == nullptr || !name.starts_with("kiln_")) return "";
  std::ifstream file(std::string(folder) + "/" + name.substr(5) + ".k");
  return {std::istreambuf_iterator<char>(file), {}};
}

const HostKernel* compiled(const std::string& text) {
  const char* folder = std::getenv("KILN_GPU_HOST_KERNELS");
  const char* form = std::getenv("KILN_GPU_HOST_CHECK");
  using kiln::gpu_host::Check;
  const bool checks = form != nullptr && std::string(form) == "accesses";
  return &HostKernel::of(text, checks ? Check::accesses : Check::none,
                         folder == nullptr ? "" : folder);
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default"))) int
#define ENTER(name)          \
  Lock lock(driver().mutex); \
  if (const int e = enter(name)) return e
#define ENTER_CONTEXT(name) \
  ENTER(name);              \
  if (current_context() == nullptr) return kInvalidContext

// Not of CUDA's: for libraries beside it (fake_library.h).
extern "C" __attribute__((visibility("default"))) void kiln_fake_cuda_enqueue(
    void* stream, const std::function<void()>& work) {
  Lock lock(driver().mutex);
  queue(*known(driver().streams, stream, "a library's stream"), [work] {
    work();
    return 0;
  });
}
extern "C" __attribute__((visibility("default"))) bool kiln_fake_cuda_holds(const void* address,
                                                                            size_t bytes) {
  Lock lock(driver().mutex);
  return holds(current_context()->blocks, reinterpret_cast<uintptr_t>(address), bytes);
}
// Not of CUDA's: what is there of a kind of handle, for tests of what is left behind.
FAKE kiln_fake_cuda_count(const char* kind) {
  Lock lock(driver().mutex);
  const std::string name = kind;
  if (name == "events") return static_cast<int>(driver().events.size());
  if (name == "pinned") return static_cast<int>(driver().pinned.size());
  if (name == "functions") return static_cast<int>(driver().functions.size());
  if (name == "streams") return static_cast<int>(driver().streams.size());
  size_t blocks = 0;
  for (const Context& c : driver().contexts) blocks += c.blocks.size();
  return static_cast<int>(blocks);
}

FAKE cuInit(unsigned flags) {
  Lock lock(driver().mutex);
  if (flags != 0) return kInvalidValue;
  if (settings().init != 0) return settings().init;
  if (settings().devices == 0) return kNoDevice;
  if (!driver().initialized) driver().contexts.resize(static_cast<size_t>(settings().devices));
  for (size_t i = 0; i < driver().contexts.size(); ++i) {
    driver().contexts[i].device = static_cast<int>(i);
  }
  driver().initialized = true;
  return 0;
}
FAKE cuDriverGetVersion(int* version) {
  *version = settings().version;
  return 0;
}
FAKE cuGetErrorName(int result, const char** name) {
  static const std::map<int, const char*> names = {{1, "CUDA_ERROR_INVALID_VALUE"},
                                                   {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                   {3, "CUDA_ERROR_NOT_INITIALIZED"},
                                                   {100, "CUDA_ERROR_NO_DEVICE"},
                                                   {201, "CUDA_ERROR_INVALID_CONTEXT"},
                                                   {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                                                   {500, "CUDA_ERROR_NOT_FOUND"},
                                                   {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                   {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
                                                   {719, "CUDA_ERROR_LAUNCH_FAILED"},
                                                   {999, "CUDA_ERROR_UNKNOWN"}};
  const auto found = names.find(result);
  if (found == names.end()) return kInvalidValue;
  *name = found->second;
  return 0;
}
FAKE cuGetErrorString(int, const char** text) {
  *text = "from the driver that tests play";
  return 0;
}
FAKE cuDeviceGetCount(int* count) {
  ENTER("cuDeviceGetCount");
  *count = settings().devices;
  return 0;
}
FAKE cuDeviceGet(int* device, int index) {
  ENTER("cuDeviceGet");
  if (index < 0 || index >= settings().devices) return 101;
  *device = index;
  return 0;
}
FAKE cuDeviceGetName(char* name, int size, int device) {
  ENTER("cuDeviceGetName");
  std::snprintf(name, static_cast<size_t>(size), "Fake GPU %d", device);
  return 0;
}
FAKE cuDeviceTotalMem_v2(size_t* bytes, int) {
  ENTER("cuDeviceTotalMem");
  *bytes = settings().memory;
  return 0;
}
FAKE cuDeviceGetAttribute(int* value, int which, int) {
  ENTER("cuDeviceGetAttribute");
  static const std::map<int, int> values = {{1, 1024}, {5, 2147483647}, {6, 65535}, {7, 65535},
                                            {16, 132}, {75, 7},         {76, 5}};
  const auto found = values.find(which);
  if (found == values.end()) return kInvalidValue;
  *value = found->second;
  return 0;
}
FAKE cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER("cuDevicePrimaryCtxRetain");
  Context& c = driver().contexts.at(static_cast<size_t>(device));
  c.retained = true;
  *context = &c;
  return 0;
}
FAKE cuCtxSetCurrent(void* context) {
  Lock lock(driver().mutex);
  auto* c = static_cast<Context*>(context);
  bool is_one = c == nullptr;
  for (Context& known_one : driver().contexts) is_one = is_one || (&known_one == c && c->retained);
  if (!is_one) violation("cuCtxSetCurrent: the context is none, or not retained");
  set_current(c);
  return enter("cuCtxSetCurrent");
}

// ---- Modules and kernels

FAKE cuModuleLoadData(void** module, const void* image) {
  ENTER_CONTEXT("cuModuleLoadData");
  const auto* bytes = static_cast<const char*>(image);
  // A real fatbin of nvcc's: its kernels' texts lie beside it in the build folder.
  const bool is_fatbin = std::memcmp(bytes, kFatbinMagic, sizeof kFatbinMagic) == 0;
  if (!is_fatbin && std::memcmp(bytes, kTextMagic, sizeof kTextMagic) != 0) return kNoBinary;
  auto* made = new Module{current_context(), is_fatbin ? "" : bytes + sizeof kTextMagic};
  driver().modules[made] = made;
  *module = made;
  return 0;
}
FAKE cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER_CONTEXT("cuModuleGetFunction");
  const Module* m = known(driver().modules, module, "cuModuleGetFunction: the module");
  std::string text = m->text;
  if (text.empty()) {
    text = text_ahead(name);
  } else if (std::string(name) != "kiln_kernel") {
    text.clear();
  }
  if (text.empty()) return kNotFound;
  auto* made = new Function{current_context(), compiled(text)};
  driver().functions[made] = made;
  *function = made;
  return 0;
}
FAKE cuFuncSetAttribute(void* function, int which, int bytes) {
  ENTER_CONTEXT("cuFuncSetAttribute");
  static_cast<void>(known(driver().functions, function, "cuFuncSetAttribute: the function"));
  if (which != 8 || bytes < 0 || bytes > 232448) return kInvalidValue;
  return 0;
}
FAKE cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                    unsigned bz, unsigned shared_bytes, void* stream, void** parameters,
                    void** extra) {
  ENTER_CONTEXT("cuLaunchKernel");
  const Function* f = known(driver().functions, function, "cuLaunchKernel: the function");
  Stream* s = known(driver().streams, stream, "cuLaunchKernel: the stream");
  if (shared_bytes != 0 || extra != nullptr) violation("cuLaunchKernel: unexpected extras");
  if (gx == 0 || gy == 0 || gz == 0 || gx > 2147483647u || gy > 65535 || gz > 65535) {
    violation("cuLaunchKernel: a grid that no GPU takes");
  }
  if (bx == 0 || by == 0 || bz == 0 || bx * by * bz > 1024 || bz > 64) {
    violation("cuLaunchKernel: a block that no GPU takes");
  }
  const HostKernel& kernel = *f->kernel;
  size_t total = 0;
  std::vector<std::vector<std::byte>> values;
  for (size_t i = 0; i < kernel.arguments(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(parameters[i]);
    values.emplace_back(bytes, bytes + kernel.argument_size(i));
    total += kernel.argument_size(i);
  }
  if (total > 4096) violation("cuLaunchKernel: more than 4096 bytes of arguments");
  Context* context = current_context();
  queue(*s, [=, &kernel]() -> int {
    if (settings().fail_function == "kernel" && ++driver().kernels == settings().fail_call) {
      return settings().fail_result;
    }
    std::vector<const void*> pointers;
    std::vector<Block> blocks;
    for (size_t i = 0; i < values.size(); ++i) {
      pointers.push_back(values[i].data());
      if (!kernel.is_pointer(i)) continue;
      uintptr_t address = 0;
      std::memcpy(&address, values[i].data(), sizeof address);
      const auto found = context->blocks.find(address);
      if (found == context->blocks.end()) {
        violation("a kernel ran with an address that is no block, or was freed");
      }
      blocks.push_back({reinterpret_cast<std::byte*>(address), found->second});
    }
    const kiln::gpu_host::Grid groups = {gx, gy, gz};
    const kiln::gpu_host::Grid group = {bx, by, bz};
    try {
      kernel.run(groups, group, const_cast<void* const*>(pointers.data()), blocks);
    } catch (const kiln::gpu_host::KernelError& error) {
      std::fprintf(stderr, "fake cuda: %s\n", error.what());
      return kIllegalAddress;
    }
    return 0;
  });
  return 0;
}

// ---- Memory

FAKE cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  ENTER_CONTEXT("cuMemAlloc");
  Context& c = *current_context();
  if (bytes == 0) return kInvalidValue;
  if (bytes > settings().memory - c.used) return kOutOfMemory;
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, bytes) != 0) return kOutOfMemory;
  std::memset(memory, 0xfb, bytes);
  c.blocks[reinterpret_cast<uintptr_t>(memory)] = bytes;
  c.used += bytes;
  *address = reinterpret_cast<uintptr_t>(memory);
  return 0;
}
FAKE cuMemFree_v2(unsigned long long address) {
  ENTER_CONTEXT("cuMemFree");
  Context& c = *current_context();
  const auto found = c.blocks.find(address);
  if (found == c.blocks.end()) violation("cuMemFree: no block of this context, or freed before");
  // As the driver does: it waits for what may use the block.
  const int lost = drain_all(c);
  c.used -= found->second;
  c.blocks.erase(found);
  std::free(reinterpret_cast<void*>(address));
  return lost;
}
FAKE cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  ENTER_CONTEXT("cuMemHostAlloc");
  *memory = std::malloc(bytes);
  if (*memory == nullptr) return kOutOfMemory;
  driver().pinned[reinterpret_cast<uintptr_t>(*memory)] = bytes;
  return 0;
}
FAKE cuMemFreeHost(void* memory) {
  ENTER_CONTEXT("cuMemFreeHost");
  const auto found = driver().pinned.find(reinterpret_cast<uintptr_t>(memory));
  if (found == driver().pinned.end()) violation("cuMemFreeHost: no pinned memory");
  for (const HostCopy& c : driver().host_copies) {
    if (overlap(c, found->first, found->second)) {
      violation("pinned memory was freed before its copy was done");
    }
  }
  drain_all(*current_context());
  driver().pinned.erase(found);
  std::free(memory);
  return 0;
}
FAKE cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  ENTER_CONTEXT("cuMemcpyHtoDAsync");
  Stream* s = known(driver().streams, stream, "cuMemcpyHtoDAsync: the stream");
  if (!holds(driver().pinned, reinterpret_cast<uintptr_t>(from), bytes)) {
    violation("cuMemcpyHtoDAsync: the source is not pinned");
  }
  if (!holds(current_context()->blocks, to, bytes)) return kInvalidValue;
  const auto sum = note_host_copy(*s, from, bytes, true);
  Context* context = current_context();
  queue(*s, [=]() -> int {
    if (checksum(from, bytes) != *sum) {
      violation("the source of a copy changed before the copy was done");
    }
    if (!holds(context->blocks, to, bytes)) violation("a copy into a block that was freed");
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return 0;
  });
  return 0;
}
FAKE cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream) {
  ENTER_CONTEXT("cuMemcpyDtoHAsync");
  Stream* s = known(driver().streams, stream, "cuMemcpyDtoHAsync: the stream");
  if (!holds(driver().pinned, reinterpret_cast<uintptr_t>(to), bytes)) {
    violation("cuMemcpyDtoHAsync: the target is not pinned");
  }
  if (!holds(current_context()->blocks, from, bytes)) return kInvalidValue;
  // Who does not wait finds this.
  std::memset(to, 0xfa, bytes);
  wrote_host(to, bytes, false);
  const auto sum = note_host_copy(*s, to, bytes, false);
  Context* context = current_context();
  queue(*s, [=]() -> int {
    if (checksum(to, bytes) != *sum) {
      violation("the target of a copy was written to before the copy was done");
    }
    if (!holds(context->blocks, from, bytes)) violation("a copy from a block that was freed");
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    wrote_host(to, bytes, true);
    return 0;
  });
  return 0;
}

// ---- Streams and events

FAKE cuStreamCreate(void** stream, unsigned flags) {
  ENTER_CONTEXT("cuStreamCreate");
  if (flags > 1) return kInvalidValue;
  auto* made = new Stream{current_context(), {}, 0, 0};
  driver().streams[made] = made;
  *stream = made;
  return 0;
}
FAKE cuStreamSynchronize(void* stream) {
  ENTER_CONTEXT("cuStreamSynchronize");
  Stream* s = known(driver().streams, stream, "cuStreamSynchronize: the stream");
  return drain(*s, s->queued);
}
FAKE cuStreamWaitEvent(void* stream, void* event, unsigned) {
  ENTER_CONTEXT("cuStreamWaitEvent");
  Stream* s = known(driver().streams, stream, "cuStreamWaitEvent: the stream");
  const Event* e = known(driver().events, event, "cuStreamWaitEvent: the event");
  if (e->stream == nullptr) return 0;
  queue(*s, [from = e->stream, behind = e->behind] { return drain(*from, behind); });
  return 0;
}
FAKE cuEventCreate(void** event, unsigned flags) {
  ENTER_CONTEXT("cuEventCreate");
  auto* made =
      new Event{current_context(), (flags & 2u) == 0, nullptr, 0, std::make_shared<double>(0.0)};
  driver().events[made] = made;
  *event = made;
  return 0;
}
FAKE cuEventDestroy_v2(void* event) {
  ENTER_CONTEXT("cuEventDestroy");
  delete known(driver().events, event, "cuEventDestroy: the event");
  driver().events.erase(event);
  return 0;
}
FAKE cuEventRecord(void* event, void* stream) {
  ENTER_CONTEXT("cuEventRecord");
  Event* e = known(driver().events, event, "cuEventRecord: the event");
  Stream* s = known(driver().streams, stream, "cuEventRecord: the stream");
  e->stream = s;
  // The event may be destroyed before its turn comes.
  queue(*s, [time = e->time_ms]() -> int {
    *time = now_ms();
    return 0;
  });
  e->behind = s->queued;
  return 0;
}
FAKE cuEventQuery(void* event) {
  ENTER_CONTEXT("cuEventQuery");
  const Event* e = known(driver().events, event, "cuEventQuery: the event");
  return e->stream == nullptr || e->stream->done >= e->behind ? 0 : kNotReady;
}
FAKE cuEventSynchronize(void* event) {
  ENTER_CONTEXT("cuEventSynchronize");
  const Event* e = known(driver().events, event, "cuEventSynchronize: the event");
  return e->stream == nullptr ? 0 : drain(*e->stream, e->behind);
}
FAKE cuEventElapsedTime(float* ms, void* start, void* end) {
  ENTER_CONTEXT("cuEventElapsedTime");
  const Event* a = known(driver().events, start, "cuEventElapsedTime: the first event");
  const Event* b = known(driver().events, end, "cuEventElapsedTime: the second event");
  if (!a->timing || !b->timing || a->stream == nullptr || b->stream == nullptr) return 400;
  if (a->stream->done < a->behind || b->stream->done < b->behind) return kNotReady;
  *ms = static_cast<float>(*b->time_ms - *a->time_ms);
  return 0;
}
