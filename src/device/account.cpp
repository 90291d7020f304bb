#include "crenel/device/account.h"

namespace crenel::device {

const char* name_of(Work work) {
  constexpr const char* kNames[kWorks] = {
      "ntt", "base_conversion", "elementwise", "automorphism", "key_multiply", "sampling", "copy"};
  return kNames[static_cast<u32>(work)];
}

Traffic& Traffic::operator+=(const LaunchRecord& record) {
  ++launches;
  read_bytes += record.read_bytes;
  written_bytes += record.written_bytes;
  streamed_bytes += record.streamed_bytes;
  multiply_adds += record.multiply_adds;
  butterflies += record.butterflies;
  return *this;
}

void Account::add(LaunchRecord record) {
  std::lock_guard lock(mutex_);
  records_.push_back(std::move(record));
}

void Account::add(const std::vector<LaunchRecord>& records) {
  std::lock_guard lock(mutex_);
  records_.insert(records_.end(), records.begin(), records.end());
}

std::vector<LaunchRecord> Account::records() const {
  std::lock_guard lock(mutex_);
  return records_;
}

Traffic Account::total() const {
  std::lock_guard lock(mutex_);
  Traffic sum;
  for (const LaunchRecord& record : records_) sum += record;
  return sum;
}

void Account::clear() {
  std::lock_guard lock(mutex_);
  records_.clear();
}

Stage::Stage(Stream& stream, std::string_view label) {
  if (stream.account_ == nullptr) return;
  stream_ = &stream;
  before_ = stream.stage_.size();
  if (before_ != 0) stream.stage_ += '/';
  stream.stage_ += label;
}

Stage::~Stage() {
  if (stream_ != nullptr) stream_->stage_.resize(before_);
}

}  // namespace crenel::device
