// PyTorch's files, written.
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

PickleDict pickle_of(const nn::StateDict& state) {
  PickleDict out;
  out.items.reserve(state.size());
  for (const auto& [name, value] : state) out.items.push_back({name, value});
  if (!state.metadata().empty()) {
    PickleDict modules;
    for (const auto& [path, facts] : state.metadata()) {
      PickleDict module;
      for (const auto& [name, number] : facts) module.items.push_back({name, number});
      modules.items.push_back({path, std::move(module)});
    }
    out.attributes.push_back({"_metadata", std::move(modules)});
  }
  return out;
}

void save_torch(const std::string& path, const nn::StateDict& state) {
  save_torch(path, PickleValue(pickle_of(state)));
}

}  // namespace kiln::io
