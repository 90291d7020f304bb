// Devices, streams and memory. Everything above works on these; nothing above names a backend.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "crenel/core/fork_mutex.h"
#include "crenel/core/types.h"

namespace crenel::rns {
struct LimbSet;
}

namespace crenel::device {

/// Which backend computes.
enum class Kind : u8 {
  ref,
  cpu,
  cuda,
  split,  ///< several devices that share the limbs of every polynomial
};

/// What a device is.
struct DeviceInfo {
  Kind kind = Kind::ref;
  std::string name;         ///< "ref", "cpu", "cuda:0", "cuda:0+1"
  std::string description;  ///< processor or GPU model, instruction set or compute capability
  u64 memory_bytes = 0;     ///< 0: host memory
  /// What computes at the same time: threads, multiprocessors. Circuits are chosen by it.
  u32 processors = 1;
};

class Account;
class Capture;
class HostBuffer;
class OwningGraph;
class Pool;
class Stage;
class Stream;

/// Bytes of a device's memory, by its driver's count: every process and library is in it.
struct MemoryUse {
  u64 used = 0;
  u64 total = 0;  ///< 0: host memory, which is not counted
};

/// Bytes that streams took from their device, by their own count. What Device::memory() counts
/// beyond them is the driver's and other processes', and the tables of kernels.
struct PoolUse {
  std::size_t in_use = 0;  ///< of buffers that are alive
  std::size_t peak = 0;    ///< highest in_use so far; of several streams: the sum of theirs
  std::size_t idle = 0;    ///< freed, kept for reuse
  std::size_t graphs = 0;  ///< freed, kept by recordings for their replays
  /// All bytes that were taken from the device.
  std::size_t held() const { return in_use + idle + graphs; }
};

/// Bytes that could be taken now, and what says that there are no more: "MemAvailable", ...
struct MemoryLeft {
  u64 bytes = 0;
  std::string limit;
};

/// One processor with its memory. Obtained from open(); contexts of any scheme and parameters share
/// one object, and objects of contexts with equal parameters then work together. Any number of
/// threads may use it.
class Device : public std::enable_shared_from_this<Device> {
 public:
  /// Backends derive from it.
  Device();
  virtual ~Device() = default;
  /// What it is; does not change.
  virtual const DeviceInfo& info() const = 0;
  /// A new stream of work with its own memory pool.
  virtual std::shared_ptr<Stream> make_stream() = 0;
  /// The stream that this device's contexts queue on: one for all that live at a time, so that what
  /// one of them made another may use, in stream order.
  std::shared_ptr<Stream> shared_stream();

  /// Raw device memory, 256-byte aligned. Throws OutOfMemoryError naming the bytes asked for.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Gives back what allocate() gave.
  virtual void deallocate(void* memory) noexcept = 0;
  /// The driver's count of all memory, in bytes; {0, 0} of host memory.
  virtual MemoryUse memory() const { return {}; }
  /// What the system would give now, idle memory of streams not counted. Of host memory: the least
  /// of what the kernel calls available, of what the limits of every control group leave, of the
  /// address space (docs/guide/memory.md). Takes about 0.2 ms.
  virtual MemoryLeft left() const;
  /// Bytes that contexts on this device could take now: left(), and what their streams keep idle.
  u64 available() const;
  /// Whether this device computes in host memory: secret buffers then lie in pages of their own,
  /// locked and left out of core dumps (crenel/core/secret_memory.h).
  virtual bool in_host_memory() const { return false; }
  /// Throws StateError in a child of fork() where the device did not come along: a GPU's context
  /// belongs to the process that made it. Host memory does come along.
  void expect_own_process() const;
  /// Whether expect_own_process() does not throw: for functions that must not.
  bool in_own_process() const noexcept;
  /// What the streams of this device hold, all together.
  PoolUse pools() const;
  /// Every stream of this device gives its idle memory back, and waits for its work before. Streams
  /// that the calling thread records on are left out.
  void trim();
  /// The most idle memory that each stream keeps when buffers are freed, default no limit: beyond
  /// it the longest unused goes back to the device, which waits for the stream's work. What is idle
  /// now is cut down, too. Operations that reuse less than they need take new memory every time.
  virtual void set_idle_limit(std::size_t bytes);
  std::size_t idle_limit() const { return idle_limit_.load(std::memory_order_relaxed); }
  /// The devices that this one is made of, each with the memory of its share; empty for one that is
  /// not made of others.
  virtual std::vector<std::shared_ptr<Device>> parts() const { return {}; }
  /// Whether recordings of this device's streams are graphs, which a host queues at once; elsewhere
  /// their work is queued again.
  bool has_graphs() const;
  /// Host memory that copies to and from this device need not wait for (page-locked on CUDA).
  HostBuffer allocate_host(std::size_t bytes);

