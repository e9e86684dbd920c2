// Values of tensors that stand in files beside a model. Internal to kiln/onnx.
#pragma once

#include <map>
#include <string>

#include "kiln/io/input_file.h"
#include "kiln/onnx/wire.h"

namespace kiln::onnx {

// A model names these files, and a model may come from anyone: only plain files in the model's own
// folder, or in folders below it, are opened, and no link out of it is followed.
class ExternalData {
 public:
  explicit ExternalData(const std::string& model_path);

  // Reads what stands elsewhere into raw_data; other tensors stay as they are. Throws ValueError
  // for a path that leads away and for sizes that do not fit, IoError for what cannot be read.
  void fill(wire::Tensor& tensor);
  // The same for every tensor among the attributes of nodes, in graphs of nodes, too.
  void fill_attributes(std::vector<wire::Node>& nodes);

 private:
  io::InputFile& open(const std::string& location);

  std::string folder_;
  std::map<std::string, io::InputFile> files_;
};

}  // namespace kiln::onnx
