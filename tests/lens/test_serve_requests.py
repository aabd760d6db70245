#!/usr/bin/env python3
"""test_serve_requests.py LENS: what `lens serve` answers to requests of every kind, good, bad and hostile.

Whatever is sent, the server gives a clear answer or none, goes on serving, writes nothing, and ends when it is told to.
"""
import concurrent.futures
import http.client
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import browser  # noqa: E402
import served  # noqa: E402
from browser import check  # noqa: E402

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'tools', 'lens', 'model')
APPLES = {'text': "he doesn't like apples"}


def status_of(answer):
    line = answer.split(b'\r\n', 1)[0].split(b' ')
    return int(line[1]) if len(line) > 1 and line[0].startswith(b'HTTP/1.') else None


def error_of(answer):
    try:
        return json.loads(answer.split(b'\r\n\r\n', 1)[1])['error']
    except (IndexError, KeyError, ValueError):
        return None


def request(line, *headers, body=b'', host=None, server=None):
    lines = [line, 'Host: ' + (host or '127.0.0.1:%d' % server.port), *headers]
    return '\r\n'.join(lines).encode('latin-1') + b'\r\n\r\n' + body


def alive(server, what):
    status, lines = server.post('/translate', {**APPLES, 'model': 'model'})
    check(status == 200 and lines[-1].get('translation') == "il n'aime pas les pommes", '%s: it goes on serving: %s' % (what, lines[-1:]))


def good_requests(server):
    ranges = b'Range: bytes=' + b'0-,' * 200 + b'0-'
    answer = server.raw(request('GET / HTTP/1.1', ranges.decode(), 'Connection: close', server=server))
    check(status_of(answer) == 200 and len(answer) < 1_000_000, 'parts of an answer are not given: %s, %d bytes' % (status_of(answer), len(answer)))
    status, headers, page = server.ask('GET', '/')
    check(status == 200 and headers['Content-Type'].startswith('text/html') and b'<title>lens serve</title>' in page, 'the page')
    for name, value in (('X-Content-Type-Options', 'nosniff'), ('X-Frame-Options', 'DENY'), ('Referrer-Policy', 'no-referrer'),
                        ('Cache-Control', 'no-store'), ('Cross-Origin-Resource-Policy', 'same-origin')):
        check(headers[name] == value, 'header %s: %s' % (name, headers[name]))
    check("frame-ancestors 'none'" in headers['Content-Security-Policy'], 'nobody may frame it')
    check(b"connect-src 'self'" in page and b"default-src 'none'" in page and b'unsafe' not in page.split(b'</head>')[0].split(b'<style>')[0],
          'the policy of the page')
    status, headers, models = server.ask('GET', '/models')
    models = json.loads(models)
    check(status == 200 and [m['name'] for m in models['models']] == ['model', 'model (2)'], 'models: %s' % models)
    check("default-src 'none'" in headers['Content-Security-Policy'], 'data may run nothing')

    ask = {**APPLES, 'model': 'model'}
    status, lines = server.post('/translate', ask)
    check(status == 200 and [line['event'] for line in lines] == ['source'] + ['token'] * (len(lines) - 2) + ['end'], 'lines of a translation')
    check(lines[-1]['translation'] == "il n'aime pas les pommes", 'what it says: %s' % lines[-1])
    status, forced = server.post('/translate', {**ask, 'force': 'elle'})
    check(forced[-1]['translation'].startswith('elle '), 'forced: %s' % forced[-1])
    status, masked = server.post('/translate', {**ask, 'hidden': [3]})
    weights = [line['weights'] for line in masked if line['event'] == 'token']
    check(weights and all(w[3] == 0 and abs(sum(w) - 1) < 1e-2 for w in weights), 'masked: %s' % weights)
    drawn = [server.post('/translate', {**ask, 'seed': seed, 'sampling_temperature': 5})[1][-1]['translation'] for seed in (1, 1, 2, 3)]
    check(drawn[0] == drawn[1] and len(set(drawn)) > 1, 'drawn: %s' % drawn)
    status, (tree,) = server.post('/beam', {**ask, 'beam_size': 3})
    check(status == 200 and len(tree['translations']) == 3 and len(tree['nodes']) > 10, 'the beam')
    status, headers, page = server.ask('GET', '/explain?model=model&text=he+sings&target=il+chante&word=1')
    check(status == 200 and b"travels back through attention" in page, 'an explanation: %s %s' % (status, page[:200]))
    for name in ('127.0.0.1', 'localhost', 'LOCALHOST', '[::1]'):
        answer = server.raw(request('GET /models HTTP/1.1', host='%s:%d' % (name, server.port)))
        check(status_of(answer) == 200, 'Host %s: %s' % (name, answer[:60]))
    answer = server.raw(request('GET /models HTTP/1.1', 'Origin: http://localhost:%d' % server.port, 'Sec-Fetch-Site: same-origin', server=server))
    check(status_of(answer) == 200, 'its own origin: %s' % answer[:60])
    try:
        with socket.create_connection(('::1', server.port), 5) as s:
            s.sendall(request('GET /models HTTP/1.1', host='[::1]:%d' % server.port))
            check(status_of(served.everything(s)) == 200, 'IPv6')
    except OSError:
        print('[skipped] no IPv6 here: [::1] was not asked')


