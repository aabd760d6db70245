#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include <httplib.h>

namespace lens {

/// One connection, as the HTTP library reads and writes it, with the bounds that it does not have: so many
/// bytes and seconds for a whole request, headers and all, and for its answer. What is written waits here while
/// the other side is slow, so that nobody translates at its pace.
class Connection : public httplib::Stream {
 public:
  static constexpr size_t kMostRequest = 64 << 10, kMostWaiting = 32 << 20;  // bytes
  static constexpr std::chrono::milliseconds kToAsk{5000}, kToListen{5000};

  /// Owns the socket.
  Connection(int socket, const std::atomic<bool>& stopping);
  ~Connection() override;
  Connection(const Connection&) = delete;

  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  using Stream::write;
  bool is_readable() const override { return true; }
  bool is_writable() const override { return !gone_; }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

  /// Sends what waits, if it can be within so long. Then says that this is all, and reads for a moment what is
  /// still on its way: a socket that is closed with unread bytes takes the answer back.
  void finish(std::chrono::milliseconds patience = kToListen);

  /// something came
  bool asked() const { return received_ > 0; }
  bool answered() const { return written_; }
  bool too_late() const { return late_; }
  bool too_large() const { return received_ > kMostRequest; }

 private:
  using Clock = std::chrono::steady_clock;
  bool wait(short event, Clock::time_point until) const;
  bool send_some();

  int socket_;
  const std::atomic<bool>& stopping_;
  Clock::time_point ask_until_;
  std::string in_, out_;
  size_t at_ = 0, received_ = 0;
  bool gone_ = false, late_ = false, written_ = false;
};

}  // namespace lens
