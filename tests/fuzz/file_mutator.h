// Damage to files, also inside of what is compressed.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace kiln::fuzz {

class FileMutator {
 public:
  explicit FileMutator(uint64_t seed) : random_(seed) {}

  size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(random_() % n); }
  bool chance(size_t percent) { return below(100) < percent; }

  // `bytes` with a few changes; parts of `other` may come into it. Zip and gzip files are taken
  // apart, changed inside and put together again, so that what is inside is read. One change in a
  // few repeats a part up to a million times: a bomb.
  std::string mutated(const std::string& bytes, const std::string& other);

 private:
  std::string edited(std::string bytes, const std::string& other);
  void edit_number(std::string& bytes);
  void edit_header(std::string& bytes);
  void repeat(std::string& bytes);
  std::string in_zip(const std::string& bytes, const std::string& other);
  std::string in_gzip(const std::string& bytes, const std::string& other);
  std::string in_png(const std::string& bytes, const std::string& other);

  std::mt19937_64 random_;
};

}  // namespace kiln::fuzz
