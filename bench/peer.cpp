#include "bench/peer.h"

#include <stdexcept>

#include <dlfcn.h>

namespace kiln::bench {
namespace {

class PeerWorkload final : public Workload {
 public:
  PeerWorkload(const KilnBenchPeer* api, void* row) : api_(api), row_(row) {}
  ~PeerWorkload() override { api_->destroy(row_); }

  void run(int64_t iterations) override {
    if (api_->run(row_, iterations) < 0) throw std::runtime_error(api_->error());
  }
  std::vector<float> check() override {
    std::vector<float> values(4096);
    const int64_t count = api_->check(row_, values.data(), static_cast<int64_t>(values.size()));
    if (count < 0) throw std::runtime_error(api_->error());
    values.resize(static_cast<size_t>(count) < values.size() ? static_cast<size_t>(count)
                                                             : values.size());
    return values;
  }

 private:
  const KilnBenchPeer* api_;
  void* row_;
};

}  // namespace

// Note [One OpenMP runtime]. The wheel brings a libgomp.so.1 of its own; Kiln's LAPACK and the
// floors use the system's. Two of them in one process would mean two more pools of threads beside
// Kiln's own on the same cores. The loader takes a library once for each soname: the system's has
// been loaded with the program, so the module's request for libgomp.so.1 finds that one. It only
// works with the peer loaded last, which is why nothing here links it. main() counts the runtimes
// afterwards and says so when there are two (a Kiln built with Clang uses libomp).
//
// The module is never unloaded: libtorch does not survive it.
Peer::Peer(const std::string& path) {
  // RTLD_LOCAL: both sides carry a oneDNN; neither may see the other's symbols.
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw std::runtime_error(std::string("peer: ") + dlerror());
  using Entry = const KilnBenchPeer* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(module, "kiln_bench_peer"));
  if (entry == nullptr) throw std::runtime_error("peer: " + path + " is no module of kiln_bench");
  api_ = entry();
  if (api_->version != kKilnBenchPeerVersion) {
    throw std::runtime_error("peer: " + path + " was built for another version of kiln_bench");
  }
}

std::unique_ptr<Workload> Peer::make(const std::string& row) const {
  void* made = api_->create(row.c_str());
  if (made != nullptr) return std::make_unique<PeerWorkload>(api_, made);
  const std::string error = api_->error();
  if (!error.empty()) throw std::runtime_error(error);
  return nullptr;
}

}  // namespace kiln::bench
