// The files that the fuzzer of files begins with, and how each is read.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kiln::fuzz {

// What is done with the files of a kind. `extension` is what the reader wants a name to end with.
struct FileReader {
  std::string name;
  std::string extension;
  std::function<void(const std::string& path)> read;
};

struct FileSeed {
  size_t reader = 0;  // in file_readers()
  std::string bytes;
};

const std::vector<FileReader>& file_readers();
// Small files of every kind, written by Kiln into `folder`, and the files of `fixtures` (a folder;
// may be empty). What a seed refers to, such as shards, stays in the folder.
std::vector<FileSeed> file_seeds(const std::string& folder, const std::string& fixtures);

}  // namespace kiln::fuzz
