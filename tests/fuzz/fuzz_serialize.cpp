// libFuzzer target: any bytes either load or raise a SerializationError.
#include "fuzz/serialize_entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  crenel::test::run_serialize_entry({data, size});
  return 0;
}
