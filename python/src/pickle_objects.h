// Python's objects on their way into files.
#pragma once

#include <string>

#include <nanobind/nanobind.h>

#include "kiln/io/pickle_value.h"

namespace kiln::python {

// Tensors, numbers, texts and dicts, lists, tuples and sets of them. Throws TypeError for others.
io::PickleValue pickle_value_of(nanobind::handle object);
// Whether it is a sparse tensor, whose parts are pickled.
bool is_sparse_object(nanobind::handle object);
// What os.fsencode gives of a path.
std::string file_name_of(nanobind::handle path);

}  // namespace kiln::python
