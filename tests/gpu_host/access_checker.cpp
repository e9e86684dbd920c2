#include "tests/gpu_host/access_checker.h"

#include <algorithm>
#include <sstream>

namespace kiln::gpu_host {

AccessChecker::AccessChecker(std::span<const Block> blocks, Block shared, Block image)
    : image_(image) {
  for (const Block& b : blocks) areas_.push_back({b.data, b.size, {}, 1, false});
  if (shared.size > 0) areas_.push_back({shared.data, shared.size, {}, 1, true});
}

void AccessChecker::begin_group(uint32_t group) {
  group_ = group;
  // Local memory is a group's own, and holds nothing when it begins.
  for (Area& a : areas_) {
    if (a.local) std::ranges::fill(a.shadow, Shadow{});
  }
}

void AccessChecker::fail(const char* what, const Area& area, size_t at, bool stores,
                         const Mark* other) const {
  std::ostringstream out;
  out << what << ": a " << (stores ? "store to" : "load of") << " byte " << at << " of "
      << (area.local ? "local memory" : "a block") << " of " << area.size << " by work-item "
      << item_ << " of group " << group_;
  if (other != nullptr) {
    out << ", and an access by ";
    if (other->item == kMany) {
      out << "several work-items";
    } else {
      out << "work-item " << other->item;
    }
    if (other->group == kMany) {
      out << " of several groups";
    } else {
      out << " of group " << other->group;
    }
    out << " with no barrier between";
  }
  throw KernelError(out.str());
}

void AccessChecker::note(Shadow& shadow, bool stores, const Area& area, size_t at) {
  if (races(shadow.stored)) fail("race", area, at, stores, &shadow.stored);
  if (stores) {
    if (races(shadow.loaded)) fail("race", area, at, stores, &shadow.loaded);
    shadow.stored = {group_, item_, epoch_};
    return;
  }
  if (area.local && shadow.stored.group == kNone) {
    fail("local memory read before it is written", area, at, stores, nullptr);
  }
  Mark& loaded = shadow.loaded;
  if (loaded.group == kNone) {
    loaded = {group_, item_, epoch_};
  } else if (loaded.group != group_) {
    loaded.group = kMany;
  } else if (loaded.epoch != epoch_) {
    // Earlier loads lie before a barrier.
    loaded = {group_, item_, epoch_};
  } else if (loaded.item != item_) {
    loaded.item = kMany;
  }
}

void AccessChecker::check(const void* address, size_t bytes, bool stores, bool atomic) {
  const auto* p = static_cast<const std::byte*>(address);
  if (p >= stack_.data && p + bytes <= stack_.data + stack_.size) return;
  for (size_t tried = 0; tried < areas_.size(); ++tried) {
    const size_t k = (last_ + tried) % areas_.size();
    Area& area = areas_[k];
    if (p < area.begin || p >= area.begin + area.size) continue;
    last_ = k;
    const auto at = static_cast<size_t>(p - area.begin);
    if (at + bytes > area.size) fail("out of bounds", area, at, stores, nullptr);
    if (atomic) return;
    if (bytes % area.grain != 0 || at % area.grain != 0 || area.shadow.empty()) {
      // What was noted in coarser grains is forgotten: only for memory of mixed types.
      area.grain = bytes % 4 == 0 && at % 4 == 0 && area.shadow.empty() ? 4 : 1;
      area.shadow.assign(area.size / area.grain + 1, Shadow{});
    }
    const size_t end = (at + bytes) / area.grain;
    for (size_t i = at / area.grain; i < end; ++i)
      note(area.shadow[i], stores, area, i * area.grain);
    return;
  }
  // Tables of constants, and where the work-item stands.
  if (!stores && p >= image_.data && p + bytes <= image_.data + image_.size) return;
  std::ostringstream out;
  out << "out of bounds: a " << (stores ? "store to " : "load of ") << bytes
      << " bytes that are of no block of the launch, by work-item " << item_ << " of group "
      << group_;
  for (const Area& a : areas_) {
    const auto distance = p - a.begin;
    if (distance < 0 && distance > -65536) out << "; " << -distance << " bytes before a block";
    const auto beyond = distance - static_cast<std::ptrdiff_t>(a.size);
    if (beyond >= 0 && beyond < 65536) {
      out << "; " << beyond << " bytes behind a block of " << a.size;
    }
  }
  throw KernelError(out.str());
}

}  // namespace kiln::gpu_host
