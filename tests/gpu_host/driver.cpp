#include "tests/gpu_host/driver.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "kiln/backend/gpu/kernel_texts.h"
#include "kiln/core/error.h"

namespace kiln::gpu_host {
namespace {

std::string kernel_folder() {
  const char* folder = std::getenv("KILN_GPU_HOST_KERNELS");
  return folder == nullptr ? "" : folder;
}

// The files of kernels/ whose text a kernel that ran is made of, one a line, at the end of
// $KILN_GPU_HOST_RAN: those that are launched, and those that stand before them.
void note_texts(const std::string& kernel) {
  static const char* const path = std::getenv("KILN_GPU_HOST_RAN");
  if (path == nullptr) return;
  static auto& noted = *new std::set<std::string>;
  const auto folder = std::filesystem::path(KILN_HOST_FOLDER) / "../../kiln/backend/gpu/kernels";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() != ".k" || noted.contains(name)) continue;
    if (kernel.find(gpu::kernel_text(name)) == std::string::npos) continue;
    noted.insert(name);
    std::ofstream(path, std::ios::app) << name << '\n';
  }
}

class HostDriver final : public gpu::Driver {
 public:
  HostDriver() {
    properties_.name = "kernels as C++";
    properties_.vendor = "Kiln";
    properties_.driver = "none";
    properties_.memory_bytes = size_t{4} << 30;
    properties_.largest_allocation = size_t{4} << 30;
    properties_.largest_group = 1024;
    properties_.has_f64 = true;
    properties_.exact_division = true;
    properties_.is_cpu = true;
    properties_.exact_blocks = true;
  }

  const gpu::Properties& properties() const override { return properties_; }

  gpu::Memory allocate(size_t bytes) override {
    void* memory = std::malloc(bytes);
    if (memory == nullptr) return nullptr;
    std::memset(memory, 0xfb, bytes);
    blocks_[memory] = bytes;
    return memory;
  }
  void release(gpu::Memory memory) noexcept override {
    blocks_.erase(memory);
    std::free(memory);
  }

  void write(gpu::Memory to, size_t offset, const void* from, size_t bytes) override {
    std::memcpy(inside(to, offset, bytes), from, bytes);
  }
  void read(gpu::Memory from, size_t offset, void* to, size_t bytes) override {
    std::memcpy(to, inside(from, offset, bytes), bytes);
  }

  gpu::HostBlock allocate_host(size_t bytes) override { return {std::malloc(bytes), nullptr}; }
  void release_host(const gpu::HostBlock& block) noexcept override { std::free(block.address); }
  void write_from_host(gpu::Memory to, size_t offset, const void* from, size_t bytes) override {
    write(to, offset, from, bytes);
  }
  void read_to_host(gpu::Memory from, size_t offset, void* to, size_t bytes) override {
    read(from, offset, to, bytes);
  }

  void launch(gpu::Function function, const gpu::LaunchName&, gpu::Extent groups, gpu::Extent group,
              std::span<const gpu::Argument> arguments, gpu::Timed* timed) override {
    if (timed != nullptr) *timed = {mark(), mark()};
    const auto& kernel = *static_cast<const HostKernel*>(function);
    if (kernel.arguments() != arguments.size()) {
      throw_error<RuntimeError>("host: a kernel takes ", kernel.arguments(), " arguments; got ",
                                arguments.size());
    }
    std::vector<const void*> pointers;
    std::vector<Block> blocks;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const gpu::Argument& a = arguments[i];
      const bool is_memory = a.kind == gpu::Argument::Kind::memory;
      const size_t size = is_memory ? sizeof(void*) : a.size;
      if (kernel.is_pointer(i) != is_memory || kernel.argument_size(i) != size) {
        throw_error<RuntimeError>("host: argument ", i, " of a kernel has ",
                                  kernel.argument_size(i), " bytes; got ", size);
      }
      pointers.push_back(is_memory ? static_cast<const void*>(&a.data) : a.data);
      if (!is_memory) continue;
      auto* data = const_cast<void*>(a.data);
      const auto found = blocks_.find(data);
      if (found == blocks_.end()) {
        throw_error<RuntimeError>("host: argument ", i,
                                  " of a kernel is no block, or was released");
      }
      blocks.push_back({static_cast<std::byte*>(data), found->second});
    }
    const Grid grid = {groups.x, groups.y, groups.z};
    const Grid items = {group.x, group.y, group.z};
    try {
      kernel.run(grid, items, const_cast<void* const*>(pointers.data()), blocks);
    } catch (const KernelError& error) {
      throw_error<RuntimeError>("host: ", std::string(error.what()));
    }
  }
  void finish() override {}
  // Everything is done when it is asked for.
  gpu::Mark mark() override { return static_cast<gpu::Mark>(++marks_); }
  bool passed(gpu::Mark) override { return true; }
  void wait(gpu::Mark) override {}
  double milliseconds(gpu::Mark, gpu::Mark) override { return 0; }
  void release(gpu::Mark) noexcept override {}

  // The text itself: what is compiled is kept in a folder of its own.
  std::vector<std::byte> compile(const std::string& text) override {
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
  }
  gpu::Function load(std::span<const std::byte> binary, const std::string&) override {
    const std::string text(reinterpret_cast<const char*>(binary.data()), binary.size());
    try {
      auto* kernel =
          const_cast<HostKernel*>(&HostKernel::of(text, check_of_process(), kernel_folder()));
      note_texts(text);  // who loads a kernel launches it
      return kernel;
    } catch (const KernelError& error) {
      throw_error<RuntimeError>("host: ", std::string(error.what()));
    }
  }

 private:
  std::byte* inside(gpu::Memory memory, size_t offset, size_t bytes) {
    const auto found = blocks_.find(memory);
    if (found == blocks_.end()) throw_error<RuntimeError>("host: no block, or a released one");
    if (offset > found->second || bytes > found->second - offset) {
      throw_error<RuntimeError>("host: ", bytes, " bytes at ", offset, " of a block of ",
                                found->second);
    }
    return static_cast<std::byte*>(memory) + offset;
  }

  gpu::Properties properties_;
  uintptr_t marks_ = 0;
  std::map<gpu::Memory, size_t> blocks_;
};

}  // namespace

Check check_of_process() {
  const char* form = std::getenv("KILN_GPU_HOST_CHECK");
  return form != nullptr && std::string(form) == "addresses" ? Check::addresses : Check::accesses;
}

const gpu::Runtime kHostRuntime = {
    "host",
    [] { return 1; },
    []() -> const std::string& {
      static const std::string none;
      return none;
    },
    [](int) -> std::unique_ptr<gpu::Driver> { return std::make_unique<HostDriver>(); },
    [](int) { return true; },
};

}  // namespace kiln::gpu_host
