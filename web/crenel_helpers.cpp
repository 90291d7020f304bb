// Of the module with threads: the helpers of its loops (core/helpers.h), each a worker with an
// instance of the module on the same memory. web/team.mjs starts them.
#include <emscripten.h>
#include <pthread.h>

#include <cmath>
#include <cstdlib>
#include <ctime>

#include "core/team.h"
#include "web/export.h"

namespace crenel {
namespace {

constexpr std::size_t kStackBytes = std::size_t(1) << 20;  // as the module's own

void* help(void*) {
  core::helpers().help();
  return nullptr;
}

}  // namespace

/// For std::chrono, in place of a function of emscripten's JavaScript: any clock is the wall's.
extern "C" int clock_gettime(clockid_t, timespec* time) {
  const double milliseconds = emscripten_get_now(), seconds = std::floor(milliseconds / 1e3);
  time->tv_sec = static_cast<time_t>(seconds);
  time->tv_nsec = static_cast<long>((milliseconds - 1e3 * seconds) * 1e6);
  return 0;
}

/// Asks for one more helper by the import __pthread_create_js, whose last argument is the top of
/// its stack; 0 where that gave one.
CRENEL_EXPORT(int, crenel_helper_add)() {
  auto* const stack = static_cast<char*>(std::aligned_alloc(16, kStackBytes));
  if (stack == nullptr) return 1;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kStackBytes);
  pthread_t thread;
  const int failed = pthread_create(&thread, &attributes, help, stack + kStackBytes);
  pthread_attr_destroy(&attributes);
  if (failed != 0) std::free(stack);
  return failed;
}
/// From the next loop on, those that have begun take part; how many threads that makes.
CRENEL_EXPORT(u32, crenel_helpers_admit)() {
  core::helpers().admit();
  return core::helpers().members();
}
/// In a helper that was thrown out of its work.
CRENEL_EXPORT(void, crenel_helper_lost)() { core::helpers().lost(); }

}  // namespace crenel
