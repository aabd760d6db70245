#include "server.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <thread>

#include <common/error.h>
#include <common/json_text.h>
#include <common/utf8.h>
#include <gradus/error.h>

#include "admission.h"
#include "connection.h"

namespace lens {
namespace {

constexpr size_t kThreads = 32;  // connections that are answered at a time
constexpr size_t kQueue = 256;   // and that wait for one of these
constexpr size_t kMostBody = 32 << 10;
constexpr auto kToEnd = std::chrono::milliseconds(1200);

std::string error_text(const std::string& why) {
  return json_text::dump({{"error", translator::utf8::printable_lines(why)}}) + "\n";
}

const char* phrase(int status) {
  switch (status) {
    case 408: return "Request Timeout";
    case 413: return "Payload Too Large";
    case 503: return "Service Unavailable";
    default: return "Bad Request";
  }
}

// For whom the HTTP library has no answer: what it could not read, or was not asked to.
std::string bare_answer(int status, const std::string& why) {
  const std::string body = error_text(why);
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
      "X-Content-Type-Options: nosniff\r\nConnection: close\r\n{}\r\n{}",
      status, phrase(status), body.size(), status == 503 ? "Retry-After: 1\r\n" : "", body);
}

// ---- threads ----

// Threads that take what waits, first come first served; what does not fit is not taken.
class Workers {
 public:
  Workers() {
    for (size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Workers() {
    stop();
    for (std::thread& t : threads_) t.join();
  }

  bool offer(std::function<void()> job) {
    std::lock_guard lock(mutex_);
    if (stopping || jobs_.size() >= kQueue) return false;
    jobs_.push_back(std::move(job));
    one_.notify_one();
    return true;
  }

  void stop() {
    std::lock_guard lock(mutex_);
    stopping = true;
    one_.notify_all();
  }

  // Whether all is done in time.
  bool idle_within(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, limit, [&] { return busy_ == 0 && jobs_.empty(); });
  }

  std::atomic<bool> stopping{false};

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      one_.wait(lock, [&] { return stopping || !jobs_.empty(); });
      if (jobs_.empty()) return;
      std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      ++busy_;
      lock.unlock();
      job();
      lock.lock();
      --busy_;
      done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable one_, done_;
  std::deque<std::function<void()>> jobs_;
  size_t busy_ = 0;
  std::vector<std::thread> threads_;
};

// ---- one server ----

thread_local bool refuse_all = false;                // of the thread that accepts, while no worker is free
thread_local const Connection* answering = nullptr;  // of a worker

// Why a request came to nothing before anybody asked what it wants.
Refused unread(const Connection& from) {
  if (from.too_large())
    return {413, fmt::format("a request has {} bytes at most, headers and all", Connection::kMostRequest)};
  if (from.too_late())
    return {408,
            fmt::format("the request did not come within {} seconds", Connection::kToAsk.count() / 1000)};
  return {400, "this is no request that can be read"};
}

class Server : public httplib::Server {
 public:
  Server(ServedModels& answers, Workers& workers, const Names& names)
      : answers_(answers), workers_(workers), names_(names) {
    new_task_queue = [this] { return new Queue(workers_); };
    set_socket_options([](socket_t socket) {
      const int yes = 1;  // a server that was ended a moment ago; not one beside it, as SO_REUSEPORT would
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_tcp_nodelay(true);
    set_payload_max_length(kMostBody);
    set_default_headers({{"X-Content-Type-Options", "nosniff"},
                         {"X-Frame-Options", "DENY"},
                         {"Referrer-Policy", "no-referrer"},
                         {"Cross-Origin-Resource-Policy", "same-origin"},
                         {"Cross-Origin-Opener-Policy", "same-origin"},
                         {"Cache-Control", "no-store"}});
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      // Parts of an answer, each as often as is asked, would have no bound; HTTP lets a server give the whole.
      const_cast<httplib::Request&>(request).ranges.clear();
      if (answered(response, [&] { admit(request, names_); })) return HandlerResponse::Unhandled;
      if (response.status == 405) response.set_header("Allow", allowed_method(request.path));
      return HandlerResponse::Handled;
    });
    // What the library itself refuses.
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty()) return;
      const Refused why = unread(*answering);
      if (response.status == 400)
        refuse(response, why.status, why.what());
      else
        refuse(response, response.status,
               response.status == 413   ? "the request is too large"
               : response.status == 414 ? "the address is too long: 8 KB at most"
                                        : why.what());
    });
    set_routes();
  }

  // The library's own queue of connections would be 5.
  void lengthen_backlog() { ::listen(svr_sock_, static_cast<int>(kQueue)); }

 private:
  // Hands connections to the workers that all servers share.
  struct Queue : httplib::TaskQueue {
    explicit Queue(Workers& w) : workers(w) {}
    void enqueue(std::function<void()> answer) override {
      if (workers.offer(answer)) return;
      refuse_all = true;
      answer();
      refuse_all = false;
    }
    void shutdown() override {}
    Workers& workers;
  };

  static void refuse(httplib::Response& response, int status, const std::string& why) {
    response.status = status;
    if (status == 503) response.set_header("Retry-After", "1");
    response.set_header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    response.set_content(error_text(why), "application/json");
  }

  // Runs it; false when it failed, and the response says why.
  template <class F>
  static bool answered(httplib::Response& response, F&& answer) {
    try {
      answer();
      return true;
    } catch (const Refused& e) {
      refuse(response, e.status, e.what());
    } catch (const translator::InputError& e) {
      refuse(response, 422, e.what());
    } catch (const gradus::Error& e) {
      refuse(response, 422, reason(e));
    } catch (const std::bad_alloc&) {
      refuse(response, 503, "takes more memory than there is");
    } catch (const std::exception& e) {
      refuse(response, 500, e.what());
    }
    return false;
  }

  void set_routes() {
    Get("/",
        [this](const httplib::Request&, httplib::Response& response) { page(response, answers_.page()); });
    Get("/models",
        [this](const httplib::Request&, httplib::Response& response) { data(response, answers_.models()); });
    Get("/explain", [this](const httplib::Request& request, httplib::Response& response) {
      answered(response, [&] {
        page(response, answers_.explain(read_explain(request.params)));
      });
    });
    Post("/beam", [this](const httplib::Request& request, httplib::Response& response) {
      answered(response, [&] {
        data(response, answers_.beam(answers_.prepare(read_request(request.body, "sampling_temperature"))));
      });
    });
    Post("/translate", [this](const httplib::Request& request, httplib::Response& response) {
      answered(response, [&] {
        auto job =
            std::make_shared<ServedModels::Job>(answers_.prepare(read_request(request.body, "beam_size")));
        response.set_header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
        response.set_chunked_content_provider(
            "application/x-ndjson",
            [this, job](size_t, httplib::DataSink& sink) { return tell(*job, sink); });
      });
    });
  }

  // A line for each thing that is said. Once it has begun an error can only be a line, too.
  bool tell(const ServedModels::Job& job, httplib::DataSink& sink) {
    auto say = [&](const json& line) {
      const std::string text = json_text::dump(line) + "\n";
      return sink.write(text.data(), text.size());
    };
    httplib::Response failed;
    if (!answered(failed, [&] { answers_.translate(job, say); }))
      say({{"event", "error"}, {"error", json_text::parse(failed.body)["error"]}});
    sink.done();
    return true;
  }

  static void page(httplib::Response& response, const std::string& text) {
    response.set_header("Content-Security-Policy", "frame-ancestors 'none'");  // the page has the rest
    response.set_content(text, "text/html; charset=utf-8");
  }
  static void data(httplib::Response& response, const json& x) {
    response.set_header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    response.set_content(json_text::dump(x) + "\n", "application/json");
  }

  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket, workers_.stopping);
    if (refuse_all) {
      connection.write(bare_answer(503, "too many ask at once; ask again in a second"));
      connection.finish(std::chrono::milliseconds(0));  // this is the thread that accepts
      return true;
    }
    bool closed = false;
    answering = &connection;
    try {
      process_request(connection, true, closed, nullptr);
    } catch (const std::exception&) {  // of a header's number, say
    }
    answering = nullptr;
    if (connection.asked() && !connection.answered()) {
      const Refused why = unread(connection);
      connection.write(bare_answer(why.status, why.what()));
    }
    connection.finish();
    return true;
  }

  ServedModels& answers_;
  Workers& workers_;
  const Names& names_;
};

