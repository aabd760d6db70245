#pragma once

#include <string>
#include <utility>
#include <vector>

namespace translator {

/// The path of a file in a directory.
std::string in(const std::string& directory, const std::string& file);
/// The same place from everywhere. Standard input (-) and no path (empty) stay.
std::string absolute_path(const std::string& path);
/// Writes a whole file: it stands under its name complete or not at all, and until then what stood there before
/// (gradus/io/replacement.h). @throws InputError "PATH: cannot be written: No space left on device".
void write_file(const std::string& path, const std::string& text);
/// The names in a directory, in no order; none where there is no such directory.
std::vector<std::string> names_in(const std::string& directory);
/// With those above it. @throws InputError "DIR: cannot be made: Permission denied".
void make_directory(const std::string& path);
/// That make_directory would do it and files could be made there, for who has long work to do first.
/// @throws InputError.
void must_be_makeable(const std::string& path);
/// @throws InputError.
std::string read_file(const std::string& path);

/// Whether two paths name one file, be it there or not.
bool is_same_place(const std::string& a, const std::string& b);

/// What is read is never written, nor a file called "-". @param option That names `out`, for people.
/// @throws UsageError where it is.
void must_not_overwrite(const std::string& option, const std::string& out,
                        const std::vector<std::string>& read);

/// The same of a model's directory, which is replaced with all that it holds. @throws InputError.
void must_not_replace(const std::string& out, const std::vector<std::string>& read);

/// The same of what lies within directories that are read, models'. @throws UsageError.
void must_not_write_within(const std::string& option, const std::string& out,
                           const std::vector<std::string>& read);

/// @throws UsageError where more than one of the paths, each behind its option, is standard input: "--data and
/// --valid name standard input, which can be read once".
void must_read_stdin_once(const std::vector<std::pair<std::string, std::string>>& option_paths);

/// Keeps a directory for who writes a model there: until it goes, or the process and those that it has forked
/// end, however they do. It is a lock on the directory itself, whose files Model::replace changes, and leaves
/// nothing behind. A file system without locks keeps nobody out.
class DirectoryLock {
 public:
  DirectoryLock() = default;
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  /// Once it has the directory it does nothing, and so where there is none yet.
  /// @throws InputError "DIR: another training writes here; name another place".
  void take(const std::string& directory);

 private:
  int fd_ = -1;
};

/// A long text to standard output, whatever signals come in between. @throws std::runtime_error that says why
/// not.
void print_whole(const std::string& text);

/// Adds a line to a log, in one piece and onto the disk. @throws InputError.
void append_line(const std::string& path, const std::string& line);

}  // namespace translator
