#include "kiln/distributed/collectives.h"

#include <algorithm>
#include <cstring>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"

namespace kiln::distributed {

namespace {

// Bytes of one piece: what comes is still in the cache when it is joined. Smaller tensors go to
// everybody at once, in one message.
constexpr int64_t kPiece = 256 << 10;
constexpr int64_t kSmall = 16 << 10;

// A part of a tensor that is cut among the ranks.
struct Chunk {
  int64_t begin;
  int64_t end;
  int size;

  int64_t piece_begin(int rank) const { return begin + (end - begin) * rank / size; }
  int64_t piece_end(int rank) const { return piece_begin(rank + 1); }
};

// Room for what other ranks send of a piece.
HostBuffer room(const Exchange& by, DType dtype, int64_t numel) {
  return {"all_reduce", empty({by.mesh.size() * numel}, {dtype}), false};
}

// Rows of all ranks in their order: this one's, and those in a room of `width` elements each.
std::vector<Tensor> rows(const Exchange& by, const HostBuffer& own, int64_t begin, int64_t end,
                         const HostBuffer& room, int64_t width, const Reduction& reduction) {
  std::vector<Tensor> out;
  for (int rank = 0; rank < by.mesh.size(); ++rank) {
    const bool is_own = rank == by.mesh.rank();
    const HostBuffer& from = is_own ? own : room;
    const int64_t at = is_own ? begin : rank * width;
    out.push_back(from.view(at, at + end - begin, reduction.dtype(), reduction.parts()));
  }
  return out;
}

// In one message to each: no process waits twice.
void all_reduce_small(const Exchange& by, const HostBuffer& x, const Reduction& reduction,
                      int root) {
  const int own = by.mesh.rank();
  const HostBuffer others = room(by, x.dtype(), x.numel());
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (int peer = 0; peer < by.mesh.size(); ++peer) {
    if (peer == own) continue;
    if (root == -1 || root == peer) out.push_back({peer, x.bytes()});
    if (root == -1 || root == own) {
      in.push_back({peer, others.bytes(peer * x.numel(), (peer + 1) * x.numel())});
    }
  }
  by.run(out, in);
  if (root != -1 && root != own) return;
  std::vector<Tensor> all = rows(by, x, 0, x.numel(), others, x.numel(), reduction);
  reduction.join(all, static_cast<size_t>(own));
}

}  // namespace

void barrier(const Exchange& by) {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (int peer = 0; peer < by.mesh.size(); ++peer) {
    if (peer == by.mesh.rank()) continue;
    out.push_back({peer, {}});
    in.push_back({peer, {}});
  }
  by.run(out, in);
}

void all_reduce(const Exchange& by, const HostBuffer& x, const Reduction& reduction, int root) {
  const int size = by.mesh.size();
  const int own = by.mesh.rank();
  const auto element = static_cast<int64_t>(size_of(x.dtype()));
  if (x.numel() * element <= kSmall) {
    all_reduce_small(by, x, reduction, root);
    return;
  }
  const int64_t piece = kPiece / element;
  const int64_t step = piece * size;
  const HostBuffer others = room(by, x.dtype(), piece);
  // The joined piece: in x, or beside it where x must stay.
  const bool keeps = root != -1 && root != own;
  const HostBuffer joined = keeps ? room(by, x.dtype(), piece) : HostBuffer();
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  // Joined pieces of one chunk travel together with raw pieces of the next.
  const auto send_joined = [&](const Chunk& c) {
    const int64_t begin = c.piece_begin(own);
    const int64_t end = c.piece_end(own);
    const std::span<std::byte> bytes = keeps ? joined.bytes(0, end - begin) : x.bytes(begin, end);
    for (int peer = 0; peer < size; ++peer) {
      if (peer == own) continue;
      if (root == -1 || root == peer) out.push_back({peer, bytes, 1});
      if (root == -1 || root == own) {
        in.push_back({peer, x.bytes(c.piece_begin(peer), c.piece_end(peer)), 1});
      }
    }
  };
  const auto send_raw = [&](const Chunk& c) {
    const int64_t width = c.piece_end(own) - c.piece_begin(own);
    for (int peer = 0; peer < size; ++peer) {
      if (peer == own) continue;
      out.push_back({peer, x.bytes(c.piece_begin(peer), c.piece_end(peer)), 0});
      in.push_back({peer, others.bytes(peer * piece, peer * piece + width), 0});
    }
  };
  const auto join = [&](const Chunk& c) {
    const int64_t begin = c.piece_begin(own);
    const int64_t end = c.piece_end(own);
    if (keeps) std::ranges::copy(x.bytes(begin, end), joined.bytes().begin());
    const HostBuffer& mine = keeps ? joined : x;
    const int64_t at = keeps ? 0 : begin;
    std::vector<Tensor> all = rows(by, mine, at, at + end - begin, others, piece, reduction);
    reduction.join(all, static_cast<size_t>(own));
  };
  for (int64_t begin = 0;; begin += step) {
    const bool is_over = begin >= x.numel();
    const Chunk next{begin, std::min(begin + step, x.numel()), size};
    out.clear();
    in.clear();
    if (begin > 0) send_joined({begin - step, std::min(begin, x.numel()), size});
    if (!is_over) send_raw(next);
    by.run(out, in);
    if (is_over) return;
    join(next);
  }
}

void broadcast(const Exchange& by, std::span<std::byte> x, int root) {
  const int size = by.mesh.size();
  const int own = by.mesh.rank();
  const auto total = static_cast<int64_t>(x.size());
  const auto part = [&](int64_t begin, int64_t end) {
    return x.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  };
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  if (size == 2 || total <= kSmall) {
    for (int peer = 0; peer < size; ++peer) {
      if (peer == own) continue;
      if (own == root) out.push_back({peer, x});
      if (peer == root) in.push_back({peer, x});
    }
    by.run(out, in);
    return;
  }
  // The root gives each rank a piece, which that rank gives to the others: the root sends little
  // more than the bytes of x.
  const int64_t step = kPiece * size;
  for (int64_t begin = 0; begin < total; begin += step) {
    const Chunk c{begin, std::min(begin + step, total), size};
    const auto piece = [&](int rank) { return part(c.piece_begin(rank), c.piece_end(rank)); };
    out.clear();
    in.clear();
    if (own == root) {
      for (int peer = 0; peer < size; ++peer) {
        if (peer == own) continue;
        out.push_back({peer, piece(peer), 0});
        out.push_back({peer, piece(root), 1});
      }
      by.run(out, in);
      continue;
    }
    in.push_back({root, piece(own), 0});
    in.push_back({root, piece(root), 1});
    by.run(out, in);
    in.clear();
    for (int peer = 0; peer < size; ++peer) {
      if (peer == own || peer == root) continue;
      out.push_back({peer, piece(own), 2});
      in.push_back({peer, piece(peer), 2});
    }
    by.run(out, in);
  }
}

void all_to_all(const Exchange& by, std::span<const std::span<std::byte>> outputs,
                std::span<const std::span<std::byte>> inputs) {
  const auto own = static_cast<size_t>(by.mesh.rank());
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (size_t peer = 0; peer < std::max(outputs.size(), inputs.size()); ++peer) {
    if (peer == own) continue;
    if (peer < inputs.size()) out.push_back({static_cast<int>(peer), inputs[peer]});
    if (peer < outputs.size()) in.push_back({static_cast<int>(peer), outputs[peer]});
  }
  by.run(out, in);
  if (own < inputs.size() && own < outputs.size() && inputs[own].data() != outputs[own].data() &&
      !inputs[own].empty()) {
    std::memmove(outputs[own].data(), inputs[own].data(), inputs[own].size());
  }
}

void gather(const Exchange& by, std::span<const std::span<std::byte>> outputs,
            std::span<std::byte> x, int root) {
  if (by.mesh.rank() != root) {
    const Outgoing own{root, x};
    by.run({&own, 1}, {});
    return;
  }
  std::vector<Incoming> in;
  for (int peer = 0; peer < by.mesh.size(); ++peer) {
    const std::span<std::byte> to = outputs[static_cast<size_t>(peer)];
    if (peer == root) {
      std::ranges::copy(x, to.begin());
    } else {
      in.push_back({peer, to});
    }
  }
  by.run({}, in);
}

void scatter(const Exchange& by, std::span<std::byte> x,
             std::span<const std::span<std::byte>> inputs, int root) {
  if (by.mesh.rank() != root) {
    const Incoming own{root, x};
    by.run({}, {&own, 1});
    return;
  }
  std::vector<Outgoing> out;
  for (int peer = 0; peer < by.mesh.size(); ++peer) {
    const std::span<std::byte> from = inputs[static_cast<size_t>(peer)];
    if (peer == root) {
      std::ranges::copy(from, x.begin());
    } else {
      out.push_back({peer, from});
    }
  }
  by.run(out, {});
}

void reduce_scatter(const Exchange& by, const HostBuffer& output,
                    std::span<const HostBuffer> inputs, const Reduction& reduction) {
  const int size = by.mesh.size();
  const int own = by.mesh.rank();
  const int64_t piece =
      std::max<int64_t>(kPiece / static_cast<int64_t>(size_of(output.dtype())), 1);
  const HostBuffer others = room(by, output.dtype(), std::min(piece, output.numel()));
  const int64_t width = std::min(piece, output.numel());
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (int64_t begin = 0; begin < output.numel(); begin += piece) {
    const int64_t end = std::min(begin + piece, output.numel());
    out.clear();
    in.clear();
    for (int peer = 0; peer < size; ++peer) {
      if (peer == own) continue;
      out.push_back({peer, inputs[static_cast<size_t>(peer)].bytes(begin, end)});
      in.push_back({peer, others.bytes(peer * width, peer * width + end - begin)});
    }
    by.run(out, in);
    const std::span<std::byte> from = inputs[static_cast<size_t>(own)].bytes(begin, end);
    const std::span<std::byte> to = output.bytes(begin, end);
    if (from.data() != to.data()) std::memmove(to.data(), from.data(), from.size());
    std::vector<Tensor> all = rows(by, output, begin, end, others, width, reduction);
    reduction.join(all, static_cast<size_t>(own));
  }
}

}  // namespace kiln::distributed