def bad_requests(server):
    """(what, bytes, statuses that will do, words that the answer must have)"""
    def post(body, *headers, path='/translate'):
        kind = () if any(h.startswith('Content-Type') for h in headers) else ('Content-Type: application/json',)
        return request('POST %s HTTP/1.1' % path, *kind, 'Content-Length: %d' % len(body), *headers, body=body, server=server)

    def get(path, *headers, **more):
        return request('GET %s HTTP/1.1' % path, *headers, server=server, **more)

    j = json.dumps
    cases = [
        ('not JSON', post(b'{"text":'), {400}, 'JSON object'),
        ('no object', post(b'[]'), {400}, 'JSON object'),
        ('nothing', post(b''), {400}, ''),
        ('not UTF-8', post(b'{"text":"\xff\xfe"}'), {400}, 'not valid UTF-8'),
        ('nested', post(b'[' * 30000), {400}, 'JSON object'),
        ('another field', post(b'{"text":"a","<script>":1}'), {400}, 'no field'),
        ('no model', post(j({**APPLES, 'model': '../../etc'}).encode()), {404}, 'served are: model, model (2)'),
        ('two models', post(j(APPLES).replace('{', '{"model":"", ').encode()), {200, 404}, ''),
        ('too long a text', post(j({'text': 'a' * 5000, 'model': 'model'}).encode()), {413}, '4000 at most'),
        ('too many words', post(j({'text': 'a ' * 300, 'model': 'model'}).encode()), {422}, '200 at most'),
        ('no words', post(j({'text': ' ', 'model': 'model'}).encode()), {422}, 'no words'),
        ('an unknown word forced', post(j({**APPLES, 'model': 'model', 'force': 'zork'}).encode()), {422}, 'vocabulary'),
        ('all masked', post(j({**APPLES, 'model': 'model', 'hidden': list(range(5))}).encode()), {422}, 'masked'),
        ('a drawn beam', post(j({**APPLES, 'model': 'model', 'seed': 1}).encode(), path='/beam'), {422}, 'draws none'),
        ('a beam at a temperature', post(j({**APPLES, 'model': 'model', 'sampling_temperature': 2}).encode(), path='/beam'),
         {400}, 'no field'),
        ('one translation with a beam', post(j({**APPLES, 'model': 'model', 'beam_size': 2}).encode()), {400}, 'no field'),
        ('too large a body', post(b'{"text":"' + b'a' * 40000 + b'"}'), {413}, 'too large'),
        ('a body that says it is endless', request('POST /translate HTTP/1.1', 'Content-Type: application/json',
                                                   'Content-Length: 99999999999999999999', server=server), {400, 413}, ''),
        ('a negative length', request('POST /translate HTTP/1.1', 'Content-Type: application/json', 'Content-Length: -5', server=server), {400}, 'Content-Length'),
        ('two lengths', request('POST /translate HTTP/1.1', 'Content-Type: application/json', 'Content-Length: 2', 'Content-Length: 9',
                                body=b'{}', server=server), {400}, 'several headers'),
        ('chunks without end', request('POST /translate HTTP/1.1', 'Content-Type: application/json', 'Transfer-Encoding: chunked', server=server,
                                       body=b'1000\r\n' + b'a' * 4096 + b'\r\n' + (b'1000\r\n' + b'a' * 4096 + b'\r\n') * 40), {400, 413}, ''),
        ('a chunk of no size', request('POST /translate HTTP/1.1', 'Content-Type: application/json', 'Transfer-Encoding: chunked', server=server,
                                       body=b'zz\r\n\r\n'), {400}, ''),
        ('plain text', post(b'{}', 'Content-Type: text/plain'), {415}, 'application/json'),
        ('a form', post(b'text=a', 'Content-Type: application/x-www-form-urlencoded'), {415}, 'application/json'),
        ('a form with files', post(b'--x\r\n\r\n\r\n--x--', 'Content-Type: multipart/form-data; boundary=x'), {415}, 'application/json'),
        ('compressed', post(b'\x1f\x8b', 'Content-Encoding: gzip'), {415}, 'compressed'),
        ('GET of what is posted', get('/translate'), {405}, 'POST'),
        ('POST of the page', post(b'{}', path='/'), {405}, 'GET'),
        ('HEAD', request('HEAD / HTTP/1.1', server=server), {405}, None),
        ('OPTIONS', request('OPTIONS /translate HTTP/1.1', 'Origin: http://evil.example', 'Access-Control-Request-Method: POST', server=server), {403, 405}, ''),
        ('DELETE', request('DELETE / HTTP/1.1', server=server), {405}, 'GET'),
        ('no method', request('BREW / HTTP/1.1', server=server), {400}, ''),
        ('no request', b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', {400}, ''),
        ('not there', get('/favicon.ico'), {404}, 'nothing by this name'),
        ('upwards', get('/../../../../etc/passwd'), {404}, 'nothing by this name'),
        ('upwards, escaped', get('/%2e%2e/%2e%2e/etc/passwd'), {404}, 'nothing by this name'),
        ('a zero in a path', get('/models%00.html'), {404}, 'nothing by this name'),
        ('a long path', get('/' + 'a' * 9000), {414}, ''),
        ('a large header', get('/', 'X-A: ' + 'a' * 20000), {400, 413, 431}, ''),
        ('many headers', get('/', *['X-%d: %s' % (i, 'a' * 90) for i in range(2000)]), {400, 413, 431}, ''),
        ('a header without end', b'GET / HTTP/1.1\r\nHost: ' + b'a' * 100000, {400, 413, 431}, ''),
        ('ranges', get('/models', 'Range: bytes=' + ','.join('%d-%d' % (i, i) for i in range(1200))), {200, 206, 400, 416}, None),
        ('a range beyond numbers', get('/models', 'Range: bytes=99999999999999999999999-'), {200, 400, 416}, None),
        ('another host', get('/', host='evil.example:%d' % server.port), {403}, 'Host'),
        ('another port', get('/', host='127.0.0.1:1'), {403}, 'Host'),
        ('a name that begins alike', get('/', host='127.0.0.1.evil.example:%d' % server.port), {403}, 'Host'),
        ('an address of the network', get('/', host='10.0.0.1:%d' % server.port), {403}, 'Host'),
        ('no host', b'GET / HTTP/1.0\r\n\r\n', {403}, 'Host'),
        ('two hosts', get('/', 'Host: evil.example'), {400}, 'several headers'),
        ('another origin', post(j(APPLES).encode(), 'Origin: http://evil.example'), {403}, 'elsewhere'),
        ('another scheme', post(j(APPLES).encode(), 'Origin: https://127.0.0.1:%d' % server.port), {403}, 'elsewhere'),
        ('no origin at all', post(j(APPLES).encode(), 'Origin: null'), {403}, 'elsewhere'),
        ('another site', get('/models', 'Sec-Fetch-Site: cross-site'), {403}, 'elsewhere'),
        ('a link to an explanation', get('/explain?text=a', 'Sec-Fetch-Site: cross-site'), {403}, 'elsewhere'),
        ('no word to explain', get('/explain?model=model&text=he+sings&target=il+chante&word=77'), {422}, 'no word 77'),
        ('a word that is none', get('/explain?model=model&text=he+sings&word=-1'), {400}, 'number of a word'),
        ('tokens that are none', get('/explain?model=model&text=he+sings&tokens=4],[%22a'), {400}, '"tokens" must be a list'),
        ('a token that is none', get('/explain?model=model&text=he+sings&tokens=4,x'), {400}, '"tokens" must be a '),
        ('a token beyond the vocabulary', get('/explain?model=model&text=he+sings&tokens=4,99999'), {422}, 'no word 99999'),
        ('too many tokens', get('/explain?model=model&text=he+sings&tokens=4' + ',4' * 60), {422}, '60 at most'),
        ('a temperature that is none', get('/explain?model=model&text=he+sings&attention_temperature=-1'), {400}, 'from 0.05 to 20'),
        ('an explanation of bytes', get('/explain?model=model&text=%ff'), {400}, 'not valid UTF-8'),
        ('a field of an address that there is not', get('/explain?model=model&text=he+sings&attention_temprature=2'), {400}, 'no field'),
        ('a field of an address twice', get('/explain?model=model&text=he+sings&text=she+sings'), {400}, 'given twice'),
        ('an explanation of nothing', get('/explain?model=model'), {422}, 'has no words'),
        ('an explanation too long', get('/explain?model=model&text=' + 'a+' * 100), {422}, '60 at most'),
    ]
    for what, data, statuses, words in cases:
        answer = server.raw(data)
        check(status_of(answer) in statuses, '%s: %s, one of %s' % (what, answer[:300], statuses))
        if words is not None and status_of(answer) != 200:
            check(error_of(answer) is not None and words in error_of(answer), '%s: the answer says "%s": %s' % (what, words, answer[-300:]))
        check(b'root:x:' not in answer, what + ': no file is handed out')
    alive(server, 'bad requests')


def body_of(words=4):
    body = json.dumps({'model': 'model', 'text': ' '.join(['he sings'] * words)}).encode()
    return body


def rude_clients(server):
    head = request('POST /translate HTTP/1.1', 'Content-Type: application/json', 'Content-Length: 1000', server=server)
    long_request = request('POST /translate HTTP/1.1', 'Content-Type: application/json', 'Content-Length: %d' % len(body_of(90)), server=server) + body_of(90)
    # Connections that say nothing, that end in the middle, that are reset in the middle, that do not listen.
    for n in range(40):
        s = server.connect()
        if n % 4 == 1:
            s.sendall(head)
        if n % 4 == 2:
            s.sendall(head + b'{"text":')
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        if n % 4 == 3:
            s.sendall(long_request)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        s.close()
    alive(server, 'connections that were closed in the middle')
    half = server.connect()
    half.sendall(request('GET /models HTTP/1.1', server=server))
    half.shutdown(socket.SHUT_WR)
    check(status_of(served.everything(half)) == 200, 'a client that has said all still hears the answer')
    half.close()
    deaf = []
    for _ in range(8):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.connect(('127.0.0.1', server.port))
        s.sendall(long_request)
        deaf.append(s)
    alive(server, 'clients that do not listen')
    for s in deaf:
        s.close()

    # Slow ones: a byte now and then. Others are served meanwhile, and each is told in the end.
    began = time.time()
    slow = [server.connect() for _ in range(20)]
    answers = [b''] * len(slow)
    told = 0
    text = request('GET /models HTTP/1.1', 'X-Slow: ' + 'a' * 400, server=server)
    at = 0
    while time.time() - began < 40 and told < len(slow):
        for i, s in enumerate(slow):
            try:
                s.sendall(text[at:at + 1])
            except OSError:
                pass
        if at == 5:
            alive(server, 'slow clients')
        at += 1
        time.sleep(0.1)
        if time.time() - began > 5.2:
            for i, s in enumerate(slow):
                s.settimeout(2)
                answers[i] = answers[i] or served.everything(s)
            told = sum(1 for a in answers if a)
    check(all(status_of(a) == 408 and 'within 5 seconds' in (error_of(a) or '') for a in answers),
          'slow clients are told that they are too late: %s' % answers[:2])
    for s in slow:
        s.close()
    alive(server, 'slow clients that gave up')


def many_at_once(server):
    def one(i):
        try:
            status, lines = server.post('/translate', {**APPLES, 'model': 'model', 'hidden': [i % 3]})
            return status, lines[-1].get('translation') or lines[-1].get('error')
        except (OSError, http.client.HTTPException) as e:
            return None, str(e)
    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(one, range(200)))
    alone = [one(i) for i in range(3)]
    check(len(set(alone)) > 1 and all(status == 200 for status, _ in alone), 'answers that differ: %s' % alone)
    check(all(a == alone[i % 3] for i, a in enumerate(answers)), '200 at once are answered as one by one: %s' %
          [a for i, a in enumerate(answers) if a != alone[i % 3]][:3])
    # More than have room are told so, and none is left without an answer.
    idle = []
    for _ in range(700):
        try:
            idle.append(server.connect(2))
        except OSError:
            break
    refused, until = 0, time.time() + 20
    while not refused and time.time() < until:
        for s in select.select(idle, [], [], 0.5)[0]:
            idle.remove(s)
            refused += status_of(served.everything(s)) == 503
            s.close()
    check(refused > 0, 'those there is no room for get 503')
    for s in idle:
        s.close()
    time.sleep(0.5)
    alive(server, '700 connections')


