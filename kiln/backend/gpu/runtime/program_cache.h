// Compiled kernels on disk, so that a process pays for compiling once.
//
// One file for each kernel, named by a hash of its key: the text, the options, the driver and the
// device. The file holds the key and a checksum; one that is broken, or is of another key, counts
// as none. Files are written beside their place and renamed, so any number of processes may share a
// folder. A folder that cannot be written keeps nothing, and nothing else happens.
//
// The folder: $KILN_KERNEL_CACHE (empty: none), else $XDG_CACHE_HOME/kiln/kernels, else
// ~/.cache/kiln/kernels.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln::gpu {

class ProgramCache {
 public:
  // An empty folder: keeps nothing.
  explicit ProgramCache(std::filesystem::path folder) : folder_(std::move(folder)) {}
  static std::filesystem::path default_folder();

  std::optional<std::vector<std::byte>> find(const std::string& key) const;
  // Returns whether it was kept.
  bool keep(const std::string& key, std::span<const std::byte> binary) const noexcept;

 private:
  std::filesystem::path path_of(const std::string& key) const;
  std::filesystem::path folder_;
};

}  // namespace kiln::gpu
