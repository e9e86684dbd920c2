// The machine and process that the numbers belong to.
#pragma once

#include <string>
#include <vector>

namespace kiln::bench {

// "AMD EPYC 9654", or "unknown processor".
std::string processor_name();

// What script/bench loaded for the peer's sake, "MKL's path for AVX-512, jemalloc"; "" for nothing.
std::string peer_setup();

// How many programs have wanted to run at once, on average over the last minute; 0 when unknown.
double load_average();

// The OpenMP runtimes in this process, by path; see Note [One OpenMP runtime].
std::vector<std::string> openmp_runtimes();

}  // namespace kiln::bench
