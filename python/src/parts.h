// Parts of the package beside tensors and modules, each a module of its own within kiln._C.
#pragma once

#include <nanobind/nanobind.h>

namespace kiln::python {

void bind_rl(nanobind::module_& m);
void bind_vision(nanobind::module_& m);
void bind_image_files(nanobind::module_& m);  // of kiln.vision
void bind_metrics(nanobind::module_& m);
void bind_image_metrics(nanobind::module_& m);  // of its module
void bind_tokenizers(nanobind::module_& m);
void bind_audio(nanobind::module_& m);
void bind_data(nanobind::module_& m);
void bind_train(nanobind::module_& m);
void bind_distributed(nanobind::module_& m);

}  // namespace kiln::python
