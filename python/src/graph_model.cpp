// kiln.GraphModel: a captured model, its files.
#include "kiln/compile/graph_model.h"

#include "binding.h"
#include "kiln/tensor/tensor_impl.h"
#include "tensor_lists.h"

namespace kiln::python {

namespace {

GraphModel captured(nb::callable function, nb::handle inputs, nb::handle names, nb::handle tensors,
                    const std::vector<std::string>& input_names,
                    const std::vector<std::string>& output_names) {
  CaptureModelOptions options;
  options.input_names = input_names;
  options.output_names = output_names;
  const TensorList held = tensors_of(tensors);
  size_t i = 0;
  for (nb::handle name : names) {
    options.tensors.emplace_back(nb::cast<std::string>(name), held[i++]);
  }
  return capture([&](const TensorList& xs) { return tensors_of(function(list_of(xs))); },
                 tensors_of(inputs), options);
}

}  // namespace

void bind_graph_model(nb::module_& m) {
  nb::class_<GraphModel>(m, "_GraphModel")
      .def("run",
           [](const GraphModel& self, nb::handle inputs) {
             const TensorList given = tensors_of(inputs);
             TensorList out;
             {
               Unlocked lock;
               out = self(given);
             }
             return list_of(out);
           })
      .def("save",
           [](const GraphModel& self, const std::string& path) {
             Unlocked lock;
             self.save(path);
           })
      .def("inputs",
           [](const GraphModel& self) {
             nb::list out;
             for (const graph::ValueId id : self.graph().inputs) {
               const graph::Value& value = self.graph()[id];
               out.append(nb::make_tuple(value.name, value.dtype, value.shape.to_vector()));
             }
             return out;
           })
      .def("output_names", [](const GraphModel& self) { return self.output_names(); })
      .def("constants",
           [](const GraphModel& self) {
             nb::list out;
             for (const graph::ValueId id : self.graph().constants()) {
               out.append(nb::make_tuple(
                   self.graph().name_of(id),
                   nb::steal(tensor_object(kiln::detail::wrap(self.graph()[id].constant)))));
             }
             return out;
           })
      .def("nodes", [](const GraphModel& self) { return self.graph().nodes.size(); })
      .def("to_dot", [](const GraphModel& self) { return self.graph().to_dot(); })
      .def("__str__", [](const GraphModel& self) { return self.str(); });
  m.def("_capture_model", &captured, "function"_a, "inputs"_a, "names"_a, "tensors"_a,
        "input_names"_a, "output_names"_a);
  m.def("_load_graph_model", [](const std::string& path) {
    Unlocked lock;
    return GraphModel::load(path);
  });
}

}  // namespace kiln::python
