#!/usr/bin/env python3
"""Writes the files beside it with NumPy (2.x), for test_npy.cc."""
import os

import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))
x = np.arange(24).reshape(2, 3, 4) * 0.5 - 3
for name in ("f4", "f8", "i4", "f2", "i8", "i2"):
    np.save(name, x.astype(name))
np.save("u1", np.arange(7, dtype="u1"))
np.save("bool", np.array([True, False, True]))
np.save("big_endian", x.astype(">f4"))
np.save("fortran", np.asfortranarray(x.astype("f4")))
np.save("scalar", np.float64(2.5))
np.save("empty", np.zeros((0, 3), "f4"))
np.save("long", np.arange(123456, dtype="u1")[:100000][::1000].copy())
np.save("huge_int", np.array([1 << 40]))
np.save("complex", np.array([1j]))
np.save("objects", np.array([{}], dtype=object), allow_pickle=True)
np.save("records", np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")]))
