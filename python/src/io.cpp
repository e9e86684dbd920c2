// Files of tensors.
#include <nanobind/stl/map.h>

#include "binding.h"
#include "kiln/io/safetensors.h"

namespace kiln::python {

void bind_io(nb::module_& m) {
  m.def(
      "_save_safetensors",
      [](const nb::dict& tensors, const std::string& path,
         const std::map<std::string, std::string>& metadata) {
        io::NamedTensors named;
        for (const auto& [name, value] : tensors) {
          named.emplace_back(nb::cast<std::string>(name), tensor_arg("save", value).to_data());
        }
        Unlocked lock;
        io::save_safetensors(path, named, metadata);
      },
      "tensors"_a, "path"_a, "metadata"_a);
  m.def(
      "_load_safetensors",
      [](const std::string& path) {
        io::SafetensorsFile file;
        {
          Unlocked lock;
          file = io::load_safetensors(path);
        }
        nb::dict tensors;
        for (const auto& [name, data] : file.tensors) tensors[name.c_str()] = Tensor(data);
        return nb::make_tuple(tensors, file.metadata);
      },
      "path"_a);
}

}  // namespace kiln::python
