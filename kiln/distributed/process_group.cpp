#include "kiln/distributed/process_group.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "kiln/distributed/collectives.h"
#include "kiln/distributed/error.h"
#include "kiln/distributed/mailbox.h"
#include "kiln/distributed/task_queue.h"
#include "kiln/distributed/tcp_store.h"
#include "kiln/tensor/amp/autocast.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::distributed {

namespace {

std::string own_host(const Store& store, const ProcessGroupOptions& options) {
  if (options.host) return *options.host;
  if (const char* host = std::getenv("KILN_HOST"); host != nullptr && *host != '\0') return host;
  if (const auto* tcp = dynamic_cast<const TCPStore*>(&store)) return tcp->local_host();
  if (const auto* prefix = dynamic_cast<const PrefixStore*>(&store)) {
    return own_host(*prefix->underlying_store(), options);
  }
  return "127.0.0.1";
}

void check_like(const char* op, const Tensor& x, const Tensor& other, bool same_size) {
  if (!x.defined() || !other.defined()) throw_error<ValueError>(op, ": got an undefined tensor");
  if (x.dtype() != other.dtype()) {
    throw_error<DTypeError>(op, ": the tensors must have one dtype; got ", x.dtype(), " and ",
                            other.dtype());
  }
  if (same_size && x.numel() != other.numel()) {
    throw_error<ShapeError>(op, ": the tensors must have equally many elements; got ", x.shape(),
                            " and ", other.shape());
  }
}

void check_group(const Store* store, int rank, int size, const ProcessGroupOptions& options) {
  if (store == nullptr) throw_error<ValueError>("ProcessGroup: there is no store");
  if (size < 1 || rank < 0 || rank >= size) {
    throw_error<ValueError>("ProcessGroup: the rank must be in [0, size); got rank ", rank,
                            " and size ", size);
  }
  if (options.timeout.count() <= 0) {
    throw_error<ValueError>("ProcessGroup: the timeout must be positive; got ",
                            text_of(options.timeout));
  }
}

// Those of lists, in the order of ranks.
std::vector<HostBuffer> buffers_of(const char* op, std::span<const Tensor> tensors, bool reads) {
  std::vector<HostBuffer> out;
  out.reserve(tensors.size());
  for (const Tensor& x : tensors) out.emplace_back(op, x, reads);
  return out;
}

std::vector<std::span<std::byte>> spans_of(std::span<const HostBuffer> buffers) {
  std::vector<std::span<std::byte>> out;
  out.reserve(buffers.size());
  for (const HostBuffer& buffer : buffers) out.push_back(buffer.bytes());
  return out;
}

MessageHead message_head(const HostBuffer& values, int tag) {
  const Operation operation{OpKind::send, static_cast<uint32_t>(tag),
                            static_cast<uint32_t>(values.dtype())};
  return {operation, 0, values.bytes().size()};
}

}  // namespace

class ProcessGroup::Impl {
 public:
  Impl(std::shared_ptr<Store> store, int rank, int size, ProcessGroupOptions options)
      : store_(std::move(store)),
        options_(std::move(options)),
        timeout_(options_.timeout),
        rank_(rank),
        size_(size),
        mesh_(*store_, "mesh/" + options_.name, rank, size, own_host(*store_, options_),
              options_.timeout),
        mailbox_(Mesh(*store_, "mail/" + options_.name, rank, size, own_host(*store_, options_),
                      options_.timeout)) {}

  ~Impl() { mesh_.shut_down(); }

  // Runs `task` with what names the operation, in its turn. What it throws breaks the group.
  template <class Task>
  Work run(OpKind kind, DType dtype, ReduceOp reduce, int root, bool async_op, Task task) {
    const std::lock_guard lock(order_);
    const Operation operation{kind, ++count_, static_cast<uint32_t>(dtype),
                              static_cast<uint32_t>(reduce), static_cast<uint32_t>(root)};
    return queue_.run(
        [this, operation, task = std::move(task)] {
          check_whole(operation);
          try {
            const NoGradGuard no_grad;
            const amp::Autocast off(DType::bf16, false);
            task(Exchange{mesh_, operation, timeout_.load()});
          } catch (const std::exception& e) {
            break_up(e.what());
            throw;
          } catch (...) {
            break_up("an operation was interrupted");
            throw;
          }
        },
        async_op);
  }

