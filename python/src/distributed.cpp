// kiln.distributed: stores, groups of processes and their operations, as kiln/distributed has them.
// The classes that users see are Python's.
#include "kiln/distributed/distributed.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "binding.h"
#include "kiln/train/team.h"
#include "parts.h"
#include "tensor_lists.h"

namespace kiln::python {

namespace {

using namespace distributed;

// Seconds, which may be fractions.
milliseconds milliseconds_of(double seconds) {
  constexpr double kMost = 3e8;  // ten years
  if (!(seconds > 0)) {
    throw_error<ValueError>("distributed: the timeout must be positive; got ", seconds, " s");
  }
  return milliseconds(static_cast<int64_t>(std::ceil(std::min(seconds, kMost) * 1e3)));
}

std::optional<milliseconds> optional_milliseconds(std::optional<double> seconds) {
  return seconds ? std::optional(milliseconds_of(*seconds)) : std::nullopt;
}

double seconds_of(milliseconds timeout) { return static_cast<double>(timeout.count()) / 1e3; }

std::string bytes_of(const nb::bytes& value) { return {value.c_str(), value.size()}; }
nb::bytes bytes_of(const std::string& value) { return nb::bytes(value.data(), value.size()); }

// What Python objects hold. (Kiln's casters know no shared pointers.)
struct HeldStore {
  std::shared_ptr<Store> store;
};
// A group waits for its threads when it goes, without the lock: they may let go of what is
// Python's.
struct HeldGroup {
  explicit HeldGroup(std::shared_ptr<ProcessGroup> made) : group(std::move(made)) {}
  HeldGroup(HeldGroup&&) = default;
  HeldGroup& operator=(HeldGroup&&) = delete;
  ~HeldGroup() {
    if (group == nullptr) return;
    const Unlocked lock;
    group.reset();
  }
  std::shared_ptr<ProcessGroup> group;
};
struct HeldReducer {
  explicit HeldReducer(std::unique_ptr<GradientReducer> made) : reducer(std::move(made)) {}
  HeldReducer(HeldReducer&&) = default;
  HeldReducer& operator=(HeldReducer&&) = delete;
  ~HeldReducer() {
    if (reducer == nullptr) return;
    const Unlocked lock;
    reducer.reset();
  }
  std::unique_ptr<GradientReducer> reducer;
};

// hook(index, is_last, buffer, parameters) gives a function whose result is a tensor.
GradientHook gradient_hook(nb::object hook) {
  return [held = HeldObject(std::move(hook))](const GradientBucket& bucket) {
    const Locked lock;
    nb::list parameters;
    for (const Tensor& x : bucket.parameters) parameters.append(nb::cast(x));
    nb::object wait = held.get()(bucket.index, bucket.is_last, bucket.buffer, parameters);
    return [waits = HeldObject(std::move(wait))]() -> Tensor {
      const Locked in_call;
      return tensor_arg("a communication hook's result", waits.get()());
    };
  };
}

// What a signal's handler raises ends a wait, on threads that Python knows.
void check_signals() {
  if (!nb::is_alive() || !Py_IsInitialized() || PyGILState_GetThisThreadState() == nullptr) return;
  const Locked lock;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

ReduceOp reduce_op(const std::string& name) {
  for (uint32_t i = 0; i <= static_cast<uint32_t>(ReduceOp::bxor); ++i) {
    if (name == name_of(static_cast<ReduceOp>(i))) return static_cast<ReduceOp>(i);
  }
  throw_error<ValueError>("distributed: no such ReduceOp: ", name);
}

void bind_stores(nb::module_& m) {
  nb::class_<HeldStore>(m, "Store")
      .def_prop_ro("timeout",
                   [](const HeldStore& self) { return seconds_of(self.store->timeout()); })
      .def("set_timeout", [](HeldStore& self,
                             double seconds) { self.store->set_timeout(milliseconds_of(seconds)); })
      .def("set",
           [](HeldStore& self, const std::string& key, const nb::bytes& value) {
             const std::string bytes = bytes_of(value);
             const Unlocked lock;
             self.store->set(key, bytes);
           })
      .def("get",
           [](HeldStore& self, const std::string& key) {
             std::string value;
             {
               const Unlocked lock;
               value = self.store->get(key);
             }
             return bytes_of(value);
           })
      .def("add",
           [](HeldStore& self, const std::string& key, int64_t amount) {
             const Unlocked lock;
             return self.store->add(key, amount);
           })
      .def("append",
           [](HeldStore& self, const std::string& key, const nb::bytes& value) {
             const std::string bytes = bytes_of(value);
             const Unlocked lock;
             self.store->append(key, bytes);
           })
      .def("compare_set",
           [](HeldStore& self, const std::string& key, const nb::bytes& expected,
              const nb::bytes& desired) {
             const std::string before = bytes_of(expected);
             std::string value = bytes_of(desired);
             {
               const Unlocked lock;
               value = self.store->compare_set(key, before, value);
             }
             return bytes_of(value);
           })
      .def("check",
           [](HeldStore& self, const std::vector<std::string>& keys) {
             const Unlocked lock;
             return self.store->check(keys);
           })
      .def(
          "wait",
          [](HeldStore& self, const std::vector<std::string>& keys, std::optional<double> seconds) {
            const milliseconds timeout =
                optional_milliseconds(seconds).value_or(self.store->timeout());
            const Unlocked lock;
            self.store->wait(keys, timeout);
          })
      .def("delete_key",
           [](HeldStore& self, const std::string& key) {
             const Unlocked lock;
             return self.store->delete_key(key);
           })
      .def("num_keys", [](HeldStore& self) {
        const Unlocked lock;
        return self.store->num_keys();
      });
  // Made by functions: a constructor that waits may be interrupted.
  m.def("hash_store", [](double seconds) {
    return HeldStore{std::make_shared<HashStore>(milliseconds_of(seconds))};
  });
  m.def("file_store",
        [](const std::string& path, std::optional<int64_t> world_size, double seconds) {
          const milliseconds timeout = milliseconds_of(seconds);
          const Unlocked lock;
          return HeldStore{std::make_shared<FileStore>(path, world_size, timeout)};
        });
  m.def("prefix_store", [](const std::string& prefix, const HeldStore& held) {
    return HeldStore{std::make_shared<PrefixStore>(prefix, held.store)};
  });
  m.def("tcp_store",
        [](const std::string& host_name, uint16_t port, std::optional<int64_t> world_size,
           bool is_master, double seconds, bool wait_for_workers) {
          const TCPStoreOptions options{.host_name = host_name,
                                        .port = port,
                                        .world_size = world_size,
                                        .is_master = is_master,
                                        .timeout = milliseconds_of(seconds),
                                        .wait_for_workers = wait_for_workers};
          std::shared_ptr<TCPStore> store;
          {
            const Unlocked lock;
            store = std::make_shared<TCPStore>(options);
          }
          return nb::make_tuple(HeldStore{store}, store->port());
        });
}

void bind_work(nb::module_& m) {
  nb::class_<Work>(m, "Work")
      .def("is_completed", &Work::is_completed)
      .def("is_success", &Work::is_success)
      .def("source_rank", &Work::source_rank)
      .def("wait", [](const Work& self, std::optional<double> seconds) {
        const std::optional<milliseconds> timeout = optional_milliseconds(seconds);
        const Unlocked lock;
        self.wait(timeout);
      });
}

void bind_group(nb::module_& m) {
  nb::class_<HeldGroup>(m, "ProcessGroup")
      .def("rank", [](const HeldGroup& self) { return self.group->rank(); })
      .def("size", [](const HeldGroup& self) { return self.group->size(); })
      .def_prop_ro("timeout",
                   [](const HeldGroup& self) { return seconds_of(self.group->timeout()); })
      .def("set_timeout", [](HeldGroup& self,
                             double seconds) { self.group->set_timeout(milliseconds_of(seconds)); })
      .def("all_reduce",
           [](HeldGroup& self, const Tensor& x, const std::string& op, bool async_op) {
             const Unlocked lock;
             return self.group->all_reduce(x, reduce_op(op), async_op);
           })
      .def("reduce",
           [](HeldGroup& self, const Tensor& x, int root, const std::string& op, bool async_op) {
             const Unlocked lock;
             return self.group->reduce(x, root, reduce_op(op), async_op);
           })
      .def("broadcast",
           [](HeldGroup& self, const Tensor& x, int root, bool async_op) {
             const Unlocked lock;
             return self.group->broadcast(x, root, async_op);
           })
      .def("all_gather",
           [](HeldGroup& self, nb::handle outputs, const Tensor& x, bool async_op) {
             const TensorList to = python::tensors_of(outputs);
             const Unlocked lock;
             return self.group->all_gather(to, x, async_op);
           })
      .def("gather",
           [](HeldGroup& self, nb::handle outputs, const Tensor& x, int root, bool async_op) {
             const TensorList to = python::tensors_of(outputs);
             const Unlocked lock;
             return self.group->gather(to, x, root, async_op);
           })
      .def("scatter",
           [](HeldGroup& self, const Tensor& x, nb::handle inputs, int root, bool async_op) {
             const TensorList from = python::tensors_of(inputs);
             const Unlocked lock;
             return self.group->scatter(x, from, root, async_op);
           })
      .def("reduce_scatter",
           [](HeldGroup& self, const Tensor& output, nb::handle inputs, const std::string& op,
              bool async_op) {
             const TensorList from = python::tensors_of(inputs);
             const Unlocked lock;
             return self.group->reduce_scatter(output, from, reduce_op(op), async_op);
           })
      .def("all_to_all",
           [](HeldGroup& self, nb::handle outputs, nb::handle inputs, bool async_op) {
             const TensorList to = python::tensors_of(outputs);
             const TensorList from = python::tensors_of(inputs);
             const Unlocked lock;
             return self.group->all_to_all(to, from, async_op);
           })
      .def("barrier",
           [](HeldGroup& self, std::optional<double> seconds, bool async_op) {
             const std::optional<milliseconds> timeout = optional_milliseconds(seconds);
             const Unlocked lock;
             return self.group->barrier(timeout, async_op);
           })
      .def("send",
           [](HeldGroup& self, const Tensor& x, int peer, int tag) {
             const Unlocked lock;
             return self.group->send(x, peer, tag);
           })
      .def("recv",
           [](HeldGroup& self, const Tensor& x, std::optional<int> peer, int tag) {
             const Unlocked lock;
             return self.group->recv(x, peer, tag);
           })
      .def("abort", [](HeldGroup& self) { self.group->abort(); });
  m.def("process_group", [](const HeldStore& held, int rank, int size, const std::string& name,
                            double seconds, std::optional<std::string> host) {
    const ProcessGroupOptions options{name, milliseconds_of(seconds), std::move(host)};
    const Unlocked lock;
    return HeldGroup{std::make_shared<ProcessGroup>(held.store, rank, size, options)};
  });
}

// Operations with gradients.
void bind_differentiable(nb::module_& m) {
  m.def("all_reduce", [](const Tensor& x, const HeldGroup& held, const std::string& op) {
    const Unlocked lock;
    return differentiable::all_reduce(x, held.group, reduce_op(op));
  });
  m.def("reduce", [](const Tensor& x, int root, const HeldGroup& held, const std::string& op) {
    const Unlocked lock;
    return differentiable::reduce(x, root, held.group, reduce_op(op));
  });
  m.def("broadcast", [](const Tensor& x, int root, const HeldGroup& held) {
    const Unlocked lock;
    return differentiable::broadcast(x, root, held.group);
  });
  m.def("reduce_scatter", [](nb::handle inputs, const HeldGroup& held, const std::string& op) {
    const TensorList from = python::tensors_of(inputs);
    const Unlocked lock;
    return differentiable::reduce_scatter(from, held.group, reduce_op(op));
  });
  m.def("scatter", [](nb::handle inputs, int root, const HeldGroup& held) {
    const TensorList from = python::tensors_of(inputs);
    const Unlocked lock;
    return differentiable::scatter(from, root, held.group);
  });
  const auto unlocked = [](const auto& call) {
    TensorList out;
    {
      const Unlocked lock;
      out = call();
    }
    return nb::tuple(python::list_of(out));
  };
  m.def("all_gather", [unlocked](const Tensor& x, const HeldGroup& held) {
    return unlocked([&] { return differentiable::all_gather(x, held.group); });
  });
  m.def("gather", [unlocked](const Tensor& x, int root, const HeldGroup& held) {
    return unlocked([&] { return differentiable::gather(x, root, held.group); });
  });
  m.def("all_to_all",
        [unlocked](nb::handle inputs, const std::vector<Shape>& shapes, const HeldGroup& held) {
          const TensorList from = python::tensors_of(inputs);
          return unlocked([&] { return differentiable::all_to_all(from, shapes, held.group); });
        });
}

void bind_reducer(nb::module_& m) {
  nb::class_<HeldReducer>(m, "GradientReducer")
      .def("set_enabled",
           [](HeldReducer& self, bool enabled) { self.reducer->set_enabled(enabled); })
      .def("buckets", [](const HeldReducer& self) { return self.reducer->buckets(); })
      .def("set_hook", [](HeldReducer& self, nb::object exchange) {
        self.reducer->set_hook(gradient_hook(std::move(exchange)));
      });
  m.def("gradient_reducer", [](nb::handle parameters, const HeldGroup& held, double bucket_cap_mb) {
    return HeldReducer{std::make_unique<GradientReducer>(python::tensors_of(parameters), held.group,
                                                         bucket_cap_mb)};
  });
}

}  // namespace

void bind_distributed(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_distributed", "What kiln.distributed is made of.");
  set_interrupt_check(&check_signals);
  bind_stores(m);
  bind_work(m);
  bind_group(m);
  bind_differentiable(m);
  bind_reducer(m);
  m.def("batch_seed", &train::batch_seed);
  m.def("launch", [](const std::vector<std::string>& command, int processes, int nodes,
                     int node_rank, const std::string& master_host, uint16_t master_port,
                     int max_restarts, const std::string& log_folder) {
    const LaunchOptions options{processes,   nodes,        node_rank, master_host,
                                master_port, max_restarts, log_folder};
    const Unlocked lock;
    return launch(command, options);
  });
}

}  // namespace kiln::python