def explanations_at_once(server):
    path = '/explain?model=model&text=he+sings&target=il+chante&word=0'
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: server.ask('GET', path), range(12)))
        alive(server, 'explanations at once')
    statuses = [status for status, _, _ in answers]
    for status, headers, _ in answers:
        check(status != 503 or headers['Retry-After'] == '1', 'when to ask again: %s' % headers)
    check(set(statuses) <= {200, 503} and 200 in statuses, 'explanations take their turn: %s' % statuses)


def ended(server, what, how=signal.SIGINT):
    """With status 0, at once: in two seconds, or, said aloud, somewhat more on a busy machine."""
    status, seconds = server.end(how)
    if seconds > 2:
        print('slow: %s: ended after %.1f s' % (what, seconds))
    check(status == 0 and seconds < 8, '%s: status %s after %.1f s' % (what, status, seconds))


def ends(lens, work):
    """Ctrl-C, SIGTERM and SIGHUP end it, idle or not."""
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        server = served.Served(lens, MODEL, cwd=work)
        ended(server, how, how)
    server = served.Served(lens, MODEL, cwd=work, ignored=signal.SIGHUP)
    server.process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    alive(server, 'hung up under nohup')
    ended(server, 'nohup')
    server = served.Served(lens, MODEL, cwd=work)
    idle = [server.connect() for _ in range(10)]
    busy = server.connect()
    busy.sendall(request('GET /explain?text=' + '+'.join(['he', 'sings', 'and'] * 12) + ' HTTP/1.1', server=server))
    time.sleep(0.3)
    ended(server, 'in the middle of work')
    for s in idle + [busy]:
        s.close()


