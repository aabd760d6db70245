#include "connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace lens {

Connection::Connection(int socket, const std::atomic<bool>& stopping)
    : socket_(socket), stopping_(stopping), ask_until_(Clock::now() + kToAsk) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
}

Connection::~Connection() { ::close(socket_); }

// In short turns, so that the end of the server is noticed; once in any case.
bool Connection::wait(short event, Clock::time_point until) const {
  while (!stopping_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd one{socket_, event, 0};
    if (poll(&one, 1, static_cast<int>(std::clamp<long>(left, 0, 100))) > 0) return true;
    if (left <= 0) return false;
  }
  return false;
}

ssize_t Connection::read(char* to, size_t size) {
  while (at_ == in_.size()) {
    if (too_large()) return -1;
    if (!wait(POLLIN, ask_until_)) {
      late_ = true;
      return -1;
    }
    char chunk[4096];
    const ssize_t got = recv(socket_, chunk, sizeof chunk, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return got;
    in_.assign(chunk, static_cast<size_t>(got));
    at_ = 0;
    received_ += in_.size();
  }
  const size_t n = std::min(size, in_.size() - at_);
  std::copy_n(in_.data() + at_, n, to);
  at_ += n;
  return static_cast<ssize_t>(n);
}

// What the other side takes now. False: it is gone.
bool Connection::send_some() {
  size_t sent = 0;
  while (sent < out_.size()) {
    const ssize_t n = send(socket_, out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      gone_ = errno != EAGAIN;
      break;
    }
    sent += static_cast<size_t>(n);
  }
  out_.erase(0, sent);
  return !gone_;
}

ssize_t Connection::write(const char* from, size_t size) {
  if (gone_ || stopping_ || out_.size() + size > kMostWaiting) return -1;
  written_ = true;
  out_.append(from, size);
  return send_some() ? static_cast<ssize_t>(size) : -1;
}

void Connection::finish(std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  while (!gone_ && !out_.empty() && wait(POLLOUT, until)) send_some();
  shutdown(socket_, SHUT_WR);
  const auto drained = std::min(until, Clock::now() + std::chrono::milliseconds(500));
  char chunk[4096];
  for (size_t left = 1 << 20; left > 0 && !gone_ && wait(POLLIN, drained);) {
    const ssize_t got = recv(socket_, chunk, sizeof chunk, 0);
    if (got <= 0) break;
    left -= std::min(left, static_cast<size_t>(got));
  }
}

}  // namespace lens
