// Arithmetic of numbers that follow from sizes, as Python does it.
#include <cmath>

#include "kiln/pt2/ops/forms.h"

namespace kiln::pt2 {

namespace {

Scalar number(Call& c, size_t i) {
  const Value v = c.at(i);
  const Scalar* x = v.scalar();
  if (x == nullptr) c.fail(concat("argument ", i, " is no number"));
  return x->is_bool() ? Scalar(x->to_int()) : *x;
}
bool are_integers(const Scalar& a, const Scalar& b) {
  return !a.is_floating_point() && !b.is_floating_point();
}

// The result of f on integers, where it does not overflow.
template <class F>
Scalar exactly(Call& c, Scalar a, Scalar b, F&& f) {
  int64_t out = 0;
  if (f(a.to_int(), b.to_int(), &out)) c.fail("a number that overflows 64 bits");
  return out;
}
void add(Call& c) {
  const Scalar a = number(c, 0), b = number(c, 1);
  c.out(are_integers(a, b) ? exactly(c, a, b,
                                     [](int64_t x, int64_t y, int64_t* out) {
                                       return __builtin_add_overflow(x, y, out);
                                     })
                           : Scalar(a.to_double() + b.to_double()));
}
void sub(Call& c) {
  const Scalar a = number(c, 0), b = number(c, 1);
  c.out(are_integers(a, b) ? exactly(c, a, b,
                                     [](int64_t x, int64_t y, int64_t* out) {
                                       return __builtin_sub_overflow(x, y, out);
                                     })
                           : Scalar(a.to_double() - b.to_double()));
}
void mul(Call& c) {
  const Scalar a = number(c, 0), b = number(c, 1);
  c.out(are_integers(a, b) ? exactly(c, a, b,
                                     [](int64_t x, int64_t y, int64_t* out) {
                                       return __builtin_mul_overflow(x, y, out);
                                     })
                           : Scalar(a.to_double() * b.to_double()));
}
void check_divisor(Call& c, const Scalar& b) {
  if (b.to_double() == 0.0) c.fail("a division by zero");
}
void true_divide(Call& c) {
  const Scalar a = number(c, 0), b = number(c, 1);
  check_divisor(c, b);
  c.out(Scalar(a.to_double() / b.to_double()));
}
// The quotient is rounded down, and the rest has the divisor's sign.
void floor_divide(Call& c) {
  const Scalar a = number(c, 0), b = number(c, 1);
  check_divisor(c, b);
  if (!are_integers(a, b)) {
    c.out(Scalar(std::floor(a.to_double() / b.to_double())));
    return;
  }
  const int64_t x = a.to_int(), y = b.to_int();
  if (y == -1) {
    c.out(exactly(c, Scalar(int64_t{0}), a, [](int64_t zero, int64_t v, int64_t* out) {
      return __builtin_sub_overflow(zero, v, out);
    }));
    return;
  }
  c.out(Scalar(x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0)));
}
void modulo(Call& c) {
  const Scalar a = number(c, 0), b = number(c, 1);
  check_divisor(c, b);
  if (!are_integers(a, b)) {
    const double x = a.to_double(), y = b.to_double();
    c.out(Scalar(x - std::floor(x / y) * y));
    return;
  }
  const int64_t y = b.to_int(), rest = y == -1 ? 0 : a.to_int() % y;
  c.out(Scalar(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest));
}
void power(Call& c) {
  const Scalar a = number(c, 0), b = number(c, 1);
  if (!are_integers(a, b) || b.to_int() < 0) {
    c.out(Scalar(std::pow(a.to_double(), b.to_double())));
    return;
  }
  int64_t out = 1, base = a.to_int();
  if (base >= -1 && base <= 1) {
    c.out(Scalar(base == 0 ? (b.to_int() == 0 ? 1 : 0) : b.to_int() % 2 == 0 ? 1 : base));
    return;
  }
  for (int64_t i = 0; i < b.to_int(); ++i) {
    if (__builtin_mul_overflow(out, base, &out)) c.fail("a number that overflows 64 bits");
  }
  c.out(Scalar(out));
}
void shift(Call& c, bool left) {
  const int64_t x = number(c, 0).to_int(), bits = number(c, 1).to_int();
  if (bits < 0 || bits > 62) c.fail(concat("a shift by ", bits, " bits"));
  if (!left) {
    c.out(Scalar(x >> bits));
    return;
  }
  int64_t out = 0;
  if (__builtin_mul_overflow(x, int64_t{1} << bits, &out)) {
    c.fail("a number that overflows 64 bits");
  }
  c.out(Scalar(out));
}
void left_shift(Call& c) { shift(c, true); }
void right_shift(Call& c) { shift(c, false); }

void negative(Call& c) {
  const Scalar a = number(c, 0);
  if (a.is_floating_point()) {
    c.out(Scalar(-a.to_double()));
    return;
  }
  int64_t out = 0;
  if (__builtin_sub_overflow(int64_t{0}, a.to_int(), &out)) {
    c.fail("a number that overflows 64 bits");
  }
  c.out(Scalar(out));
}
void positive(Call& c) { c.out(number(c, 0)); }

template <class F>
void compare(Call& c, F&& f) {
  const Scalar a = number(c, 0), b = number(c, 1);
  c.out(Scalar(are_integers(a, b) ? f(a.to_int(), b.to_int()) : f(a.to_double(), b.to_double())));
}
void eq(Call& c) {
  compare(c, [](auto a, auto b) { return a == b; });
}
void ne(Call& c) {
  compare(c, [](auto a, auto b) { return a != b; });
}
void lt(Call& c) {
  compare(c, [](auto a, auto b) { return a < b; });
}
void le(Call& c) {
  compare(c, [](auto a, auto b) { return a <= b; });
}
void gt(Call& c) {
  compare(c, [](auto a, auto b) { return a > b; });
}
void ge(Call& c) {
  compare(c, [](auto a, auto b) { return a >= b; });
}

bool are_booleans(Call& c) {
  const Value a = c.at(0), b = c.at(1);
  return a.scalar() != nullptr && a.scalar()->is_bool() && b.scalar() != nullptr &&
         b.scalar()->is_bool();
}
void bits_and(Call& c) {
  const int64_t out = number(c, 0).to_int() & number(c, 1).to_int();
  c.out(are_booleans(c) ? Scalar(out != 0) : Scalar(out));
}
void bits_or(Call& c) {
  const int64_t out = number(c, 0).to_int() | number(c, 1).to_int();
  c.out(are_booleans(c) ? Scalar(out != 0) : Scalar(out));
}
void logical_not(Call& c) { c.out(Scalar(!number(c, 0).to_bool())); }

void largest(Call& c) {
  const Scalar a = number(c, 0), b = number(c, 1);
  c.out(are_integers(a, b) ? Scalar(std::max(a.to_int(), b.to_int()))
                           : Scalar(std::max(a.to_double(), b.to_double())));
}
void smallest(Call& c) {
  const Scalar a = number(c, 0), b = number(c, 1);
  c.out(are_integers(a, b) ? Scalar(std::min(a.to_int(), b.to_int()))
                           : Scalar(std::min(a.to_double(), b.to_double())));
}
void to_float(Call& c) { c.out(Scalar(number(c, 0).to_double())); }
void to_int(Call& c) { c.out(Scalar(number(c, 0).to_int())); }
template <double (*F)(double)>
void rounded(Call& c) {
  c.out(Scalar(Scalar(F(number(c, 0).to_double())).to_int()));
}
void root(Call& c) { c.out(Scalar(std::sqrt(number(c, 0).to_double()))); }
void if_then_else(Call& c) { c.out(number(c, 0).to_bool() ? c.at(1) : c.at(2)); }
// Which of the two was taken, the other need not be a number.
void choose(Call& c) {
  c.at(1);
  c.at(2);
  if_then_else(c);
}

constexpr Operator kNumbersOperators[] = {
    {"_operator.add", "", add},
    {"_operator.sub", "", sub},
    {"_operator.mul", "", mul},
    {"_operator.truediv", "", true_divide},
    {"_operator.floordiv", "", floor_divide},
    {"_operator.mod", "", modulo},
    {"_operator.pow", "", power},
    {"_operator.neg", "", negative},
    {"_operator.pos", "", positive},
    {"_operator.eq", "", eq},
    {"_operator.ne", "", ne},
    {"_operator.lt", "", lt},
    {"_operator.le", "", le},
    {"_operator.gt", "", gt},
    {"_operator.ge", "", ge},
    {"_operator.and_", "", bits_and},
    {"_operator.or_", "", bits_or},
    {"_operator.lshift", "", left_shift},
    {"_operator.rshift", "", right_shift},
    {"math.trunc", "", rounded<std::trunc>},
    {"math.floor", "", rounded<std::floor>},
    {"math.ceil", "", rounded<std::ceil>},
    {"torch.sym_int", "", to_int},
    {"torch.sym_float", "", to_float},
    {"torch.sym_max", "", largest},
    {"torch.sym_min", "", smallest},
    {"torch.sym_not", "", logical_not},
    {"torch.sym_ite", "", choose},
    {"torch._sym_sqrt", "", root},
    {"torch.sym_sqrt", "", root},
};

}  // namespace

std::span<const Operator> number_operators() { return kNumbersOperators; }

}  // namespace kiln::pt2
