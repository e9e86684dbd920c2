// What a file says of itself: whether it is ONNX, its inputs and outputs, its operators.
#include <algorithm>

#include "kiln/io/input_file.h"
#include "kiln/onnx/read/state.h"

namespace kiln::onnx {

namespace {

// The outermost fields of a file, one after another, without their contents.
class Fields {
 public:
  explicit Fields(const std::string& path) : file_("onnx", path) {}

  bool are_those_of_a_model() {
    bool has_graph = false;
    int fields = 0;
    while (at_ < file_.size()) {
      uint64_t tag = 0, number = 0;
      if (++fields > 100'000 || !varint(tag)) return false;
      const uint64_t field = tag >> 3, kind = tag & 7;
      // As in onnx.proto: numbers stand in 1 and 5, other fields hold texts or fields again.
      const bool is_number = field == 1 || field == 5;
      const bool is_known = field >= 1 && field <= 26;
      if (!is_known || kind != (is_number ? 0U : 2U) || !varint(number)) return false;
      if (is_number) continue;
      if (number > file_.size() - at_) return false;
      at_ += number;
      has_graph = has_graph || (field == 7 && number > 0);
    }
    return has_graph;
  }

 private:
  bool varint(uint64_t& out) {
    out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= file_.size()) return false;
      unsigned char byte = 0;
      file_.read_at(at_++, &byte, 1);
      out |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  io::InputFile file_;
  uint64_t at_ = 0;
};

std::vector<Described> described(const std::vector<std::string>& names,
                                 const std::vector<wire::ValueInfo>& values) {
  std::vector<Described> out;
  for (const std::string& name : names) {
    Described one{.name = name};
    const auto found = std::ranges::find(values, name, &wire::ValueInfo::name);
    if (found != values.end() && !found->type.empty()) {
      one.is_tensor = !found->type[0].tensor_type.empty();
      if (one.is_tensor) {
        const wire::TensorType& type = found->type[0].tensor_type[0];
        try {
          one.dtype = dtype_of_number(type.elem_type);
        } catch (const NotImplementedError&) {  // a node that takes it says so
        }
        if (!type.shape.empty()) one.dims.emplace();
        for (const wire::TensorShape& shape : type.shape) {
          for (const wire::Dimension& d : shape.dim) {
            const bool is_fixed = d.param.empty() && d.value > 0;
            one.dims->push_back({is_fixed ? d.value : -1, d.param});
          }
        }
      }
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

bool is_model(const std::string& path) { return Fields(path).are_those_of_a_model(); }

std::vector<Described> Model::inputs() const {
  return described(state_->program.inputs, state_->program.file.graph[0].input);
}
std::vector<Described> Model::outputs() const {
  return described(state_->program.outputs, state_->program.file.graph[0].output);
}
std::vector<std::string> Model::nodes() const {
  std::vector<std::string> out;
  for (const Step& step : state_->program.main.steps) out.push_back(step.node->op_type);
  return out;
}
int64_t Model::opset() const {
  for (const wire::OperatorSet& one : state_->program.file.opset_import) {
    if (one.domain.empty() || one.domain == "ai.onnx") return one.version;
  }
  return 0;
}

}  // namespace kiln::onnx
