// kiln.onnx.
#include "kiln/onnx/onnx.h"

#include "binding.h"
#include "kiln/onnx/model.h"
#include "tensor_lists.h"

namespace kiln::python {

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
             const TensorList given = tensors_of(inputs), weights = tensors_of(parameters);
             TensorList out;
             {
               Unlocked lock;
               out = self.run(given, weights);
             }
             return list_of(out);
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
