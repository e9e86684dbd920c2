// The folder that training writes to, checked before the work is done.
#pragma once

#include <string>

namespace kiln::cli {

class OutputFolder {
 public:
  explicit OutputFolder(const std::string& path) : path_(path) {}

  // Makes the folder, with its parents, where there is none, and tries that each file can be
  // written. What is there stays as it is. Throws IoError.
  void prepare() const;
  // Removes what a run left there: its logs and checkpoints.
  void clear() const;

  const std::string& path() const { return path_; }
  std::string model() const { return file("model.safetensors"); }
  std::string config() const { return file("config.json"); }
  std::string checkpoints() const { return file("checkpoints"); }
  std::string report() const { return file("report.html"); }

 private:
  std::string file(const char* name) const;

  std::string path_;
};

}  // namespace kiln::cli
