// What kiln.compile is built on: a compiled function of lists of tensors.
#include "kiln/compile/compile.h"

#include "binding.h"
#include "compile_guard.h"
#include "kiln/graph/capture.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/tensor_impl.h"
#include "tensor_lists.h"

namespace kiln::python {

namespace {

// The function is seen by Python's collector of cycles, as long as nothing but this leads to it.
struct PyCompiled {
  std::shared_ptr<HeldObject> function;
  Compiled compiled;

  // By this and by the compiled function; histories of results may have it too.
  bool owns_function() const { return function.use_count() == 2; }
};

Compiled::Function called(std::shared_ptr<HeldObject> function) {
  return [function = std::move(function)](const TensorList& xs) -> TensorList {
    Locked lock;
    return tensors_of(function->get()(list_of(xs)));
  };
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto* held = nb::inst_ptr<PyCompiled>(self);
  if (held->owns_function()) Py_VISIT(held->function->get().ptr());
  return 0;
}

int clear(PyObject* self) {
  auto* held = nb::inst_ptr<PyCompiled>(self);
  if (held->owns_function()) *held->function = HeldObject(nb::none());
  return 0;
}

PyType_Slot kSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                        {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                        {0, nullptr}};

int traverse_guard(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<CallGuard>(self)->traverse(visit, arg) : 0;
}

int clear_guard(PyObject* self) {
  nb::inst_ptr<CallGuard>(self)->clear();
  return 0;
}

PyType_Slot kGuardSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_guard)},
                             {Py_tp_clear, reinterpret_cast<void*>(&clear_guard)},
                             {0, nullptr}};

PyCompiled make(nb::object function, const std::string& name, bool fullgraph, int max_variants,
                nb::handle tensors, bool freeze, bool exact, double memory_budget, bool passes) {
  CompileOptions options;
  options.fullgraph = fullgraph;
  options.max_variants = max_variants;
  options.tensors = tensors_of(tensors);
  options.freeze = freeze;
  options.exact = exact;
  options.memory_budget = memory_budget;
  options.own_results = options.dead_code = options.common_subexpressions =
      options.constant_folding = options.epilogues = options.joined_convolutions = options.fusion =
          passes;
  auto held = std::make_shared<HeldObject>(std::move(function));
  return {held, Compiled(called(held), options, name)};
}

// f(tensors) on the host, again in each replay.
void call_on_host(const std::string& name, nb::handle tensors, nb::object function) {
  std::vector<ErasedTensor> inner;
  for (const Tensor& x : tensors_of(tensors)) {
    inner.push_back(kiln::detail::parts_or_value(name.c_str(), x).inner);
  }
  const HeldObject held(std::move(function));
  graph::call_on_host(name.c_str(), inner, [held](std::span<const ErasedTensor> xs) {
    Locked lock;
    TensorList now;
    for (const ErasedTensor& x : xs) now.push_back(kiln::detail::wrap(x));
    held.get()(list_of(now));
  });
}

}  // namespace

void bind_compile(nb::module_& m) {
  nb::class_<PyCompiled>(m, "_Compiled", nb::type_slots(kSlots))
      .def("__call__",
           [](const PyCompiled& self, nb::handle tensors) {
             const TensorList given = tensors_of(tensors);
             TensorList out;
             {
               Unlocked lock;
               out = self.compiled(given);
             }
             return list_of(out);
           })
      .def("reads", [](const PyCompiled& self, const Tensor& x) { return self.compiled.reads(x); })
      .def("explain", [](const PyCompiled& self) { return self.compiled.explain(); })
      .def("graphs", [](const PyCompiled& self) { return self.compiled.graphs(); })
      .def("to_dot", [](const PyCompiled& self) { return self.compiled.to_dot(); })
      .def("counts", [](const PyCompiled& self) {
        const Compiled::Counts c = self.compiled.counts();
        return nb::make_tuple(c.variants, c.captured, c.replayed, c.eager);
      });
  nb::class_<CallGuard>(m, "_CallGuard", nb::type_slots(kGuardSlots))
      .def(nb::init<nb::object, nb::tuple, nb::handle, nb::handle, nb::handle>(), "structure"_a,
           "watched"_a, "args"_a, "kwargs"_a, "values"_a)
      .def("match", &CallGuard::match, "args"_a, "kwargs"_a, "values"_a)
      .def("state", &CallGuard::state)
      .def("changes", &CallGuard::changes, "args"_a, "kwargs"_a, "values"_a)
      .def("ignore", &CallGuard::ignore, "number"_a);
  m.def("_compiled", &make, "function"_a, "name"_a, "fullgraph"_a, "max_variants"_a, "tensors"_a,
        "freeze"_a, "exact"_a, "memory_budget"_a, "passes"_a);
  m.def("_is_capturing", &graph::is_capturing);
  m.def("_call_on_host", &call_on_host, "name"_a, "tensors"_a, "function"_a);
}

}  // namespace kiln::python
