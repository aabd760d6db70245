"""ct2_answers.py MODEL TYPE BATCH THREADS MODE LINES: sentences in pieces from standard input, their translations out.

MODE apart: each thread has sentences of its own; shared: the threads share each product. It waits for LINES lines before
it answers them, which a translator that reads from a pipe need not be told.
"""
import sys

import ctranslate2

model, kind, batch, threads, mode, lines = sys.argv[1:7]
batch, threads, lines = int(batch), int(threads), int(lines)
workers = {"inter_threads": threads, "intra_threads": 1} if mode == "apart" else {"intra_threads": threads}
translator = ctranslate2.Translator(model, device="cpu", compute_type=kind, **workers)
waiting = []
for line in sys.stdin:
    waiting.append(line.split())
    if len(waiting) < lines:
        continue
    longest = max(map(len, waiting))  # Gradus's limit is each sentence's own
    found = translator.translate_batch(waiting, max_batch_size=batch, beam_size=1, max_decoding_length=2 * longest + 12)
    sys.stdout.write("".join(" ".join(r.hypotheses[0]) + "\n" for r in found))
    sys.stdout.flush()
    waiting = []
