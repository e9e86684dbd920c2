// NVIDIA's libraries beside the driver, opened where they are found. Internal.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>

#include <dlfcn.h>

namespace kiln::gpu {

// The file that the environment variable names; else the first of `names` that the loader finds, or
// that is in a folder of $KILN_CUDA_LIBRARIES (separated by colons). Null where there is none.
// Never closed.
inline void* open_cuda_library(const char* variable, std::initializer_list<const char*> names) {
  const char* chosen = std::getenv(variable);
  if (chosen != nullptr && *chosen != '\0') return dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
  for (const char* name : names) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  const char* list = std::getenv("KILN_CUDA_LIBRARIES");
  std::string_view folders = list == nullptr ? "" : list;
  while (!folders.empty()) {
    const size_t end = std::min(folders.find(':'), folders.size());
    for (const char* name : names) {
      const std::string path = std::string(folders.substr(0, end)) + "/" + name;
      if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return nullptr;
}

}  // namespace kiln::gpu