 protected:
  /// Throw OutOfMemoryError naming the bytes asked for; the default is ordinary memory.
  virtual void* allocate_host_bytes(std::size_t bytes);
  virtual void deallocate_host_bytes(void* memory) noexcept;
  virtual bool survives_fork() const noexcept { return true; }

 private:
  friend class HostBuffer;
  friend class Stream;
  std::vector<std::shared_ptr<Stream>> streams() const;

  const u64 process_;  ///< forks before this object was made
  ForkMutex shared_mutex_;
  std::weak_ptr<Stream> shared_;  ///< weak: a stream keeps its device alive
  mutable ForkMutex streams_mutex_;
  std::vector<Stream*> streams_;  ///< those alive
  std::atomic<std::size_t> idle_limit_{std::numeric_limits<std::size_t>::max()};
};

/// "ref", "cpu", "cuda", "cuda:<index>" or "auto" (the first GPU when there is one, else "cpu"), or
/// "cuda:dry": a model of an H200 that executes nothing and only states its launches to accounts;
/// "cuda:dry-<model>": of another GPU, of which DeviceError's text names those that there are;
/// "cuda:dry:<index>": one of several. "cuda:<index>/<i>of<n>": a part of a GPU's multiprocessors.
/// Names joined by + are one device that divides the limbs of every polynomial among several, with
/// the bits of one: "cuda:0+1" (of two GPUs of one model), "cuda:dry:0+1+2+3", "cpu+cpu" (for
/// tests). Throws DeviceError that says why when the device cannot be had; never falls back
/// silently.
std::shared_ptr<Device> open(const std::string& name);
/// The processors that open() would take now: "ref", "cpu" and every whole GPU. Models, parts of a
/// GPU and names joined by + are not listed.
std::vector<DeviceInfo> available();
/// Why there is no CUDA device ("" when there is one): not built, no driver, no GPU.
std::string cuda_unavailable_reason();

/// Memory of Device::allocate_host.
class HostBuffer {
 public:
  HostBuffer() = default;
  /// Of a device's allocate_host, which it goes back to.
  HostBuffer(std::shared_ptr<Device> device, void* data, std::size_t bytes)
      : device_(std::move(device)), data_(data), bytes_(bytes) {}
  HostBuffer(HostBuffer&& other) noexcept { swap(other); }
  HostBuffer& operator=(HostBuffer&& other) noexcept {
    HostBuffer(std::move(other)).swap(*this);
    return *this;
  }
  ~HostBuffer();