def command_line(lens, work):
    server = served.Served(lens, cwd=work)
    taken = subprocess.run([lens, 'serve', '--port', str(server.port)], capture_output=True, text=True, cwd=work, timeout=60)
    check(taken.returncode == 1 and 'cannot listen at http://127.0.0.1:%d/' % server.port in taken.stderr and '--port 0' in taken.stderr,
          'a port that is taken: %s' % taken)
    status, _, models = server.ask('GET', '/models')
    check([m['name'] for m in json.loads(models)['models']] == ['the small model', 'the small Transformer'], 'without a model its own are there: %s' % models)
    server.end()
    check('warning' not in server.said, 'no warning: ' + server.said)
    everywhere = served.Served(lens, '--host', '0.0.0.0', cwd=work)
    answer = everywhere.raw(request('GET /models HTTP/1.1', host='10.1.2.3:%d' % everywhere.port))
    check(status_of(answer) == 200, '--host 0.0.0.0 goes by any address: %s' % answer[:60])
    answer = everywhere.raw(request('GET /models HTTP/1.1', host='evil.example:%d' % everywhere.port))
    check(status_of(answer) == 403, 'but by no name: %s' % answer[:60])
    everywhere.end()
    check('warning: whoever can reach 0.0.0.0' in everywhere.said, 'it warns: ' + everywhere.said)
    short = served.Served(lens, '--host', '127.1', cwd=work)
    answer = short.raw(request('GET /models HTTP/1.1', host='127.0.0.1:%d' % short.port))
    check(status_of(answer) == 200, '--host 127.1 goes by the name that browsers call it: %s' % answer[:60])
    short.end()
    try:
        long = served.Served(lens, '--host', '0:0:0:0:0:0:0:1', cwd=work)
        with socket.create_connection(('::1', long.port), 5) as s:
            s.sendall(request('GET /models HTTP/1.1', host='[::1]:%d' % long.port))
            answer = served.everything(s)
        check(status_of(answer) == 200, '--host 0:0:0:0:0:0:0:1 likewise: %s' % answer[:60])
        long.end()
    except RuntimeError:
        print('[skipped] no IPv6 here: a long address was not listened at')
    for arguments, status, words in ((['nowhere'], 1, 'no such model directory'), (['--port', '70000'], 2, '--port'), (['--host', 'no.such.invalid'], 1, 'lens: cannot listen')):
        ran = subprocess.run([lens, 'serve', *arguments], capture_output=True, text=True, cwd=work, timeout=60)
        check(ran.returncode == status and words in ran.stderr, '%s: %s' % (arguments, ran))


def main(lens):
    lens = os.path.abspath(lens)
    with tempfile.TemporaryDirectory() as work:
        copy = os.path.join(work, 'copy', 'model')
        shutil.copytree(MODEL, copy)
        before = [sorted(files) for _, _, files in os.walk(work)]
        try:
            server = served.Served(lens, MODEL, copy, cwd=work)
        except served.NoServer:
            print('[skipped] this build has no server (libcpp-httplib-dev)')
            return served.SKIPPED
        for test in (good_requests, bad_requests, rude_clients, many_at_once, explanations_at_once):
            began = time.time()
            test(server)
            check(server.process.poll() is None, test.__name__ + ': the server is still there')
            print('%s: %.1f s' % (test.__name__, time.time() - began))
        ended(server, 'Ctrl-C')
        check(server.said.startswith('Serving model, model (2). Ctrl-C ends it.'), 'what it said: ' + server.said)
        ends(lens, work)
        command_line(lens, work)
        check([sorted(files) for _, _, files in os.walk(work)] == before, 'nothing is written')
    print('%d failures' % browser.failures)
    return 1 if browser.failures else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
