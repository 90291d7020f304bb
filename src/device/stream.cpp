#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/fork.h"
#include "core/host_memory.h"
#include "core/secret_pages.h"
#include "core/watch_lock.h"
#include "crenel/core/error.h"
#include "crenel/device/account.h"
#include "crenel/device/optimisations.h"
#include "device/pool.h"
#include "device/several.h"
#include "rns/limb_set.h"

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

// Records nothing: replays by running the callable again, on the stream that it queues on. A
// recording that is launched elsewhere is ordered there as a graph would be.
class StoredCallable final : public GraphExec {
 public:
  StoredCallable(Stream& own, std::function<void()> work) : own_(own), work_(std::move(work)) {}
  void launch(Stream& stream) override {
    if (&stream != &own_) own_.wait_for(stream);
    work_();
    if (&stream != &own_) stream.wait_for(own_);
  }

 private:
  Stream& own_;  // lives: what keeps the recording keeps it (capture)
  std::function<void()> work_;
};

}  // namespace

// What one stream has to do with a recording, its own or that of a stream that it is a part of.
// Ends before the lock is given back, whatever fails.
class Capture {
 public:
  explicit Capture(Stream& stream) : stream_(stream), lock_(watch::lock(stream.capture_mutex_)) {
    stream_.pool_->begin_capture();
    stream_.capturer_ = std::this_thread::get_id();
  }
  ~Capture() {
    end();
    stream_.pool_->release(kept_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void begin_recording() {
    stream_.pool_->begin_recording();
    stream_.launches_ = std::make_shared<Account>();
    stream_.recording_ = true;
  }
  void end() noexcept {
    if (!stream_.capturing()) return;
    launches_ = std::move(stream_.launches_);
    stream_.recording_ = false;
    stream_.capturer_ = std::thread::id();
    kept_ = stream_.pool_->end_capture();
  }
  std::vector<LaunchRecord> launches() const { return launches_->records(); }
  /// Gives back what the recording keeps.
  std::function<void()> release() {
    return [self = stream_.shared_from_this(), kept = std::exchange(kept_, {})] {
      self->pool_->release(kept);
    };
  }

 private:
  Stream& stream_;
  std::unique_lock<ForkMutex> lock_;  ///< one at a time
  std::shared_ptr<Account> launches_;
  Pool::Blocks kept_;
};

// Keeps the memory that a recording wrote to away from the pools until the recording is gone, and
// what its launches state (nothing for a stored callable, whose launches state themselves).
class OwningGraph final : public GraphExec {
 public:
  /// Of each stream that was recorded its launches, and what gives its memory back.
  struct Part {
    std::vector<LaunchRecord> launches;
    std::function<void()> release;
  };
  OwningGraph(std::unique_ptr<GraphExec> inner, std::vector<Part> parts)
      : inner_(std::move(inner)), parts_(std::move(parts)) {}
  ~OwningGraph() override {
    inner_.reset();
    for (const Part& part : parts_) part.release();
  }
  void launch(Stream& stream) override {
    const std::lock_guard lock(mutex_);
    const std::vector<Stream*> streams = stream.recorded_streams();
    if (streams.size() != parts_.size())
      throw StateError(
          cat("a recording of ", parts_.size() - 1, " parts on a stream of ", streams.size() - 1),
          {{"found", streams.size() - 1}, {"expected", parts_.size() - 1}});
    inner_->launch(stream);
    for (std::size_t p = 0; p < parts_.size(); ++p)
      if (const auto account = streams[p]->account()) account->add(parts_[p].launches);
  }

 private:
  ForkMutex mutex_;  // one launch at a time, as CUDA asks of an executable graph
  std::unique_ptr<GraphExec> inner_;
  std::vector<Part> parts_;
};

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

bool Device::has_graphs() const {
  const auto of = parts();
  return of.empty() ? info().kind == Kind::cuda : of[0]->has_graphs();
}

HostBuffer Device::allocate_host(std::size_t bytes) {
  core::expect_host_room(bytes, [] { return core::MemoryRequest{.what = "a buffer of the host"}; });
  return HostBuffer(shared_from_this(), allocate_host_bytes(bytes), bytes);
}

void* Device::allocate_host_bytes(std::size_t bytes) {
  void* memory = std::malloc(std::max<std::size_t>(bytes, 1));
  if (memory == nullptr)
    throw core::out_of_host_memory({.what = "a buffer of the host", .bytes = bytes});
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

std::vector<std::shared_ptr<Stream>> Device::streams() const {
  std::vector<std::shared_ptr<Stream>> alive;
  const std::lock_guard lock(streams_mutex_);
  for (Stream* stream : streams_)
    if (auto shared = stream->weak_from_this().lock()) alive.push_back(std::move(shared));
  return alive;
}

PoolUse Device::pools() const {
  PoolUse sum;
  for (const auto& stream : streams()) {
    const PoolUse use = stream->pool();
    sum.in_use += use.in_use;
    sum.peak += use.peak;
    sum.idle += use.idle;
    sum.graphs += use.graphs;
  }
  return sum;
}

void Device::trim() {
  for (const auto& stream : streams())
    if (!stream->recording()) stream->trim();
}

void Device::set_idle_limit(std::size_t bytes) {
  idle_limit_ = bytes;
  for (const auto& stream : streams())
    if (!stream->recording()) stream->pool_->cut();
}

Buffer::~Buffer() {
  if (data_) stream_->recycle(data_, bytes_, capacity_, secret_);
}

Stream::Stream(std::shared_ptr<Device> device)
    : device_(std::move(device)), pool_(std::make_unique<Pool>(*this)) {
  const std::lock_guard lock(device_->streams_mutex_);
  device_->streams_.push_back(this);
}

Stream::~Stream() {
  if (!device_->streams_mutex_.abandoned()) {
    const std::lock_guard lock(device_->streams_mutex_);
    std::erase(device_->streams_, this);
  }
  release_pool();
}

// Idle pages are kept by the process and not by the stream: nothing here waits for queued work.
Buffer Stream::allocate_in_secret_pages(std::size_t bytes) {
  const std::size_t capacity = core::secret_capacity(bytes);
  core::SecretObject<void> data(core::allocate_secret(bytes));
  pool_->count_taken(capacity);
  return Buffer(shared_from_this(), data.release(), bytes, capacity, true);
}

Buffer Stream::allocate(std::size_t bytes, bool secret) {
  if (secret && device_->in_host_memory()) return allocate_in_secret_pages(bytes);
  const std::size_t capacity = capacity_for(bytes);
  // A block that is a little too large does as well: memory would be held twice otherwise.
  const Pool::Block block = pool_->take(capacity, capacity / 4 * 5, secret);
  return Buffer(shared_from_this(), block.data, bytes, block.capacity, secret);
}

Buffer Stream::allocate_exact(std::size_t bytes) {
  const std::size_t capacity = std::max<std::size_t>((bytes + 255) / 256 * 256, 256);
  const Pool::Block block = pool_->take(capacity, capacity);
  return Buffer(shared_from_this(), block.data, bytes, block.capacity, false);
}

Buffer Stream::allocate_limbs(const rns::LimbSet& limbs, const LimbRows& of) {
  const std::size_t bytes = of.rows * limbs.size() * of.limb_bytes;
  return of.exact ? allocate_exact(bytes) : allocate(bytes, of.secret);
}

void Stream::count_taken(std::size_t bytes) { pool_->count_taken(bytes); }
void Stream::count_given(std::size_t bytes) noexcept { pool_->count_given(bytes); }

void Stream::recycle(void* data, std::size_t bytes, std::size_t capacity, bool secret) noexcept {
  if (!device_->in_own_process()) return;  // the memory is its parent's
  const watch::Shield shield;
  if (secret) {
    try {
      fill_zero(data, bytes);
    } catch (...) {
      // A failed device cannot be wiped; the memory is then never handed out again.
      return;
    }
  }
  const bool own_pages = secret && device_->in_host_memory();
  if (!own_pages) return pool_->give({data, capacity, secret});
  core::deallocate_secret(data, true);
  pool_->count_given(capacity);
}

void Stream::trim() {
  expect_no_recording("trim");
  pool_->trim();
  if (device_->in_host_memory()) core::trim_secrets();
}

void Stream::release_pool() noexcept {
  if (device_->in_host_memory()) core::trim_secrets();
  pool_->clear();
}
PoolUse Stream::pool() const { return pool_->use(); }
void Stream::reset_peak() { pool_->reset_peak(); }

void Stream::expect_no_capture(const char* what) const {
  if (capturing())
    throw StateError(
        cat(what, " inside a recording, expected it before: every replay would repeat it"),
        {{"operation", what}, {"expected", "operations of an evaluator"}});
}

void Stream::expect_no_recording(const char* what) const {
  if (recording())
    throw StateError(cat(what, " while this thread records a graph on the stream"),
                     {{"operation", what}, {"expected", "operations that are queued"}});
}

std::unique_ptr<GraphExec> Stream::record(const std::function<void()>& work) {
  return std::make_unique<StoredCallable>(*this, work);
}

std::unique_ptr<GraphExec> Stream::capture(const std::function<void()>& work) {
  if (capturing()) throw StateError("a capture is already in progress on this stream");
  std::vector<std::unique_ptr<Capture>> captures;
  for (Stream* stream : recorded_streams()) captures.push_back(std::make_unique<Capture>(*stream));
  std::unique_ptr<GraphExec> graph;
  {
    struct Ended {
      Stream& stream;
      ~Ended() { stream.capture_ended(); }
    } const ended{*this};
    work();  // warm-up: sizes the capture's memory, so that the recording allocates nothing
    synchronize();
    for (const auto& capture : captures) capture->begin_recording();
    const bool graphs = optimisations(*device_).has(Optimisation::graphs);
    graph = graphs ? record(work) : Stream::record(work);
  }
  // A graph keeps its streams: its memory is theirs.
  std::vector<OwningGraph::Part> parts;
  for (const auto& capture : captures) {
    capture->end();
    parts.push_back({capture->launches(), capture->release()});
  }
  return std::make_unique<OwningGraph>(std::move(graph), std::move(parts));
}

}  // namespace crenel::device
