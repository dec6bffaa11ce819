"""Reads nothing until SIGUSR1, then everything; prints the number of bytes. Meanwhile it writes to stderr."""

import os
import select
import signal

read, write = os.pipe()
os.set_blocking(write, False)
signal.set_wakeup_fd(write)
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.alarm(60)
os.write(1, f'{{"pid":{os.getpid()}}}\n'.encode())
while not select.select([read], [], [], 0.02)[0]:
    os.write(2, b"not reading yet\n")
total = 0
while data := os.read(0, 65536):
    total += len(data)
os.write(1, f'{{"bytes":{total}}}\n'.encode())
