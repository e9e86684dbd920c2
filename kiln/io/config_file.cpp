// Configurations in files.
#include "kiln/core/config.h"
#include "kiln/io/atomic_file.h"
#include "kiln/io/gzip.h"

namespace kiln::detail {

void save_config_text(const char* config, const std::string& path, const std::string& text) {
  io::write_file_atomically(config, path, text + "\n");
}

std::string load_config_text(const char* config, const std::string& path) {
  const std::vector<std::byte> bytes = io::read_file(config, path, uint64_t{64} << 20);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace kiln::detail
