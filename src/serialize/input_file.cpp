#include "serialize/input_file.h"

#include "serialize/reject.h"

#if defined(__unix__) || defined(__APPLE__)

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "crenel/core/watch.h"

namespace crenel::serialize {
namespace {

constexpr const char* kReadable = "a file that can be read";

/// The refusal that `code` of the operating system is.
[[noreturn]] void fail(const std::string& path, int code, const std::string& found) {
  const std::string where = "file '" + path + "'";
  throw SerializationError(cat("cannot load ", where, ": found ", found, ", expected ", kReadable),
                           {{"where", where},
                            {"found", found},
                            {"expected", kReadable},
                            {"errno", code},
                            {"filename", path}});
}

[[noreturn]] void fail(const std::string& path) {
  const int code = errno;
  fail(path, code, std::generic_category().message(code));
}

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  // Non-blocking, so that a pipe is refused below instead of waited for.
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) fail(path);
  struct stat about{};
  const bool known = ::fstat(file_, &about) == 0;
  if (known && S_ISREG(about.st_mode)) {
    size_ = static_cast<u64>(about.st_size);
    return;
  }
  const int error = errno;
  ::close(file_);
  errno = error;
  if (!known) fail(path);
  if (S_ISDIR(about.st_mode)) fail(path, EISDIR, "a directory");
  reject("file '" + path + "'", "no regular file", kReadable);
}

InputFile::~InputFile() { ::close(file_); }

void InputFile::read(u64 at, std::span<u8> to) const {
  constexpr std::size_t kPiece = std::size_t(8) << 20;
  while (!to.empty()) {
    watch::point();
    const ssize_t got =
        ::pread(file_, to.data(), std::min(to.size(), kPiece), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_);
    if (got == 0)
      reject("file '" + path_ + "'", cat("its end at byte ", at),
             cat("the ", size_, " bytes that it had when it was opened"), at);
    at += static_cast<u64>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace crenel::serialize

#else

namespace crenel::serialize {

InputFile::InputFile(const std::string& path) {
  throw UnsupportedError("reading the file '" + path + "': this host has no POSIX files");
}
InputFile::~InputFile() = default;
void InputFile::read(u64, std::span<u8>) const {}

}  // namespace crenel::serialize

#endif
