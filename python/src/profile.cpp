// The profiler: what kiln.profiler.profile is built on.
#include "binding.h"

namespace kiln::python {

namespace {

nb::dict row_of(const ProfileRow& row) {
  nb::dict out;
  out["op"] = row.op;
  out["count"] = row.count;
  out["seconds"] = row.seconds;
  out["bytes"] = row.bytes;
  out["allocations"] = row.allocations;
  out["flops"] = row.flops;
  out["device_seconds"] = row.device_seconds;
  return out;
}

}  // namespace

void bind_profile(nb::module_& m) {
  nb::class_<Profile>(m, "_Profile")
      .def(nb::init<>())
      .def("stop", &Profile::stop)
      .def("rows",
           [](const Profile& p) {
             nb::list out;
             for (const ProfileRow& row : p.rows()) out.append(row_of(row));
             return out;
           })
      .def("table", &Profile::table)
      .def("trace", &Profile::trace)
      .def("write_trace", &Profile::write_trace, "path"_a);
}

}  // namespace kiln::python
