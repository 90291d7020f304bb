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
  if (label.empty() || !stream.account()) return;
  stream_ = &stream;
  const std::lock_guard lock(stream.profile_mutex_);
  std::string& path = stream.stages_[std::this_thread::get_id()];
  before_ = path.size();
  if (before_ != 0) path += '/';
  path += label;
}

Stage::~Stage() {
  if (stream_ == nullptr || stream_->profile_mutex_.abandoned()) return;
  const std::lock_guard lock(stream_->profile_mutex_);
  const auto it = stream_->stages_.find(std::this_thread::get_id());
  it->second.resize(before_);
  if (before_ == 0) stream_->stages_.erase(it);
}

void Stream::account(std::shared_ptr<Account> account) {
  const std::lock_guard lock(profile_mutex_);
  account_ = std::move(account);
  profiled_ = account_ != nullptr;
}

bool Stream::replace_account(const Account* expected, std::shared_ptr<Account> account) {
  const std::lock_guard lock(profile_mutex_);
  if (account_.get() != expected) return false;
  account_ = std::move(account);
  profiled_ = account_ != nullptr;
  return true;
}

std::shared_ptr<Account> Stream::account() const {
  if (recording()) return launches_;
  if (!profiled_.load(std::memory_order_relaxed)) return nullptr;
  const std::lock_guard lock(profile_mutex_);
  return account_;
}

std::string Stream::stage() const {
  const std::lock_guard lock(profile_mutex_);
  const auto it = stages_.find(std::this_thread::get_id());
  return it == stages_.end() ? std::string() : it->second;
}

}  // namespace crenel::device
