// A kernel's text becomes a shared object of this process.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include "tests/gpu_host/group_runner.h"
#include "tests/gpu_host/stack_switch.h"

#ifndef KILN_HOST_COMPILER
#error "KILN_HOST_COMPILER is the command of the C++ compiler, KILN_HOST_FOLDER this folder"
#endif

namespace kiln::gpu_host {
namespace {

namespace fs = std::filesystem;

// Warnings are the other compilers' business. Nothing is contracted, as in the dialect.
std::string flags_of(Check check) {
  const std::string common = " -std=c++20 -O1 -g1 -w -fPIC -DKILN_HOST -ffp-contract=off ";
  if (check == Check::none) return common;
  if (check == Check::addresses) {
    return common +
           "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-sanitize=vptr "
           "-fsanitize-sections=kiln_shared ";
  }
  return common +
         "-DKILN_CHECK_ACCESSES -fsanitize=thread,undefined -fno-sanitize-recover=all "
         "-fno-sanitize=vptr --param tsan-instrument-func-entry-exit=0 ";
}

// The thread sanitizer's library is not linked: host_prefix.h has its functions.
std::string link_flags(Check check) {
  if (check == Check::none) return " -shared -lm ";
  return check == Check::addresses ? " -shared -fsanitize=address,undefined "
                                   : " -shared -lubsan -lm ";
}

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string in_quotes(const fs::path& path) { return "'" + path.string() + "'"; }

void run_command(const std::string& command, const fs::path& log) {
  const std::string all = command + " >" + in_quotes(log) + " 2>&1 </dev/null";
  if (std::system(all.c_str()) == 0) return;
  std::ifstream file(log);
  std::string text(4000, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  throw KernelError("a kernel does not compile as C++:\n" + text);
}

// The standard headers, compiled once for each form.
fs::path prefix_of(Check check, const fs::path& folder) {
  const fs::path name = folder / "prefix.h";
  fs::path compiled = name;
  compiled += ".gch";
  if (fs::exists(compiled)) return name;
  const std::string mine = "." + std::to_string(getpid());
  fs::path copied = name;
  copied += mine;
  fs::copy_file(fs::path(KILN_HOST_FOLDER) / "host_prefix.h", copied,
                fs::copy_options::overwrite_existing);
  fs::rename(copied, name);
  fs::path beside = compiled;
  beside += mine;
  run_command(KILN_HOST_COMPILER + flags_of(check) + "-x c++-header " + in_quotes(name) + " -o " +
                  in_quotes(beside),
              beside.string() + ".log");
  fs::rename(beside, compiled);
  fs::remove(beside.string() + ".log");
  return name;
}

fs::path compile(const std::string& text, Check check, const fs::path& folder) {
  fs::create_directories(folder);
  std::ifstream prefix_file(fs::path(KILN_HOST_FOLDER) / "host_prefix.h");
  const std::string prefix((std::istreambuf_iterator<char>(prefix_file)), {});
  const std::string flags = flags_of(check);
  char name[40];
  std::snprintf(name, sizeof name, "%016llx",
                static_cast<unsigned long long>(hash_of(text + prefix + flags)));
  const fs::path target = folder / (std::string(name) + ".so");
  if (fs::exists(target)) return target;
  char folder_name[40];
  std::snprintf(folder_name, sizeof folder_name, "prefix_%016llx",
                static_cast<unsigned long long>(hash_of(prefix + flags)));
  fs::create_directories(folder / folder_name);
  const fs::path header = prefix_of(check, folder / folder_name);
  const std::string base = (folder / name).string() + "." + std::to_string(getpid());
  std::ofstream(base + ".cpp") << text << "\n#include \"" << KILN_HOST_FOLDER
                               << "/host_suffix.h\"\n";
  const std::string compiler = KILN_HOST_COMPILER;
  run_command(compiler + flags + "-include " + in_quotes(header) + " -c " +
                  in_quotes(base + ".cpp") + " -o " + in_quotes(base + ".o") + " && " + compiler +
                  " " + in_quotes(base + ".o") + link_flags(check) + "-o " +
                  in_quotes(base + ".so"),
              base + ".log");
  fs::rename(base + ".so", target);
  for (const char* end : {".cpp", ".o", ".log"}) fs::remove(base + end);
  return target;
}

// From the first byte of an object file in memory to its last.
Block image_of(const void* symbol) {
  Block image{};
  struct Search {
    const std::byte* address;
    Block* image;
  } search{static_cast<const std::byte*>(symbol), &image};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* wanted = static_cast<Search*>(data);
        auto* base = reinterpret_cast<std::byte*>(info->dlpi_addr);
        std::byte* end = base;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type == PT_LOAD) end = std::max(end, base + part.p_vaddr + part.p_memsz);
        }
        if (wanted->address < base || wanted->address >= end) return 0;
        *wanted->image = {base, static_cast<size_t>(end - base)};
        return 1;
      },
      &search);
  return image;
}

}  // namespace

struct Loader {
  static HostKernel load(const std::string& text, Check check, const std::string& folder) {
    const fs::path where =
        folder.empty() ? fs::temp_directory_path() / "kiln_gpu_host" : fs::path(folder);
    const fs::path file = compile(text, check, where);
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw KernelError(std::string("cannot load a kernel: ") + dlerror());
    const auto find = [&]<class T>(const char* name, T*) {
      void* found = dlsym(library, name);
      if (found == nullptr) throw KernelError(std::string("a kernel without ") + name);
      return reinterpret_cast<T*>(found);
    };
    HostKernel out;
    out.check_ = check;
    out.name_ = "kernel " + file.stem().string();
    const size_t rest = text.find("#define NAME");
    // The prelude has these names too.
    const std::string own = rest == std::string::npos ? text : text.substr(rest);
    out.waits_ =
        own.find("BARRIER") != std::string::npos || own.find("GROUP_TOTAL") != std::string::npos;
    out.call_ = find("kiln_call", static_cast<void (*)(void* const*)>(nullptr));
    out.local_ = find("kiln_local", static_cast<int64_t*>(nullptr));
    out.group_ = find("kiln_group", static_cast<int64_t*>(nullptr));
    out.size_ = find("kiln_size", static_cast<int64_t*>(nullptr));
    *find("kiln_barrier", static_cast<void (**)(int)>(nullptr)) = &wait_at_barrier;
    *find("kiln_access", static_cast<void (**)(const void*, size_t, bool, bool)>(nullptr)) =
        &note_access;
    size_t sizes[64];
    bool pointers[64];
    const int count =
        find("kiln_describe", static_cast<int (*)(size_t*, bool*)>(nullptr))(sizes, pointers);
    out.sizes_.assign(sizes, sizes + count);
    out.pointers_.assign(pointers, pointers + count);
    char* begin = nullptr;
    char* end = nullptr;
    find("kiln_shared_memory", static_cast<void (*)(char**, char**)>(nullptr))(&begin, &end);
    out.shared_ = {reinterpret_cast<std::byte*>(begin), static_cast<size_t>(end - begin)};
    out.image_ = image_of(reinterpret_cast<const void*>(out.call_));
    return out;
  }
};

const HostKernel& HostKernel::of(const std::string& text, Check check, const std::string& folder) {
  static std::mutex mutex;
  static auto& known = *new std::unordered_map<std::string, std::unique_ptr<HostKernel>>;
  std::lock_guard lock(mutex);
  auto& place = known[text];
  if (!place) place = std::make_unique<HostKernel>(Loader::load(text, check, folder));
  return *place;
}

}  // namespace kiln::gpu_host