  /// The memory (null: none), and its bytes.
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void swap(HostBuffer& o) noexcept {
    std::swap(device_, o.device_);
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
  }
  std::shared_ptr<Device> device_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A point in the work of a stream (Stream::mark).
class Event {
 public:
  virtual ~Event() = default;
  /// Waits, on the host, until the work before it is done.
  virtual void synchronize() = 0;
};

/// Device memory, returned to its stream's pool when destroyed (stream order makes reuse safe).
class Buffer {
 public:
  Buffer() = default;
  /// Of a stream's allocate, whose pool it goes back to; `secret` memory is wiped then.
  Buffer(std::shared_ptr<Stream> stream, void* data, std::size_t bytes, std::size_t capacity,
         bool secret)
      : stream_(std::move(stream)),
        data_(data),
        bytes_(bytes),
        capacity_(capacity),
        secret_(secret) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  /// Address on the device (null: none), bytes that were asked for, and the stream that made it.
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  const std::shared_ptr<Stream>& stream() const { return stream_; }
  explicit operator bool() const { return data_ != nullptr; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void swap(Buffer& o) noexcept {
    std::swap(stream_, o.stream_);
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    std::swap(capacity_, o.capacity_);
    std::swap(secret_, o.secret_);
  }
  std::shared_ptr<Stream> stream_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t capacity_ = 0;
  bool secret_ = false;
};

/// Recorded work that can be run again. Memory that the work took and gave back stays reserved for
/// it; a buffer that outlives the work (an output) is its caller's to keep for as long as the graph
/// lives. Several threads may launch it, one after the other; all of them write to the addresses
/// that were recorded, so who shares those must keep order (ckks::Graph does).
class GraphExec {
 public:
  virtual ~GraphExec() = default;
  /// Queues the recorded work on a stream of its device.
  virtual void launch(Stream& stream) = 0;
};

/// In-order queue of device work. Operations are asynchronous on CUDA and immediate elsewhere. A
/// stream caches freed memory by size: once warm, no operation allocates from the device or
/// synchronises. What is idle beyond a quarter of the peak in use goes back to the device when new
/// memory is taken (src/device/pool.h states the rule).
///
/// Any number of threads may queue on a stream, allocate from it, free what they allocated, record
/// on it and profile it. The work of one thread is in the order in which that thread queued it. Who
/// lets two threads write the same memory, or one read what another writes, must order them.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  /// Backends make them: Device::make_stream.
  explicit Stream(std::shared_ptr<Device> device);
  virtual ~Stream();

  /// The device that it queues on.
  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }

  /// Waits until all work of the stream is done; throws DeviceError when some of it failed.
  virtual void synchronize() = 0;
  /// Host to device; `from` may be reused when the call returns. Not capturable.
  virtual void copy_in(void* to, const void* from, std::size_t bytes) = 0;
  /// Host to device, stream-ordered and without waiting: `from` lies in a HostBuffer of this device
  /// and keeps its contents until the copy is done (mark() tells). Not capturable.
  virtual void upload(void* to, const void* from, std::size_t bytes) { copy_in(to, from, bytes); }
  /// upload() of addresses in this stream's memory (or null), which kernels follow.
  virtual void upload_addresses(void* to, const void* const* from, std::size_t count) {
    upload(to, static_cast<const void*>(from), count * sizeof(*from));
  }
  /// Device to host; waits for the data. Not capturable.
  virtual void copy_out(void* to, const void* from, std::size_t bytes) = 0;
  /// Copies that leave no copy of the data in memory that nobody wipes, as a driver's staging is.
  virtual void copy_in_secret(void* to, const void* from, std::size_t bytes) {
    copy_in(to, from, bytes);
  }
  virtual void copy_out_secret(void* to, const void* from, std::size_t bytes) {
    copy_out(to, from, bytes);
  }
  /// Device to device, stream-ordered.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  /// Device to device, `rows` rows of `row_bytes`, with the given distances between rows in bytes.
  virtual void copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t row_bytes, std::size_t rows) = 0;
  /// Sets bytes on the device to 0.
  virtual void fill_zero(void* data, std::size_t bytes) = 0;
  /// Work queued here from now on starts after the work queued on `other` so far.
  virtual void wait_for(Stream& other) = 0;
  /// The work queued so far. Null where operations are immediate.
  virtual std::shared_ptr<Event> mark() { return nullptr; }
  /// Work queued here from now on starts after what `event` marks; null: at once.
  virtual void wait_for(const std::shared_ptr<Event>& event) { static_cast<void>(event); }
  /// The backend's own handle (cudaStream_t), nullptr where there is none.
  virtual void* native_handle() { return nullptr; }

