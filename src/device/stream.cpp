#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/fork.h"
#include "core/secret_pages.h"
#include "crenel/core/error.h"
#include "crenel/device/account.h"

namespace crenel::device {
namespace {

// Sizes are rounded up to a few steps an octave, so that ciphertexts of neighbouring levels share
// blocks: a quarter of a block may be idle, a sixteenth of a large one (evaluation keys are many).
std::size_t capacity_for(std::size_t bytes) {
  constexpr std::size_t kSmallest = 256;
  if (bytes <= kSmallest) return kSmallest;
  std::size_t octave = kSmallest;
  while (octave <= bytes / 2) octave *= 2;
  constexpr std::size_t kLarge = std::size_t(16) << 20;
  const std::size_t step = octave >= kLarge ? octave / 16 : octave / 4;
  return (bytes + step - 1) / step * step;
}

// Records nothing: replays by running the callable again.
class StoredCallable final : public GraphExec {
 public:
  explicit StoredCallable(std::function<void()> work) : work_(std::move(work)) {}
  void launch(Stream&) override { work_(); }

 private:
  std::function<void()> work_;
};

// Keeps the memory that a recording touched away from the pool until the recording is gone, and
// what its launches state (nothing for a stored callable, whose launches state themselves).
class OwningGraph final : public GraphExec {
 public:
  OwningGraph(std::unique_ptr<GraphExec> inner, std::vector<LaunchRecord> launches,
              std::function<void()> release)
      : inner_(std::move(inner)), launches_(std::move(launches)), release_(std::move(release)) {}
  ~OwningGraph() override {
    inner_.reset();
    release_();
  }
  void launch(Stream& stream) override {
    inner_->launch(stream);
    if (Account* account = stream.account()) account->add(launches_);
  }

