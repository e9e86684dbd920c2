// PyTorch's files, written.
#include <set>
#include <string>
#include <vector>

#include "kiln/io/pickle_writer.h"
#include "kiln/io/torch_file.h"
#include "kiln/io/zip_writer.h"

namespace kiln::io {

void save_torch(const std::string& path, const PickleValue& value) {
  const detail::PickleWriter writer(value);
  ZipWriter zip("save_torch", path);
  zip.add("archive/data.pkl", writer.pickle());
  zip.add("archive/byteorder", "little");
  for (size_t i = 0; i < writer.storages().size(); ++i) {
    const detail::SavedStorage& saved = writer.storages()[i];
    zip.add(
        "archive/data/" + std::to_string(i),
        {{static_cast<const char*>(saved.storage->data()) + saved.begin, saved.end - saved.begin}});
  }
  zip.add("archive/version", "3\n");
  zip.finish();
}

namespace {

// The modules' paths in PyTorch's order, owners first, as far as tensors tell it: each where its
// first tensor stands. Modules without tensors follow.
std::vector<std::string> module_order(const nn::StateDict& state) {
  std::vector<std::string> order;
  std::set<std::string> seen;
  const auto add = [&](const std::string& path) {
    if (state.metadata().contains(path) && seen.insert(path).second) order.push_back(path);
  };
  add("");
  for (const auto& [name, value] : state) {
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      add(name.substr(0, dot));
    }
  }
  for (const auto& [path, facts] : state.metadata()) add(path);
  return order;
}

}  // namespace

PickleDict pickle_of(const nn::StateDict& state) {
  PickleDict out;
  out.ordered = true;
  out.items.reserve(state.size());
  for (const auto& [name, value] : state) out.items.push_back({name, value});
  if (!state.metadata().empty()) {
    PickleDict modules;
    modules.ordered = true;
    for (const std::string& path : module_order(state)) {
      PickleDict module;
      for (const auto& [name, number] : state.metadata().at(path))
        module.items.push_back({name, number});
      modules.items.push_back({path, std::move(module)});
    }
    out.attributes.push_back({"_metadata", std::move(modules)});
  }
  return out;
}

PickleObject pickled_parameter(const Tensor& value, bool requires_grad) {
  PickleDict hooks;
  hooks.ordered = true;
  return {"torch._utils._rebuild_parameter", {value, requires_grad, std::move(hooks)}};
}

void save_torch(const std::string& path, const nn::StateDict& state) {
  save_torch(path, PickleValue(pickle_of(state)));
}

}  // namespace kiln::io
