// The driver interface on OpenCL 1.2.
#include <algorithm>
#include <cstring>

#include "kiln/backend/gpu/runtime/driver.h"
#include "kiln/backend/gpu/runtime/opencl_api.h"
#include "kiln/core/error.h"

namespace kiln::gpu {
namespace {

void check(const char* what, cl_int error) {
  if (error == CL_SUCCESS) return;
  throw_error<RuntimeError>("opencl: ", what, " failed; got ", name_of_opencl_error(error));
}

struct Found {
  cl_platform_id platform;
  cl_device_id device;
  cl_device_type type;
};

struct Devices {
  std::vector<Found> all;
  std::string absence;
};

Devices find_devices() {
  Devices found;
  const OpenClApi& api = opencl_api();
  if (!api.absence.empty()) {
    found.absence = api.absence;
    return found;
  }
  cl_uint count = 0;
  // The loader answers with an error where no driver is installed.
  if (api.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) count = 0;
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) check("clGetPlatformIDs", api.clGetPlatformIDs(count, platforms.data(), nullptr));
  for (cl_platform_id platform : platforms) {
    cl_uint devices = 0;
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices) != CL_SUCCESS) {
      continue;
    }
    std::vector<cl_device_id> ids(devices);
    check("clGetDeviceIDs",
          api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr));
    for (cl_device_id id : ids) {
      cl_device_type type = 0;
      check("clGetDeviceInfo",
            api.clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, nullptr));
      found.all.push_back({platform, id, type});
    }
  }
  const auto rank = [](const Found& f) {
    return (f.type & CL_DEVICE_TYPE_GPU) != 0 ? 0 : (f.type & CL_DEVICE_TYPE_CPU) != 0 ? 2 : 1;
  };
  std::ranges::stable_sort(found.all, {}, rank);
  if (found.all.empty()) {
    found.absence = count == 0 ? "no OpenCL driver is installed (of the GPU's vendor; Debian's "
                                 "pocl-opencl-icd runs on any processor)"
                               : "the installed OpenCL drivers find no device";
  }
  return found;
}

const Devices& devices() {
  static const Devices& found = *new Devices(find_devices());
  return found;
}

template <class T>
T number_of(cl_device_id device, cl_device_info what) {
  T value{};
  check("clGetDeviceInfo",
        opencl_api().clGetDeviceInfo(device, what, sizeof value, &value, nullptr));
  return value;
}

