"""Owns what every scenario on the virtual host does: installs the service of this directory, talks to it, and prints results."""
import json
import subprocess
import time
import urllib.error
import urllib.request

URL = "http://127.0.0.1:8080"
ROOMD = "/usr/local/lib/roomd/roomd"
SANDBOX = "/v1/rooms/demo/sandboxes/agent-1"
# Emulated, on a host with other things to do, a machine of this one takes minutes to boot.
DEADLINE_S = 600
AWAY_S = 8
key = None


def result(name, *what):
    print("result:", name, *what, flush=True)


def shell(command):
    return subprocess.run(command, shell=True, text=True, capture_output=True)


def call(method, path, body=None, timeout=180):
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
    try:
        with urllib.request.urlopen(urllib.request.Request(URL + path, data, headers, method=method), timeout=timeout) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())
    except OSError as error:
        return 0, {"detail": str(error)}


def until(what, holds, pause=2):
    """The first answer of `holds` that is true."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        found = holds()
        if found:
            return found
        time.sleep(pause)
    result("problem", f"{what}: not so after {DEADLINE_S} s")
    return None


def start():
    shell("systemctl start roomd")
    until("the service is ready", lambda: call("GET", "/health")[0] == 200)


def restart(meanwhile=lambda: None):
    shell("systemctl stop roomd")
    meanwhile()
    time.sleep(AWAY_S)
    start()


def state():
    return call("GET", SANDBOX)[1].get("state", "none")


def ran(command="true"):
    status, body = call("POST", f"{SANDBOX}/exec", {"command": command, "timeout_ms": 60_000})
    return "ran" if status == 200 and body.get("exit_code") == 0 else f"{status} {json.dumps(body)[:400]}"


def install(acceleration="kvm", pool=0):
    """As a user does, with the templates that lie here; nothing is started."""
    shell("mkdir -p /usr/local/lib/roomd /etc/roomd; cp roomd roomd-agent /usr/local/lib/roomd/")
    with open("/etc/roomd/config.toml", "w") as config:
        config.write(f'data_dir = "/payload/data"\nacceleration = "{acceleration}"\npool.size = {pool}\n')
    shell("cp roomd.service /etc/systemd/system/; systemctl daemon-reload")


def sign_up():
    global key
    key = json.loads(shell(f"{ROOMD} init --json").stdout)["api_key"]


def create():
    """The room and its sandbox, which runs then."""
    call("POST", "/v1/rooms", {"room_id": "demo"})
    # An emulated host with other things to do may not boot a machine of its own in the time that the service gives it.
    for attempt in range(5):
        wanted = {"agent_id": "agent-1", "guest_cid": 9100, "memory_mib": 256}
        status, body = call("POST", "/v1/rooms/demo/sandboxes/from-template?wait=none", wanted)
        result("accepted", status, "" if status < 300 else json.dumps(body)[:400])
        until("the sandbox has started", lambda: state() not in ("creating", "starting"), 5)
        if state() == "running":
            break
        result("refused", json.dumps(call("GET", SANDBOX)[1].get("status"))[:300])
        call("DELETE", SANDBOX)
    result("created", state())


def the_end():
    print(shell("tail -n 5 data/sandboxes/*/vmm.log; journalctl -u roomd --no-pager | tail -n 40").stdout)
