// kiln.GraphModel: a captured model, its files.
#include "kiln/compile/graph_model.h"

#include "binding.h"
#include "kiln/graph/capture.h"
#include "kiln/tensor/tensor_impl.h"
#include "tensor_lists.h"

namespace kiln::python {

namespace {

GraphModel captured(nb::callable function, nb::handle inputs, nb::handle names, nb::handle tensors,
                    const std::vector<std::string>& input_names,
                    const std::vector<std::string>& output_names, const nb::dict& dynamic_axes,
                    bool freeze, bool exact) {
  CaptureModelOptions options;
  for (const auto& [input, dims] : dynamic_axes) {
    auto& those = options.dynamic_axes[nb::cast<std::string>(input)];
    for (const auto& [dim, name] : nb::cast<nb::dict>(dims)) {
      those[nb::cast<int64_t>(dim)] = nb::cast<std::string>(name);
    }
  }
  options.input_names = input_names;
  options.output_names = output_names;
  options.freeze = freeze;
  options.exact = exact;
  const TensorList held = tensors_of(tensors);
  size_t i = 0;
  for (nb::handle name : names) {
    options.tensors.emplace_back(nb::cast<std::string>(name), held[i++]);
  }
  const bool may_retry = !options.dynamic_axes.empty();
  const auto call = [&](const TensorList& xs) {
    try {
      return tensors_of(function(list_of(xs)));
    } catch (const nb::python_error& error) {
      // With free dims it may succeed at other sizes.
      if (!may_retry || !graph::is_capturing() || !error.matches(PyExc_Exception)) throw;
      const nb::str text(error.value());
      const char* const chars = text.c_str();
      if (chars == nullptr) PyErr_Clear();  // no Unicode
      throw graph::CaptureError(chars == nullptr ? repr_of(error.value()) : chars);
    }
  };
  return capture(call, tensors_of(inputs), options);
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
             const auto& inputs = self.graph().inputs;
             for (size_t i = 0; i < inputs.size(); ++i) {
               const graph::Value& value = self.graph()[inputs[i]];
               const std::vector<std::string> free = self.free_dims_of(i);
               nb::list shape;
               for (size_t d = 0; d < free.size(); ++d) {
                 if (free[d].empty()) {
                   shape.append(value.shape[static_cast<int>(d)]);
                 } else {
                   shape.append(free[d]);
                 }
               }
               out.append(nb::make_tuple(value.name, value.dtype, shape));
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
      .def("explain", [](const GraphModel& self) { return self.explain(); })
      .def("to_dot", [](const GraphModel& self) { return self.graph().to_dot(); })
      .def("__str__", [](const GraphModel& self) { return self.str(); });
  m.def("_capture_model", &captured, "function"_a, "inputs"_a, "names"_a, "tensors"_a,
        "input_names"_a, "output_names"_a, "dynamic_axes"_a, "freeze"_a, "exact"_a);
  m.def("_load_graph_model", [](const std::string& path) {
    Unlocked lock;
    return GraphModel::load(path);
  });
}

}  // namespace kiln::python