  void check_root(const char* op, int root) const {
    if (root < 0 || root >= size_) {
      throw_error<ValueError>(op, ": the root must be in [0, ", size_, "); got ", root);
    }
  }
  void check_list(const char* op, const char* what, std::span<const Tensor> list) const {
    if (std::cmp_not_equal(list.size(), size_)) {
      throw_error<ValueError>(op, ": there must be one of the ", what, " for each of ", size_,
                              " processes; got ", list.size());
    }
  }
  void check_none(const char* op, const char* what, std::span<const Tensor> list, int root) const {
    if (!list.empty()) {
      throw_error<ValueError>(op, ": only the root gives ", what, "; got ", list.size(),
                              " of them at rank ", rank_, ", and the root ", root);
    }
  }
  void check_peer(const char* op, int peer) const {
    if (peer < 0 || peer >= size_ || peer == rank_) {
      throw_error<ValueError>(op, ": the other process must be in [0, ", size_,
                              ") and not this one, ", rank_, "; got ", peer);
    }
  }

  void break_up(const std::string& why) {
    {
      const std::lock_guard lock(broken_mutex_);
      if (broken_.empty()) broken_ = why;
    }
    mesh_.shut_down();
  }

  std::shared_ptr<Store> store_;
  ProcessGroupOptions options_;
  std::atomic<milliseconds> timeout_;
  int rank_;
  int size_;
  Mesh mesh_;
  Mailbox mailbox_;

 private:
  void check_whole(const Operation& operation) {
    const std::lock_guard lock(broken_mutex_);
    if (broken_.empty()) return;
    throw_error<DistBackendError>(name_of(operation.kind),
                                  ": the group is broken, and has to be made anew: ", broken_);
  }

  std::mutex order_;  // numbers are given out in the order of the queue
  uint32_t count_ = 0;
  std::mutex broken_mutex_;
  std::string broken_;  // why, or empty
  TaskQueue queue_;     // goes first: its tasks use what is above
};

ProcessGroup::ProcessGroup(std::shared_ptr<Store> store, int rank, int size,
                           ProcessGroupOptions options) {
  check_group(store.get(), rank, size, options);
  impl_ = std::make_unique<Impl>(std::move(store), rank, size, std::move(options));
}

ProcessGroup::~ProcessGroup() { impl_->mesh_.shut_down(); }

int ProcessGroup::rank() const { return impl_->rank_; }
int ProcessGroup::size() const { return impl_->size_; }
const std::string& ProcessGroup::name() const { return impl_->options_.name; }
const std::shared_ptr<Store>& ProcessGroup::store() const { return impl_->store_; }
milliseconds ProcessGroup::timeout() const { return impl_->timeout_.load(); }

void ProcessGroup::set_timeout(milliseconds timeout) {
  if (timeout.count() <= 0) {
    throw_error<ValueError>("set_timeout: the timeout must be positive; got ", text_of(timeout));
  }
  impl_->timeout_ = timeout;
}

void ProcessGroup::abort() { impl_->break_up("abort() was called"); }

Work ProcessGroup::all_reduce(const Tensor& x, ReduceOp op, bool async_op) {
  const HostBuffer buffer("all_reduce", x, true);
  const Reduction reduction("all_reduce", op, x.dtype());
  if (size() == 1) return {};
  return impl_->run(OpKind::all_reduce, x.dtype(), op, 0, async_op,
                    [buffer, reduction](const Exchange& by) {
                      distributed::all_reduce(by, buffer, reduction, -1);
                      buffer.written();
                    });
}

Work ProcessGroup::reduce(const Tensor& x, int root, ReduceOp op, bool async_op) {
  impl_->check_root("reduce", root);
  const HostBuffer buffer("reduce", x, true);
  const Reduction reduction("reduce", op, x.dtype());
  if (size() == 1) return {};
  return impl_->run(OpKind::reduce, x.dtype(), op, root, async_op,
                    [buffer, reduction, root](const Exchange& by) {
                      distributed::all_reduce(by, buffer, reduction, root);
                      if (by.mesh.rank() == root) buffer.written();
                    });
}

Work ProcessGroup::broadcast(const Tensor& x, int root, bool async_op) {
  impl_->check_root("broadcast", root);
  const HostBuffer buffer("broadcast", x, rank() == root);
  if (size() == 1) return {};
  return impl_->run(OpKind::broadcast, x.dtype(), ReduceOp::sum, root, async_op,
                    [buffer, root](const Exchange& by) {
                      distributed::broadcast(by, buffer.bytes(), root);
                      if (by.mesh.rank() != root) buffer.written();
                    });
}

Work ProcessGroup::all_gather(std::span<const Tensor> outputs, const Tensor& x, bool async_op) {
  impl_->check_list("all_gather", "outputs", outputs);
  for (const Tensor& output : outputs) check_like("all_gather", x, output, true);
  const HostBuffer from("all_gather", x, true);
  return impl_->run(OpKind::all_gather, x.dtype(), ReduceOp::sum, 0, async_op,
                    [from, to = buffers_of("all_gather", outputs, false)](const Exchange& by) {
                      const std::vector<std::span<std::byte>> inputs(to.size(), from.bytes());
                      distributed::all_to_all(by, spans_of(to), inputs);
                      for (const HostBuffer& buffer : to) buffer.written();
                    });
}

