// kiln.onnx.
#include "kiln/onnx/onnx.h"

#include "binding.h"
#include "kiln/onnx/model.h"
#include "tensor_lists.h"

namespace kiln::python {

namespace {

// None, a tensor, or a list of tensors.
onnx::Model::Item item_of(nb::handle x) {
  if (x.is_none()) return {};
  if (nb::isinstance<nb::list>(x) || nb::isinstance<nb::tuple>(x)) return tensors_of(x);
  const Tensor* tensor = tensor_pointer(x.ptr());
  return tensor == nullptr ? onnx::Model::Item() : onnx::Model::Item(*tensor);
}
nb::object object_of(const onnx::Model::Item& item) {
  if (const auto* x = std::get_if<Tensor>(&item)) return nb::steal(tensor_object(*x));
  if (const auto* all = std::get_if<TensorList>(&item)) return list_of(*all);
  return nb::none();
}

}  // namespace

void bind_onnx(nb::module_& m) {
  m.def(
      "_save_onnx",
      [](const GraphModel& model, const std::string& path) {
        Unlocked lock;
        onnx::save(model, path);
      },
      "model"_a, "path"_a);
  nb::class_<onnx::Model>(m, "_OnnxModel")
      .def("run",
           [](const onnx::Model& self, nb::handle inputs, nb::handle parameters) {
             const TensorList weights = tensors_of(parameters);
             std::vector<onnx::Model::Item> given;
             for (nb::handle x : inputs) given.push_back(item_of(x));
             std::vector<onnx::Model::Item> out;
             {
               Unlocked lock;
               out = self.run_items(given, weights);
             }
             nb::list results;
             for (const onnx::Model::Item& item : out) results.append(object_of(item));
             return results;
           })
      .def("named_parameters",
           [](const onnx::Model& self) {
             nb::list out;
             for (const auto& [name, x] : self.named_parameters()) {
               out.append(nb::make_tuple(name, nb::steal(tensor_object(x.detach()))));
             }
             return out;
           })
      .def("input_names", [](const onnx::Model& self) { return self.input_names(); })
      .def("output_names", [](const onnx::Model& self) { return self.output_names(); });
  m.def(
      "_load_onnx",
      [](const std::string& path) {
        Unlocked lock;
        return onnx::Model::load(path);
      },
      "path"_a);
  m.def("_onnx_operators", &onnx::operators);
}

}  // namespace kiln::python
