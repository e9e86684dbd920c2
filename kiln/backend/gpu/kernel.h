// Which kernel an op asks for. Internal.
//
// Note [Kernel keys]: a kernel is a text of kernels/ with macros before it. Making that text costs
// more than launching what it becomes, so an op names its kernel by what the text is made of: the
// addresses of string literals, and a few small numbers (dtypes, flags) packed into one. The text
// is made only when no kernel of that key is known yet. A Literal is a constant or is kept for
// good, so that its address says what it is.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

namespace kiln::gpu {

// A string literal.
class Literal {
 public:
  constexpr Literal() = default;
  consteval Literal(const char* text) : text_(text) {}
  // A copy of the text that is never freed; the same one for the same text.
  static Literal kept(const std::string& text);

  constexpr const char* get() const { return text_ == nullptr ? "" : text_; }
  constexpr explicit operator bool() const { return text_ != nullptr; }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(text_); }

 private:
  constexpr static Literal at(const char* text) {
    Literal literal;
    literal.text_ = text;
    return literal;
  }
  const char* text_ = nullptr;
};

// Makes a kernel's macros, "#define OUT f32\n...": a function that is called while the launch that
// it is handed to lasts.
class Defines {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, Defines>)
  Defines(const F& make)
      : make_(&make), call_([](const void* f) { return (*static_cast<const F*>(f))(); }) {}
  std::string operator()() const { return call_(make_); }

 private:
  const void* make_;
  std::string (*call_)(const void*);
};

// Small numbers, each below 64, as one: what macros hang on beside literals. At most ten.
template <class... X>
constexpr uint64_t choice(X... numbers) {
  static_assert(sizeof...(X) <= 10);
  uint64_t all = 0;
  ((all = (all << 6) | (static_cast<uint64_t>(numbers) & 63u)), ...);
  return all;
}

struct KernelKey {
  std::array<uint64_t, 8> words{};
  friend bool operator==(const KernelKey&, const KernelKey&) = default;
};
struct KernelKeyHash {
  size_t operator()(const KernelKey& key) const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (uint64_t word : key.words) {
      hash = (hash ^ word) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

struct Kernel {
  Literal file;                        // of kernels/: "map"
  std::array<Literal, 4> parts{};      // the literals among the macros
  uint64_t choice = 0;                 // the rest that the macros hang on
  std::array<Literal, 2> libraries{};  // functions that stand before the text: "special_gamma"
  Defines defines;
  size_t local_bytes = 0;  // of local memory that a launch gives each group; CUDA alone

  KernelKey key() const {
    return {{file.address(), parts[0].address(), parts[1].address(), parts[2].address(),
             parts[3].address(), choice, libraries[0].address(), libraries[1].address()}};
  }
};

}  // namespace kiln::gpu