 private:
  std::unique_ptr<GraphExec> inner_;
  std::vector<LaunchRecord> launches_;
  std::function<void()> release_;
};

}  // namespace

Device::Device() : process_(core::forks()) {}

bool Device::in_own_process() const noexcept {
  return survives_fork() || process_ == core::forks();
}

void Device::expect_own_process() const {
  if (in_own_process()) return;
  throw StateError(
      cat("device ", info().name,
          " was opened before this process was forked, and does not survive that: start "
          "workers with spawn (or forkserver) and open the device in each"),
      {{"device", info().name},
       {"found", "a forked process"},
       {"expected", "the process that opened the device"}});
}

HostBuffer Device::allocate_host(std::size_t bytes) {
  return HostBuffer(shared_from_this(), allocate_host_bytes(bytes), bytes);
}

void* Device::allocate_host_bytes(std::size_t bytes) {
  void* memory = std::malloc(std::max<std::size_t>(bytes, 1));
  if (memory == nullptr)
    throw DeviceError(cat(info().name, ": no host memory for ", bytes, " bytes"),
                      {{"device", info().name}, {"bytes", cat(bytes)}});
  return memory;
}

void Device::deallocate_host_bytes(void* memory) noexcept { std::free(memory); }

HostBuffer::~HostBuffer() {
  if (data_) device_->deallocate_host_bytes(data_);
}

std::shared_ptr<Stream> Device::shared_stream() {
  const std::lock_guard lock(shared_mutex_);
  auto stream = shared_.lock();
  if (!stream) shared_ = stream = make_stream();
  return stream;
}

Buffer::~Buffer() {
  if (data_) stream_->recycle(data_, bytes_, capacity_, secret_);
}

Stream::~Stream() { release_pool(); }

// Idle pages are kept by the process and not by the stream: nothing here waits for queued work.
Buffer Stream::allocate_in_secret_pages(std::size_t bytes) {
  const std::size_t capacity = core::secret_capacity(bytes);
  core::SecretObject<void> data(core::allocate_secret(bytes));
  const std::lock_guard lock(mutex_);
  in_use_ += capacity;
  peak_ = std::max(peak_, in_use_);
  return Buffer(shared_from_this(), data.release(), bytes, capacity, true);
}

Buffer Stream::allocate(std::size_t bytes, bool secret) {
  if (secret && device_->in_host_memory()) return allocate_in_secret_pages(bytes);
  std::size_t capacity = capacity_for(bytes);
  // A block that is a little too large does as well: memory would be held twice otherwise.
  void* data = take(capacity, capacity / 4 * 5);
  return Buffer(shared_from_this(), data, bytes, capacity, secret);
}

Buffer Stream::allocate_exact(std::size_t bytes) {
  std::size_t capacity = std::max<std::size_t>((bytes + 255) / 256 * 256, 256);
  void* data = take(capacity, capacity);
  return Buffer(shared_from_this(), data, bytes, capacity, false);
}

void* Stream::take(std::size_t& capacity, std::size_t most) {
  device_->expect_own_process();
  std::lock_guard lock(mutex_);
  void* data = nullptr;
  if (auto it = free_.lower_bound(capacity); it != free_.end() && it->first <= most) {
    capacity = it->first;
    data = it->second;
    free_.erase(it);
  } else {
    try {
      data = device_->allocate(capacity);
    } catch (const DeviceError&) {
      if (free_.empty() || private_) throw;  // nothing to give back, or a recording is in progress
      synchronize();
      for (auto& [size, block] : free_) device_->deallocate(block);
      free_.clear();
      data = device_->allocate(capacity);
    }
  }
  if (private_) private_->emplace(data, capacity);
  in_use_ += capacity;
  peak_ = std::max(peak_, in_use_);
  return data;
}

void Stream::recycle(void* data, std::size_t bytes, std::size_t capacity, bool secret) noexcept {
  if (!device_->in_own_process()) return;  // the memory is its parent's
  if (secret) {
    try {
      fill_zero(data, bytes);
    } catch (...) {
      // A failed device cannot be wiped; the memory is then never handed out again.
      return;
    }
  }
  const bool own_pages = secret && device_->in_host_memory();
  if (own_pages) core::deallocate_secret(data, true);
  // What another thread held when this process was forked is lost here: not handed out again.
  if (mutex_.abandoned()) return;
  std::lock_guard lock(mutex_);
  in_use_ -= capacity;
  if (own_pages) return;
  // Most recently freed first: its contents are the likeliest to be in cache.
  free_.insert(free_.lower_bound(capacity), {capacity, data});
}

void Stream::trim() {
  synchronize();
  std::lock_guard lock(mutex_);
  for (auto& [size, block] : free_) device_->deallocate(block);
  free_.clear();
  if (device_->in_host_memory()) core::trim_secrets();
}

void Stream::release_pool() noexcept {
  if (device_->in_host_memory()) core::trim_secrets();
  if (mutex_.abandoned() || !device_->in_own_process()) return;
  std::lock_guard lock(mutex_);
  for (auto& [size, block] : free_) device_->deallocate(block);
  free_.clear();
}

std::size_t Stream::bytes_in_use() const {
  std::lock_guard lock(mutex_);
  return in_use_;
}

std::size_t Stream::peak_bytes() const {
  std::lock_guard lock(mutex_);
  return peak_;
}

void Stream::reset_peak() {
  std::lock_guard lock(mutex_);
  peak_ = in_use_;
}

std::unique_ptr<GraphExec> Stream::record(const std::function<void()>& work) {
  return std::make_unique<StoredCallable>(work);
}

std::unique_ptr<GraphExec> Stream::capture(const std::function<void()>& work) {
  work();  // warm-up: sizes the pool, so that the recording allocates nothing
  synchronize();
  auto blocks = std::make_shared<std::map<void*, std::size_t>>();
  {
    std::lock_guard lock(mutex_);
    if (private_) throw StateError("a capture is already in progress on this stream");
    private_ = blocks.get();
  }
  std::unique_ptr<GraphExec> graph;
  Account launches;
  Account* const account = std::exchange(account_, &launches);
  try {
    graph = record(work);
    account_ = account;
  } catch (...) {
    account_ = account;
    std::lock_guard lock(mutex_);
    private_ = nullptr;
    throw;
  }
  // Blocks the recording used and freed again must not serve others; those still alive belong to
  // buffers that the caller keeps.
  std::multimap<std::size_t, void*> held;
  {
    std::lock_guard lock(mutex_);
    private_ = nullptr;
    for (auto it = free_.begin(); it != free_.end();) {
      if (blocks->count(it->second)) {
        held.insert(*it);
        it = free_.erase(it);
      } else {
        ++it;
      }
    }
  }
  std::weak_ptr<Stream> self = weak_from_this();
  auto release = [self, device = device_, held = std::move(held)] {
    if (auto stream = self.lock()) {
      if (stream->mutex_.abandoned()) return;
      std::lock_guard lock(stream->mutex_);
      stream->free_.insert(held.begin(), held.end());
    } else {
      for (auto& [size, block] : held) device->deallocate(block);
    }
  };
  return std::make_unique<OwningGraph>(std::move(graph), launches.records(), std::move(release));
}

}  // namespace crenel::device
