// Whether a call of a compiled function is like one that was captured.
#pragma once

#include <vector>

#include "binding.h"

namespace kiln::python {

// Note [What a captured call depends on]
// A graph stands for one structure of arguments and for one state of what the function finds
// around it: modules (their attributes, parameters, buffers, children and hooks), and the values
// of its closure and globals. A guard keeps all these objects when the call is captured. A later
// call is like it when it meets the same objects in the same order; numbers and strings may be
// others with the same value. Looking at them costs a few nanoseconds each and makes no object.
//
// A function may put tensors into attributes: a weight that a hook computes, what is to be looked
// at later, the state of a recurrent network. Such a tensor is a further result of the graph. Which
// tensor stands there before a call does not count; if the function reads it, it is a further
// input.
class CallGuard {
 public:
  // structure: what _flatten in kiln/_compile.py makes of (args, kwargs). watched: dicts whose
  // contents count. values: what the function finds around it.
  CallGuard(nb::object structure, nb::tuple watched, nb::handle args, nb::handle kwargs,
            nb::handle values);

  // The tensors among the arguments of a call that is like the captured one; else None.
  nb::object match(nb::handle args, nb::handle kwargs, nb::handle values) const;
  // The parameters and buffers of the modules, and tensors of the closure and globals; but for
  // those that do not count.
  nb::list state() const;
  // Attributes and buffers that have another tensor than before the captured call, as tuples
  // (number, dict, key, tensor before). None where anything else has changed: such a call has no
  // like.
  nb::list changes(nb::handle args, nb::handle kwargs, nb::handle values) const;
  // Calls are alike whatever tensor the attribute of that number has.
  void ignore(size_t number);

  // For Python's collector of cycles.
  int traverse(visitproc visit, void* arg) const;
  void clear();

 private:
  struct Seen {
    nb::object object;
    bool is_attribute;
    bool is_ignored = false;
  };

  nb::object structure_;
  nb::tuple watched_;
  std::vector<Seen> seen_;
};

}  // namespace kiln::python
