"""replication_wire.py: requests to the replication port by hand, as a stranger or a liar would send them."""
import base64
import hashlib
import itertools
import json
import struct

from batches import crc32c
from group import http_request

OPEN, DEFINE = 1, 1
REQUESTS = itertools.count(1000000)


def raw_id(text):
    """The 16 bytes behind 22 characters of base64url."""
    return base64.urlsafe_b64decode(text + "==") if text else bytes(16)


def members_hash(ids):
    return hashlib.sha256(",".join(map(str, sorted(ids))).encode()).digest()[:8]


def post(broker, route, body, token):
    headers = {"Content-Type": "application/octet-stream"}
    if token is not None:
        headers["X-Cluster-Token"] = token
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    return http_request(broker.host, broker.replicate_port, "POST", "/replication/" + route, data, headers)


def identity(brokers, sender, receiver, **changes):
    """The `id` of a JSON request from one broker to another."""
    mine, theirs = sender.status(), receiver.status()
    known = mine or theirs
    return {
        "v": 1, "group": known["group"], "from": sender.id,
        "incarnation": mine["incarnation"] if mine else "A" * 22, "to": receiver.id,
        "to_incarnation": theirs["incarnation"],
        "members": members_hash([b.id for b in brokers]).hex(), "rid": next(REQUESTS), **changes,
    }


def fetch_body(sender, receiver, epoch, group_id, incarnation, to_incarnation, members, entries=(), kind=1, flags=OPEN,
               session=0, seq=1, magic=b"MMQF", manifest=(0, 0), max_wait_ms=10, max_bytes=1 << 20, good_crc=True):
    """entries: (uid, partition, offset, durable, log start, last epoch)."""
    body = magic + struct.pack(">BBHiiiIQQ", 1, kind, flags, sender, receiver, epoch, len(entries), session, seq)
    body += group_id + incarnation + to_incarnation + members + struct.pack(">iqII", *manifest, max_wait_ms, max_bytes)
    for slot, (uid, partition, offset, durable, start, last_epoch) in enumerate(entries):
        body += struct.pack(">IBBHqqqi", slot, DEFINE, 0, 0, offset, durable, start, last_epoch)
        body += uid + struct.pack(">I", partition)
    crc = crc32c(body) if good_crc else crc32c(body) ^ 1
    return body + struct.pack(">I", crc)