Work ProcessGroup::gather(std::span<const Tensor> outputs, const Tensor& x, int root,
                          bool async_op) {
  impl_->check_root("gather", root);
  if (rank() == root) {
    impl_->check_list("gather", "outputs", outputs);
    for (const Tensor& output : outputs) check_like("gather", x, output, true);
  } else {
    impl_->check_none("gather", "outputs", outputs, root);
  }
  const HostBuffer from("gather", x, true);
  return impl_->run(OpKind::gather, x.dtype(), ReduceOp::sum, root, async_op,
                    [from, root, to = buffers_of("gather", outputs, false)](const Exchange& by) {
                      distributed::gather(by, spans_of(to), from.bytes(), root);
                      for (const HostBuffer& buffer : to) buffer.written();
                    });
}

Work ProcessGroup::scatter(const Tensor& x, std::span<const Tensor> inputs, int root,
                           bool async_op) {
  impl_->check_root("scatter", root);
  if (rank() == root) {
    impl_->check_list("scatter", "inputs", inputs);
    for (const Tensor& input : inputs) check_like("scatter", x, input, true);
  } else {
    impl_->check_none("scatter", "inputs", inputs, root);
  }
  const HostBuffer to("scatter", x, false);
  return impl_->run(OpKind::scatter, x.dtype(), ReduceOp::sum, root, async_op,
                    [to, root, from = buffers_of("scatter", inputs, true)](const Exchange& by) {
                      distributed::scatter(by, to.bytes(), spans_of(from), root);
                      to.written();
                    });
}

Work ProcessGroup::reduce_scatter(const Tensor& output, std::span<const Tensor> inputs, ReduceOp op,
                                  bool async_op) {
  impl_->check_list("reduce_scatter", "inputs", inputs);
  for (const Tensor& input : inputs) check_like("reduce_scatter", output, input, true);
  const HostBuffer to("reduce_scatter", output, false);
  const Reduction reduction("reduce_scatter", op, output.dtype());
  return impl_->run(
      OpKind::reduce_scatter, output.dtype(), op, 0, async_op,
      [to, reduction, from = buffers_of("reduce_scatter", inputs, true)](const Exchange& by) {
        distributed::reduce_scatter(by, to, from, reduction);
        to.written();
      });
}

Work ProcessGroup::all_to_all(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                              bool async_op) {
  impl_->check_list("all_to_all", "outputs", outputs);
  impl_->check_list("all_to_all", "inputs", inputs);
  for (const Tensor& output : outputs) check_like("all_to_all", inputs[0], output, false);
  for (const Tensor& input : inputs) check_like("all_to_all", inputs[0], input, false);
  const auto own = static_cast<size_t>(rank());
  check_like("all_to_all", inputs[own], outputs[own], true);
  return impl_->run(OpKind::all_to_all, inputs[0].dtype(), ReduceOp::sum, 0, async_op,
                    [to = buffers_of("all_to_all", outputs, false),
                     from = buffers_of("all_to_all", inputs, true)](const Exchange& by) {
                      distributed::all_to_all(by, spans_of(to), spans_of(from));
                      for (const HostBuffer& buffer : to) buffer.written();
                    });
}

Work ProcessGroup::barrier(std::optional<milliseconds> timeout, bool async_op) {
  return impl_->run(OpKind::barrier, DType::f32, ReduceOp::sum, 0, async_op,
                    [timeout](const Exchange& by) {
                      distributed::barrier({by.mesh, by.operation, timeout.value_or(by.timeout)});
                    });
}

Work ProcessGroup::send(const Tensor& x, int peer, int tag) {
  impl_->check_peer("send", peer);
  HostBuffer values("send", x, true);
  auto state = std::make_shared<Work::State>();
  impl_->mailbox_.post(Mailbox::Send{peer, message_head(values, tag), std::move(values),
                                     impl_->timeout_.load(), state});
  return Work(std::move(state));
}

Work ProcessGroup::recv(const Tensor& x, std::optional<int> peer, int tag) {
  if (peer) impl_->check_peer("recv", *peer);
  if (size() == 1) throw_error<ValueError>("recv: there is no other process in the group");
  HostBuffer values("recv", x, false);
  auto state = std::make_shared<Work::State>();
  impl_->mailbox_.post(Mailbox::Receive{peer.value_or(-1), message_head(values, tag),
                                        std::move(values), impl_->timeout_.load(), state});
  return Work(std::move(state));
}

}  // namespace kiln::distributed
