// getrandom() as a stream that a test chooses, for the library alone: what Python asks for comes from the
// system. Loaded by LD_PRELOAD; bits.mjs has the same stream.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static uint64_t state;
static int started;

ssize_t getrandom(void* to, size_t bytes, unsigned flags) {
  Dl_info caller;
  const char* seed = getenv("CRENEL_TEST_ENTROPY");
  if (seed == 0 || dladdr(__builtin_return_address(0), &caller) == 0 || strstr(caller.dli_fname, "_crenel") == 0)
    return syscall(SYS_getrandom, to, bytes, flags);
  if (!started) state = strtoull(seed, 0, 10), started = 1;
  for (size_t i = 0; i < bytes; i++) {  // splitmix64, a byte a step
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    ((uint8_t*)to)[i] = (uint8_t)(z >> 56);
  }
  return (ssize_t)bytes;
}
