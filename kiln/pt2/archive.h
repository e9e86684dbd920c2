// The zip archive that torch.export.save writes: the program as JSON, and tensors as raw bytes.
// Internal to kiln/pt2.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kiln/core/json.h"
#include "kiln/io/zip_reader.h"
#include "kiln/tensor/tensor.h"

namespace kiln::pt2 {

// The dtype with a number of the format. Throws NotImplementedError for one that Kiln lacks.
DType dtype_of_number(int64_t number);

// Throws IoError or ValueError for what is no such archive, NotImplementedError for another version
// of the format.
class Archive {
 public:
  explicit Archive(const std::string& path);

  // The program of this name; "": the only one, or "model".
  Json program(const std::string& name);
  // The tensors of that program by name, those of "data/weights" or of "data/constants". Entries
  // that share bytes in the file share memory, and equal entries are one tensor.
  std::map<std::string, Tensor> weights() { return tensors("weights"); }
  std::map<std::string, Tensor> constants() { return tensors("constants"); }

 private:
  const io::ZipEntry* find(const std::string& name) const { return zip_.find(root_ + name); }
  std::string read(const std::string& name, uint64_t most) const;
  Json read_json(const std::string& name);
  std::map<std::string, Tensor> tensors(const char* folder);
  Tensor tensor(const std::string& entry, const Json& meta);

  io::ZipReader zip_;
  std::string root_;  // "name/"
  std::string name_;  // of the program
  bool swapped_ = false;
  std::map<std::pair<std::string, DType>, Handle<Storage>> storages_;
  std::map<std::string, Tensor> made_;  // by what the file says of it
};

}  // namespace kiln::pt2
