#include "return_types.h"

namespace kiln::python {

PairType::PairType(const char* op, const char* first, const char* second) {
  // Python keeps pointers to these.
  auto* name = new std::string(std::string("kiln.return_types.") + op);
  auto* fields = new PyStructSequence_Field[3]{{first, ""}, {second, ""}, {nullptr, nullptr}};
  PyStructSequence_Desc description{name->c_str(), "What the op gives.", fields, 2};
  type_ = PyStructSequence_NewType(&description);
  if (type_ == nullptr) throw nb::python_error();
}

nb::object PairType::operator()(std::pair<Tensor, Tensor> pair) const {
  nb::object out = nb::steal(PyStructSequence_New(type_));
  if (!out.is_valid()) throw nb::python_error();
  PyStructSequence_SetItem(out.ptr(), 0, tensor_object(std::move(pair.first)));
  PyStructSequence_SetItem(out.ptr(), 1, tensor_object(std::move(pair.second)));
  return out;
}

}  // namespace kiln::python
