#include "serialize/mapped_file.h"

#include "serialize/reject.h"

#if defined(__unix__) || defined(__APPLE__)

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace crenel::serialize {
namespace {

[[noreturn]] void fail(const std::string& path) {
  reject("file '" + path + "'", std::generic_category().message(errno), "a file that can be read");
}

/// Closes the descriptor: the map does not need it.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  // Non-blocking, so that a pipe is refused below instead of waited for.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat about{};
  if (file.number < 0 || ::fstat(file.number, &about) != 0) fail(path);
  if (!S_ISREG(about.st_mode))
    reject("file '" + path + "'", "no regular file", "a file that can be mapped");
  size_ = static_cast<std::size_t>(about.st_size);
  if (size_ == 0) return;  // no map of nothing; the reader says what an empty file lacks
  data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (data_ == MAP_FAILED) fail(path);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace crenel::serialize

#else

namespace crenel::serialize {

MappedFile::MappedFile(const std::string& path) {
  throw UnsupportedError("mapping the file '" + path + "': this host has no POSIX memory maps");
}
MappedFile::~MappedFile() = default;

}  // namespace crenel::serialize

#endif
