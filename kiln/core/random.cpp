#include "kiln/core/random.h"

#include <mutex>
#include <unordered_map>

#include "kiln/core/error.h"
#include "kiln/core/fork.h"

namespace kiln {
namespace {

// One lock for all generators: it is held for a few instructions, and the class stays a plain
// copyable value. Never destroyed: threads may run when the process ends.
detail::ForkSafeMutex& generator_mutex() {
  static auto& mutex = *new detail::ForkSafeMutex(detail::ForkOrder::generators);
  return mutex;
}

// By id. With the lock held.
std::unordered_map<uint64_t, Generator*>& living() {
  static auto& generators = *new std::unordered_map<uint64_t, Generator*>;
  return generators;
}

}  // namespace

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  uint32_t c0 = static_cast<uint32_t>(counter_low);
  uint32_t c1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t c2 = static_cast<uint32_t>(counter_high);
  uint32_t c3 = static_cast<uint32_t>(counter_high >> 32);
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * c0;
    const uint64_t product1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(product0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

void Generator::add_locked() {
  static uint64_t last = 0;
  id_ = ++last;
  living().emplace(id_, this);
}

Generator::Generator(uint64_t seed) : seed_(seed) {
  std::lock_guard lock(generator_mutex());
  add_locked();
}

Generator::Generator(const Generator& other) {
  std::lock_guard lock(generator_mutex());
  seed_ = other.seed_;
  offset_ = other.offset_;
  add_locked();
}

Generator& Generator::operator=(const Generator& other) {
  std::lock_guard lock(generator_mutex());
  seed_ = other.seed_;
  offset_ = other.offset_;
  return *this;
}

Generator::~Generator() {
  std::lock_guard lock(generator_mutex());
  living().erase(id_);
}

std::vector<Generator::Known> Generator::all() {
  std::lock_guard lock(generator_mutex());
  std::vector<Known> known;
  for (const auto& [id, g] : living()) {
    known.push_back({id, {g->seed_, g->offset_, id}, g->seedings_});
  }
  return known;
}

std::optional<RandomStream> Generator::reserve_from(uint64_t id, int64_t numbers) {
  std::lock_guard lock(generator_mutex());
  const auto found = living().find(id);
  if (found == living().end()) return {};
  return found->second->reserve_locked(numbers);
}

void Generator::manual_seed(uint64_t seed) {
  std::lock_guard lock(generator_mutex());
  seed_ = seed;
  offset_ = 0;
  ++seedings_;
}

uint64_t Generator::seed() const {
  std::lock_guard lock(generator_mutex());
  return seed_;
}

RandomStream Generator::reserve(int64_t numbers) {
  if (numbers < 0) {
    throw_error<ValueError>("Generator::reserve: negative count; got ", numbers);
  }
  std::lock_guard lock(generator_mutex());
  return reserve_locked(numbers);
}

RandomStream Generator::reserve_locked(int64_t numbers) {
  const RandomStream stream{seed_, offset_, id_};
  offset_ += (static_cast<uint64_t>(numbers) + 3) / 4;
  return stream;
}

RandomStream Generator::state() const {
  std::lock_guard lock(generator_mutex());
  return {seed_, offset_, 0};
}

void Generator::set_state(RandomStream state) {
  std::lock_guard lock(generator_mutex());
  seed_ = state.seed;
  offset_ = state.offset;
}

Generator& default_generator() {
  static Generator generator;
  return generator;
}

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace kiln
