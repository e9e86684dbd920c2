#include "optim_group.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/tensor/nn/optimizer_steps.h"

namespace kiln::python {

namespace {

// Beyond this a double does not count by ones.
constexpr double kMaxSteps = 9007199254740992.0;

// The place of a step that is stored as PyTorch does, a 0-d float32 on the CPU; null otherwise.
float* plain_step(const Tensor& step) {
  static const Tensor kLike = zeros({}, {.dtype = f32});
  return kiln::detail::are_alike(step, kLike) ? static_cast<float*>(interop::data(step)) : nullptr;
}

// tensor_arg(), whose general way is slow for classes derived from Tensor.
const Tensor& param_arg(const char* op, nb::handle object) {
  static const nb::handle kParameter = nb::type<PyParameter>();
  if (object.type().is(kParameter) && nb::inst_ready(object)) {
    return *nb::inst_ptr<PyParameter>(object);
  }
  return tensor_arg(op, object);
}

}  // namespace

PyObject* DictKey::find_in(nb::handle dict) const {
  PyObject* found = PyDict_GetItemWithError(dict.ptr(), object_);
  if (found == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  return found;
}

// ---- Settings

GroupOptions::GroupOptions(const char* op, nb::handle group) : op_(op), group_(group) {
  if (!PyDict_Check(group.ptr())) {
    throw_error<TypeError>(op, ": a parameter group must be a dict; got ", name_of_type(group));
  }
}

nb::object GroupOptions::at(const DictKey& key) const {
  PyObject* found = key.find_in(group_);
  if (found == nullptr) {
    throw_error<KeyError>(op_, ": a parameter group has no '", key.name(), "'");
  }
  return nb::borrow(found);
}

double GroupOptions::number_of(const DictKey& key, nb::handle value) const {
  if (PyFloat_Check(value.ptr())) return float_value(value.ptr());
  if (const Tensor* x = tensor_pointer(value.ptr()); x != nullptr && x->numel() == 1) {
    return x->item_scalar().to_double();
  }
  Scalar number;
  if (value.is_none() || !scalar_of(value, &number)) {
    throw_error<TypeError>(op_, ": '", key.name(), "' of a parameter group must be a number; got ",
                           repr_of(value));
  }
  return number.to_double();
}

double GroupOptions::number(const DictKey& key) const { return number_of(key, at(key)); }

double GroupOptions::number(const DictKey& key, int index, int count, double none) const {
  const nb::object value = at(key);
  if ((!PyTuple_Check(value.ptr()) && !PyList_Check(value.ptr())) ||
      nb::len(value) != static_cast<size_t>(count)) {
    throw_error<TypeError>(op_, ": '", key.name(), "' of a parameter group must be ",
                           count == 2 ? "two" : "three", " numbers; got ", repr_of(value));
  }
  return nb::object(value[index]).is_none() ? none : number_of(key, value[index]);
}

int64_t GroupOptions::whole(const DictKey& key) const {
  const double value = number(key);
  if (!(std::abs(value) <= kMaxSteps) || value != std::floor(value)) {
    throw_error<ValueError>(op_, ": '", key.name(),
                            "' of a parameter group must be a whole number; got ", value);
  }
  return static_cast<int64_t>(value);
}

std::optional<std::string> GroupOptions::text(const DictKey& key) const {
  PyObject* found = key.find_in(group_);
  if (found == nullptr || found == Py_None) return std::nullopt;
  if (!PyUnicode_Check(found)) {
    throw_error<TypeError>(op_, ": '", key.name(), "' of a parameter group must be a string; got ",
                           repr_of(found));
  }
  return nb::cast<std::string>(nb::handle(found));
}

bool GroupOptions::flag(const DictKey& key) const {
  PyObject* found = key.find_in(group_);
  if (found == nullptr || found == Py_False || found == Py_None) return false;
  const int truth = found == Py_True ? 1 : PyObject_IsTrue(found);
  if (truth < 0) throw nb::python_error();
  return truth == 1;
}

// ---- Members

GroupMembers::GroupMembers(const GroupOptions& options, nb::handle state,
                           const Gradients* gradients)
    : options_(options), state_(state) {
  static const DictKey kParams("params"), kMaximize("maximize");
  const char* op = options.op();
  if (!PyDict_Check(state.ptr())) {
    throw_error<TypeError>(op, ": the state must be a dict; got ", name_of_type(state));
  }
  const nb::object list = options.at(kParams);
  if (!PyList_Check(list.ptr()) && !PyTuple_Check(list.ptr())) {
    throw_error<TypeError>(op, ": 'params' of a parameter group must be a list; got ",
                           name_of_type(list));
  }
  const bool maximize = options.flag(kMaximize);
  const auto count = static_cast<size_t>(sequence_size(list.ptr()));
  params.reserve(count);
  grads.reserve(count);
  keys_.reserve(count);
  for (Py_ssize_t i = 0; i < sequence_size(list.ptr()); ++i) {
    const nb::handle item = sequence_item(list.ptr(), i);
    const Tensor& param = param_arg(op, item);
    Tensor grad = gradients != nullptr ? gradients->get(param).value_or(Tensor()) : param.grad();
    if (!grad.defined()) continue;
    check_fits("gradient", grad, param, true);
    if (maximize) grad = -grad.detach();
    if (grad.dtype() != param.dtype()) grad = grad.detach().to(param.dtype());
    numel += param.numel();
    uniform = uniform && (params.empty() || (param.dtype() == params[0].dtype() &&
                                             param.device() == params[0].device()));
    keys_.push_back(nb::borrow(item));
    params.push_back(param);
    grads.push_back(std::move(grad));
  }
}

void GroupMembers::check_fits(const char* what, const Tensor& x, const Tensor& param,
                              bool any_dtype) const {
  if (kiln::detail::are_alike(x, param)) return;
  if (x.shape() != param.shape()) {
    throw_error<ShapeError>(options_.op(), ": the ", what,
                            " of a parameter has another shape; got ", x.shape(), "; expected ",
                            param.shape());
  }
  if (x.device() != param.device()) {
    throw_error<DeviceError>(options_.op(), ": the ", what,
                             " of a parameter is on another device; got ", x.device(),
                             "; expected ", param.device());
  }
  if (!any_dtype || !x.is_floating_point() || !param.is_floating_point()) {
    throw_error<DTypeError>(options_.op(), ": the ", what,
                            " of a parameter has another dtype; got ", x.dtype(), "; expected ",
                            param.dtype());
  }
}

void GroupMembers::find_state() {
  entries_.reserve(size());
  for (const nb::object& key : keys_) {
    PyObject* found = PyDict_GetItemWithError(state_.ptr(), key.ptr());
    if (found == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
    if (found != nullptr && !PyDict_Check(found)) {
      throw_error<TypeError>(options_.op(), ": the state of a parameter must be a dict; got ",
                             name_of_type(nb::handle(found)));
    }
    entries_.push_back(found == nullptr ? nb::object(nb::dict()) : nb::borrow(found));
  }
}

GroupMembers::Slot GroupMembers::slot(const DictKey& key, const optim::StateInfo& info,
                                      bool any_dtype) {
  Slot out{.key = &key, .tensors = {}, .made = {}};
  out.tensors.reserve(size());
  out.made.reserve(size());
  for (size_t i = 0; i < size(); ++i) {
    const Tensor& param = params[i];
    const auto shape = optim::state_shape(info, param.shape());
    PyObject* found = shape ? key.find_in(entries_[i]) : nullptr;
    const bool made = shape && (found == nullptr || found == Py_None);
    out.made.push_back(made);
    if (!shape) {
      out.tensors.emplace_back();
    } else if (made) {
      out.tensors.push_back(optim::new_slot(info, param, *shape));
    } else {
      out.tensors.push_back(tensor_arg(options_.op(), found));
      const DType dtype = optim::state_dtype(info, param.dtype());
      const Tensor like = *shape == param.shape() && dtype == param.dtype()
                              ? param
                              : empty(*shape, {.dtype = dtype, .device = param.device()});
      check_fits(key.name(), out.tensors.back(), like, any_dtype);
    }
  }
  return out;
}

// A number of a state that is not stored as a new one is.
double GroupMembers::number_of(PyObject* value, const char* name) const {
  if (PyFloat_Check(value)) return float_value(value);
  Scalar number;
  if (PyLong_Check(value) && scalar_of(value, &number)) return number.to_double();
  const std::string what = concat(options_.op(), ": a state's '", name, "'");
  const Tensor& x = tensor_arg(what.c_str(), value);
  if (x.numel() == 1) return x.item_scalar().to_double();
  throw_error<ShapeError>(what, " must be one number; got shape ", x.shape());
}

double GroupMembers::number(size_t i, const DictKey& key, double initial) const {
  PyObject* found = key.find_in(entries_[i]);
  return found == nullptr || found == Py_None ? initial : number_of(found, key.name());
}

void GroupMembers::keep_number(size_t i, const DictKey& key, double value) {
  PyObject* found = key.find_in(entries_[i]);
  if (Tensor* x = found == nullptr ? nullptr : tensor_pointer(found); x != nullptr) {
    x->fill_(value);
    return;
  }
  const DType dtype = default_dtype() == f64 ? f64 : f32;
  nb::borrow<nb::dict>(entries_[i])[key.name()] = scalar_tensor(value, {.dtype = dtype});
}

void GroupMembers::count_steps() {
  static const DictKey kStep("step");
  steps.reserve(size());
  const DType dtype = default_dtype() == f64 ? f64 : f32;
  for (const nb::object& entry : entries_) {
    PyObject* found = kStep.find_in(entry);
    Tensor* step = found == nullptr ? nullptr : tensor_pointer(found);
    float* place = step == nullptr ? nullptr : plain_step(*step);
    const bool none = found == nullptr || found == Py_None;
    const double value = place != nullptr ? *place : none ? 0.0 : number_of(found, kStep.name());
    if (!(value >= 0.0 && value < kMaxSteps) || value != std::floor(value)) {
      throw_error<ValueError>(options_.op(), ": a state's 'step' must be a whole number >= 0; got ",
                              value);
    }
    steps.push_back(static_cast<int64_t>(value));
    if (place != nullptr) {
      *place += 1.0F;
    } else if (step != nullptr) {
      step->copy_(step->detach() + 1.0);
    } else {
      nb::borrow<nb::dict>(entry)[kStep.name()] = scalar_tensor(value + 1.0, {.dtype = dtype});
    }
  }
}

void GroupMembers::keep(std::span<Slot* const> slots) {
  for (const Slot* slot : slots) {
    for (size_t i = 0; i < size(); ++i) {
      if (!slot->made[i]) continue;
      nb::borrow<nb::dict>(entries_[i])[slot->key->name()] = slot->tensors[i];
    }
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (Py_REFCNT(entries_[i].ptr()) > 1) continue;  // the state holds it
    if (PyDict_SetItem(state_.ptr(), keys_[i].ptr(), entries_[i].ptr()) != 0) {
      throw nb::python_error();
    }
  }
}

}  // namespace kiln::python
