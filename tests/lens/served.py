"""A `lens serve` that runs while a test asks it."""
import http.client
import json
import os
import signal
import socket
import subprocess
import time

SKIPPED = 77


class NoServer(Exception):
    """This build has none."""


class Served:
    def __init__(self, lens, *arguments, cwd=None, ignored=None):
        def signals():  # ended by these even where the tests' own parent ignores them, as a shell's background does
            for each in (signal.SIGINT, signal.SIGHUP):
                signal.signal(each, signal.SIG_IGN if each == ignored else signal.SIG_DFL)

        self.process = subprocess.Popen([lens, 'serve', '--port', '0', *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                                        text=True, preexec_fn=signals)
        first = self.process.stdout.readline()
        if not first:
            self.said = self.process.stderr.read()
            self.process.wait()
            if 'this build has no server' in self.said:
                raise NoServer()
            raise RuntimeError('lens serve: ' + self.said)
        self.address = first.strip()
        self.port = int(self.address.rsplit(':', 1)[1].rstrip('/'))

    def connect(self, timeout=30):
        return socket.create_connection(('127.0.0.1', self.port), timeout)

    def raw(self, data, timeout=30):
        """Bytes sent as they are; all that comes back."""
        with self.connect(timeout) as s:
            s.sendall(data)
            return everything(s)

    def ask(self, method, path, body=None, **headers):
        """Status, headers, body."""
        c = http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)
        try:
            c.request(method, path, body, {k.replace('_', '-'): v for k, v in headers.items()})
            r = c.getresponse()
            return r.status, r.headers, r.read()
        finally:
            c.close()

    def post(self, path, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, _, answer = self.ask('POST', path, data, Content_Type='application/json')
        return status, [json.loads(line) for line in answer.decode().split('\n') if line]

    def end(self, how=signal.SIGINT):
        """Exit status, and the seconds that it took."""
        began = time.time()
        self.process.send_signal(how)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None, time.time() - began
        finally:
            self.said = self.process.stderr.read()
            self.process.stdout.close()
            self.process.stderr.close()
        return self.process.returncode, time.time() - began


def everything(s):
    out = b''
    try:
        while piece := s.recv(1 << 16):
            out += piece
    except (ConnectionResetError, socket.timeout):
        pass
    return out


def small_model(translator, work, name, *options):
    """A model of one epoch."""
    out = os.path.join(work, name)
    subprocess.run([translator, 'train', '--corpus-size', '300', *options, '--epochs', '1', '--threads', '1', '-q', '--out', out],
                   check=True, stderr=subprocess.DEVNULL)
    return out


def small_transformer(translator, work):
    return small_model(translator, work, 'transformer', '--model', 'transformer', '--d-model', '16', '--heads', '2', '--layers', '1')