// ---- signals ----

int signalled[2] = {-1, -1};  // a pipe; a second Ctrl-C ends the program at once

void on_signal(int) {
  const int before = errno;
  [[maybe_unused]] const ssize_t told = ::write(signalled[1], "!", 1);
  errno = before;
}

void catch_signals() {
  if (pipe2(signalled, O_CLOEXEC) != 0)
    gradus::fail("lens", fmt::format("no pipe: {}", std::strerror(errno)));
  for (int s : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {}, old = {};
    action.sa_handler = on_signal;
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    sigaction(s, nullptr, &old);
    if (old.sa_handler != SIG_IGN) sigaction(s, &action, nullptr);  // nohup
  }
}

void wait_for_signal() {
  char byte;
  while (::read(signalled[0], &byte, 1) < 0 && errno == EINTR) continue;
}

std::string address(const std::string& host, int port) {
  return fmt::format("http://{}:{}/", host.find(':') == std::string::npos ? host : "[" + host + "]", port);
}

}  // namespace

void run_server(ServedModels& answers, const ServerOptions& options,
                const std::function<void(const std::vector<std::string>&)>& ready) {
  catch_signals();
  std::vector<std::string> hosts = {"127.0.0.1", "::1"}, addresses;
  if (!options.host.empty()) hosts = {options.host};
  int port = options.port;
  Workers workers;
  Names names(options.host);
  std::vector<std::unique_ptr<Server>> servers;
  for (const std::string& host : hosts) {
    auto server = std::make_unique<Server>(answers, workers, names);
    const bool any = port == 0;
    if (any ? (port = server->bind_to_any_port(host)) <= 0 : !server->bind_to_port(host, port)) {
      if (!servers.empty()) continue;  // no IPv6 here
      gradus::fail("lens",
                   fmt::format("cannot listen at {}: there is no such address here, or its port is taken; "
                               "hint: --port 0 takes any that is free",
                               address(host, options.port)));
    }
    server->lengthen_backlog();
    servers.push_back(std::move(server));
    addresses.push_back(address(host, port));
    names.set_port(port);
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < servers.size(); ++i)
    threads.emplace_back([&, i] {
      // What the system cannot accept for a moment ends the library's loop.
      while (!servers[i]->listen_after_bind() && !workers.stopping) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        if (servers[i]->bind_to_port(hosts[i], port)) servers[i]->lengthen_backlog();
      }
    });
  for (const auto& server : servers)
    while (!server->is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ready(addresses);
  wait_for_signal();
  answers.stop();
  workers.stop();
  for (const auto& server : servers) server->stop();
  for (std::thread& thread : threads) thread.join();
  // An explanation takes its time, and nothing is lost with it.
  if (!workers.idle_within(kToEnd)) std::_Exit(0);
}

}  // namespace lens
