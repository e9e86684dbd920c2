// kiln.rl: replay buffers and the loops that train agents.
#include "parts.h"
#include "rl_environment.h"

namespace kiln::python {

namespace {

nb::dict dict_of(const nn::StateDict& state) {
  nb::dict out;
  for (const auto& [name, value] : state) out[name.c_str()] = value;
  return out;
}

nn::StateDict state_of(const nb::dict& dict) {
  nn::StateDict out;
  for (const auto& [name, value] : dict) {
    out.set(value_arg<std::string>("load_state_dict", name, "names"),
            tensor_arg("load_state_dict", value).detach());
  }
  return out;
}

nb::dict dict_of(const rl::Transitions& t) {
  nb::dict out;
  out["observation"] = t.observation;
  out["action"] = t.action;
  out["reward"] = t.reward;
  out["next_observation"] = t.next_observation;
  out["terminated"] = t.terminated;
  out["index"] = t.index;
  out["weight"] = t.weight;
  return out;
}

void bind_buffers(nb::module_& m) {
  nb::class_<rl::ReplayBuffer>(m, "ReplayBuffer",
                               "The latest transitions; all are as likely to be drawn.")
      .def(
          "__init__",
          [](rl::ReplayBuffer* self, int64_t capacity, const Shape& observation_shape,
             const Shape& action_shape, DType observation_dtype, DType action_dtype,
             uint64_t seed) {
            new (self) rl::ReplayBuffer(
                {capacity, observation_shape, action_shape, observation_dtype, action_dtype, seed});
          },
          "capacity"_a, "observation_shape"_a, "action_shape"_a = nb::tuple(), nb::kw_only(),
          "observation_dtype"_a = DType::f32, "action_dtype"_a = DType::i64, "seed"_a = 0)
      .def("add", &rl::ReplayBuffer::add, "observation"_a, "action"_a, "reward"_a,
           "next_observation"_a, "terminated"_a,
           "Transitions [N, ..], in the place of the oldest when it is full.")
      .def(
          "sample",
          [](rl::ReplayBuffer& self, int64_t count) { return dict_of(self.sample(count)); },
          "count"_a, "-> dict of [count, ..], with index and weight.")
      .def("__len__", &rl::ReplayBuffer::size)
      .def_prop_ro("capacity", &rl::ReplayBuffer::capacity)
      .def("state_dict", [](const rl::ReplayBuffer& self) { return dict_of(self.state_dict()); })
      .def(
          "load_state_dict",
          [](rl::ReplayBuffer& self, const nb::dict& state) {
            self.load_state_dict(state_of(state));
          },
          "state_dict"_a, "Goes on exactly as the buffer that gave it.");
  nb::class_<rl::PrioritizedReplayBuffer, rl::ReplayBuffer>(
      m, "PrioritizedReplayBuffer",
      "Transitions with large errors are likelier to be drawn (Schaul et al., 2016).")
      .def(
          "__init__",
          [](rl::PrioritizedReplayBuffer* self, int64_t capacity, const Shape& observation_shape,
             const Shape& action_shape, double alpha, double beta, double epsilon,
             DType observation_dtype, DType action_dtype, uint64_t seed) {
            new (self) rl::PrioritizedReplayBuffer(
                {capacity, observation_shape, action_shape, observation_dtype, action_dtype, seed},
                {alpha, beta, epsilon});
          },
          "capacity"_a, "observation_shape"_a, "action_shape"_a = nb::tuple(), nb::kw_only(),
          "alpha"_a = 0.6, "beta"_a = 0.4, "epsilon"_a = 1e-6, "observation_dtype"_a = DType::f32,
          "action_dtype"_a = DType::i64, "seed"_a = 0)
      .def("update_priorities", &rl::PrioritizedReplayBuffer::update_priorities, "index"_a,
           "error"_a)
      .def_prop_rw("beta", &rl::PrioritizedReplayBuffer::beta,
                   &rl::PrioritizedReplayBuffer::set_beta);
}

void bind_small(nb::module_& m) {
  nb::class_<rl::Epsilon>(m, "Epsilon", "How often an agent does anything at all, by steps.")
      .def(
          "__init__",
          [](rl::Epsilon* self, double start, double end, int64_t steps, bool exponential) {
            const rl::Epsilon made{start, end, steps, exponential};
            made.check();
            new (self) rl::Epsilon(made);
          },
          "start"_a = 1.0, "end"_a = 0.05, "steps"_a = 10000, "exponential"_a = false)
      .def("__call__", &rl::Epsilon::at, "step"_a);
  nb::class_<rl::Random>(m, "Random", "Random numbers of a seed and a stream.")
      .def(nb::init<uint64_t, uint64_t>(), "seed"_a = 0, "stream"_a = 0)
      .def("uniform", [](rl::Random& self) { return self.uniform(); });
  m.def("epsilon_greedy", &rl::epsilon_greedy, "values"_a, "epsilon"_a, "random"_a,
        "The best action of each row of values [N, A], or with probability epsilon any.");
  m.def("sample_categorical", &rl::sample_categorical, "logits"_a, "random"_a,
        "A choice of each row of logits [N, A].");
  m.def(
      "gae",
      [](const Tensor& reward, const Tensor& value, const Tensor& next_value,
         const Tensor& terminated, const Tensor& ended, double gamma, double lambda) {
        const auto [advantage, returns] =
            rl::gae(reward, value, next_value, terminated, ended, gamma, lambda);
        return nb::make_tuple(advantage, returns);
      },
      "reward"_a, "value"_a, "next_value"_a, "terminated"_a, "ended"_a, "gamma"_a = 0.99,
      "lambda_"_a = 0.95, "Generalized advantages and returns, [T, N] each.");
  using P = rl::Progress;
  nb::class_<P>(m, "Progress", "How far a training is.")
      .def_ro("steps", &P::steps)
      .def_ro("updates", &P::updates)
      .def_ro("episodes", &P::episodes)
      .def_ro("mean_return", &P::mean_return)
      .def_ro("mean_length", &P::mean_length)
      .def_ro("exploration", &P::exploration)
      .def_ro("loss", &P::loss)
      .def_ro("evaluation", &P::evaluation)
      .def_ro("solved", &P::solved)
      .def("__repr__", [](const P& p) {
        return concat("Progress(steps=", p.steps, ", updates=", p.updates,
                      ", episodes=", p.episodes, ", mean_return=", p.mean_return, ", loss=", p.loss,
                      ", evaluation=", p.evaluation, ")");
      });
}

// What Python calls compute. Loops hold the lock.
Tensor tensor_from_call(const char* what, nb::handle function, const Tensor& x) {
  return tensor_arg(what, nb::object(function(x)));
}

rl::Update update_of(nb::handle function) {
  return [function](const Tensor& loss) { function(loss); };
}

rl::ReportOptions report_of(int64_t every, int64_t episodes, double stop_return,
                            nb::handle on_progress) {
  return {every, episodes, stop_return, [on_progress](const rl::Progress& progress) {
            return !nb::object(on_progress(progress)).is(nb::handle(Py_False));
          }};
}

}  // namespace

void bind_rl_training(nb::module_& m) {
  m.def(
      "evaluate",
      [](nb::handle act, const rl::VectorEnvironment& environment) {
        return rl::evaluate([act](const Tensor& x) { return tensor_from_call("act", act, x); },
                            environment.fresh(environment.size(), 0));
      },
      "act"_a, "environment"_a,
      "The mean return of one episode in as many new environments, when act(observations) acts.");
  m.def("_train_dqn", [](nb::handle online, const std::vector<Tensor>& tensors, nb::handle target,
                         const std::vector<Tensor>& target_tensors, nb::handle update,
                         rl::VectorEnvironment& environment, int64_t steps, int64_t learning_starts,
                         int64_t capacity, int64_t batch_size, int64_t train_every, int64_t updates,
                         int64_t target_every, double tau, double gamma, bool double_dqn,
                         bool prioritized, double alpha, double beta, const rl::Epsilon& epsilon,
                         DType observation_dtype, uint64_t seed, int64_t every, int64_t episodes,
                         double stop_return, nb::handle on_progress) {
    const auto network = [](nb::handle f, const std::vector<Tensor>& list) {
      return rl::QNetwork{[f](const Tensor& x) { return tensor_from_call("network", f, x); }, list};
    };
    return rl::train_dqn(
        network(online, tensors), network(target, target_tensors), update_of(update), environment,
        {steps, learning_starts, capacity, batch_size, train_every, updates, target_every, tau,
         gamma, double_dqn, prioritized, rl::PriorityOptions{alpha, beta}, epsilon,
         observation_dtype, seed, report_of(every, episodes, stop_return, on_progress)});
  });
  m.def("_train_ppo",
        [](nb::handle forward, nb::handle log_std, nb::handle update,
           rl::VectorEnvironment& environment, int64_t steps, int64_t rollout, int64_t epochs,
           int64_t batch_size, double gamma, double lambda, double clip, double value_weight,
           double entropy_weight, bool normalize, uint64_t seed, int64_t every, int64_t episodes,
           double stop_return, nb::handle on_progress) {
          const rl::ActorCritic network{
              [forward](const Tensor& x) {
                const nb::object both = forward(x);
                if (!nb::isinstance<nb::tuple>(both) || nb::len(both) != 2) {
                  throw nb::type_error("train_ppo: the network gives (logits or means, values)");
                }
                return std::pair(tensor_arg("network", both[0]), tensor_arg("network", both[1]));
              },
              log_std.is(nb::handle(Py_False)) ? Tensor() : tensor_arg("train_ppo", log_std)};
          return rl::train_ppo(network, update_of(update), environment,
                               {steps, rollout, epochs, batch_size, gamma, lambda, clip,
                                value_weight, entropy_weight, normalize, seed,
                                report_of(every, episodes, stop_return, on_progress)});
        });
}

void bind_rl(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_rl", "Reinforcement learning.");
  bind_rl_environments(m);
  bind_buffers(m);
  bind_small(m);
  bind_rl_training(m);
}

}  // namespace kiln::python
