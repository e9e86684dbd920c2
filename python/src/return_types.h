// Named tuples, as ops that give several tensors return them: kiln.return_types.sort(values=..,
// indices=..).
#pragma once

#include <string>
#include <utility>

#include <Python.h>
#include <structseq.h>

#include "binding.h"

namespace kiln::python {

// A class of named pairs of tensors; made once for each op and never freed.
class PairType {
 public:
  PairType(const char* op, const char* first, const char* second);
  nb::object operator()(std::pair<Tensor, Tensor> pair) const;

 private:
  PyTypeObject* type_;
};

}  // namespace kiln::python
