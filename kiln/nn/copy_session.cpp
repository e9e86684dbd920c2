#include "kiln/nn/copy_session.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "kiln/nn/module.h"
#include "kiln/nn/param_traits.h"

namespace kiln::nn::detail {
namespace {

struct Copying {
  const Module* copy;  // null: a CopySession object
  const ModuleClass* of;
  const char* start;  // of the whole object
};

struct Cloned {
  Tensor original;  // kept, so that no other tensor gets its address meanwhile
  Tensor clone;
  std::vector<const void*> params;  // whose copies hold it
};

struct Session {
  std::vector<Copying> running;                    // the innermost last
  std::unordered_map<const void*, Cloned> clones;  // by the original tensor
};

constinit thread_local Session* session = nullptr;

void close_if_done() noexcept {
  if (!session->running.empty()) return;
  delete session;
  session = nullptr;
}

void open(Copying copying) {
  if (session == nullptr) session = new Session;
  try {
    session->running.push_back(copying);
  } catch (...) {
    close_if_done();
    throw;
  }
}

}  // namespace

CopySession::CopySession() { open({nullptr, nullptr, nullptr}); }

CopySession::~CopySession() {
  auto& running = session->running;
  while (running.back().copy != nullptr) running.pop_back();  // ended without its mark
  running.pop_back();
  close_if_done();
}

void CopySession::begin(const Module* copy, const Module& original) {
  // The Module in an object lies where it lies in every object of that class.
  const auto* const whole = static_cast<const char*>(dynamic_cast<const void*>(&original));
  const auto offset = reinterpret_cast<const char*>(&original) - whole;
  open({copy, &original.module_class(), reinterpret_cast<const char*>(copy) - offset});
}

void CopySession::end(const void* end, const ModuleClass& of) noexcept {
  if (session == nullptr) return;
  const Copying& last = session->running.back();
  if (last.copy == nullptr || last.of != &of) return;
  const auto* const at = static_cast<const char*>(end);
  if (at < last.start || at >= last.start + of.size) return;
  session->running.pop_back();
  close_if_done();
}

void CopySession::drop(const Module* copy) noexcept {
  if (session == nullptr) return;
  auto& running = session->running;
  const auto found = std::find_if(running.begin(), running.end(),
                                  [copy](const Copying& c) { return c.copy == copy; });
  if (found == running.end()) return;
  running.erase(found);
  close_if_done();
}

Tensor CopySession::clone(const void* param, const Tensor& value) {
  if (session == nullptr || !value.defined()) return ParameterTraits<Tensor>::clone(value);
  Cloned& known = session->clones[value.impl().address()];
  const bool again =
      std::find(known.params.begin(), known.params.end(), param) != known.params.end();
  if (again || !known.clone.defined()) {
    known.original = value;
    known.clone = ParameterTraits<Tensor>::clone(value);
    known.params.clear();
  }
  known.params.push_back(param);
  return known.clone;
}

}  // namespace kiln::nn::detail
