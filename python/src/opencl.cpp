// kiln._C._opencl_*: what kiln.opencl asks of OpenCL devices.
#include "binding.h"
#include "kiln/core/accelerator.h"
#include "memory_stats.h"
#include "parts.h"

namespace kiln::python {

void bind_opencl(nb::module_& m) {
  m.def("_opencl_device_count", [] { return opencl::device_count(); });
  m.def("_opencl_absence", [] { return opencl::absence(); });
  m.def("_opencl_device_properties", [](int index) {
    const opencl::DeviceProperties p = opencl::device_properties(index);
    nb::dict out;
    out["name"] = p.name;
    out["vendor"] = p.vendor;
    out["driver"] = p.driver;
    out["total_memory"] = p.memory_bytes;
    out["has_float64"] = p.has_float64;
    return out;
  });
  m.def("_opencl_synchronize", [](int index) {
    nb::gil_scoped_release unlocked;
    opencl::synchronize(index);
  });
  m.def("_opencl_memory_stats", [](int index) { return dict_of(opencl::memory_stats(index)); });
  m.def("_opencl_reset_memory_stats", [](int index) { opencl::reset_memory_stats(index); });
  m.def("_opencl_empty_cache", [](int index) { opencl::empty_cache(index); });
  m.def("_opencl_set_memory_limit",
        [](size_t bytes, int index) { opencl::set_memory_limit(bytes, index); });
}

}  // namespace kiln::python
