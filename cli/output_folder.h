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

  const std::string& path() const { return path_; }
  std::string model() const { return file("model.safetensors"); }
  std::string checkpoint() const { return file("checkpoint.safetensors"); }
  std::string report() const { return file("report.html"); }

 private:
  std::string file(const char* name) const;

  std::string path_;
};

}  // namespace kiln::cli
