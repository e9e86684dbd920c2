// The targets of a batch of sequences, whose lengths and labels are checked.
#pragma once

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/operand.h"

namespace kiln::cpu {

struct LatticeTargets {
  // `all_targets` [N, S], `all_ends` and `all_sizes` [N]: labels, and how many steps and labels
  // each sequence has.
  LatticeTargets(Arg<HostHandle> all_targets, Arg<HostHandle> all_ends, Arg<HostHandle> all_sizes)
      : targets(contiguous(all_targets.get())),
        ends(contiguous(all_ends.get())),
        sizes(contiguous(all_sizes.get())),
        longest(targets->shape()[1]) {}

  // Throws IndexError where a length does not fit its row or a label is none of `classes`. `op` and
  // `ends_name` name the function and its argument.
  void check(const char* op, const char* ends_name, int64_t least, int64_t steps,
             int64_t classes) const {
    const int64_t batch = ends->shape()[0];
    for (int64_t n = 0; n < batch; ++n) {
      check_one(op, ends_name, end(n), least, steps);
      check_one(op, "target_lengths", size(n), 0, longest);
      for (int64_t s = 0; s < size(n); ++s) {
        if (label(n, s) >= 0 && label(n, s) < classes) continue;
        throw_error<IndexError>(op, ": a target is no class; got ", label(n, s), "; expected 0 to ",
                                classes - 1);
      }
    }
  }

  int64_t end(int64_t n) const { return ends->data_as<const int64_t>()[n]; }
  int64_t size(int64_t n) const { return sizes->data_as<const int64_t>()[n]; }
  int64_t label(int64_t n, int64_t s) const {
    return targets->data_as<const int64_t>()[n * longest + s];
  }

  HostHandle targets, ends, sizes;
  int64_t longest;

 private:
  static void check_one(const char* op, const char* what, int64_t n, int64_t least, int64_t most) {
    if (n >= least && n <= most) return;
    throw_error<IndexError>(op, ": ", what, " are out of range; got ", n, "; expected ", least,
                            " to ", most);
  }
};

}  // namespace kiln::cpu
