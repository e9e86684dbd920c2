#include "cli/runnable.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "cli/runnable_kinds.h"
#include "cli/usage_error.h"
#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/io/input_file.h"
#include "kiln/io/model_reader.h"
#include "kiln/onnx/model.h"
#include "kiln/pt2/model.h"

namespace kiln::cli {

namespace {

bool has_graph(const std::string& path) {
  try {
    if (io::recognize(io::InputFile("open", path)) != io::FileFormat::safetensors) return false;
    return io::open_model_file(path, {})->metadata().contains(kGraphKey);
  } catch (const IoError&) {  // no file of weights, or a damaged one
    return false;
  }
}

// "NumPy .npy", or what its first bytes are.
std::string described(const std::string& path) {
  try {
    return to_string(io::recognize(io::InputFile("open", path)));
  } catch (const IoError&) {
    return "a file of another kind";
  }
}

}  // namespace

ModelKind kind_of(const char* op, const std::string& path) {
  static_cast<void>(io::InputFile(op, path));
  if (pt2::is_program(path)) return ModelKind::pt2;
  if (has_graph(path)) return ModelKind::graph;
  if (onnx::is_model(path)) return ModelKind::onnx;
  return ModelKind::none;
}

std::unique_ptr<Runnable> open_runnable(const char* op, const std::string& path) {
  ModelKind kind = kind_of(op, path);
  if (kind == ModelKind::none) {
    if (path.ends_with(".onnx")) kind = ModelKind::onnx;
    if (path.ends_with(".pt2")) kind = ModelKind::pt2;
    if (path.ends_with(".kiln")) kind = ModelKind::graph;
  }
  switch (kind) {
    case ModelKind::graph:
      return open_graph(path);
    case ModelKind::onnx:
      return open_onnx(path);
    case ModelKind::pt2:
      return open_pt2(path);
    case ModelKind::none:
      break;
  }
  throw_error<IoError>(op, ": '", path, "' is no model that runs; got ", described(path),
                       "; expected a graph that GraphModel::save or graph.save wrote (.kiln), an "
                       "ONNX model (.onnx) or a program of torch.export (.pt2)");
}

std::string Runnable::Port::shape_text() const {
  if (!has_dims) return "";
  std::string out = "[";
  for (const Dim& d : dims) {
    out += concat(out.size() > 1 ? ", " : "",
                  d.size >= 0 ? std::to_string(d.size) : printable(d.name, 60));
  }
  return out + "]";
}

Runnable::Sizes sizes_of(const Runnable& model, const std::vector<std::string>& texts) {
  Runnable::Sizes out = model.example_sizes();
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    const auto found = equals == std::string::npos ? out.end() : out.find(text.substr(0, equals));
    int64_t size = 0;
    if (found == out.end() || !CLI::detail::lexical_cast(text.substr(equals + 1), size) ||
        size < 1 || size > (int64_t{1} << 31)) {
      std::string all;
      for (const auto& [name, ignored] : out) {
        all += (all.empty() ? "" : ", ") + printable(name, 60);
      }
      throw UsageError(concat("--size: got '", printable(text, 60), "'; expected NAME=SIZE, of ",
                              all.empty() ? "a model with free dims" : all));
    }
    found->second = size;
  }
  return out;
}

}  // namespace kiln::cli
