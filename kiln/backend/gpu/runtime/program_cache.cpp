#include "kiln/backend/gpu/runtime/program_cache.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <unistd.h>

namespace kiln::gpu {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'K', 'I', 'L', 'N', 'K', 'R', 'N', '1'};
constexpr size_t kLargestFile = size_t{64} << 20;

// FNV-1a.
uint64_t hash_of(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (std::byte b : bytes) hash = (hash ^ static_cast<uint64_t>(b)) * 0x100000001b3u;
  return hash;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct Header {
  char magic[8];
  uint64_t key_bytes;
  uint64_t binary_bytes;
  uint64_t checksum;  // of the binary
};

}  // namespace

fs::path ProgramCache::default_folder() {
  if (const char* folder = std::getenv("KILN_KERNEL_CACHE")) return folder;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return fs::path(cache) / "kiln" / "kernels";
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return {};
  return fs::path(home) / ".cache" / "kiln" / "kernels";
}

fs::path ProgramCache::path_of(const std::string& key) const {
  char name[32];
  std::snprintf(name, sizeof name, "%016llx.kernel",
                static_cast<unsigned long long>(hash_of(bytes_of(key))));
  return folder_ / name;
}

std::optional<std::vector<std::byte>> ProgramCache::find(const std::string& key) const {
  if (folder_.empty()) return {};
  std::ifstream file(path_of(key), std::ios::binary | std::ios::ate);
  if (!file) return {};
  const auto size = static_cast<int64_t>(file.tellg());
  if (size < static_cast<int64_t>(sizeof(Header)) || size > static_cast<int64_t>(kLargestFile)) {
    return {};
  }
  std::vector<std::byte> all(static_cast<size_t>(size));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(all.data()), size)) return {};
  Header header;
  std::memcpy(&header, all.data(), sizeof header);
  const size_t rest = all.size() - sizeof header;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.key_bytes != key.size() ||
      header.key_bytes > rest || header.binary_bytes != rest - header.key_bytes) {
    return {};
  }
  const std::span<const std::byte> body = std::span(all).subspan(sizeof header);
  if (std::memcmp(body.data(), key.data(), key.size()) != 0) return {};
  const std::span<const std::byte> binary = body.subspan(key.size());
  if (hash_of(binary) != header.checksum) return {};
  return std::vector<std::byte>(binary.begin(), binary.end());
}

bool ProgramCache::keep(const std::string& key, std::span<const std::byte> binary) const noexcept {
  if (folder_.empty()) return false;
  try {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) return false;
    static std::atomic<unsigned> counter{0};
    const fs::path target = path_of(key);
    fs::path beside = target;
    beside += ".";
    beside += std::to_string(getpid()) + "-" + std::to_string(counter++) + ".new";
    Header header{{}, key.size(), binary.size(), hash_of(binary)};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    std::ofstream file(beside, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.write(key.data(), static_cast<std::streamsize>(key.size()));
    file.write(reinterpret_cast<const char*>(binary.data()),
               static_cast<std::streamsize>(binary.size()));
    file.close();
    if (file) fs::rename(beside, target, error);
    if (!file || error) {
      std::error_code ignored;
      fs::remove(beside, ignored);
      return false;
    }
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace kiln::gpu
