#include "cli/output_folder.h"

#include <filesystem>

#include "kiln/core/error.h"
#include "kiln/io/atomic_file.h"

namespace kiln::cli {

void OutputFolder::prepare() const {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (!std::filesystem::is_directory(path_)) {
    throw_error<IoError>("cannot make the folder '", path_,
                         "': ", error ? error.message() : "a file of that name is in the way");
  }
  // Opened and thrown away.
  for (const std::string& name : {model(), checkpoint(), report()}) {
    const io::AtomicFile trial("write", name);
  }
}

std::string OutputFolder::file(const char* name) const {
  return (std::filesystem::path(path_) / name).string();
}

}  // namespace kiln::cli
