#include "core/output_file.h"

#include "core/sha256.h"
#include "crenel/core/error.h"

#if defined(__unix__) || defined(__APPLE__)

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "crenel/core/watch.h"

namespace crenel {
namespace {

constexpr const char* kWritable = "a file that can be written";
constexpr mode_t kOwner = 0600, kAnyone = 0666, kPermissions = 0777, kWriters = 0022;

const char* kind_of(mode_t mode) {
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

/// A name that nobody can have prepared.
std::string partial_name() {
  std::array<u8, 16> random;
  if (::getentropy(random.data(), random.size()) != 0)
    throw StateError("the operating system gives no randomness for the name of a new file",
                     {{"found", std::generic_category().message(errno)}});
  return ".crenel-" + hex(random) + ".partial";
}

}  // namespace

OutputFile::OutputFile(const std::string& path, FileAccess access) : path_(path) {
  try {
    open_folder();
    create(access, check_target());
  } catch (...) {
    close_all();
    throw;
  }
}

OutputFile::~OutputFile() { close_all(); }

void OutputFile::close_all() {
  if (file_ >= 0) ::close(file_);
  if (created_) ::unlinkat(folder_, partial_.c_str(), 0);
  if (folder_ >= 0) ::close(folder_);
  file_ = folder_ = -1;
  created_ = false;
}

void OutputFile::fail(const std::string& found, const char* expected, int code) const {
  std::vector<ErrorField> fields{
      {"where", "file '" + path_ + "'"}, {"found", found}, {"expected", expected}};
  if (code != 0) {
    fields.push_back({"errno", code});
    fields.push_back({"filename", path_});
  }
  throw SerializationError(
      cat("cannot save the file '", path_, "': found ", found, ", expected ", expected),
      std::move(fields));
}

void OutputFile::fail() const {
  const int code = errno;
  fail(std::generic_category().message(code), kWritable, code);
}

void OutputFile::open_folder() {
  if (path_.find('\0') != std::string::npos) fail("a NUL in the name", kWritable);
  const std::size_t slash = path_.rfind('/');
  name_ = slash == std::string::npos ? path_ : path_.substr(slash + 1);
  if (path_.empty()) fail("no name", kWritable, ENOENT);
  if (name_.empty()) fail("the name of a directory", kWritable, EISDIR);
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) fail();
}

int OutputFile::check_target() const {
  struct stat about{};
  if (::fstatat(folder_, name_.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return -1;
    fail();
  }
  if (!S_ISREG(about.st_mode))
    fail(kind_of(about.st_mode), "a regular file, or none", S_ISDIR(about.st_mode) ? EISDIR : 0);
  // Another user's file does not choose who may write to ours: one of mode 0666 may wait here.
  if (about.st_uid != ::geteuid())
    return static_cast<int>(about.st_mode & kPermissions & ~kWriters);
  return static_cast<int>(about.st_mode & kPermissions);
}

void OutputFile::create(FileAccess access, int replaced) {
  partial_ = partial_name();
  const bool closed = access == FileAccess::owner || replaced >= 0;
  file_ = ::openat(folder_, partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   closed ? kOwner : kAnyone);
  if (file_ < 0) fail();
  created_ = true;
  // The umask may have taken from the owner what the caller was promised.
  if (closed &&
      ::fchmod(file_, access == FileAccess::owner ? kOwner : static_cast<mode_t>(replaced)) != 0)
    fail();
}

void OutputFile::write(u64 at, std::span<const u8> bytes) {
  constexpr std::size_t kPiece = std::size_t(8) << 20;
  while (!bytes.empty()) {
    watch::point();
    const ssize_t done =
        ::pwrite(file_, bytes.data(), std::min(bytes.size(), kPiece), static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail();
    if (done == 0) fail("a write of no bytes", kWritable);
    at += static_cast<u64>(done);
    // Brought to the disk as it comes: commit() would wait for all of it, and cannot be stopped.
    unsynced_ += static_cast<u64>(done);
    if (watch::active() && unsynced_ >= 4 * kPiece) {
      if (::fdatasync(file_) != 0) fail();
      unsynced_ = 0;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

void OutputFile::commit() {
  if (::fsync(file_) != 0) fail();
  const int closed = ::close(file_);
  file_ = -1;
  if (closed != 0) fail();
  check_target();  // what came in the meantime is no more to be replaced than what was there
  if (::renameat(folder_, partial_.c_str(), folder_, name_.c_str()) != 0) fail();
  created_ = false;
  // Some file systems have nothing to bring to the disk here, and say EINVAL.
  if (::fsync(folder_) != 0 && errno != EINVAL)
    fail(std::generic_category().message(errno) + " after the file took its name",
         "a directory that can be brought to the disk", errno);
}

}  // namespace crenel

#else

namespace crenel {

OutputFile::OutputFile(const std::string& path, FileAccess) {
  throw UnsupportedError("writing the file '" + path + "': this host has no POSIX files");
}
OutputFile::~OutputFile() = default;
void OutputFile::write(u64, std::span<const u8>) {}
void OutputFile::commit() {}

}  // namespace crenel

#endif

namespace crenel {

void write_file(const std::string& path, std::span<const u8> bytes, FileAccess access) {
  OutputFile file(path, access);
  file.write(0, bytes);
  file.commit();
}

}  // namespace crenel
