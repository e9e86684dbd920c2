// Derivatives of Python functions, checkpoints, anomaly mode.
#include "kiln/tensor/autograd/derivatives.h"

#include "binding.h"
#include "kiln/autodiff/anomaly.h"
#include "kiln/tensor/autograd/checkpoint.h"
#include "kiln/tensor/autograd/vmap.h"

namespace kiln::python {

namespace {

using autograd::DerivativeOptions;
using autograd::ListFunction;
using TensorList = std::vector<Tensor>;

const Tensor& result_tensor(const char* op, nb::handle object) {
  const Tensor* x = tensor_pointer(object.ptr());
  if (x == nullptr) {
    throw nb::type_error(
        concat(op, ": the function must give tensors; got ", name_of_type(object)).c_str());
  }
  return *x;
}

// A function of Python that takes tensors and gives one, or a tuple or list of them.
ListFunction function_of(const char* op, nb::object function) {
  return [op, held = HeldObject(std::move(function))](const TensorList& inputs) {
    Locked lock;
    const nb::object result = held.get()(*tuple_of(inputs));
    TensorList out;
    if (PyTuple_Check(result.ptr()) || PyList_Check(result.ptr())) {
      for (nb::handle item : nb::tuple(result)) out.push_back(result_tensor(op, item));
    } else {
      out.push_back(result_tensor(op, result));
    }
    return out;
  };
}

nb::tuple tuple_of_tuples(const std::vector<TensorList>& rows) {
  nb::list out;
  for (const TensorList& row : rows) out.append(tuple_of(row));
  return nb::tuple(out);
}

template <class F>
auto unlocked(F&& f) {
  Unlocked lock;
  return f();
}

nb::tuple pair_of(const std::pair<TensorList, TensorList>& lists) {
  return nb::make_tuple(tuple_of(lists.first), tuple_of(lists.second));
}

// The interpreter's stack where an op is recorded.
std::string stack_trace() {
  Locked lock;
  const nb::object lines = nb::module_::import_("traceback").attr("format_stack")();
  return nb::cast<std::string>(nb::str("").attr("join")(lines));
}

// See register_post_accumulate_grad_hook: hands the hook the object that it was registered on.
HookHandle hook_after_accumulation(nb::object self, nb::object hook) {
  const Tensor& x = tensor_arg("register_post_accumulate_grad_hook", self);
  const nb::object weak = nb::steal(PyWeakref_NewRef(self.ptr(), nullptr));
  const HeldObject both(nb::make_tuple(weak, hook));
  const auto call = [](void* object, const Tensor& same) {
    Locked lock;
    const nb::object both = HeldObject::from(object);
    const nb::object known = both[0]();
    both[1](known.is_none() ? nb::cast(same) : known);
  };
  return register_post_accumulate_grad_hook(
      x, interop::ForeignCall<void(const Tensor&)>{both.foreign(), call});
}

}  // namespace

// A region of vmap that ends when told to.
struct PyVmapRegion {
  PyVmapRegion(int64_t size, int randomness)
      : region(std::in_place, size, static_cast<Randomness>(randomness)) {}
  std::optional<kiln::detail::VmapRegion> region;
};

void bind_vmap(nb::module_& m) {
  nb::class_<PyVmapRegion>(m, "_VmapRegion")
      .def(nb::init<int64_t, int>(), "size"_a, "randomness"_a)
      .def("enter", [](const PyVmapRegion& r, const Tensor& x,
                       int64_t dim) { return r.region.value().enter(x, dim); })
      .def("leave", [](const PyVmapRegion& r,
                       const TensorList& results) { return r.region.value().leave(results); })
      .def("end", [](PyVmapRegion& r) { r.region.reset(); });
}

void bind_derivatives(nb::module_& m, TensorClass& c) {
  bind_vmap(m);
  m.def("_jacobian", [](nb::object f, const TensorList& x, bool create_graph, bool strict,
                        bool forward_mode) {
    const ListFunction function = function_of("jacobian", std::move(f));
    const DerivativeOptions options{create_graph, strict, forward_mode};
    return tuple_of_tuples(unlocked([&] { return autograd::jacobian(function, x, options); }));
  });
  m.def("_hessian", [](nb::object f, const TensorList& x, bool create_graph, bool strict) {
    const ListFunction function = function_of("hessian", std::move(f));
    const DerivativeOptions options{create_graph, strict};
    return tuple_of_tuples(unlocked([&] { return autograd::hessian(function, x, options); }));
  });
  const auto product = [&](const char* name, const char* op, auto method) {
    m.def(name, [op, method](nb::object f, const TensorList& x, const TensorList& v,
                             bool create_graph, bool strict) {
      const ListFunction function = function_of(op, std::move(f));
      const DerivativeOptions options{create_graph, strict};
      return pair_of(unlocked([&] { return method(function, x, v, options); }));
    });
  };
#define KILN_PY_PRODUCT(op)                                                   \
  product("_" #op, #op,                                                       \
          [](const ListFunction& f, const TensorList& x, const TensorList& v, \
             const DerivativeOptions& options) { return autograd::op(f, x, v, options); })
  KILN_PY_PRODUCT(vjp);
  KILN_PY_PRODUCT(jvp);
  KILN_PY_PRODUCT(hvp);
#undef KILN_PY_PRODUCT
  m.def("_checkpoint", [](nb::object f, const TensorList& inputs, bool preserve_random) {
    const ListFunction function = function_of("checkpoint", std::move(f));
    return tuple_of(
        unlocked([&] { return autograd::checkpoint(function, inputs, {preserve_random}); }));
  });
  m.def("_is_balanced_checkpointing", &autograd::is_balanced_checkpointing);
  m.def("_set_balanced_checkpointing", &autograd::set_balanced_checkpointing);
  m.def("_set_detect_anomaly", &set_detect_anomaly);
  m.def("is_anomaly_enabled", &is_anomaly_enabled);
  m.def("is_anomaly_check_nan_enabled", &is_anomaly_check_nan_enabled);
  autodiff::set_trace_provider(&stack_trace);
  c.def("register_post_accumulate_grad_hook", &hook_after_accumulation, "hook"_a,
        "Calls hook(tensor) each time that backward() has added to this leaf's grad.");
}

}  // namespace kiln::python
