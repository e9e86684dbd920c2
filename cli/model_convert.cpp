#include "cli/model_convert.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/file_size.h"
#include "cli/runnable.h"
#include "cli/suggest.h"
#include "cli/usage_error.h"
#include "kiln/core/error.h"
#include "kiln/io/input_file.h"
#include "kiln/io/model_file.h"
#include "kiln/nn/regex.h"
#include "kiln/onnx/onnx.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

struct ConvertFlags {
  std::string in;
  std::string out;
  std::string key;
  std::string dtype;
  std::string prefix;
  std::string strip_prefix;
  std::vector<std::string> renames;
  std::vector<std::string> sizes;
  std::string max_shard_size;
  bool compress = false;
  bool force = false;
};

using Renames = std::vector<std::pair<nn::detail::Regex, std::string>>;

// "REGEX=REPLACEMENT": the last '=' divides, so that the expression may hold others.
Renames parse_renames(const std::vector<std::string>& texts) {
  Renames out;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError("--rename takes REGEX=REPLACEMENT; got '" + text + "'");
    }
    try {
      out.emplace_back(nn::detail::Regex("--rename", text.substr(0, equals)),
                       text.substr(equals + 1));
    } catch (const ValueError& e) {
      throw UsageError(e.what());
    }
  }
  return out;
}

std::optional<DType> parse_dtype_flag(const std::string& text) {
  if (text.empty()) return std::nullopt;
  DType dtype = DType::f32;
  try {
    dtype = parse_dtype(text);
  } catch (const DTypeError&) {
    const std::vector<std::string> legal{"float64", "float32", "float16", "bfloat16"};
    throw UsageError("--dtype: no such dtype: '" + text + "'" + did_you_mean(text, legal) +
                     " (float64, float32, float16 or bfloat16)");
  }
  if (!is_floating_point(dtype)) {
    throw UsageError(
        "--dtype converts floating point tensors: it takes float64, float32, float16 "
        "or bfloat16; got '" +
        text + "'");
  }
  return dtype;
}

std::string new_name(std::string name, const ConvertFlags& flags, const Renames& renames) {
  if (!flags.strip_prefix.empty() && name.starts_with(flags.strip_prefix)) {
    name.erase(0, flags.strip_prefix.size());
  }
  for (const auto& [pattern, replacement] : renames) name = pattern.replaced(name, replacement);
  return flags.prefix + name;
}

nn::StateDict converted(const nn::StateDict& tensors, const ConvertFlags& flags,
                        const Renames& renames, std::optional<DType> dtype) {
  nn::StateDict out;
  bool stripped = false;
  for (const auto& [name, value] : tensors) {
    stripped = stripped || name.starts_with(flags.strip_prefix);
    const std::string renamed = new_name(name, flags, renames);
    if (renamed.empty() || out.contains(renamed)) {
      throw_error<ValueError>("convert: two tensors would have one name, or one none; got '",
                              printable(renamed), "' for '", printable(name),
                              "'; expected distinct names");
    }
    out.set(renamed, dtype && value.is_floating_point() ? value.to(*dtype) : value);
  }
  if (!stripped) {
    throw_error<ValueError>("convert: no name begins with '", flags.strip_prefix, "'; got '",
                            tensors.empty() ? "" : printable(tensors.begin()->first),
                            "' first; expected the prefix of some (try kiln inspect)");
  }
  return out;
}

void check_output(const ConvertFlags& flags) {
  std::error_code ignored;
  if (std::filesystem::equivalent(flags.in, flags.out, ignored)) {
    throw UsageError("IN and OUT are the same file: '" + flags.out + "'");
  }
  for (const std::string& path : {flags.out, flags.out + ".index.json"}) {
    if (!flags.force && std::filesystem::exists(path, ignored)) {
      throw_error<IoError>("convert: the file is there already; got '", path,
                           "'; expected a new name (or --force to replace it)");
    }
    if (path == flags.out && flags.max_shard_size.empty()) break;
  }
}

