// The driver interface on CUDA's driver API.
//
// Note [Lost]: an error inside a kernel spoils the context, and every call answers with it from
// then on. So the first such answer is kept as the device's end: it names the kernels that were
// launched since the last wait, and every later call throws it again. With $KILN_GPU_BLOCKING=1
// each launch is waited for, and the error names the one that failed.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include <dlfcn.h>

#include "kiln/backend/gpu/runtime/cublaslt.h"
#include "kiln/backend/gpu/runtime/cuda_api.h"
#include "kiln/backend/gpu/runtime/cuda_images.h"
#include "kiln/backend/gpu/runtime/cuda_staging.h"
#include "kiln/backend/gpu/runtime/cudnn.h"
#include "kiln/backend/gpu/runtime/driver.h"
#include "kiln/core/error.h"

namespace kiln::gpu {
namespace {

constexpr int kOldestDriver = 12000;  // as cuDriverGetVersion has it: CUDA 12.0

std::string version_text(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

struct CudaDevices {
  std::vector<CuDevice> all;
  int version = 0;
  std::string absence;
};

std::string why_not_initialized(const CudaApi& api, CuResult result) {
  switch (result) {
    case kCuNoDevice: {
      const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
      return visible == nullptr
                 ? "NVIDIA's driver finds no GPU"
                 : concat("NVIDIA's driver finds no GPU; CUDA_VISIBLE_DEVICES is '", visible, "'");
    }
    case kCuStubLibrary:
      return "libcuda.so.1 is the CUDA toolkit's stub, not NVIDIA's driver; install the driver, or "
             "take the stub's folder out of LD_LIBRARY_PATH";
    case kCuDriverMismatch:
      return "libcuda.so.1 and the running kernel module are of different versions of NVIDIA's "
             "driver; restart the machine, or mount the host's driver into the container";
    default:
      return concat("NVIDIA's driver does not start: ", describe_cuda_error(api, result));
  }
}

CudaDevices find_cuda_devices() {
  CudaDevices found;
  const CudaApi& api = cuda_api();
  found.absence = api.absence;
  if (!found.absence.empty()) return found;
  CuResult result = api.init(0);
  if (result == kCuSuccess) result = api.driver_version(&found.version);
  int count = 0;
  if (result == kCuSuccess) result = api.device_count(&count);
  if (result == kCuSuccess && count == 0) result = kCuNoDevice;
  if (result != kCuSuccess) {
    found.absence = why_not_initialized(api, result);
    return found;
  }
  if (found.version < kOldestDriver) {
    found.absence = concat("the installed NVIDIA driver is for CUDA ", version_text(found.version),
                           "; expected ", version_text(kOldestDriver),
                           " or newer: install driver 525 or newer");
    return found;
  }
  for (int i = 0; i < count; ++i) {
    CuDevice device = 0;
    if (api.device_get(&device, i) == kCuSuccess) found.all.push_back(device);
  }
  return found;
}

const CudaDevices& cuda_devices() {
  static const CudaDevices& found = *new CudaDevices(find_cuda_devices());
  return found;
}

// Beside this library; null where it was not built.
const CudaImages* cuda_images() {
  static const CudaImages* images = []() -> const CudaImages* {
    Dl_info info{};
    std::string path;
    if (dladdr(reinterpret_cast<void*>(&find_cuda_devices), &info) != 0 &&
        info.dli_fname != nullptr) {
      path = info.dli_fname;
      const size_t slash = path.rfind('/');
      path = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    }
    void* library = dlopen((path + "libkiln_cuda_kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    const auto get =
        reinterpret_cast<decltype(&kiln_cuda_images)>(dlsym(library, "kiln_cuda_images"));
    return get == nullptr ? nullptr : get();
  }();
  return images;
}

bool ends_device(CuResult result) {
  switch (result) {
    case kCuDeviceUnavailable:
    case kCuEccUncorrectable:
    case kCuNvlinkUncorrectable:
      return true;
    default:
      // 700 to 719 but for what a launch itself can be refused for.
      return result >= kCuIllegalAddress && result <= kCuLaunchFailed &&
             result != kCuOutOfResources && result != 703 && result != 704 && result != 705 &&
             result != 708 && result != 712 && result != 713;
  }
}

class Cuda final : public Driver {
 public:
  explicit Cuda(int index)
      : api_(cuda_api()),
        index_(index),
        device_(cuda_devices().all[static_cast<size_t>(index)]),
        blocking_(std::getenv("KILN_GPU_BLOCKING") != nullptr) {
    check("cuDevicePrimaryCtxRetain", api_.context_retain(&context_, device_));
    use();
    check("cuStreamCreate", api_.stream_create(&stream_, kCuStreamNonBlocking));
    fill_properties();
    staging_.emplace(api_, stream_, [this](const char* what, CuResult r) { check(what, r); });
  }

  const Properties& properties() const override { return properties_; }

  Memory allocate(size_t bytes) override {
    use();
    CuAddress address = 0;
    const CuResult result = api_.allocate(&address, bytes);
    if (result == kCuOutOfMemory) return nullptr;
    check("cuMemAlloc", result);
    return reinterpret_cast<Memory>(address);
  }

  // It waits for what uses the block.
  void release(Memory memory) noexcept override {
    if (!lost_.empty() || api_.context_set(context_) != kCuSuccess) return;
    static_cast<void>(api_.release(reinterpret_cast<CuAddress>(memory)));
  }

  void write(Memory to, size_t offset, const void* from, size_t bytes) override {
    use();
    staging_->write(reinterpret_cast<CuAddress>(to) + offset, from, bytes);
  }

  void read(Memory from, size_t offset, void* to, size_t bytes) override {
    use();
    staging_->read(reinterpret_cast<CuAddress>(from) + offset, to, bytes);
  }

  HostBlock allocate_host(size_t bytes) override {
    use();
    HostBlock block;
    const CuResult result = api_.allocate_host(&block.address, bytes, kCuHostPortable);
    if (result == kCuOutOfMemory) return {};
    check("cuMemHostAlloc", result);
    return block;
  }
  void release_host(const HostBlock& block) noexcept override {
    if (!lost_.empty() || api_.context_set(context_) != kCuSuccess) return;
    static_cast<void>(api_.release_host(block.address));
  }
  void write_from_host(Memory to, size_t offset, const void* from, size_t bytes) override {
    use();
    check("cuMemcpyHtoDAsync",
          api_.copy_to_device(reinterpret_cast<CuAddress>(to) + offset, from, bytes, stream_));
  }
  void read_to_host(Memory from, size_t offset, void* to, size_t bytes) override {
    use();
    check("cuMemcpyDtoHAsync",
          api_.copy_to_host(to, reinterpret_cast<CuAddress>(from) + offset, bytes, stream_));
  }

  void launch(Function function, const LaunchName& name, Extent groups, Extent group,
              std::span<const Argument> arguments, Timed* timed) override {
    use();
    if (groups.x > largest_grid_.x || groups.y > largest_grid_.y || groups.z > largest_grid_.z) {
      throw_error<ValueError>("cuda: kernel ", text_of(name), " needs ", groups.x, " x ", groups.y,
                              " x ", groups.z, " groups; expected at most ", largest_grid_.x, " x ",
                              largest_grid_.y, " x ", largest_grid_.z);
    }
    void* parameters[kMostArguments];
    if (arguments.size() > kMostArguments) {
      throw_error<RuntimeError>("cuda: kernel ", text_of(name), " has ", arguments.size(),
                                " arguments");
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& a = arguments[i];
      parameters[i] = const_cast<void*>(
          a.kind == Argument::Kind::memory ? static_cast<const void*>(&a.data) : a.data);
    }
    if (name.local_bytes > kLocalBytes && raised_.insert(function).second) {
      check("cuFuncSetAttribute",
            api_.function_set(static_cast<CuFunction>(function), kCuMostLocalBytes,
                              static_cast<int>(name.local_bytes)));
    }
    recent_[launched_++ % recent_.size()] = name;
    if (timed != nullptr) timed->begin = mark();
    check("cuLaunchKernel",
          api_.launch(static_cast<CuFunction>(function), static_cast<unsigned>(groups.x),
                      static_cast<unsigned>(groups.y), static_cast<unsigned>(groups.z),
                      static_cast<unsigned>(group.x), static_cast<unsigned>(group.y),
                      static_cast<unsigned>(group.z), static_cast<unsigned>(name.local_bytes),
                      stream_, parameters, nullptr));
    if (timed != nullptr) timed->end = mark();
    if (blocking_) finish();
  }

  bool multiplies() override {
    use();
    if (!products_) {
      products_.emplace([this](size_t bytes) {
        CuAddress address = 0;
        return api_.allocate(&address, bytes) == kCuSuccess ? address : CuAddress{0};
      });
    }
    return products_->is_there();
  }
  bool multiply(const Product& product, Timed* timed) override {
    if (!multiplies()) return false;
    if (timed != nullptr) timed->begin = mark();
    const bool done = products_->multiply(product, stream_);
    if (timed != nullptr) timed->end = mark();
    if (done) recent_[launched_++ % recent_.size()] = {"cuBLASLt", nullptr};
    if (done && blocking_) finish();
    return done;
  }

  bool convolves() override {
    use();
    if (!convolutions_) {
      convolutions_.emplace(
          [this](size_t bytes) {
            CuAddress address = 0;
            return api_.allocate(&address, bytes) == kCuSuccess ? address : CuAddress{0};
          },
          [this](CuAddress address) { static_cast<void>(api_.release(address)); }, stream_);
    }
    return convolutions_->is_there();
  }
  bool convolve(const Convolution& convolution, Timed* timed) override {
    if (!convolves()) return false;
    if (timed != nullptr) timed->begin = mark();
    const bool done = convolutions_->convolve(convolution);
    if (timed != nullptr) timed->end = mark();
    if (done) recent_[launched_++ % recent_.size()] = {"cuDNN", nullptr};
    if (done && blocking_) finish();
    return done;
  }

  void finish() override {
    use();
    check("cuStreamSynchronize", api_.stream_synchronize(stream_));
    launched_ = 0;
    staging_->filled();
  }
  // Copies under way go into the staging memory, which stays.
  void abandon_reads() noexcept override { staging_->abandon_reads(); }

  Mark mark() override {
    use();
    CuEvent event = nullptr;
    check("cuEventCreate", api_.event_create(&event, 0));
    const CuResult result = api_.event_record(event, stream_);
    if (result != kCuSuccess) static_cast<void>(api_.event_destroy(event));
    check("cuEventRecord", result);
    return static_cast<Mark>(reinterpret_cast<uintptr_t>(event));
  }
  bool passed(Mark mark) override {
    use();
    const CuResult result = api_.event_query(event_of(mark));
    if (result == kCuNotReady) return false;
    check("cuEventQuery", result);
    return true;
  }
  void wait(Mark mark) override {
    use();
    check("cuEventSynchronize", api_.event_synchronize(event_of(mark)));
  }
  double milliseconds(Mark from, Mark to) override {
    use();
    float ms = 0;
    check("cuEventElapsedTime", api_.event_elapsed(&ms, event_of(from), event_of(to)));
    return ms;
  }
  void release(Mark mark) noexcept override {
    if (!lost_.empty() || api_.context_set(context_) != kCuSuccess) return;
    static_cast<void>(api_.event_destroy(event_of(mark)));
  }

  Function find_ahead(const std::string& text) override {
    const CudaImages* images = cuda_images();
    if (images == nullptr) return nullptr;
    const uint64_t number = kernel_number(text.data(), text.size());
    const std::span kernels(images->kernels, images->count);
    const auto found = std::ranges::lower_bound(kernels, number, {}, &CudaImages::Kernel::number);
    if (found == kernels.end() || found->number != number) return nullptr;
    use();
    CuModule& module = modules_[found->image];
    if (module == nullptr) {
      const CuResult result = api_.module_load(&module, images->images[found->image]);
      if (ends_device(result)) check("cuModuleLoadData", result);
      // A GPU or a driver that these were not made for.
      if (result != kCuSuccess) return nullptr;
    }
    char name[32];
    std::snprintf(name, sizeof name, "kiln_%016llx", static_cast<unsigned long long>(number));
    CuFunction function = nullptr;
    if (api_.module_function(&function, module, name) != kCuSuccess) return nullptr;
    return function;
  }

  std::vector<std::byte> compile(const std::string& text) override {
    const NvrtcApi& nvrtc = nvrtc_api();
    if (!nvrtc.absence.empty()) {
      throw_error<RuntimeError>("cuda: a kernel that was not compiled with Kiln is needed, and ",
                                nvrtc.absence);
    }
    NvrtcApi::Program program = nullptr;
    const auto call = [&](const char* what, int result) {
      if (result != 0)
        throw_error<RuntimeError>("cuda: ", what, " failed; got NVRTC error ", result);
    };
    call("nvrtcCreateProgram",
         nvrtc.create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr));
    // Hopper's own instructions are those of "90a".
    const std::string architecture =
        concat("--gpu-architecture=sm_", major_, minor_, major_ == 9 && minor_ == 0 ? "a" : "");
    const char* options[] = {architecture.c_str(), "--fmad=false", "--std=c++17", "-w"};
    const int result = nvrtc.compile(program, 4, options);
    if (result != 0) {
      size_t size = 0;
      std::string log;
      if (nvrtc.log_size(program, &size) == 0) {
        log.resize(size);
        if (nvrtc.log(program, log.data()) != 0) log.clear();
      }
      static_cast<void>(nvrtc.destroy(&program));
      throw_error<RuntimeError>("cuda: a kernel did not compile on ", properties_.name,
                                " (NVRTC error ", result, "); NVRTC says:\n", log);
    }
    size_t size = 0;
    call("nvrtcGetCUBINSize", nvrtc.cubin_size(program, &size));
    std::vector<std::byte> binary(size);
    call("nvrtcGetCUBIN", nvrtc.cubin(program, reinterpret_cast<char*>(binary.data())));
    static_cast<void>(nvrtc.destroy(&program));
    return binary;
  }

  Function load(std::span<const std::byte> binary, const std::string& name) override {
    use();
    CuModule module = nullptr;
    const CuResult result = api_.module_load(&module, binary.data());
    if (ends_device(result)) check("cuModuleLoadData", result);
    if (result != kCuSuccess) return nullptr;
    CuFunction function = nullptr;
    if (api_.module_function(&function, module, name.c_str()) != kCuSuccess) return nullptr;
    return function;
  }

 private:
  static constexpr size_t kMostArguments = 128;
  static constexpr size_t kLocalBytes = size_t{48} << 10;  // what every kernel may have
  static CuEvent event_of(Mark mark) {
    return reinterpret_cast<CuEvent>(static_cast<uintptr_t>(mark));
  }

  // The context belongs to the calling thread from here on.
  void use() {
    if (!lost_.empty()) throw DeviceError(lost_);
    check("cuCtxSetCurrent", api_.context_set(context_));
  }

  static std::string text_of(const LaunchName& name) {
    std::string out = name.file == nullptr ? "" : name.file;
    if (name.part != nullptr && *name.part != '\0') out += concat(" (", name.part, ")");
    return out;
  }

  void check(const char* what, CuResult result) {
    if (result == kCuSuccess) return;
    const std::string error = describe_cuda_error(api_, result);
    if (!ends_device(result)) throw_error<RuntimeError>("cuda: ", what, " failed; got ", error);
    lost_ = concat("cuda: cuda:", index_, " is lost: ", what, " gave ", error);
    const size_t known = std::min<size_t>(launched_, recent_.size());
    for (size_t i = 0; i < known; ++i) {
      lost_ += i == 0 ? "; launched since the last wait, the last first: " : ", ";
      lost_ += text_of(recent_[(launched_ - 1 - i) % recent_.size()]);
    }
    lost_ += blocking_ ? "; start the process anew"
                       : "; start the process anew (KILN_GPU_BLOCKING=1 names the kernel)";
    throw DeviceError(lost_);
  }

  int attribute(int which) {
    int value = 0;
    check("cuDeviceGetAttribute", api_.device_attribute(&value, which, device_));
    return value;
  }

  void fill_properties() {
    char name[256] = {};
    check("cuDeviceGetName", api_.device_name(name, sizeof name, device_));
    properties_.name = name;
    properties_.vendor = "NVIDIA";
    major_ = attribute(kCuComputeMajor);
    minor_ = attribute(kCuComputeMinor);
    properties_.driver =
        concat("CUDA ", version_text(cuda_devices().version), " sm_", major_, minor_);
    check("cuDeviceTotalMem", api_.device_memory(&properties_.memory_bytes, device_));
    properties_.largest_allocation = properties_.memory_bytes;
    properties_.largest_group = static_cast<size_t>(attribute(kCuMaxThreadsPerBlock));
    properties_.has_f64 = true;
    properties_.exact_division = true;
    properties_.has_addresses = true;
    properties_.major = major_;
    properties_.minor = minor_;
    largest_grid_ = {static_cast<size_t>(attribute(kCuMaxGridX)),
                     static_cast<size_t>(attribute(kCuMaxGridY)),
                     static_cast<size_t>(attribute(kCuMaxGridZ))};
  }

  const CudaApi& api_;
  int index_;
  CuDevice device_;
  bool blocking_;
  CuContext context_ = nullptr;
  CuStream stream_ = nullptr;
  int major_ = 0;
  int minor_ = 0;
  Properties properties_;
  Extent largest_grid_;
  std::optional<CudaStaging> staging_;
  std::set<Function> raised_;  // whose launches may give more local memory
  std::optional<CublasLt> products_;
  std::optional<Cudnn> convolutions_;
  std::map<uint32_t, CuModule> modules_;  // of images
  std::array<LaunchName, 8> recent_{};
  size_t launched_ = 0;  // since the last wait
  std::string lost_;
};

std::unique_ptr<Driver> open_cuda(int index) {
  const CudaDevices& found = cuda_devices();
  if (index < 0 || index >= static_cast<int>(found.all.size())) {
    if (found.all.empty()) throw_error<DeviceError>("cuda: no device; ", found.absence);
    throw_error<DeviceError>("cuda: no such device; got cuda:", index, "; expected 0 to ",
                             found.all.size() - 1);
  }
  try {
    return std::make_unique<Cuda>(index);
  } catch (const RuntimeError& error) {
    throw_error<DeviceError>("cuda: cuda:", index, " could not be opened; ",
                             std::string(error.what()));
  }
}

}  // namespace

const Runtime kCudaRuntime = {
    "cuda",
    [] { return static_cast<int>(cuda_devices().all.size()); },
    []() -> const std::string& { return cuda_devices().absence; },
    &open_cuda,
    [](int) { return false; },
};

}  // namespace kiln::gpu