std::string text_of(cl_device_id device, cl_device_info what) {
  size_t size = 0;
  check("clGetDeviceInfo", opencl_api().clGetDeviceInfo(device, what, 0, nullptr, &size));
  std::string text(size, '\0');
  check("clGetDeviceInfo", opencl_api().clGetDeviceInfo(device, what, size, text.data(), nullptr));
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

std::string platform_version(cl_platform_id platform) {
  size_t size = 0;
  check("clGetPlatformInfo",
        opencl_api().clGetPlatformInfo(platform, CL_PLATFORM_VERSION, 0, nullptr, &size));
  std::string text(size, '\0');
  check("clGetPlatformInfo",
        opencl_api().clGetPlatformInfo(platform, CL_PLATFORM_VERSION, size, text.data(), nullptr));
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

Properties properties_of(const Found& found) {
  Properties p;
  p.name = text_of(found.device, CL_DEVICE_NAME);
  p.vendor = text_of(found.device, CL_DEVICE_VENDOR);
  p.driver = concat(platform_version(found.platform), " ", text_of(found.device, CL_DEVICE_VERSION),
                    " ", text_of(found.device, CL_DRIVER_VERSION));
  p.memory_bytes = number_of<cl_ulong>(found.device, CL_DEVICE_GLOBAL_MEM_SIZE);
  p.largest_allocation = number_of<cl_ulong>(found.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  p.largest_group = number_of<size_t>(found.device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  p.has_f64 = text_of(found.device, CL_DEVICE_EXTENSIONS).find("cl_khr_fp64") != std::string::npos;
  const auto single = number_of<cl_device_fp_config>(found.device, CL_DEVICE_SINGLE_FP_CONFIG);
  p.exact_division = (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  p.is_cpu = (found.type & CL_DEVICE_TYPE_CPU) != 0;
  return p;
}

class OpenCl final : public Driver {
 public:
  explicit OpenCl(const Found& found)
      : api_(opencl_api()), device_(found.device), properties_(properties_of(found)) {
    cl_int error = CL_SUCCESS;
    context_ = api_.clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &error);
    check("clCreateContext", error);
    queue_ = api_.clCreateCommandQueue(context_, device_, CL_QUEUE_PROFILING_ENABLE, &error);
    check("clCreateCommandQueue", error);
  }

  const Properties& properties() const override { return properties_; }

  Memory allocate(size_t bytes) override {
    cl_int error = CL_SUCCESS;
    cl_mem memory = api_.clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &error);
    if (is_shortage(error)) return nullptr;
    check("clCreateBuffer", error);
    return memory;
  }

  void release(Memory memory) noexcept override {
    api_.clReleaseMemObject(static_cast<cl_mem>(memory));
  }

  // Small values are copied and go with the queue; large ones are waited for.
  void write(Memory to, size_t offset, const void* from, size_t bytes) override {
    const void* source = from;
    if (bytes <= kStagedBytes) {
      if (staged_bytes_ > kStagedLimit) finish();
      const auto* begin = static_cast<const std::byte*>(from);
      staged_.push_back(std::make_unique<std::byte[]>(bytes));
      std::memcpy(staged_.back().get(), begin, bytes);
      staged_bytes_ += bytes;
      source = staged_.back().get();
    }
    const cl_bool wait = bytes <= kStagedBytes ? CL_FALSE : CL_TRUE;
    check("clEnqueueWriteBuffer",
          api_.clEnqueueWriteBuffer(queue_, static_cast<cl_mem>(to), wait, offset, bytes, source, 0,
                                    nullptr, nullptr));
  }

  void read(Memory from, size_t offset, void* to, size_t bytes) override {
    check("clEnqueueReadBuffer",
          api_.clEnqueueReadBuffer(queue_, static_cast<cl_mem>(from), CL_FALSE, offset, bytes, to,
                                   0, nullptr, nullptr));
  }

  // What the driver keeps for buffers that the host reads and writes too, mapped for as long as it
  // is there. OpenCL has no other way to pinned memory.
  HostBlock allocate_host(size_t bytes) override {
    cl_int error = CL_SUCCESS;
    cl_mem memory = api_.clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes,
                                        nullptr, &error);
    if (is_shortage(error)) return {};
    check("clCreateBuffer", error);
    HostBlock block;
    block.handle = memory;
    block.address = api_.clEnqueueMapBuffer(queue_, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                            bytes, 0, nullptr, nullptr, &error);
    if (error == CL_SUCCESS && block.address != nullptr) return block;
    api_.clReleaseMemObject(memory);
    if (is_shortage(error) || error == CL_MAP_FAILURE) return {};
    check("clEnqueueMapBuffer", error);
    return {};
  }
  void release_host(const HostBlock& block) noexcept override {
    auto* memory = static_cast<cl_mem>(block.handle);
    static_cast<void>(
        api_.clEnqueueUnmapMemObject(queue_, memory, block.address, 0, nullptr, nullptr));
    api_.clReleaseMemObject(memory);
  }
  void write_from_host(Memory to, size_t offset, const void* from, size_t bytes) override {
    check("clEnqueueWriteBuffer",
          api_.clEnqueueWriteBuffer(queue_, static_cast<cl_mem>(to), CL_FALSE, offset, bytes, from,
                                    0, nullptr, nullptr));
    check("clFlush", api_.clFlush(queue_));
  }
  void read_to_host(Memory from, size_t offset, void* to, size_t bytes) override {
    read(from, offset, to, bytes);
    check("clFlush", api_.clFlush(queue_));
  }

  void launch(Function function, const LaunchName&, Extent groups, Extent group,
              std::span<const Argument> arguments, Timed* timed) override {
    auto* kernel = static_cast<cl_kernel>(function);
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& a = arguments[i];
      const bool is_memory = a.kind == Argument::Kind::memory;
      const void* value = is_memory ? static_cast<const void*>(&a.data) : a.data;
      check("clSetKernelArg", api_.clSetKernelArg(kernel, static_cast<cl_uint>(i),
                                                  is_memory ? sizeof(cl_mem) : a.size, value));
    }
    const size_t local[3] = {group.x, group.y, group.z};
    const size_t global[3] = {groups.x * group.x, groups.y * group.y, groups.z * group.z};
    cl_event event = nullptr;
    check("clEnqueueNDRangeKernel",
          api_.clEnqueueNDRangeKernel(queue_, kernel, 3, nullptr, global, local, 0, nullptr,
                                      timed == nullptr ? nullptr : &event));
    if (timed != nullptr) timed->end = static_cast<Mark>(reinterpret_cast<uintptr_t>(event));
    // Else a driver may gather work without beginning it.
    if (++launched_ % kLaunchesPerFlush == 0) check("clFlush", api_.clFlush(queue_));
  }

  void finish() override {
    check("clFinish", api_.clFinish(queue_));
    staged_.clear();
    staged_bytes_ = 0;
  }
  void abandon_reads() noexcept override { static_cast<void>(api_.clFinish(queue_)); }

  Mark mark() override {
    cl_event event = nullptr;
    check("clEnqueueMarkerWithWaitList",
          api_.clEnqueueMarkerWithWaitList(queue_, 0, nullptr, &event));
    check("clFlush", api_.clFlush(queue_));
    return static_cast<Mark>(reinterpret_cast<uintptr_t>(event));
  }
  bool passed(Mark mark) override {
    cl_int status = CL_QUEUED;
    check("clGetEventInfo", api_.clGetEventInfo(event_of(mark), CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                sizeof status, &status, nullptr));
    if (status < 0) check("a kernel", status);
    return status == CL_COMPLETE;
  }
  void wait(Mark mark) override {
    cl_event event = event_of(mark);
    check("clWaitForEvents", api_.clWaitForEvents(1, &event));
  }
  double milliseconds(Mark from, Mark to) override {
    return between(time_of(from, CL_PROFILING_COMMAND_END), time_of(to, CL_PROFILING_COMMAND_END));
  }
  Times times(Mark base, const Timed& timed) override {
    if (timed.begin != Mark::none) return Driver::times(base, timed);
    const cl_ulong begin = time_of(timed.end, CL_PROFILING_COMMAND_START);
    return {between(time_of(base, CL_PROFILING_COMMAND_END), begin),
            between(begin, time_of(timed.end, CL_PROFILING_COMMAND_END))};
  }
  void release(Mark mark) noexcept override { api_.clReleaseEvent(event_of(mark)); }

  std::vector<std::byte> compile(const std::string& text) override {
    const char* source = text.c_str();
    cl_int error = CL_SUCCESS;
    cl_program program = api_.clCreateProgramWithSource(context_, 1, &source, nullptr, &error);
    check("clCreateProgramWithSource", error);
    error = build(program);
    if (error != CL_SUCCESS) {
      const std::string log = log_of(program);
      api_.clReleaseProgram(program);
      throw_error<RuntimeError>("opencl: a kernel did not compile on ", properties_.name, " (",
                                name_of_opencl_error(error), "); the driver's compiler says:\n",
                                log);
    }
    size_t size = 0;
    check("clGetProgramInfo",
          api_.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr));
    std::vector<std::byte> binary(size);
    auto* data = reinterpret_cast<unsigned char*>(binary.data());
    check("clGetProgramInfo",
          api_.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, nullptr));
    api_.clReleaseProgram(program);
    return binary;
  }

  Function load(std::span<const std::byte> binary, const std::string& name) override {
    const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
    const size_t size = binary.size();
    cl_int status = CL_SUCCESS;
    cl_int error = CL_SUCCESS;
    cl_program program =
        api_.clCreateProgramWithBinary(context_, 1, &device_, &size, &data, &status, &error);
    if (error != CL_SUCCESS) return nullptr;
    cl_kernel kernel = nullptr;
    if (status == CL_SUCCESS && build(program) == CL_SUCCESS) {
      kernel = api_.clCreateKernel(program, name.c_str(), &error);
      if (error != CL_SUCCESS) kernel = nullptr;
    }
    api_.clReleaseProgram(program);  // the kernel holds it
    return kernel;
  }

 private:
  static bool is_shortage(cl_int error) {
    return error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_RESOURCES ||
           error == CL_OUT_OF_HOST_MEMORY || error == CL_INVALID_BUFFER_SIZE;
  }
  static cl_event event_of(Mark mark) {
    return reinterpret_cast<cl_event>(static_cast<uintptr_t>(mark));
  }
  cl_ulong time_of(Mark mark, cl_profiling_info what) {
    cl_ulong value = 0;
    check("clGetEventProfilingInfo",
          api_.clGetEventProfilingInfo(event_of(mark), what, sizeof value, &value, nullptr));
    return value;
  }
  // Milliseconds.
  static double between(cl_ulong from, cl_ulong to) {
    return static_cast<double>(static_cast<int64_t>(to - from)) * 1e-6;
  }
  static constexpr size_t kStagedBytes = size_t{64} << 10;
  static constexpr size_t kStagedLimit = size_t{16} << 20;
  static constexpr uint64_t kLaunchesPerFlush = 32;

  cl_int build(cl_program program) {
    std::string options = "-cl-std=CL1.2";
    if (properties_.has_f64) options += " -DKILN_F64";
    options += properties_.exact_division ? " -cl-fp32-correctly-rounded-divide-sqrt" : "";
    if (!properties_.has_f64) options += " -cl-single-precision-constant";
    return api_.clBuildProgram(program, 1, &device_, options.c_str(), nullptr, nullptr);
  }

  std::string log_of(cl_program program) {
    size_t size = 0;
    api_.clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
    std::string log(size, '\0');
    api_.clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
    while (!log.empty() && log.back() == '\0') log.pop_back();
    return log;
  }

  const OpenClApi& api_;
  cl_device_id device_;
  Properties properties_;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  std::vector<std::unique_ptr<std::byte[]>> staged_;
  size_t staged_bytes_ = 0;
  uint64_t launched_ = 0;
};

std::unique_ptr<Driver> open_opencl(int index) {
  const Devices& found = devices();
  if (index < 0 || index >= static_cast<int>(found.all.size())) {
    if (found.all.empty()) throw_error<DeviceError>("opencl: no device; ", found.absence);
    throw_error<DeviceError>("opencl: no such device; got opencl:", index, "; expected 0 to ",
                             found.all.size() - 1);
  }
  try {
    return std::make_unique<OpenCl>(found.all[static_cast<size_t>(index)]);
  } catch (const RuntimeError& error) {
    throw_error<DeviceError>("opencl: opencl:", index, " could not be opened; ",
                             std::string(error.what()));
  }
}

}  // namespace

const Runtime kOpenClRuntime = {
    "opencl",
    [] { return static_cast<int>(devices().all.size()); },
    []() -> const std::string& { return devices().absence; },
    &open_opencl,
    [](int index) {
      return (devices().all.at(static_cast<size_t>(index)).type & CL_DEVICE_TYPE_CPU) != 0;
    },
};

}  // namespace kiln::gpu
