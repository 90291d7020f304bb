// Which devices the suites run on. CRENEL_DEVICES=ref,cpu,cuda:0 picks; the default is every device
// that can be had, plus a skipped entry for a missing GPU. CRENEL_REQUIRE=cuda makes that a
// failure.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "crenel/core/error.h"
#include "crenel/device/device.h"

namespace crenel::test {

inline bool is_required(const std::string& device) {
  const char* list = std::getenv("CRENEL_REQUIRE");
  std::stringstream stream(list ? list : "");
  for (std::string item; std::getline(stream, item, ',');)
    if (!item.empty() && device.rfind(item, 0) == 0) return true;
  return false;
}

inline std::vector<std::string> test_devices() {
  std::vector<std::string> names;
  const auto has_gpu = [&] {
    return std::any_of(names.begin(), names.end(),
                       [](const std::string& name) { return name.rfind("cuda", 0) == 0; });
  };
  const char* wanted = std::getenv("CRENEL_DEVICES");
  if (wanted != nullptr) {
    std::stringstream list(wanted);
    for (std::string name; std::getline(list, name, ',');)
      if (!name.empty()) names.push_back(name);
  } else {
    // One GPU stands for all of them.
    for (const auto& info : device::available())
      if (info.kind != device::Kind::cuda || !has_gpu()) names.push_back(info.name);
  }
  if (!has_gpu() && (wanted == nullptr || is_required("cuda:0"))) names.push_back("cuda:0");
  return names;
}

/// The devices to compare with ref: ref itself only when CRENEL_DEVICES asks for it.
inline std::vector<std::string> candidate_devices() {
  auto names = test_devices();
  if (std::getenv("CRENEL_DEVICES") == nullptr) std::erase(names, "ref");
  return names;
}

/// Those, and one that divides the limbs of polynomials: of what has kernels of polynomials only.
inline std::vector<std::string> with_split(std::vector<std::string> names) {
  if (std::getenv("CRENEL_DEVICES") == nullptr) names.push_back("cpu+cpu+cpu");
  return names;
}

/// Those with parts that CRENEL_DEVICES names, as "cuda:0+1"; `otherwise` where it is not set.
inline std::vector<std::string> divided_devices(std::vector<std::string> otherwise) {
  if (std::getenv("CRENEL_DEVICES") == nullptr) return otherwise;
  auto names = test_devices();
  std::erase_if(names, [](const auto& name) { return name.find('+') == std::string::npos; });
  return names;
}

/// The device, or nullptr with `reason` set when it cannot be had.
inline std::shared_ptr<device::Device> open_or_reason(const std::string& name,
                                                      std::string& reason) {
  try {
    return device::open(name);
  } catch (const DeviceError& e) {
    reason = e.what();
    return nullptr;
  }
}

/// Name of a parameterised test: "cuda_0".
inline std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

/// Base of the suites that run once a device.
class DeviceTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string reason;
    device_ = open_or_reason(GetParam(), reason);
    if (device_ != nullptr) return;
    if (is_required(GetParam())) FAIL() << GetParam() << " is required: " << reason;
    GTEST_SKIP() << GetParam() << ": " << reason;
  }
  std::shared_ptr<device::Device> device_;
};

}  // namespace crenel::test

#define CRENEL_SUITE_OVER(Suite, devices)                                                 \
  INSTANTIATE_TEST_SUITE_P(, Suite, testing::ValuesIn(devices), crenel::test::test_name); \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Suite)
/// Runs on every device, ref too.
#define CRENEL_DEVICE_SUITE(Suite) CRENEL_SUITE_OVER(Suite, crenel::test::test_devices())
/// Compares every other device with ref, those that divide limbs among them.
#define CRENEL_POLY_SUITE(Suite) \
  CRENEL_SUITE_OVER(Suite, crenel::test::with_split(crenel::test::candidate_devices()))
/// Runs on every device but ref, which takes ten times as long, unless CRENEL_DEVICES asks for it:
/// what is above kernels is the same there, and that other devices have the bits of ref is held of
/// every kernel and of whole chains.
#define CRENEL_FAST_DEVICE_SUITE(Suite) CRENEL_SUITE_OVER(Suite, crenel::test::candidate_devices())
/// Compares every other device with ref.
#define CRENEL_CANDIDATE_SUITE(Suite) CRENEL_SUITE_OVER(Suite, crenel::test::candidate_devices())