// A model that runs, as a graph file of Kiln or an ONNX file.
int convert_model(const ConvertFlags& flags) {
  for (const auto& [name, is_given] : {std::pair{"--key", !flags.key.empty()},
                                       {"--dtype", !flags.dtype.empty()},
                                       {"--strip-prefix", !flags.strip_prefix.empty()},
                                       {"--rename", !flags.renames.empty()},
                                       {"--prefix", !flags.prefix.empty()},
                                       {"--max-shard-size", !flags.max_shard_size.empty()},
                                       {"--compress", flags.compress}}) {
    if (is_given) {
      throw UsageError(concat(name, " is for files of tensors; OUT is a model that runs"));
    }
  }
  check_output(flags);
  const std::unique_ptr<Runnable> model = open_runnable("convert", flags.in);
  const GraphModel graph =
      model->graph(model->examples(sizes_of(*model, flags.sizes)), flags.sizes.empty());
  const bool is_onnx = flags.out.ends_with(".onnx");
  if (is_onnx) {
    onnx::save(graph, flags.out);
  } else {
    graph.save(flags.out);
  }
  std::string free;
  for (const std::string& name : graph.free_dims()) {
    free += concat(free.empty() ? ", free dims " : ", ", printable(name, 60));
  }
  std::printf("%s: %s, %s nodes%s\n", flags.out.c_str(), is_onnx ? "ONNX" : "a graph of Kiln",
              train::grouped(static_cast<int64_t>(graph.graph().nodes.size())).c_str(),
              free.c_str());
  return 0;
}

int convert(const ConvertFlags& flags) {
  if (flags.out.ends_with(".onnx") || flags.out.ends_with(".kiln")) return convert_model(flags);
  if (!flags.sizes.empty()) {
    throw UsageError("--size is for models that run: OUT ends with .kiln or .onnx");
  }
  const Renames renames = parse_renames(flags.renames);
  const std::optional<DType> dtype = parse_dtype_flag(flags.dtype);
  io::SaveOptions options;
  if (!flags.max_shard_size.empty()) options.max_shard_size = parse_size(flags.max_shard_size);
  options.compressed = flags.compress;
  check_output(flags);
  io::ModelFile model = io::load_model_file(flags.in, {.key = flags.key});
  const nn::StateDict tensors = converted(model.tensors, flags, renames, dtype);
  model.tensors = {};
  options.metadata = std::move(model.metadata);
  io::save_model_file(flags.out, tensors, options);
  uint64_t bytes = 0;
  for (const auto& [name, value] : tensors) {
    bytes += static_cast<uint64_t>(value.numel()) * size_of(value.dtype());
  }
  const io::FileFormat format = io::format_for_writing(flags.out);
  const bool numpy = format == io::FileFormat::npz || format == io::FileFormat::npy;
  std::printf(
      "%s: %s, %s tensor%s, %s%s\n", flags.out.c_str(), to_string(format).c_str(),
      train::grouped(static_cast<int64_t>(tensors.size())).c_str(), tensors.size() == 1 ? "" : "s",
      size_text(bytes).c_str(),
      numpy && !options.metadata.empty() ? " (metadata is left out: NumPy's files have none)" : "");
  return 0;
}

}  // namespace

void add_convert(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "convert",
      "Writes a file of tensors, or a model that runs, in another format.\n"
      "Tensors may get other names and another dtype. IN is read whatever its name; OUT has the "
      "format\n"
      "of its extension: .safetensors, NumPy's .npz and .npy; .kiln and .onnx for models that run\n"
      "(ONNX, .pt2, graphs of Kiln); anything else (.pt, .ckpt, none) is PyTorch's.");
  command->group("Commands");
  auto flags = std::make_shared<ConvertFlags>();
  const auto value = [&](const char* name, std::string& variable, const char* type,
                         const char* text) {
    command->add_option(name, variable, text)->type_name(type);
  };
  command->add_option("IN", flags->in, "model file or checkpoint")->required()->type_name("");
  command->add_option("OUT", flags->out, "file to write")->required()->type_name("");
  value("--key", flags->key, "PATH",
        "place of the state dict in a PyTorch checkpoint;\n. for all of it (default: it is found)");
  value("--dtype", flags->dtype, "DTYPE", "convert floating point tensors: float32, bfloat16, ...");
  value("--strip-prefix", flags->strip_prefix, "TEXT", "take this from the front of names");
  command
      ->add_option(
          "--rename", flags->renames,
          "replace in names, after --strip-prefix; $1 is the\nfirst group; may be repeated")
      ->type_name("REGEX=TEXT")
      ->expected(1)
      ->take_all();
  value("--prefix", flags->prefix, "TEXT", "put this before names, last of all");
  value("--max-shard-size", flags->max_shard_size, "SIZE",
        "write several safetensors files of at most this\nsize (5GB, 500MiB) and an index");
  command
      ->add_option("--size", flags->sizes,
                   "of a model that runs: fix all sizes, this one so;\nmay be repeated (default: "
                   "free dims stay free)")
      ->type_name("NAME=SIZE")
      ->expected(1)
      ->take_all();
  command->add_flag("--compress", flags->compress, "compress an .npz");
  command->add_flag("--force", flags->force, "replace OUT when it is there");
  command->callback([flags, &status] { status = convert(*flags); });
}

}  // namespace kiln::cli
