// kiln.rl: environments and what makes batches of them.
#include "rl_environment.h"

namespace kiln::python {

namespace {

using rl::Space;

// Numbers that an object holds, as many as expected; one stands for all.
std::vector<double> numbers_of(const char* what, nb::handle object, int64_t count) {
  const nb::object values =
      nb::module_::import_("kiln").attr("as_tensor")(object, nb::cast(DType::f64));
  std::vector<double> out = tensor_arg(what, values).detach().to_vector<double>();
  if (out.size() == 1 && count != 1) out.assign(static_cast<size_t>(count), out[0]);
  if (static_cast<int64_t>(out.size()) != count) {
    throw_error<ShapeError>(what, ": expected ", count, " numbers; got ", out.size());
  }
  return out;
}

// An environment written in Python. All calls come from functions that hold the lock.
class PythonEnvironment : public rl::Environment {
 public:
  explicit PythonEnvironment(nb::object object)
      : object_(object),
        observation_space_(space_of(object.attr("observation_space"))),
        action_space_(space_of(object.attr("action_space"))) {}

  Space observation_space() const override { return observation_space_; }
  Space action_space() const override { return action_space_; }

 protected:
  void reset_state(std::span<float> observation) override {
    // The first episode gets a seed, as Gymnasium has it; the others go on from there.
    nb::dict seed;
    if (!std::exchange(seeded_, true)) seed["seed"] = random().bits();
    nb::object first = object_.get().attr("reset")(**seed);
    if (nb::isinstance<nb::tuple>(first) && nb::len(first) == 2) first = first[0];
    write(first, observation);
  }

  rl::Outcome step_state(std::span<const double> action, std::span<float> observation) override {
    nb::object given;
    if (action_space_.is_discrete()) {
      given = nb::int_(static_cast<int64_t>(action[0]));
    } else {
      given = nb::cast(from_vector(std::vector<double>(action.begin(), action.end()),
                                   action_space_.shape, {.dtype = f32}));
    }
    const nb::object result = object_.get().attr("step")(given);
    if (!nb::isinstance<nb::tuple>(result) || (nb::len(result) != 4 && nb::len(result) != 5)) {
      throw nb::type_error(
          "step: an environment's step gives (observation, reward, terminated, truncated) or that "
          "and a dict");
    }
    write(result[0], observation);
    const auto is_true = [](nb::object x) {
      const int truth = PyObject_IsTrue(x.ptr());
      if (truth < 0) nb::raise_python_error();
      return truth == 1;
    };
    return {.reward = numbers_of("reward", result[1], 1)[0],
            .terminated = is_true(result[2]),
            .truncated = is_true(result[3])};
  }

 private:
  void write(nb::handle from, std::span<float> observation) const {
    const auto values = numbers_of("observation", from, static_cast<int64_t>(observation.size()));
    for (size_t i = 0; i < values.size(); ++i) observation[i] = static_cast<float>(values[i]);
  }

