#include "cli/output_folder.h"

#include <filesystem>
#include <vector>

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
  for (const std::string& name : {model(), config(), report()}) {
    const io::AtomicFile trial("write", name);
  }
}

void OutputFolder::clear() const {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (const char* name : {"log.jsonl", "log.csv", "run.json"}) fs::remove(file(name), ignored);
  std::vector<fs::path> old;
  for (const std::string& folder : {path_, checkpoints()}) {
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      const bool events = name.starts_with("events.out.tfevents.") && name.ends_with(".kiln");
      const bool checkpoint = name.starts_with("step-") && name.ends_with(".pt");
      if (events || checkpoint || name == "checkpoints.json") old.push_back(entry.path());
    }
  }
  for (const fs::path& path : old) fs::remove(path, ignored);
}

std::string OutputFolder::file(const char* name) const {
  return (std::filesystem::path(path_) / name).string();
}

}  // namespace kiln::cli
