"""resetting_proxy.py: a TCP relay in front of one port that resets its connections when told to.

A reset comes at any byte: requests are cut, and answers are lost whose requests were carried out.
"""
import selectors
import socket
import struct
import threading

CHUNK_BYTES = 1 << 16
# SO_LINGER with no time left: close() sends RST, and throws away what is not sent.
AT_ONCE = struct.pack("ii", 1, 0)


class ResettingProxy:
    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.resets = 0
        self._resetting = threading.Event()
        self._stopping = threading.Event()
        self._peers = {}   # socket -> the other end
        self._unsent = {}  # socket -> bytes for it
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._thread.join()
        for each in list(self._peers):
            self._drop(each)
        self.listener.close()
        self._selector.close()

    def reset_all(self):
        """Soon: by the relaying thread."""
        self._resetting.set()

    def _run(self):
        while not self._stopping.is_set():
            for key, events in self._selector.select(0.01):
                if key.fileobj is self.listener:
                    self._accept()
                elif key.fileobj in self._peers:
                    self._relay(key.fileobj, events)
            if self._resetting.is_set():
                self._resetting.clear()
                for each in list(self._peers):
                    self.resets += each in self._peers
                    self._drop(each)

    def _accept(self):
        near, _ = self.listener.accept()
        try:
            far = socket.create_connection(self.target, 2)
        except OSError:
            near.close()
            return
        for each, other in ((near, far), (far, near)):
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            self._peers[each], self._unsent[each] = other, b""
            self._selector.register(each, selectors.EVENT_READ)

    def _relay(self, each, events):
        try:
            if events & selectors.EVENT_WRITE:
                self._send(each)
            # One chunk at a time a direction: who does not read is not read from.
            if events & selectors.EVENT_READ:
                data = each.recv(CHUNK_BYTES)
                if not data:
                    self._drop(each)
                    return
                other = self._peers[each]
                self._unsent[other] = data
                self._send(other)
        except BlockingIOError:
            pass
        except OSError:
            self._drop(each)

    def _send(self, each):
        try:
            sent = each.send(self._unsent[each]) if self._unsent[each] else 0
        except BlockingIOError:
            sent = 0
        self._unsent[each] = self._unsent[each][sent:]
        self._watch(each)
        self._watch(self._peers[each])

    def _watch(self, each):
        reads = selectors.EVENT_READ if not self._unsent[self._peers[each]] else 0
        writes = selectors.EVENT_WRITE if self._unsent[each] else 0
        if self._selector.get_map().get(each) is not None:
            self._selector.unregister(each)
        if reads | writes:
            self._selector.register(each, reads | writes)

    def _drop(self, each):
        """Both ends of its relay."""
        for end in (each, self._peers.get(each)):
            if end is None or end not in self._peers:
                continue
            if self._selector.get_map().get(end) is not None:
                self._selector.unregister(end)
            del self._peers[end], self._unsent[end]
            end.close()
