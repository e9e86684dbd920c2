// ProcessGroup: processes that exchange tensors.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "kiln/distributed/message.h"
#include "kiln/distributed/store.h"
#include "kiln/distributed/work.h"
#include "kiln/tensor/tensor.h"

namespace kiln::distributed {

struct ProcessGroupOptions {
  // Groups over one store have different names.
  std::string name = "default";
  // How long an operation waits for another process.
  milliseconds timeout = std::chrono::minutes(30);
  // The name or number by which others reach this process. Default: what the variable KILN_HOST
  // says; without it the address by which it reaches the server of a TCPStore, "127.0.0.1" with
  // other stores.
  std::optional<std::string> host = {};
};

// The ranks of a group are 0 to size - 1. An operation is called by all of them, in the same order,
// with tensors of the same dtype and number of elements; who does something else gets an error that
// says what the other one did. Sums are taken in the order of ranks, so that they have the same
// bits in every process and every run.
//
// Operations write into tensors, without history. Tensors may be on any device, and lie in any
// order; values of devices other than the CPU go through host memory. With `async_op` they run on a
// thread of the group, one after the other, while the caller goes on: it leaves their tensors alone
// until wait().
//
// An operation that fails throws DistBackendError, when it is waited for, and breaks the group: the
// others get errors, too, and it has to be made anew. Arguments that are wrong in themselves throw
// at once, and break nothing.
class ProcessGroup {
 public:
  // All `size` processes make it, with the same store and name. Throws DistNetworkError and
  // DistStoreError when one does not come in time, ValueError for a rank outside [0, size).
  ProcessGroup(std::shared_ptr<Store> store, int rank, int size, ProcessGroupOptions options = {});
  // Ends what is under way.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const;
  int size() const;
  const std::string& name() const;
  const std::shared_ptr<Store>& store() const;
  milliseconds timeout() const;
  void set_timeout(milliseconds timeout);

  // x becomes the sum (or another joining) of all x. `avg` is the sum over size(): of floating
  // point numbers; `band`, `bor` and `bxor` are of integers and bools.
  Work all_reduce(const Tensor& x, ReduceOp op = ReduceOp::sum, bool async_op = false);
  // The same in the process `root` alone; others keep their x.
  Work reduce(const Tensor& x, int root, ReduceOp op = ReduceOp::sum, bool async_op = false);
  // All x become that of `root`.
  Work broadcast(const Tensor& x, int root, bool async_op = false);
  // outputs[r] becomes x of rank r: size() tensors with as many elements as x.
  Work all_gather(std::span<const Tensor> outputs, const Tensor& x, bool async_op = false);
  // The same in the process `root` alone; others give no outputs.
  Work gather(std::span<const Tensor> outputs, const Tensor& x, int root, bool async_op = false);
  // x becomes inputs[rank()] of the process `root`; others give no inputs.
  Work scatter(const Tensor& x, std::span<const Tensor> inputs, int root, bool async_op = false);
  // output becomes the sum of inputs[rank()] of all processes.
  Work reduce_scatter(const Tensor& output, std::span<const Tensor> inputs,
                      ReduceOp op = ReduceOp::sum, bool async_op = false);
  // outputs[r] becomes inputs[rank()] of rank r; sizes may differ from rank to rank.
  Work all_to_all(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                  bool async_op = false);
  // Ends when all processes have come. `timeout`: instead of the group's.
  Work barrier(std::optional<milliseconds> timeout = {}, bool async_op = false);

  // One process to another. Messages of one tag arrive in their order; those of different tags wait
  // for their recv(). A send ends when the bytes are on their way. Several may be under way at
  // once.
  Work send(const Tensor& x, int peer, int tag = 0);
  // `peer`: without it whoever sends first; Work::source_rank() says who it was.
  Work recv(const Tensor& x, std::optional<int> peer = {}, int tag = 0);

  // Breaks the group from any thread: what waits in any of its processes gets an error.
  void abort();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kiln::distributed
