// How much faster rows are on all threads than on one.
#pragma once

#include <vector>

#include "bench/runner.h"

namespace kiln::bench {

// Prints, for each row that is about multiply-adds and takes long enough for threads, its time on
// one thread and on all, taking turns; the peer's as well, which may be null. Returns what was
// measured: Kiln on all threads, with Kiln on one in the peer's place.
std::vector<Result> run_scaling(const std::vector<Row>& rows, const Peer* peer, const Peaks& peaks,
                                const Effort& effort);

}  // namespace kiln::bench
