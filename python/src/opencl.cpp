// kiln._C._opencl_* and _cuda_*: what kiln.opencl and kiln.cuda ask of their devices.
#include "binding.h"
#include "kiln/core/accelerator.h"
#include "memory_stats.h"
#include "parts.h"

namespace kiln::python {

namespace {

nb::dict dict_of_device(const accelerator::DeviceProperties& p) {
  nb::dict out;
  out["name"] = p.name;
  out["vendor"] = p.vendor;
  out["driver"] = p.driver;
  out["total_memory"] = p.memory_bytes;
  out["has_float64"] = p.has_float64;
  out["major"] = p.major;
  out["minor"] = p.minor;
  return out;
}

}  // namespace

void bind_opencl(nb::module_& m) {
  nb::class_<accelerator::Event>(m, "_AcceleratorEvent")
      .def("is_passed",
           [](const accelerator::Event& e) {
             nb::gil_scoped_release unlocked;
             return e.is_passed();
           })
      .def("wait",
           [](const accelerator::Event& e) {
             nb::gil_scoped_release unlocked;
             e.wait();
           })
      .def("milliseconds_since", &accelerator::Event::milliseconds_since, "earlier"_a);

#define KILN_BIND_RUNTIME(space)                                                                \
  m.def("_" #space "_device_count", [] { return space::device_count(); });                      \
  m.def("_" #space "_absence", [] { return space::absence(); });                                \
  m.def("_" #space "_device_properties",                                                        \
        [](int index) { return dict_of_device(space::device_properties(index)); });             \
  m.def("_" #space "_synchronize", [](int index) {                                              \
    nb::gil_scoped_release unlocked;                                                            \
    space::synchronize(index);                                                                  \
  });                                                                                           \
  m.def("_" #space "_memory_stats",                                                             \
        [](int index) { return dict_of(space::memory_stats(index)); });                         \
  m.def("_" #space "_pinned_memory_stats",                                                      \
        [](int index) { return dict_of(space::pinned_memory_stats(index)); });                  \
  m.def("_" #space "_reset_memory_stats", [](int index) { space::reset_memory_stats(index); }); \
  m.def("_" #space "_empty_cache", [](int index) { space::empty_cache(index); });               \
  m.def("_" #space "_set_memory_limit",                                                         \
        [](size_t bytes, int index) { space::set_memory_limit(bytes, index); });                \
  m.def("_" #space "_record_event", [](int index) { return space::record_event(index); });
  KILN_BIND_RUNTIME(opencl)
  KILN_BIND_RUNTIME(cuda)
#undef KILN_BIND_RUNTIME
  // Before the interpreter and the drivers' libraries are taken down.
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
    nb::gil_scoped_release unlocked;
    accelerator::finish();
  }));
}

}  // namespace kiln::python
