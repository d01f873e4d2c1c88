#!/usr/bin/python3
"""Attacks of other users of a host on its service and its sandbox agent-1, and the host as seen by the QEMUs of two organizations.
`attack` and `look` print their results as the last line, in JSON."""
import grp
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time

import on_host
from on_host import call, shell, until

DATA = "/var/lib/roomd"
GUESTS = "/run/roomd/g"
SANDBOX = "/v1/rooms/demo/sandboxes/agent-1"
TURNS = "/run/roomd/turns.jsonl"
DROP_IN = "/run/systemd/system/roomd.service.d/turns.conf"
ROOT_SOCKET = "/run/root.sock"
SECRET = "a line for root only"
OTHER = "/run/other-org.json"
NOBODY = 65_534
EVERY_S = 0.05


def called(key, method, path, body=None):
    on_host.key = key
    status, answer = call(method, path, body)
    if status >= 300 or status == 0:
        raise SystemExit(f"{method} {path}: {status} {json.dumps(answer)}")
    return answer


def keys():
    return dict(line.strip().split("=", 1) for line in open(f"{DATA}/setup.env"))


def qemu_of(sandbox_id):
    """The process of its QEMU; None until that has become its user."""
    try:
        pid = json.load(open(f"{GUESTS}/{sandbox_id}/processes.json"))["qemu"]["pid"]
        status = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
    except (OSError, TypeError, ValueError):
        return None
    uid = int(status["Uid"].split()[0])
    if uid == 0 or not status["Name"].strip().startswith("qemu"):
        return None
    return {"sandbox_id": sandbox_id, "pid": pid, "uid": uid, "groups": sorted(map(int, status["Groups"].split()))}


def as_qemu(qemu, command):
    """As a guest that has taken over this QEMU: its user, and the file systems that it sees."""
    user = [f"--reuid={qemu['uid']}", f"--regid={qemu['uid']}", f"--groups={','.join(map(str, qemu['groups']))}"]
    within = ["nsenter", f"--target={qemu['pid']}", "--mount", "setpriv", *user, "--bounding-set=-all", "--inh-caps=-all"]
    return subprocess.run([*within, "sh", "-c", command], text=True, capture_output=True)


def said_by(unit):
    return shell(f"journalctl -u {unit} -o cat").stdout.splitlines()


def in_background(unit, *argv, uid=0):
    subprocess.run(["systemd-run", "-q", f"--unit={unit}", f"--uid={uid}", "python3", "-u", *argv], check=True)


def listen():
    """Serves a socket that only root may connect to."""
    os.umask(0o077)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(ROOT_SOCKET)
    listener.listen()
    print("listens", flush=True)
    while True:
        client, _ = listener.accept()
        print("connected", flush=True)
        client.sendall(f"{SECRET}\r\n".encode())


