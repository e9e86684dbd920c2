// Sparse tensors: kiln._C._sparse, on which kiln/_sparse.py builds their class.
//
// Note [Sparse objects]
// A sparse tensor's object derives from Tensor. The tensor that it is holds the values, so that
// gradients, dtypes and devices are those of any tensor; its attribute _pattern says where the
// values stand. Functions here take such objects and put the two together.
#include "kiln/sparse/sparse.h"

#include "overrides.h"
#include "pickle_objects.h"

namespace kiln::python {

namespace {

struct Pattern {
  SparsePattern value;
};

nb::handle sparse_class;  // kiln._sparse.SparseTensor, which lives as long as the process

const char* layout_name(SparseLayout layout) {
  return layout == SparseLayout::coo ? "sparse_coo" : "sparse_csr";
}

bool is_sparse(nb::handle object) {
  return sparse_class.is_valid() &&
         PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(sparse_class.ptr()));
}

SparseTensor sparse_of(const char* op, nb::handle object) {
  const Tensor* const values = tensor_pointer(object.ptr());
  if (values == nullptr || !is_sparse(object)) {
    throw nb::type_error(
        concat(op, ": expected a sparse tensor; got ", name_of_type(object)).c_str());
  }
  const nb::object held = object.attr("_pattern");
  Pattern* pattern = nullptr;
  if (!nb::isinstance<Pattern>(held)) {
    throw nb::type_error(concat(op, ": the sparse tensor has lost its indices").c_str());
  }
  pattern = nb::inst_ptr<Pattern>(held);
  if (values->dim() < 1 || values->size(0) != pattern->value.indices.size(-1)) {
    throw_error<ShapeError>(op, ": the sparse tensor's values have become ", values->shape(),
                            "; expected one for each index");
  }
  SparsePattern where = pattern->value;
  if (where.indices.device() != values->device()) {
    where.indices = where.indices.to(values->device());
    if (where.crow.defined()) where.crow = where.crow.to(values->device());
  }
  return {std::move(where), *values};
}

nb::object object_of(const SparseTensor& x) {
  nb::object out = overrides::as_subclass(sparse_class, x._values());
  out.attr("_pattern") = Pattern{x.pattern()};
  return out;
}
nb::object object_of(const Tensor& x) { return nb::steal(tensor_object(x)); }
nb::object object_of(const sparse::Sum& x) {
  return x.dense.defined() ? object_of(x.dense) : object_of(x.sparse);
}

// A tensor of its own over the values: the one that they are is the sparse object.
Tensor own_view(const Tensor& x) { return x.requires_grad() ? x.view_as(x) : x.detach(); }

const Tensor& values_of(const Tensor& x) { return x; }
const Tensor& values_of(const SparseTensor& x) { return x._values(); }

// f() without the interpreter's lock where x is large, as an object.
template <class F>
auto computed(const Tensor& x, F&& f) {
  const auto out = [&] {
    const Unlocked lock(x);
    return f();
  }();
  return object_of(out);
}

// Calls f with each operand as a SparseTensor or a Tensor, and gives its result as an object. For
// pairs that f does not take: TypeError.
template <class F>
nb::object of_pair(const char* op, nb::handle x, nb::handle y, F&& f) {
  const auto call = [&](const auto& a, const auto& b) -> nb::object {
    if constexpr (requires { f(a, b); }) {
      return computed(values_of(a), [&] { return f(a, b); });
    } else {
      throw nb::type_error(
          concat(op, ": is not defined for these kinds of tensors; try to_dense()").c_str());
    }
  };
  if (is_sparse(x) && is_sparse(y)) return call(sparse_of(op, x), sparse_of(op, y));
  if (is_sparse(x)) return call(sparse_of(op, x), tensor_arg(op, y));
  if (is_sparse(y)) return call(tensor_arg(op, x), sparse_of(op, y));
  return call(tensor_arg(op, x), tensor_arg(op, y));
}

void bind_parts(nb::module_& m) {
  nb::class_<Pattern>(m, "Pattern", "Where the values of a sparse tensor stand.")
      .def_prop_ro("layout", [](const Pattern& p) { return layout_name(p.value.layout); })
      .def_prop_ro("coalesced", [](const Pattern& p) { return p.value.coalesced; });
  m.def(
      "set_class", [](nb::object type) { sparse_class = type.release(); }, "type"_a);
  m.def(
      "coo_tensor",
      [](const Tensor& indices, const Tensor& values, const std::optional<Shape>& size,
         bool is_coalesced) {
        return object_of(sparse_coo_tensor(indices, values, size, is_coalesced));
      },
      "indices"_a, "values"_a, "size"_a.none() = nb::none(), "is_coalesced"_a = false);
  m.def(
      "empty_coo_tensor",
      [](const Shape& size, DType dtype, Device device) {
        return object_of(sparse_coo_tensor(size, TensorOptions{.dtype = dtype, .device = device}));
      },
      "size"_a, "dtype"_a, "device"_a);
  m.def(
      "csr_tensor",
      [](const Tensor& crow, const Tensor& col, const Tensor& values,
         const std::optional<Shape>& size) {
        return object_of(sparse_csr_tensor(crow, col, values, size));
      },
      "crow_indices"_a, "col_indices"_a, "values"_a, "size"_a.none() = nb::none());
  m.def(
      "from_dense",
      [](const Tensor& x, std::optional<int64_t> dims, const std::string& layout) {
        return object_of(layout == "sparse_csr" ? to_sparse_csr(x) : to_sparse(x, dims));
      },
      "x"_a, "dims"_a.none(), "layout"_a);
  m.def("shape", [](nb::handle x) { return size_object(sparse_of("shape", x).shape()); });
  m.def("sparse_dim", [](nb::handle x) { return sparse_of("sparse_dim", x).sparse_dim(); });
  m.def("dense_dim", [](nb::handle x) { return sparse_of("dense_dim", x).dense_dim(); });
  m.def("nnz", [](nb::handle x) { return sparse_of("_nnz", x).nnz(); });
  m.def("indices", [](nb::handle x) { return sparse_of("indices", x).indices().detach(); });
  m.def("raw_indices", [](nb::handle x) { return sparse_of("_indices", x)._indices().detach(); });
  m.def("crow_indices",
        [](nb::handle x) { return sparse_of("crow_indices", x).crow_indices().detach(); });
  m.def("col_indices",
        [](nb::handle x) { return sparse_of("col_indices", x).col_indices().detach(); });
  m.def("values", [](nb::handle x) { return own_view(sparse_of("values", x).values()); });
  m.def("raw_values", [](nb::handle x) { return own_view(sparse_of("_values", x)._values()); });
  m.def(
      "with_values",
      [](nb::handle x, const Tensor& values) {
        return object_of(sparse_of("with_values", x).with_values(values));
      },
      "x"_a, "values"_a);
  m.def("text", [](nb::handle x) { return to_string(sparse_of("repr", x)); });
}

void bind_conversions(nb::module_& m) {
  m.def("to_dense", [](nb::handle x) {
    // The values themselves may be the result, which is not to be the sparse object.
    return own_view(sparse_of("to_dense", x).to_dense());
  });
  m.def("coalesce", [](nb::handle x) { return object_of(sparse_of("coalesce", x).coalesce()); });
  m.def("to_coo",
        [](nb::handle x) { return object_of(sparse_of("to_sparse", x).to_sparse_coo()); });
  m.def("to_csr",
        [](nb::handle x) { return object_of(sparse_of("to_sparse_csr", x).to_sparse_csr()); });
  m.def("clone", [](nb::handle x) { return object_of(sparse_of("clone", x).clone()); });
  m.def("detach", [](nb::handle x) { return object_of(sparse_of("detach", x).detach()); });
  m.def("to_dtype",
        [](nb::handle x, DType dtype) { return object_of(sparse_of("to", x).to(dtype)); });
  m.def("to_device",
        [](nb::handle x, Device device) { return object_of(sparse_of("to", x).to(device)); });
  m.def("transpose", [](nb::handle x, int64_t a, int64_t b) {
    return object_of(sparse_of("transpose", x).transpose(a, b));
  });
  m.def("permute", [](nb::handle x, const IntList& dims) {
    return object_of(sparse_of("permute", x).permute(dims));
  });
  m.def("unsqueeze", [](nb::handle x, int64_t dim) {
    return object_of(sparse_of("unsqueeze", x).unsqueeze(dim));
  });
  m.def("t", [](nb::handle x) { return object_of(sparse_of("t", x).t()); });
  m.def("mask", [](const Tensor& x, nb::handle mask) {
    return object_of(sparse_mask(x, sparse_of("sparse_mask", mask)));
  });
}

void bind_functions(nb::module_& m) {
  m.def("add", [](nb::handle x, nb::handle y, Scalar alpha) {
    return of_pair("add", x, y, [&](const auto& a, const auto& b) -> decltype(add(a, b, alpha)) {
      return add(a, b, alpha);
    });
  });
  m.def("mul", [](nb::handle x, nb::handle y) {
    return of_pair("mul", x, y,
                   [](const auto& a, const auto& b) -> decltype(mul(a, b)) { return mul(a, b); });
  });
  m.def("div", [](nb::handle x, nb::handle y) {
    return of_pair("div", x, y,
                   [](const auto& a, const auto& b) -> decltype(div(a, b)) { return div(a, b); });
  });
  m.def("mm", [](nb::handle x, nb::handle y) {
    return of_pair("mm", x, y, [](const auto& a, const auto& b) -> decltype(sparse::mm(a, b)) {
      return sparse::mm(a, b);
    });
  });
  m.def("mul_number",
        [](nb::handle x, Scalar y) { return object_of(mul(sparse_of("mul", x), y)); });
  m.def("div_number",
        [](nb::handle x, Scalar y) { return object_of(div(sparse_of("div", x), y)); });
  m.def("mv", [](nb::handle x, const Tensor& y) { return sparse::mv(sparse_of("mv", x), y); });
  m.def("addmm", [](const Tensor& input, nb::handle x, const Tensor& y, Scalar beta, Scalar alpha) {
    const SparseTensor a = sparse_of("addmm", x);
    return computed(y, [&] { return sparse::addmm(input, a, y, beta, alpha); });
  });
  m.def("sampled_addmm", [](nb::handle input, const Tensor& x, const Tensor& y, Scalar beta,
                            Scalar alpha) {
    return object_of(sparse::sampled_addmm(sparse_of("sampled_addmm", input), x, y, beta, alpha));
  });
  m.def("sum", [](nb::handle x) { return sparse::sum(sparse_of("sum", x)); });
  m.def("sum_over", [](nb::handle x, const IntList& dims) {
    return object_of(sparse::sum(sparse_of("sum", x), dims));
  });
  m.def("softmax", [](nb::handle x, int64_t dim) {
    return object_of(sparse::softmax(sparse_of("softmax", x), dim));
  });
  m.def("log_softmax", [](nb::handle x, int64_t dim) {
    return object_of(sparse::log_softmax(sparse_of("log_softmax", x), dim));
  });
  m.def("index_select", [](nb::handle x, int64_t dim, const Tensor& index) {
    return object_of(sparse::index_select(sparse_of("index_select", x), dim, index));
  });
  m.def("select", [](nb::handle x, int64_t dim, int64_t index) {
    return object_of(sparse::select(sparse_of("select", x), dim, index));
  });
  m.def("cat", [](const nb::sequence& tensors, int64_t dim) {
    std::vector<SparseTensor> all;
    for (nb::handle x : tensors) all.push_back(sparse_of("cat", x));
    return object_of(cat(all, dim));
  });
}

}  // namespace

bool is_sparse_object(nb::handle object) { return is_sparse(object); }

void bind_sparse(nb::module_& m) {
  nb::module_ part = m.def_submodule("_sparse", "Sparse tensors, for kiln._sparse.");
  bind_parts(part);
  bind_conversions(part);
  bind_functions(part);
}

}  // namespace kiln::python
