// The operations of a group over memory, by messages of a mesh. Every process calls them in the
// same order.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kiln/distributed/host_buffer.h"
#include "kiln/distributed/mesh.h"
#include "kiln/distributed/reduction.h"

namespace kiln::distributed {

// What all of them need.
struct Exchange {
  Mesh& mesh;
  Operation operation;
  milliseconds timeout;

  void run(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) const {
    mesh.exchange(operation, outgoing, incoming, timeout);
  }
};

void barrier(const Exchange& by);
// `x` is reduced piece by piece: rank r joins piece r of all, and sends it to the others, or to
// `root` alone when that is not -1. So each process sends and receives about twice the bytes of x,
// however many they are.
void all_reduce(const Exchange& by, const HostBuffer& x, const Reduction& reduction, int root);
void broadcast(const Exchange& by, std::span<std::byte> x, int root);
// inputs[r] goes to rank r and outputs[r] comes from there; empty spans are not sent, where both
// sides know it.
void all_to_all(const Exchange& by, std::span<const std::span<std::byte>> outputs,
                std::span<const std::span<std::byte>> inputs);
// outputs[r] of `root` becomes what rank r gives; others have no outputs.
void gather(const Exchange& by, std::span<const std::span<std::byte>> outputs,
            std::span<std::byte> x, int root);
// x becomes inputs[rank] of `root`; others have no inputs.
void scatter(const Exchange& by, std::span<std::byte> x,
             std::span<const std::span<std::byte>> inputs, int root);
// The rows of inputs that other ranks give to this one are joined into output.
void reduce_scatter(const Exchange& by, const HostBuffer& output,
                    std::span<const HostBuffer> inputs, const Reduction& reduction);

}  // namespace kiln::distributed