class Calls(threading.Thread):
    """Calls of another organization, at a steady pace until `end`, and the milliseconds that they took."""

    def __init__(self, key):
        super().__init__(daemon=True)
        self.key, self.over, self.took = key, threading.Event(), []
        self.start()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", 8080)
        while not self.over.wait(EVERY_S):
            begun = time.monotonic()
            connection.request("GET", "/v1/me", headers={"authorization": f"Bearer {self.key}"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise SystemExit(f"/v1/me: {answer.status}")
            self.took.append((time.monotonic() - begun) * 1000)

    def end(self):
        self.over.set()
        self.join()
        took = sorted(self.took)
        return {"count": len(took), "median_ms": took[len(took) // 2], "longest_ms": took[-1]}


def longest_wait():
    """The piece of a scan of processes that waited longest for anything but the daemon's own work."""
    turns = [json.loads(line) for line in open(TURNS) if line.endswith("\n")]
    return max((turn["ms"] - turn["cpu_ms"] for turn in turns if turn["label"] == "host.processes"), default=0)


def restart_killed():
    """With a record of the daemon's turns."""
    os.makedirs(os.path.dirname(DROP_IN), exist_ok=True)
    with open(DROP_IN, "w") as file:
        file.write(f"[Service]\nEnvironment=ROOMD_TEST_TURNS={TURNS}\n")
    shell("systemctl daemon-reload; systemctl kill -s KILL roomd")
    until("the service answers", lambda: call("GET", "/health")[1].get("ready"), 0.5)


def attack():
    named = keys()
    own_key = named["ROOMD_API_KEY"]
    other = called(named["ROOMD_OPERATOR_KEY"], "POST", "/v1/orgs", {"name": "Other"})
    with open(OTHER, "w") as file:
        json.dump(other, file)
    # An organization with templates gets a group for them when the service starts.
    for org_id in (called(own_key, "GET", "/v1/me")["org_id"], other["org_id"]):
        os.makedirs(f"{DATA}/org-templates/{org_id}", exist_ok=True)
    sandbox_id = called(own_key, "GET", SANDBOX)["sandbox_id"]
    qemu = qemu_of(sandbox_id)
    own = f"{GUESTS}/{sandbox_id}/vm"

    in_background("neighbours", f"{HERE}/neighbours.py", f"{own}/qmp.sock", uid=NOBODY)
    in_background("root-socket", f"{HERE}/other_users.py", "listen")
    until("the socket is served", lambda: "listens" in said_by("root-socket"), 0.5)
    until("the neighbours run", lambda: "ready" in said_by("neighbours"), 0.5)
    # From now on their locks delay others, and not their share of the processor.
    shell("systemctl set-property --runtime neighbours CPUWeight=1")
    links = as_qemu(qemu, f"ln -sf {ROOT_SOCKET} {own}/qmp.sock && ln -sf {ROOT_SOCKET} {own}/console.sock && readlink {own}/*")
    restart_killed()
    calls = Calls(other["api_key"])
    found = until("its adoption ended", lambda: (now := called(own_key, "GET", SANDBOX))["state"] == "failed" and now, 0.5)
    leaked = shell(f"grep -rl '{SECRET}' {DATA}/sandboxes/{sandbox_id}").stdout
    called(own_key, "DELETE", SANDBOX)
    asked = calls.end()
    of_neighbours = said_by("neighbours")
    shell(f"systemctl stop neighbours; rm -r {os.path.dirname(DROP_IN)}; systemctl daemon-reload")
    scope = f"/sys/fs/cgroup/roomd.slice/roomd-{sandbox_id}.scope"
    places = [path for path in (f"{GUESTS}/{sandbox_id}", f"{DATA}/sandboxes/{sandbox_id}", scope) if os.path.exists(path)]
    print(json.dumps({
        "links": links.stdout.split(),
        "status": found and found["status"],
        "connections": said_by("root-socket").count("connected"),
        "leaked": leaked,
        "left": [*places, *shell(f"pgrep -lU {qemu['uid']}").stdout.splitlines()],
        "killed": sum(line.startswith("killed") for line in of_neighbours),
        "held_ms": [float(line.split()[1]) * 1000 for line in of_neighbours if line.startswith("held")][0],
        "longest_wait_ms": longest_wait(),
        "calls": asked,
    }))


def look():
    """What the QEMUs of one sandbox of each organization share and see. Both sandboxes remain."""
    other = json.load(open(OTHER))
    called(other["api_key"], "POST", "/v1/rooms", {"room_id": "demo"})
    qemus = []
    for cid, key in enumerate([keys()["ROOMD_API_KEY"], other["api_key"]], 9300):
        body = {"agent_id": "agent-1", "guest_cid": cid, "memory_mib": 256}
        sandbox_id = called(key, "POST", "/v1/rooms/demo/sandboxes/from-template?wait=none", body)["sandbox_id"]
        qemus.append(until("QEMU runs", lambda: qemu_of(sandbox_id), 0.5))
    for qemu, another in zip(qemus, reversed(qemus)):
        mounts = [line.split() for line in open(f"/proc/{qemu['pid']}/mountinfo")]
        qemu["directories"] = {mount[4]: mount[5].split(",")[0] for mount in mounts if "roomd" in mount[4]}
        for name, command in {
            "names": f"ls -A {GUESTS} {DATA}/sandboxes",
            "processes": "ls -A /proc",
            "command_line": f"cat /proc/{another['pid']}/cmdline",
        }.items():
            qemu[name] = as_qemu(qemu, command).stdout.split()
    templates = os.path.realpath(f"{DATA}/templates/default/current")
    groups = [grp.getgrnam("kvm").gr_gid, os.stat(f"{templates}/root.qcow2").st_gid]
    print(json.dumps({"qemus": qemus, "groups": groups, "templates": templates}))


HERE = os.path.dirname(os.path.abspath(__file__))
if __name__ == "__main__":
    {"listen": listen, "attack": attack, "look": look}[sys.argv[1]]()
