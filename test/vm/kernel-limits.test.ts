/**
 * The kernel of a sandbox: limits that follow its memory though its template booted with less, connections that fill no table, devices
 * and names as on other machines, and the word that it ran out of memory.
 */
import { beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../harness/daemon.ts";
import { shortOrLong, withGuests } from "../harness/guests.ts";

const MEMORY_MIB = 4096;
const THREADS = 3000;
const WATCHES = 12_000;
const SHARED_MIB = 300;
/** Over the 2048 that a kernel of 256 MiB tracks; without KVM each takes tens of milliseconds. */
const LOCAL_CONNECTIONS = shortOrLong("connections of the loopback", 2200, 8000);
/** Without KVM, next to other guests. */
const LONG_MS = 300_000;
const EXEC_MS = 240_000;

/** Not by Python's own threads: they would take turns with one lock, which without KVM takes minutes. */
const START_THREADS = `
import ctypes, os, re
libc = ctypes.CDLL(None)
thread = ctypes.c_ulong()
for number in range(${THREADS}):
    error = libc.pthread_create(ctypes.byref(thread), None, libc.pause, None)
    if error: raise OSError(error, f"thread {number}")
print(int(re.search("Threads:(.*)", open("/proc/self/status").read())[1]) - 1, flush=True)
os._exit(0)
`;
/** In memory, so that 12,000 are made in seconds also without KVM. */
const WATCH = `
import ctypes, os, tempfile
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
root = tempfile.mkdtemp(dir="/dev/shm")
for number in range(${WATCHES}):
    path = f"{root}/{number}"
    os.mkdir(path)
    if libc.inotify_add_watch(fd, path.encode(), 0x100) < 0: raise OSError(ctypes.get_errno(), f"watch {number}")
print("all")
`;
const SHARE = `
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=${SHARED_MIB} << 20)
mib = bytes([1]) * (1 << 20)
for at in range(0, ${SHARED_MIB} << 20, 1 << 20): block.buf[at:at + (1 << 20)] = mib
print("all")
block.unlink()
`;
const CONNECT = `
import socket, threading
server = socket.socket()
server.bind(("127.0.0.1", 7999))
server.listen(1024)
def serve():
    while True:
        client, _ = server.accept()
        client.sendall(b"x")
        client.close()
threading.Thread(target=serve, daemon=True).start()
for number in range(${LOCAL_CONNECTIONS}):
    with socket.socket() as client:
        client.settimeout(20)
        client.connect(("127.0.0.1", 7999))
        client.recv(1)
print("all")
`;
const OPEN_DEVICES = `
import os
for path in ("/dev/fuse", "/dev/net/tun"): os.close(os.open(path, os.O_RDWR))
print("all")
`;
const RESOLVE_OWN_NAME = `
import socket
name = socket.gethostname()
address = socket.gethostbyname(name)
socket.socket().bind((name, 0))
print(name, address)
`;

withGuests("the kernel of a sandbox", {}, (guests) => {
  const run = (agent: string, body: Record<string, unknown>): Promise<Json> =>
    guests.daemon.exec("k", agent, { timeout_ms: EXEC_MS, ...body });
  const python = (script: string, user?: string) =>
    run("big", { argv: ["python3", "-c", script], ...(user === undefined ? {} : { user }) });
  const sh = (line: string, agent = "big") => guests.daemon.sh("k", agent, line);

  beforeAll(async () => {
    const { daemon } = guests;
    await daemon.room("k");
    await daemon.sandbox("k", "big", guests.cid(), { memory_mib: MEMORY_MIB });
    await daemon.sandbox("k", "7", guests.cid());
  });

  describe("with 4096 MiB", () => {
    test("limits are those of a machine that boots with that memory", async () => {
      const shown = await sh(`
        cat /proc/sys/kernel/threads-max /proc/sys/fs/file-max; bash -c "ulimit -u"
        sed 's/.*\\t//' /proc/sys/net/ipv4/tcp_mem
        cat /proc/sys/fs/inotify/max_user_watches /proc/sys/fs/inotify/max_user_instances
        cat /proc/sys/net/netfilter/nf_conntrack_max /sys/module/nf_conntrack/parameters/hashsize
        df --output=size -BM /dev/shm | tail -1 | tr -d ' M'`);
      expect(shown.split("\n").map(Number)).toEqual([
        ...[32_768, 419_430, 16_384, 98_304],
        ...[524_288, 8192, 262_144, 65_536, 2048],
      ]);
    });

    test(`${THREADS} threads can run`, { timeout: LONG_MS }, async () => {
      expect(await python(START_THREADS, "agent")).toMatchObject({ stdout: `${THREADS}\n`, exit_code: 0 });
    });

    test(`${WATCHES} directories can be watched`, { timeout: LONG_MS }, async () => {
      expect(await python(WATCH, "agent")).toMatchObject({ stdout: "all\n", exit_code: 0 });
    });

    test(`${SHARED_MIB} MiB can be shared`, { timeout: LONG_MS }, async () => {
      expect(await python(SHARE)).toMatchObject({ stdout: "all\n", exit_code: 0 });
    });

    test("loopback connections are not tracked, and those to the room are", { timeout: LONG_MS }, async () => {
      expect(await python(CONNECT)).toMatchObject({ stdout: "all\n", exit_code: 0 });
      expect(Number(await sh("cat /proc/sys/net/netfilter/nf_conntrack_count"))).toBeLessThan(100);
      expect(JSON.parse(await sh("room whoami --json"))).toMatchObject({ agent_id: "big" });
      // Names still resolve.
      expect(await sh("getent ahostsv4 localhost | head -1")).toMatch(/^127\.0\.0\.1 /);
    });
  });

  test("with 256 MiB has more than the kernel's defaults", async () => {
    expect((await sh("cat /proc/sys/kernel/threads-max; bash -c 'ulimit -u'", "7")).split("\n").map(Number)).toEqual([
      4096, 2048,
    ]);
  });

  test("leaves threads for the agent even if root uses up the rest", { timeout: LONG_MS }, async () => {
    const all = await run("7", {
      argv: ["python3", "-c", START_THREADS.replace(`range(${THREADS})`, "range(100_000)")],
    });
    expect(all).toMatchObject({
      exit_code: 1,
      stderr: expect.stringMatching(/\[Errno 11\] thread 38[0-3]\d/),
    });
    expect(await sh("cat /sys/fs/cgroup/roomd/pids.max", "7")).toBe("3840");
  });

  test("with a numeric agent ID has a host name that is not parsed as an address", async () => {
    expect(await sh(`python3 -c '${RESOLVE_OWN_NAME}'`, "7")).toBe("agent-7 127.0.1.1");
  });

  test("lets every user open fuse and tun, and creates loop devices on demand", async () => {
    expect(await python(OPEN_DEVICES, "agent")).toMatchObject({ stdout: "all\n", exit_code: 0 });
    const loop = await sh("truncate -s 1M /tmp/image; losetup -f --show /tmp/image");
    expect(loop).toMatch(/^\/dev\/loop\d+$/);
    await sh(`losetup -d ${loop}; rm /tmp/image`);
  });

  test("of a fork has another boot ID, and user namespaces still have their own procfs", async () => {
    const bootId = (agent: string) => sh("cat /proc/sys/kernel/random/boot_id", agent);
    const source = await bootId("7");
    expect(source).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(await bootId("big")).not.toBe(source);
    await guests.daemon.ok("POST", "/v1/rooms/k/sandboxes/7/fork", { agents: [{ agent_id: "forked" }] });
    const forked = await bootId("forked");
    expect([source, await bootId("7")]).toEqual([source, source]);
    expect([await bootId("forked"), forked === source]).toEqual([forked, false]);
    const own = await run("forked", {
      argv: ["unshare", "-Urpf", "--mount-proc", "sh", "-c", "echo $$"],
      user: "agent",
    });
    expect(own).toMatchObject({ stdout: "1\n", exit_code: 0 });
    expect(await run("forked", { command: "echo x >/proc/sys/kernel/random/boot_id" })).not.toMatchObject({
      exit_code: 0,
    });
  });

  describe("that runs out of memory", () => {
    const EAT = "x = [bytearray(10**8) for _ in range(100)]";

    test("reports it for the killed command, and for one whose child was killed", { timeout: LONG_MS }, async () => {
      const ended = await run("7", { argv: ["python3", "-c", EAT] });
      expect(ended).toMatchObject({ signal: "SIGKILL", exit_code: null, oom: true });
      const { items } = await guests.daemon.ok("GET", "/v1/rooms/k/audit?event=exec.finished&limit=100");
      const record = items.find(({ details }: Json) => details.exec_id === ended.exec_id);
      expect(record.details).toMatchObject({ signal: "SIGKILL", oom: true });
      const shell = await run("7", { command: `python3 -c '${EAT}'; exit 3` });
      expect(shell).toMatchObject({ exit_code: 3, oom: true });
      const named = await guests.daemon.cli(["exec", "k", "7", "--", "python3", "-c", EAT]);
      expect(named).toMatchObject({
        status: 137,
        stderr: expect.stringMatching(/^roomd: .*\bSIGKILL: .*\bmemory\b/m),
      });
    });

    test("does not report it for other commands", async () => {
      for (const command of ["true", "kill -9 $$"]) expect(await run("7", { command })).not.toHaveProperty("oom");
    });
  });
});
