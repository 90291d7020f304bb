// What the programs for the GPU machine share on the host.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define TRY(call)                                                                          \
  do {                                                                                     \
    const cudaError_t error_ = (call);                                                     \
    if (error_ != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_)); \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (0)
