#include "kiln/distributed/environment.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

#include "kiln/core/error.h"
#include "kiln/distributed/tcp_store.h"

namespace kiln::distributed {

namespace {

constexpr std::array kRank{"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
constexpr std::array kSize{"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"};
constexpr std::array kLocalRank{"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                "SLURM_LOCALID"};

template <size_t N>
const char* first_set(const std::array<const char*, N>& names) {
  for (const char* name : names) {
    const bool is_slurm = std::string_view(name).starts_with("SLURM_");
    // The script of a batch job has Slurm's variables, too: what is to be a group has a place to
    // meet.
    if (is_slurm && std::getenv("MASTER_ADDR") == nullptr) continue;
    if (const char* text = std::getenv(name); text != nullptr && *text != '\0') return name;
  }
  return nullptr;
}

int number_of(const char* name, int least, int most) {
  const char* const text = std::getenv(name);
  int number = 0;
  const auto parsed = std::from_chars(text, text + std::strlen(text), number);
  if (parsed.ec != std::errc() || *parsed.ptr != '\0' || number < least || number > most) {
    throw_error<ValueError>("the variable ", name, " must be a number in [", least, ", ", most,
                            "]; got '", text, "'");
  }
  return number;
}

[[noreturn]] void throw_missing(const char* name) {
  throw_error<ValueError>("the variable ", name,
                          " is not set; expected a process of `kiln launch`, torchrun, mpirun or "
                          "srun, or a store with rank and size");
}

}  // namespace

bool is_launched() { return first_set(kRank) != nullptr && first_set(kSize) != nullptr; }

Environment environment() {
  Environment out;
  const char* const rank = first_set(kRank);
  const char* const size = first_set(kSize);
  if (rank == nullptr) throw_missing("RANK");
  if (size == nullptr) throw_missing("WORLD_SIZE");
  out.world_size = number_of(size, 1, 1 << 20);
  out.rank = number_of(rank, 0, out.world_size - 1);
  const char* const local = first_set(kLocalRank);
  out.local_rank = local == nullptr ? 0 : number_of(local, 0, 1 << 20);
  const char* const host = std::getenv("MASTER_ADDR");
  const char* const port = std::getenv("MASTER_PORT");
  if (host == nullptr || *host == '\0') throw_missing("MASTER_ADDR");
  if (port == nullptr || *port == '\0') throw_missing("MASTER_PORT");
  out.master_host = host;
  out.master_port = static_cast<uint16_t>(number_of("MASTER_PORT", 1, 65535));
  return out;
}

std::shared_ptr<ProcessGroup> init_process_group(const InitOptions& options) {
  if (options.allow_alone && !is_launched()) {
    return std::make_shared<ProcessGroup>(std::make_shared<HashStore>(), 0, 1);
  }
  const Environment e = environment();
  // One for all groups: a server that ended for the next one would be taken for that one.
  static std::mutex mutex;
  static std::shared_ptr<TCPStore> store;
  static int made = 0;
  const std::lock_guard lock(mutex);
  if (store == nullptr) {
    store = std::make_shared<TCPStore>(TCPStoreOptions{.host_name = e.master_host,
                                                       .port = e.master_port,
                                                       .world_size = e.world_size,
                                                       .is_master = e.rank == 0,
                                                       .timeout = options.timeout});
  }
  return std::make_shared<ProcessGroup>(
      store, e.rank, e.world_size,
      ProcessGroupOptions{.name = concat("world", ++made), .timeout = options.timeout});
}

}  // namespace kiln::distributed
