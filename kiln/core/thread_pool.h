// The threads that parallel loops borrow.
#pragma once

namespace kiln::detail {

// What a team does: called once on every thread that takes part, with that thread's number. It
// must share its work out such that whoever is there does what is left, and must not throw.
using TeamWork = void (*)(void* context, int thread) noexcept;

// Calls work(context, 0) on this thread and work(context, i), for i from 1 to `helpers`, on threads
// of the pool that have nothing to do, and returns when all calls that began have ended. A helper
// that has not begun when this thread's call ends stays away: nobody waits for one that sleeps, or
// whose processor another program has.
void run_team(int helpers, TeamWork work, void* context);

// The most helpers there can be.
inline constexpr int kMaxHelpers = 255;

}  // namespace kiln::detail
