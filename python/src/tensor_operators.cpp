// Python's operators. Each gives NotImplemented for what it does not know, so that the other
// operand's class is asked.
#include "binding.h"

namespace kiln::python {

namespace {

template <class Both, class One>
auto forward(Both both, One one) {
  return [both, one](const Tensor& x, const Operand& y) {
    if (y.is_tensor()) {
      Unlocked lock(x, y.tensor());
      return Tensor(both(x, y.tensor()));
    }
    Unlocked lock(x);
    return Tensor(one(x, y.scalar_beside(x)));
  };
}

// A comparison goes by the number's value, whatever the dtype.
template <class Both, class One>
auto comparison(Both both, One one) {
  return [both, one](const Tensor& x, const Operand& y) {
    if (y.is_tensor()) {
      Unlocked lock(x, y.tensor());
      return Tensor(both(x, y.tensor()));
    }
    Unlocked lock(x);
    return Tensor(one(x, y.scalar()));
  };
}

// number op tensor. (Two tensors meet in the forward form.)
template <class F>
auto reflected(F f) {
  return [f](const Tensor& x, const Operand& y) {
    if (y.is_tensor()) throw nb::next_overload();
    Unlocked lock(x);
    return Tensor(f(y.scalar_beside(x), x));
  };
}

template <class Both, class One>
auto in_place(Both both, One one) {
  return [both, one](Tensor& x, const Operand& y) {
    if (y.is_tensor()) {
      Unlocked lock(x);
      both(x, y.tensor());
    } else {
      Unlocked lock(x);
      one(x, y.scalar_beside(x));
    }
    return x;
  };
}

#define KILN_PY_FORWARD(f)                                    \
  forward([](const Tensor& x, const Tensor& y) { return f; }, \
          [](const Tensor& x, Scalar y) { return f; })
#define KILN_PY_COMPARISON(f)                                    \
  comparison([](const Tensor& x, const Tensor& y) { return f; }, \
             [](const Tensor& x, Scalar y) { return f; })
#define KILN_PY_IN_PLACE(f) \
  in_place([](Tensor& x, const Tensor& y) { f; }, [](Tensor& x, Scalar y) { f; })

}  // namespace

void bind_operators(TensorClass& c) {
  const auto op = [&c](const char* name, auto f) { c.def(name, f, nb::is_operator()); };
  op("__add__", KILN_PY_FORWARD(x + y));
  op("__radd__", reflected([](Scalar a, const Tensor& x) { return x + a; }));
  op("__sub__", KILN_PY_FORWARD(x - y));
  op("__rsub__", reflected([](Scalar a, const Tensor& x) { return a - x; }));
  op("__mul__", KILN_PY_FORWARD(x * y));
  op("__rmul__", reflected([](Scalar a, const Tensor& x) { return x * a; }));
  op("__truediv__", KILN_PY_FORWARD(x / y));
  op("__rtruediv__", reflected([](Scalar a, const Tensor& x) { return a / x; }));
  op("__floordiv__", KILN_PY_FORWARD(x.floor_divide(y)));
  op("__rfloordiv__",
     reflected([](Scalar a, const Tensor& x) { return kiln::div(a, x, "floor"); }));
  op("__mod__", KILN_PY_FORWARD(x.remainder(y)));
  op("__rmod__", reflected([](Scalar a, const Tensor& x) { return remainder(a, x); }));
  op("__pow__", KILN_PY_FORWARD(x.pow(y)));
  op("__rpow__", reflected([](Scalar a, const Tensor& x) { return kiln::pow(a, x); }));
  op("__matmul__", [](const Tensor& x, const Tensor& y) {
    Unlocked lock;
    return x.matmul(y);
  });
  op("__eq__", KILN_PY_COMPARISON(x.eq(y)));
  op("__ne__", KILN_PY_COMPARISON(x.ne(y)));
  op("__lt__", KILN_PY_COMPARISON(x.lt(y)));
  op("__le__", KILN_PY_COMPARISON(x.le(y)));
  op("__gt__", KILN_PY_COMPARISON(x.gt(y)));
  op("__ge__", KILN_PY_COMPARISON(x.ge(y)));
  c.def("__neg__", [](const Tensor& x) {
    Unlocked lock(x);
    return -x;
  });
  c.def("__pos__", [](const Tensor& x) { return x; });
  c.def("__abs__", [](const Tensor& x) {
    Unlocked lock(x);
    return x.abs();
  });
  c.def("__invert__", [](const Tensor& x) {
    Unlocked lock(x);
    return x.bitwise_not();
  });
  c.def(
      "__round__",
      [](const Tensor& x, std::optional<int> digits) { return kiln::round(x, digits.value_or(0)); },
      "ndigits"_a = nb::none());

  op("__iadd__", KILN_PY_IN_PLACE(x.add_(y)));
  op("__isub__", KILN_PY_IN_PLACE(x.sub_(y)));
  op("__imul__", KILN_PY_IN_PLACE(x.mul_(y)));
  op("__itruediv__", KILN_PY_IN_PLACE(x.div_(y)));
  op("__ipow__", [](Tensor& x, Scalar y) {
    Unlocked lock(x);
    return x.pow_(y);
  });
}

void bind_in_place(TensorClass& c) {
  const auto def = [&c](const char* name, auto f, auto... extra) { c.def(name, f, extra...); };
  const auto with_alpha = [](auto both, auto one) {
    return [both, one](Tensor& x, const Operand& y, Scalar alpha) {
      Unlocked lock(x);
      if (y.is_tensor()) {
        both(x, y.tensor(), alpha);
      } else if (alpha.is_integral() && alpha.to_int() == 1) {
        one(x, y.scalar_beside(x));
      } else {
        one(x, Scalar(alpha.to_double() * y.scalar().to_double()));
      }
      return x;
    };
  };
  def("add_",
      with_alpha([](Tensor& x, const Tensor& y, Scalar a) { x.add_(y, a); },
                 [](Tensor& x, Scalar y) { x.add_(y); }),
      "other"_a, nb::kw_only(), "alpha"_a = 1);
  def("sub_",
      with_alpha([](Tensor& x, const Tensor& y, Scalar a) { x.sub_(y, a); },
                 [](Tensor& x, Scalar y) { x.sub_(y); }),
      "other"_a, nb::kw_only(), "alpha"_a = 1);
  def("mul_", KILN_PY_IN_PLACE(x.mul_(y)), "other"_a);
  def("div_", KILN_PY_IN_PLACE(x.div_(y)), "other"_a);
  def(
      "pow_",
      [](Tensor& x, Scalar y) {
        Unlocked lock(x);
        return x.pow_(y);
      },
      "exponent"_a);
  for (const char* name : {"clamp_", "clip_"}) {
    def(
        name,
        [](Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max) {
          if (!min && !max) {
            throw_error<ValueError>("clamp_: expected min, max or both; got neither");
          }
          Unlocked lock(x);
          return x.clamp_(min, max);
        },
        "min"_a = nb::none(), "max"_a = nb::none());
  }
  def(
      "copy_",
      [](Tensor& x, const Operand& source, bool non_blocking) {
        Unlocked lock(x);
        if (non_blocking && source.is_tensor()) return copy_non_blocking(x, source.tensor());
        return x.copy_(source.is_tensor() ? source.tensor()
                                          : full({}, source.scalar(), {.device = x.device()}));
      },
      "src"_a, "non_blocking"_a = false, "Takes over the values of src, converted and broadcast.");
  def(
      "fill_",
      [](Tensor& x, const Operand& value) {
        Unlocked lock(x);
        if (!value.is_tensor()) return x.fill_(value.scalar());
        if (value.tensor().dim() != 0) {
          throw_error<ShapeError>("fill_: expected a number or a 0-d tensor; got shape ",
                                  value.tensor().shape());
        }
        return x.copy_(value.tensor());
      },
      "value"_a);
  def("zero_", [](Tensor& x) {
    Unlocked lock(x);
    return x.zero_();
  });
}

}  // namespace kiln::python
