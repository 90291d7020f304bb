// A forked child that does something, with a limit on how long it may take.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace crenel::test {

/// "" when `job()` returned true in a child, else what became of it. A child that hangs is ended by
/// its alarm.
template <class Job>
std::string in_child(const Job& job, unsigned seconds = 120) {
  std::fflush(nullptr);  // else both would write what is in the buffers
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    signal(SIGALRM, SIG_DFL);
    alarm(seconds);
    int code = 1;
    try {
      code = job() ? 0 : 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the child: %s\n", error.what());
      code = 2;
    }
    _exit(code);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  if (WIFEXITED(status))
    return WEXITSTATUS(status) == 1 ? "the job returned false" : "the job threw";
  if (WTERMSIG(status) == SIGALRM) return "the job hung";
  return "signal " + std::to_string(WTERMSIG(status));
}

}  // namespace crenel::test
