// Configurations in files.
#include "kiln/core/config.h"
#include "kiln/io/atomic_file.h"
#include "kiln/io/gzip.h"

namespace kiln::detail {

void save_config_text(const char* config, const std::string& path, const std::string& text) {
  io::write_file_atomically(config, path, text + "\n");
}

Json load_config_json(const ConfigSource& source, const char* config, const std::string& path) {
  io::GzipFile file(config, path);
  const std::vector<std::byte> bytes = io::read_all(file, uint64_t{64} << 20);
  return parse_config(source, {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                      &file.budget());
}

}  // namespace kiln::detail
