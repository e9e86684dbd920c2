// kiln.export.
#include "binding.h"
#include "kiln/pt2/model.h"
#include "tensor_lists.h"

namespace kiln::python {

namespace {

using Item = pt2::Model::Item;

Item item_of(nb::handle x) {
  if (x.is_none()) return {};
  if (const Tensor* tensor = tensor_pointer(x.ptr())) return *tensor;
  if (nb::isinstance<nb::bool_>(x)) return nb::cast<bool>(x);
  if (nb::isinstance<nb::int_>(x)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(x.ptr(), &overflow);
    if (overflow != 0) throw_error<ValueError>("pt2: an input is an integer beyond 64 bits");
    return static_cast<int64_t>(value);
  }
  if (nb::isinstance<nb::float_>(x)) return nb::cast<double>(x);
  if (nb::isinstance<nb::str>(x)) return nb::cast<std::string>(x);
  throw_error<TypeError>("pt2: an input is neither a tensor nor a number, a string or None");
}
nb::object object_of(const Item& item) {
  struct Make {
    nb::object operator()(std::monostate) const { return nb::none(); }
    nb::object operator()(const Tensor& x) const { return nb::steal(tensor_object(x)); }
    nb::object operator()(bool x) const { return nb::bool_(x); }
    nb::object operator()(int64_t x) const { return nb::int_(x); }
    nb::object operator()(double x) const { return nb::float_(x); }
    nb::object operator()(const std::string& x) const { return nb::str(x.c_str(), x.size()); }
  };
  return std::visit(Make{}, item);
}

// (kind, type, keys, items): "leaf", "tuple", "list" or "dict".
nb::object tree_object(const pt2::Tree& tree) {
  constexpr const char* kKinds[] = {"leaf", "tuple", "list", "dict"};
  nb::list keys, items;
  for (size_t i = 0; i < tree.keys.size(); ++i) {
    const std::string& key = tree.keys[i];
    if (tree.is_integer[i]) {
      keys.append(nb::int_(std::stoll(key)));
    } else {
      keys.append(nb::str(key.c_str(), key.size()));
    }
  }
  for (const pt2::Tree& item : tree.items) items.append(tree_object(item));
  return nb::make_tuple(kKinds[static_cast<size_t>(tree.kind)], tree.type, keys, items);
}

}  // namespace

void bind_pt2(nb::module_& m) {
  nb::class_<pt2::Model>(m, "_Pt2Model")
      .def("run",
           [](const pt2::Model& self, nb::handle inputs, nb::handle held) {
             const TensorList tensors = tensors_of(held);
             std::vector<Item> given;
             for (nb::handle x : inputs) given.push_back(item_of(x));
             std::vector<Item> out;
             {
               Unlocked lock;
               out = self.run_items(given, tensors);
             }
             nb::list results;
             for (const Item& item : out) results.append(object_of(item));
             return results;
           })
      .def("held",
           [](const pt2::Model& self) {
             constexpr const char* kKinds[] = {"parameter", "buffer", "constant"};
             nb::list out;
             const std::vector<pt2::Held>& all = self.held();
             const std::vector<size_t> first = self.first_places();
             for (size_t i = 0; i < all.size(); ++i) {
               const pt2::Held& one = all[i];
               out.append(nb::make_tuple(one.name, kKinds[static_cast<size_t>(one.kind)],
                                         one.persistent, one.tensor.requires_grad(), first[i],
                                         nb::steal(tensor_object(one.tensor.detach()))));
             }
             return out;
           })
      .def("input_names", &pt2::Model::input_names)
      .def("output_names", &pt2::Model::output_names)
      .def("argument_names", &pt2::Model::argument_names)
      .def("is_constant", &pt2::Model::is_constant)
      .def("constant_inputs",
           [](const pt2::Model& self) {
             nb::list out;
             for (const Item& one : self.constant_inputs()) out.append(object_of(one));
             return out;
           })
      .def("modules",
           [](const pt2::Model& self) {
             nb::list out;
             for (const auto& [path, type] : self.modules()) out.append(nb::make_tuple(path, type));
             return out;
           })
      .def("input_tree", [](const pt2::Model& self) { return tree_object(self.input_tree()); })
      .def("output_tree", [](const pt2::Model& self) { return tree_object(self.output_tree()); });
  m.def(
      "_load_pt2",
      [](const std::string& path, const std::string& program) {
        Unlocked lock;
        return pt2::Model::load(path, program);
      },
      "path"_a, "program"_a);
  m.def("_pt2_operators", &pt2::operators);
}

}  // namespace kiln::python