  /// Memory from the pool. Secret buffers are overwritten with zeros before reuse or release.
  virtual Buffer allocate(std::size_t bytes, bool secret = false);
  /// A block of just this size, for what is kept long and comes in numbers: evaluation keys.
  virtual Buffer allocate_exact(std::size_t bytes);
  /// What the memory of polynomials is for: `rows` rows of all `limbs`, one after the other.
  struct LimbRows {
    u64 rows = 1;
    std::size_t limb_bytes = 0;  ///< of one limb
    bool secret = false;
    bool exact = false;  ///< as allocate_exact()
  };
  /// The same for polynomials (and plaintexts) of these limbs: a device of several parts keeps each
  /// limb on one of them. Memory of allocate() has no limbs, and every part has all of it.
  virtual Buffer allocate_limbs(const rns::LimbSet& limbs, const LimbRows& of);
  /// Gives idle memory back to the device (waits for the stream first). StateError while the
  /// calling thread records on this stream.
  virtual void trim();
  /// What this stream took from the device.
  PoolUse pool() const;
  std::size_t bytes_in_use() const { return pool().in_use; }
  std::size_t peak_bytes() const { return pool().peak; }  ///< highest bytes_in_use so far
  void reset_peak();

  /// Profiling: launches queued from now on are stated to `account`, null: to none. What another
  /// thread queues at this moment may still be stated to the account before. Graphs state the
  /// launches of the work that they were made of.
  virtual void account(std::shared_ptr<Account> account);
  /// The same if `expected` is attached now; false, and nothing changes, if not.
  virtual bool replace_account(const Account* expected, std::shared_ptr<Account> account);
  std::shared_ptr<Account> account() const;
  /// Labels of the stages that the calling thread has open, "a/b".
  std::string stage() const;

  /// Runs `work` once, and once more while recording it. On backends without graphs the callable
  /// itself is stored. `work` must queue on this stream only and from the calling thread, must not
  /// synchronise, and is run once in the warm-up. What other threads queue meanwhile is not
  /// recorded, runs at once, and shares no memory with the recording. One recording at a time: that
  /// of another thread is waited for; StateError inside a recording of this thread.
  std::unique_ptr<GraphExec> capture(const std::function<void()>& work);
  /// Whether the calling thread is inside capture() of this stream.
  bool capturing() const noexcept {
    return capturer_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  /// StateError, naming `what`, when capturing(): for what must not be the same in every replay.
  void expect_no_capture(const char* what) const;

 protected:
  /// Backends with graphs override this; the default records the callable.
  virtual std::unique_ptr<GraphExec> record(const std::function<void()>& work);
  /// What a recording of this stream records: of a stream of several devices their streams, too.
  virtual std::vector<Stream*> recorded_streams() { return {this}; }
  /// The end of the work of a capture(), however it came to it: what was there for it alone goes.
  virtual void capture_ended() noexcept {}
  /// Whether the calling thread is inside record(): what it queues is not to be run.
  bool recording() const noexcept { return capturing() && recording_; }
  /// StateError, naming `what`, when recording().
  void expect_no_recording(const char* what) const;
  /// Called by backend destructors, while the native stream still lives.
  void release_pool() noexcept;
  /// Bytes in use that are no blocks of the pool (pool()).
  void count_taken(std::size_t bytes);
  void count_given(std::size_t bytes) noexcept;

 private:
  friend class Buffer;
  friend class Device;
  friend class Stage;
  friend class Capture;
  friend class OwningGraph;
  Buffer allocate_in_secret_pages(std::size_t bytes);
  virtual void recycle(void* data, std::size_t bytes, std::size_t capacity, bool secret) noexcept;

  std::shared_ptr<Device> device_;
  std::unique_ptr<Pool> pool_;

  mutable ForkMutex profile_mutex_;  ///< of what follows
  std::shared_ptr<Account> account_;
  std::atomic<bool> profiled_{false};              ///< whether there is one
  std::map<std::thread::id, std::string> stages_;  ///< open ones of each thread

  ForkMutex capture_mutex_;                  ///< held by capture()
  std::atomic<std::thread::id> capturer_{};  ///< who holds it
  bool recording_ = false;                   ///< read and written by the capturer only
  std::shared_ptr<Account> launches_;        ///< of the recording; the capturer's likewise
};

}  // namespace crenel::device
