// Random numbers: generators, functions that draw, tensors filled in place.
#include "binding.h"
#include "default_device.h"

namespace kiln::python {

namespace {

#define KILN_PY_GENERATOR nb::arg("generator").none() = nb::none()
#define KILN_PY_OPTIONS "dtype"_a = nb::none(), "device"_a = nb::none(), "requires_grad"_a = false

TensorOptions options_of(std::optional<DType> dtype, std::optional<Device> device,
                         bool requires_grad) {
  return {dtype, device_or_default(device), requires_grad};
}

// A generator's state as PyTorch has it: bytes in a tensor (the seed, then what has been used).
Tensor generator_state(const Generator& generator) {
  const RandomStream state = generator.state();
  TensorData data(Shape{16}, DType::u8);
  const std::span<uint8_t> bytes = data.as_mutable<uint8_t>();
  for (size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<uint8_t>(state.seed >> (8 * i));
    bytes[8 + i] = static_cast<uint8_t>(state.offset >> (8 * i));
  }
  return Tensor(data);
}

void set_state(Generator& generator, const Tensor& state) {
  if (state.dtype() != DType::u8 || state.numel() != 16) {
    throw_error<ValueError>(
        "set_state: expected a uint8 tensor of 16 elements, as get_state() "
        "gives; got ",
        state.dtype(), " ", state.shape());
  }
  const TensorData data = state.to_data();
  const std::span<const uint8_t> bytes = data.as<uint8_t>();
  RandomStream stream;
  for (size_t i = 0; i < 8; ++i) {
    stream.seed |= static_cast<uint64_t>(bytes[i]) << (8 * i);
    stream.offset |= static_cast<uint64_t>(bytes[8 + i]) << (8 * i);
  }
  generator.set_state(stream);
}

// Seeds as PyTorch takes them, from -2^63 to 2^64 - 1: negative ones count from 2^64.
uint64_t seed_of(nb::handle seed) {
  const nb::object number = nb::steal(PyNumber_Index(seed.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow == 0) return static_cast<uint64_t>(value);
  const unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(number.ptr()) : 0;
  if (overflow < 0 || PyErr_Occurred() != nullptr) throw_overflow(number, "uint64");
  return large;
}

uint64_t fresh_seed() {
  const nb::object bytes = nb::module_::import_("os").attr("urandom")(8);
  return nb::cast<uint64_t>(
      nb::module_::import_("builtins").attr("int").attr("from_bytes")(bytes, "little"));
}

void bind_generators(nb::module_& m) {
  nb::class_<Generator>(m, "Generator", "A stream of random numbers, apart from the default one.")
      .def(
          "__init__",
          [](Generator* g, std::optional<Device>) { new (g) Generator(67280421310721); },
          "device"_a = nb::none())
      .def(
          "manual_seed",
          [](Self<Generator> self, nb::handle seed) {
            self.p->manual_seed(seed_of(seed));
            return nb::borrow(self.h);
          },
          "seed"_a, "Starts the stream that belongs to the seed.",
          nb::sig("def manual_seed(self, seed: int) -> Generator"))
      .def("initial_seed", [](const Generator& g) { return g.seed(); })
      .def(
          "seed",
          [](Generator& g) {
            const uint64_t seed = fresh_seed();
            g.manual_seed(seed);
            return seed;
          },
          "Seeds with a number that nobody can know before, and returns it.")
      .def("get_state", &generator_state, "What set_state() takes to continue the same numbers.")
      .def("set_state", &set_state, "new_state"_a)
      .def(
          "clone_state",
          [](const Generator& g) {
            auto copy = std::make_unique<Generator>();
            copy->set_state(g.state());
            return copy.release();
          },
          nb::rv_policy::take_ownership)
      .def_prop_ro("device", [](const Generator&) { return Device{}; });
  m.attr("default_generator") = nb::cast(&default_generator(), nb::rv_policy::reference);
  m.def(
      "manual_seed",
      [](nb::handle seed) {
        manual_seed(seed_of(seed));
        return nb::module_::import_("kiln._C").attr("default_generator");
      },
      "seed"_a, "Seeds the default generator of random numbers.",
      nb::sig("def manual_seed(seed: int) -> Generator"));
  m.def("initial_seed", [] { return default_generator().seed(); });
  m.def(
      "seed",
      [] {
        const uint64_t seed = fresh_seed();
        manual_seed(seed);
        return seed;
      },
      "Seeds the default generator with a number that nobody can know before.");
  m.def(
      "get_rng_state", [] { return generator_state(default_generator()); },
      "What set_rng_state() takes to continue the same random numbers.");
  m.def(
      "set_rng_state", [](const Tensor& state) { set_state(default_generator(), state); },
      "new_state"_a);
}

template <class F>
void def_sized(nb::module_& m, const char* name, F f, const char* doc) {
  const std::string op = name;
  const std::string signature =
      "def " + op +
      "(*size: int | collections.abc.Sequence[int], generator: Generator | None = None, dtype: "
      "dtype | None = None, device: device | str | None = None, requires_grad: bool = False) -> "
      "Tensor";
  m.def(
      name,
      [f, op](const nb::args& args, const std::optional<Shape>& size, Generator* generator,
              std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
        const Shape shape = size ? *size : shape_of_args(op.c_str(), args);
        checked_numel(op.c_str(), shape);
        Unlocked lock(shape.numel());
        return Tensor(f(shape, options_of(dtype, device, requires_grad), generator));
      },
      "args"_a, "size"_a = nb::none(), KILN_PY_GENERATOR, KILN_PY_OPTIONS, doc,
      nb::sig(signature.c_str()));
}

template <class F>
void def_like(nb::module_& m, const char* name, F f) {
  m.def(
      name,
      [f](const Tensor& x, Generator* generator, std::optional<DType> dtype,
          std::optional<Device> device, bool requires_grad) {
        Unlocked lock(x);
        const TensorOptions options =
            options_of(dtype.value_or(x.dtype()), device.value_or(x.device()), requires_grad);
        return kiln::detail::made_like(
            x, [&](const Shape& s) { return Tensor(f(s, options, generator)); });
      },
      "input"_a, nb::kw_only(), KILN_PY_GENERATOR, KILN_PY_OPTIONS,
      "As the function without _like, in the shape and dtype of input.");
}

void bind_drawing(nb::module_& m, TensorClass& c) {
  const auto uniform = [](const Shape& s, const TensorOptions& o, Generator* g) {
    return rand(s, o, g);
  };
  const auto standard = [](const Shape& s, const TensorOptions& o, Generator* g) {
    return randn(s, o, g);
  };
  def_sized(m, "rand", uniform, "Uniform random numbers in [0, 1).");
  def_sized(m, "randn", standard, "Random numbers of the standard normal distribution.");
  def_like(m, "rand_like", uniform);
  def_like(m, "randn_like", standard);
  m.def(
      "randint",
      [](int64_t a, const nb::object& b, const nb::object& c, std::optional<Shape> size,
         Generator* generator, std::optional<DType> dtype, std::optional<Device> device,
         bool requires_grad) {
        // randint(high, size) and randint(low, high, size)
        int64_t low = 0;
        int64_t high = a;
        Shape shape;
        if (PyLong_Check(b.ptr())) {
          low = a;
          high = nb::cast<int64_t>(b);
          if (!c.is_none() && integers_of(c, &shape)) size = shape;
        } else if (!b.is_none() && integers_of(b, &shape)) {
          size = shape;
        }
        if (!size) throw nb::type_error("randint: expected a size, as in randint(0, 10, (2, 3))");
        return randint(low, high, *size, options_of(dtype, device, requires_grad), generator);
      },
      "low"_a, nb::arg("high").none() = nb::none(), nb::arg("size_").none() = nb::none(),
      nb::kw_only(), "size"_a = nb::none(), KILN_PY_GENERATOR, KILN_PY_OPTIONS,
      "Random integers in [low, high): randint(high, size) or randint(low, high, size).",
      nb::sig("def randint(low: int, high: typing.Any = None, size: typing.Any = None, *, "
              "generator: Generator | None = None, dtype: dtype | None = None, device: device | "
              "str | None = None, requires_grad: bool = False) -> Tensor"));
  m.def(
      "randint_like",
      [](const Tensor& x, int64_t a, std::optional<int64_t> b, Generator* generator,
         std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
        const TensorOptions options =
            options_of(dtype.value_or(x.dtype()), device.value_or(x.device()), requires_grad);
        return kiln::detail::made_like(x, [&](const Shape& s) {
          return randint(b ? a : 0, b.value_or(a), s, options, generator);
        });
      },
      "input"_a, "low"_a, "high"_a = nb::none(), nb::kw_only(), KILN_PY_GENERATOR, KILN_PY_OPTIONS,
      "Random integers in [low, high), or in [0, low), in the shape of input.");
  m.def(
      "randperm",
      [](int64_t n, Generator* generator, std::optional<DType> dtype, std::optional<Device> device,
         bool requires_grad) {
        return randperm(n, options_of(dtype, device, requires_grad), generator);
      },
      "n"_a, nb::kw_only(), KILN_PY_GENERATOR, KILN_PY_OPTIONS,
      "A random permutation of 0 to n - 1.");
  def_both(
      m, c, "bernoulli",
      [](const Tensor& x, std::optional<double> p, Generator* generator) {
        Unlocked lock(x);
        return p ? bernoulli(x, *p, generator) : bernoulli(x, generator);
      },
      "p"_a = nb::none(), nb::kw_only(), KILN_PY_GENERATOR,
      "Ones with the probabilities of input (or p), else zeros.");
  def_both(
      m, c, "multinomial",
      [](const Tensor& weights, int64_t count, bool replacement, Generator* generator) {
        Unlocked lock(weights);
        return multinomial(weights, count, replacement, generator);
      },
      "num_samples"_a, "replacement"_a = false, nb::kw_only(), KILN_PY_GENERATOR,
      "Indices drawn with the given weights, row by row.");
  m.def(
      "normal",
      [](const Operand& mean, const Operand& std, const std::optional<Shape>& size,
         Generator* generator, std::optional<DType> dtype, std::optional<Device> device,
         bool requires_grad) {
        if (!mean.is_tensor() && !std.is_tensor()) {
          if (!size) throw nb::type_error("normal: two numbers need a size");
          return normal(mean.scalar().to_double(), std.scalar().to_double(), *size,
                        options_of(dtype, device, requires_grad), generator);
        }
        const auto whole = [&](const Operand& x) {
          return size ? x.tensor().expand(*size) : x.tensor();
        };
        Unlocked lock(mean.is_tensor() ? mean.tensor() : std.tensor());
        if (!mean.is_tensor()) return normal(mean.scalar().to_double(), whole(std), generator);
        return std.is_tensor() ? normal(whole(mean), std.tensor(), generator)
                               : normal(whole(mean), std.scalar().to_double(), generator);
      },
      "mean"_a, "std"_a = 1.0, "size"_a = nb::none(), nb::kw_only(), KILN_PY_GENERATOR,
      KILN_PY_OPTIONS, "Normal numbers; mean and std may be tensors.");
  m.def(
      "poisson",
      [](const Tensor& rates, Generator* generator) {
        Unlocked lock(rates);
        return poisson(rates, generator);
      },
      "input"_a, KILN_PY_GENERATOR, "Poisson numbers with the given rates.");
  m.def(
      "binomial",
      [](const Tensor& count, const Tensor& p, Generator* generator) {
        Unlocked lock(count, p);
        return binomial(count, p, generator);
      },
      "count"_a, "prob"_a, KILN_PY_GENERATOR, "How many of count trials succeed.");
}

void bind_filling(TensorClass& c) {
  const auto two = [&c](const char* name, Tensor& (*f)(Tensor&, double, double, Generator*),
                        const char* first, double a, const char* second, double b) {
    c.def(
        name,
        [f](Tensor& x, double u, double v, Generator* generator) {
          Unlocked lock(x);
          return f(x, u, v, generator);
        },
        nb::arg(first) = a, nb::arg(second) = b, nb::kw_only(), KILN_PY_GENERATOR);
  };
  two("uniform_", uniform_, "from_", 0.0, "to", 1.0);
  two("normal_", normal_, "mean", 0.0, "std", 1.0);
  two("cauchy_", cauchy_, "median", 0.0, "sigma", 1.0);
  two("log_normal_", log_normal_, "mean", 1.0, "std", 2.0);
  c.def(
      "exponential_",
      [](Tensor& x, double lambd, Generator* generator) {
        Unlocked lock(x);
        return exponential_(x, lambd, generator);
      },
      "lambd"_a = 1.0, nb::kw_only(), KILN_PY_GENERATOR);
  c.def(
      "geometric_",
      [](Tensor& x, double p, Generator* generator) {
        Unlocked lock(x);
        return geometric_(x, p, generator);
      },
      "p"_a, nb::kw_only(), KILN_PY_GENERATOR);
  c.def(
      "bernoulli_",
      [](Tensor& x, const Operand& p, Generator* generator) {
        Unlocked lock(x);
        return p.is_tensor() ? bernoulli_(x, p.tensor(), generator)
                             : bernoulli_(x, p.scalar().to_double(), generator);
      },
      "p"_a = 0.5, nb::kw_only(), KILN_PY_GENERATOR);
  c.def(
      "random_",
      [](Tensor& x, std::optional<int64_t> from, std::optional<int64_t> to, Generator* generator) {
        Unlocked lock(x);
        if (!from) return random_(x, generator);
        return to ? random_(x, *from, *to, generator) : random_(x, *from, generator);
      },
      "from_"_a = nb::none(), "to"_a = nb::none(), nb::kw_only(), KILN_PY_GENERATOR,
      "Whole numbers in [from, to), in [0, from), or all that the dtype holds from 0 on.");
}

}  // namespace

void bind_random(nb::module_& m, TensorClass& c) {
  bind_generators(m);
  bind_drawing(m, c);
  bind_filling(c);
}

}  // namespace kiln::python
