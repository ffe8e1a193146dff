"""lines.py: what the Python programs have in common: lines in, lines out."""
import json
import sys
import threading

ARGUMENTS = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
_LOCK = threading.Lock()


def tell(event, **fields):
    with _LOCK:
        print(json.dumps({"event": event, **fields}, ensure_ascii=False), flush=True)


def read_input():
    return [json.loads(line) for line in sys.stdin]


def input_end():
    """An event that is set when the input ends."""
    ended = threading.Event()

    def wait():
        for _ in sys.stdin:
            pass
        ended.set()
    threading.Thread(target=wait, daemon=True).start()
    return ended


def data(text):
    return None if text is None else text.encode()


def text_of(data_or_none):
    return None if data_or_none is None else bytes(data_or_none).decode()


def headers(record):
    return [(name, value.encode()) for name, value in record["headers"]]


def tell_record(partition, offset, key, value, headers_of_it, timestamp):
    tell("record", partition=partition, offset=offset, key=text_of(key), value=text_of(value),
         headers=[[name, text_of(value)] for name, value in headers_of_it or []], timestamp=timestamp)


def run(verbs):
    verbs[sys.argv[1]]()
    tell("done")