  HeldObject object_;
  Space observation_space_;
  Space action_space_;
  bool seeded_ = false;
};

Shape observation_shape(const Space& space) { return space.is_discrete() ? Shape{1} : space.shape; }

nb::object limits(const Space& space, const std::vector<double>& values) {
  if (space.is_discrete()) return nb::none();
  return nb::cast(from_vector(values, space.shape, {.dtype = f32}));
}

std::string text_of_space(const Space& space) {
  return space.is_discrete() ? concat("Discrete(", space.n, ")") : concat("Box", space.shape);
}

struct CartPoleBox : EnvironmentBox {};
struct PendulumBox : EnvironmentBox {};
struct GridWorldBox : EnvironmentBox {};

template <class Box, class E>
void bind_numbers(nb::class_<Box, EnvironmentBox>& c) {
  c.def_prop_rw(
      "state", [](Box& self) { return static_cast<E&>(*self.environment).state(); },
      [](Box& self, const std::vector<double>& state) {
        static_cast<E&>(*self.environment).set_state(state);
      },
      "The numbers that the state consists of. Setting it begins an episode there.");
}

rl::Cell cell_of(nb::handle object) {
  const auto pair = value_arg<std::vector<int64_t>>("GridWorld", object, "(row, column)");
  if (pair.size() != 2) throw nb::type_error("GridWorld: expected (row, column)");
  return {pair[0], pair[1]};
}

std::vector<rl::Cell> cells_of(nb::handle object) {
  std::vector<rl::Cell> out;
  for (nb::handle cell : nb::list(nb::borrow(object))) out.push_back(cell_of(cell));
  return out;
}

nb::dict dict_of(const rl::VectorStep& step) {
  nb::dict out;
  out["observation"] = step.observation;
  out["reward"] = step.reward;
  out["terminated"] = step.terminated;
  out["truncated"] = step.truncated;
  out["final_observation"] = step.final_observation;
  nb::list episodes;
  for (const rl::Episode& episode : step.episodes) {
    episodes.append(nb::make_tuple(episode.total_reward, episode.length));
  }
  out["episodes"] = episodes;
  return out;
}

void bind_space(nb::module_& m) {
  nb::class_<Space>(m, "Space", "What an observation or an action can be.")
      .def_prop_ro("n",
                   [](const Space& self) -> nb::object {
                     return self.is_discrete() ? nb::object(nb::int_(self.n)) : nb::none();
                   })
      .def_prop_ro(
          "shape",
          [](const Space& self) { return size_object(self.is_discrete() ? Shape{} : self.shape); })
      .def_prop_ro("low", [](const Space& self) { return limits(self, self.low); })
      .def_prop_ro("high", [](const Space& self) { return limits(self, self.high); })
      .def("__repr__", [](const Space& self) { return text_of_space(self); });
  m.def("Discrete", &Space::discrete, "n"_a, "One of n choices, 0 to n - 1.");
  m.def(
      "Box",
      [](nb::handle low, nb::handle high, const Shape& shape) {
        // A tensor that exists bounds what the limits take.
        const int64_t count = empty(shape, {.dtype = f64}).numel();
        return Space::box(shape, numbers_of("Box", low, count), numbers_of("Box", high, count));
      },
      "low"_a, "high"_a, "shape"_a, "Numbers of a shape from low to high.");
}

void bind_kinds(nb::module_& m) {
  nb::class_<EnvironmentBox>(m, "BuiltinEnvironment", "An environment of Kiln's own.")
      .def_prop_ro("observation_space",
                   [](EnvironmentBox& self) { return self.environment->observation_space(); })
      .def_prop_ro("action_space",
                   [](EnvironmentBox& self) { return self.environment->action_space(); })
      .def_prop_ro("time_limit",
                   [](EnvironmentBox& self) { return self.environment->time_limit(); })
      .def(
          "reset",
          [](EnvironmentBox& self, std::optional<uint64_t> seed) {
            const Tensor out =
                empty(observation_shape(self.environment->observation_space()), {.dtype = f32});
            self.environment->reset({out.data_ptr<float>(), static_cast<size_t>(out.numel())},
                                    seed);
            return nb::make_tuple(out, nb::dict());
          },
          "seed"_a = nb::none(), "Begins an episode -> (observation, {}).")
      .def(
          "step",
          [](EnvironmentBox& self, nb::handle action) {
            rl::Environment& e = *self.environment;
            const auto actions = numbers_of("step", action, e.action_space().numel());
            const Tensor out = empty(observation_shape(e.observation_space()), {.dtype = f32});
            const rl::Outcome outcome =
                e.step(actions, {out.data_ptr<float>(), static_cast<size_t>(out.numel())});
            return nb::make_tuple(out, outcome.reward, outcome.terminated, outcome.truncated,
                                  nb::dict());
          },
          "action"_a, "-> (observation, reward, terminated, truncated, {}).");
  nb::class_<CartPoleBox, EnvironmentBox> cart(
      m, "CartPole", "A cart balances a pole: Gymnasium's CartPole-v1, of Kiln's own.");
  cart.def(
      "__init__",
      [](CartPoleBox* self, int64_t limit) {
        new (self) CartPoleBox{{std::make_shared<rl::CartPole>(limit)}};
      },
      "time_limit"_a = 500);
  bind_numbers<CartPoleBox, rl::CartPole>(cart);
  nb::class_<PendulumBox, EnvironmentBox> pendulum(
      m, "Pendulum", "Swing a pendulum up: Gymnasium's Pendulum-v1, of Kiln's own.");
  pendulum.def(
      "__init__",
      [](PendulumBox* self, int64_t limit) {
        new (self) PendulumBox{{std::make_shared<rl::Pendulum>(limit)}};
      },
      "time_limit"_a = 200);
  bind_numbers<PendulumBox, rl::Pendulum>(pendulum);
  nb::class_<GridWorldBox, EnvironmentBox>(m, "GridWorld", "A walk to a goal, past walls and pits.")
      .def(
          "__init__",
          [](GridWorldBox* self, int64_t rows, int64_t columns, nb::handle start, nb::handle goal,
             nb::handle walls, nb::handle pits, double step_reward, double goal_reward,
             double pit_reward, double slip, int64_t time_limit) {
            auto made = std::make_shared<rl::GridWorld>(rl::GridWorldOptions{
                rows, columns, cell_of(start), cell_of(goal), cells_of(walls), cells_of(pits),
                step_reward, goal_reward, pit_reward, slip, time_limit});
            new (self) GridWorldBox{{std::move(made)}};
          },
          "rows"_a = 4, "columns"_a = 4, nb::kw_only(), "start"_a = nb::make_tuple(0, 0),
          "goal"_a = nb::make_tuple(-1, -1), "walls"_a = nb::tuple(), "pits"_a = nb::tuple(),
          "step_reward"_a = -0.01, "goal_reward"_a = 1.0, "pit_reward"_a = -1.0, "slip"_a = 0.0,
          "time_limit"_a = 100)
      .def_prop_rw(
          "cell",
          [](GridWorldBox& self) {
            const rl::Cell cell = static_cast<rl::GridWorld&>(*self.environment).cell();
            return nb::make_tuple(cell.first, cell.second);
          },
          [](GridWorldBox& self, nb::handle cell) {
            static_cast<rl::GridWorld&>(*self.environment).set_cell(cell_of(cell));
          },
          "Where the agent is. Setting it begins an episode there.");
}

}  // namespace

Space space_of(nb::handle object) {
  if (nb::isinstance<Space>(object)) return nb::cast<Space>(object);
  if (nb::hasattr(object, "n") && !nb::object(object.attr("n")).is_none()) {
    return Space::discrete(value_arg<int64_t>("space", object.attr("n"), "a number of choices"));
  }
  if (!nb::hasattr(object, "shape") || !nb::hasattr(object, "low") ||
      !nb::hasattr(object, "high")) {
    throw nb::type_error("space: expected kiln.rl.Discrete, kiln.rl.Box or Gymnasium's");
  }
  const auto shape =
      value_arg<std::vector<int64_t>>("space", nb::list(object.attr("shape")), "a list of sizes");
  const int64_t count = empty(Shape(shape), {.dtype = f64}).numel();
  return Space::box(Shape(shape), numbers_of("space", object.attr("low"), count),
                    numbers_of("space", object.attr("high"), count));
}

std::shared_ptr<rl::Environment> environment_of(nb::object object) {
  if (nb::isinstance<EnvironmentBox>(object)) {
    return nb::cast<EnvironmentBox&>(object).environment;
  }
  return std::make_shared<PythonEnvironment>(std::move(object));
}

void bind_rl_environments(nb::module_& m) {
  bind_space(m);
  bind_kinds(m);
  nb::class_<rl::VectorEnvironment>(
      m, "VectorEnvironment",
      "count environments that make() gives, which step together. What ends begins anew.")
      .def(
          "__init__",
          [](rl::VectorEnvironment* self, nb::object make, int64_t count, uint64_t seed) {
            const HeldObject held(std::move(make));
            new (self) rl::VectorEnvironment(
                [held] { return environment_of(nb::object(held.get()())); }, count, seed);
          },
          "make"_a, "count"_a, "seed"_a = 0)
      .def_prop_ro("observation_space", &rl::VectorEnvironment::observation_space,
                   nb::rv_policy::copy)
      .def_prop_ro("action_space", &rl::VectorEnvironment::action_space, nb::rv_policy::copy)
      .def_prop_ro("observation", &rl::VectorEnvironment::observation,
                   "What the next actions are for, [N, ..].")
      .def("__len__", &rl::VectorEnvironment::size)
      .def("reset", &rl::VectorEnvironment::reset, "New episodes everywhere -> observations.")
      .def("fresh", &rl::VectorEnvironment::fresh, "count"_a, "seed"_a = 0,
           "Others of the same kind.")
      .def(
          "step",
          [](rl::VectorEnvironment& self, const Tensor& action) {
            return dict_of(self.step(action));
          },
          "action"_a,
          "-> dict of observation, reward, terminated, truncated, final_observation (of episodes "
          "that ended), and episodes: (return, length) of those.");
}

}  // namespace kiln::python
