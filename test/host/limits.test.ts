/**
 * Limits of a host with systemd, cgroup v2 and project quotas: for each limit a program that tries to break it, and the result. Takes
 * minutes, so it runs if ROOMD_TEST_LONG is 1.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { bootHost, DATA, INSTALL, storyOf, WITH_KEY } from "./installed.ts";
import type { VirtualHost } from "./machine.ts";
import { LEFT_OUT } from "./virtual-host.ts";

const EXEC = `${WITH_KEY} roomd exec demo agent-1 --timeout 4m --`;
/** The scope of the only sandbox. */
const SCOPE = "$(echo /sys/fs/cgroup/roomd.slice/roomd-sbx_*.scope | tr ' ' '\\n' | tail -1)";
const NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups";

if (LEFT_OUT !== null) console.log(`limits on a virtual host: left out, because ${LEFT_OUT}`);

let host: VirtualHost;

describe.skipIf(LEFT_OUT !== null)("limits", () => {
  beforeAll(async () => {
    host = await bootHost();
    await host.ok(`${INSTALL} /payload/roomd.deb`);
    await host.ok(`printf 'pool.size = 0\\ndrive.limit_gib = 1\\n' >/etc/roomd/config.toml; roomd setup`);
  });

  afterEach(async ({ task }) => {
    if (task.result?.state === "fail") console.log(await storyOf(host));
  });

  afterAll(() => host?.end());

  test("every process of a sandbox is in its scope, and only the daemon in its service", async () => {
    const programs = await host.ok(
      `for p in $(cat ${SCOPE}/cgroup.procs); do cat /proc/$p/comm; done | sort | uniq -c`,
    );
    expect(programs.replace(/ +/g, " ").split("\n")).toEqual([" 1 qemu-system-x86", " 2 virtiofsd"]);
    expect(
      await host.ok(
        "for p in $(cat /sys/fs/cgroup/system.slice/roomd.service/cgroup.procs); do cat /proc/$p/comm; done",
      ),
    ).toBe("roomd");
  });

  test("a guest that floods its drive gets EDQUOT from the kernel, and its files stay", async () => {
    const { status, text } = await host.run(
      `${EXEC} sh -c 'echo kept >/mnt/drive/kept; fallocate -l 20G /mnt/drive/flood'`,
    );
    expect(status).not.toBe(0);
    expect(text).toMatch(/Disk quota exceeded|No space left/);
    expect(await host.ok(`${EXEC} cat /mnt/drive/kept`)).toBe("kept");
  });

  test("a process that exhausts a scope's memory is killed there, and the host continues", async () => {
    const before = Number(await host.ok(`sed -n 's/^oom_kill //p' ${SCOPE}/memory.events`));
    const limit = Number(await host.ok(`cat ${SCOPE}/memory.max`));
    expect(limit).toBeLessThan(2 * 1024 ** 3);
    // As a virtiofsd would that its guest has made do so.
    const eater = `python3 -c 'import os; open("'${SCOPE}'/cgroup.procs","w").write(str(os.getpid())); x = bytearray(3 << 30)'`;
    expect((await host.run(`${eater}; exit $?`)).status).toBe(137);
    expect(Number(await host.ok(`sed -n 's/^oom_kill //p' ${SCOPE}/memory.events`))).toBeGreaterThan(before);
    expect(JSON.parse(await host.ok("roomd health --json"))).toMatchObject({ ready: true });
  });

  test("a fork bomb in QEMU's place is stopped by the scope's task limit", async () => {
    const most = Number(await host.ok(`cat ${SCOPE}/pids.max`));
    const bomb = [
      "import os, sys, time",
      "open(sys.argv[1] + '/cgroup.procs', 'w').write(str(os.getpid()))",
      "made = 0",
      "try:",
      "  while made < 5000:",
      "    if os.fork() == 0: time.sleep(60); os._exit(0)",
      "    made += 1",
      "except OSError as error: print(made, error.errno)",
      "os.killpg(0, 9)",
    ].join("\n");
    await host.ok(`cat >/root/bomb.py <<'END'\n${bomb}\nEND`);
    const { text } = await host.run(`setsid python3 -u /root/bomb.py ${SCOPE}`);
    const [made, errno] = text.trim().split(" ").map(Number);
    expect([Number(made) < most, errno]).toEqual([true, 11]);
    expect(JSON.parse(await host.ok("roomd health --json"))).toMatchObject({ ready: true });
  });

  test("another user of the host cannot access files, sockets or ports of a guest", async () => {
    const readable = await host.ok(
      `${NOBODY} find ${DATA} /run/roomd /etc/roomd \\( -type f -readable -o -type d -readable -o -type s -writable \\) 2>/dev/null || true`,
    );
    expect(readable.split("\n").filter((path) => !/^\/etc\/roomd(\/config\.toml)?$/.test(path) && path !== "")).toEqual(
      [],
    );
    // By names that it may have learned elsewhere.
    const sockets = await host.ok("find /run/roomd -type s");
    for (const socket of sockets.split("\n").filter(Boolean)) {
      const connect = `import socket; socket.socket(socket.AF_UNIX).connect("${socket}")`;
      expect([socket, (await host.run(`${NOBODY} python3 -c '${connect}'`)).text]).toEqual([
        socket,
        expect.stringContaining("PermissionError"),
      ]);
    }
    // The agent dials; nothing of it listens for the host's users.
    const dial = "import socket; s = socket.socket(socket.AF_VSOCK); s.settimeout(5); s.connect((9999, PORT))";
    for (const port of [22, 1016, 1024, 5000]) {
      const { status, text } = await host.run(`${NOBODY} python3 -c '${dial.replace("PORT", String(port))}'`);
      expect([port, status]).not.toEqual([port, 0]);
      expect(text).toMatch(/reset|refused|timed out|No such device/i);
    }
    expect(
      (await host.run(`${NOBODY} curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/v1/rooms`)).text,
    ).toBe("401");
  });

  test("the unit is sandboxed as declared", async () => {
    const exposure = await host.ok("systemd-analyze security roomd --no-pager | tail -1");
    console.log(`systemd-analyze security: ${exposure}`);
    expect(Number(/(\d+\.\d+)/.exec(exposure)?.[1])).toBeLessThan(6);
  });

  test("missing kernel features are reported, with the remedy", async () => {
    const doctor = async () => (await host.run("roomd doctor")).text;
    await host.ok(`${WITH_KEY} roomd room destroy demo --delete-drive && systemctl stop roomd`);
    await host.ok("modprobe -r vhost_vsock && mv /lib/modules/$(uname -r)/kernel/drivers/vhost /root/vhost");
    expect(await doctor()).toMatch(/fail +vsock .*\n.*\bvhost_vsock\b/);
    await host.ok("mv /root/vhost /lib/modules/$(uname -r)/kernel/drivers/vhost && modprobe vhost_vsock");
    await host.ok("modprobe -r kvm_amd");
    expect(await doctor()).toMatch(/acceleration .*(tcg|emulated|KVM)/i);
    await host.ok("modprobe kvm_amd && systemctl start roomd");
    expect(JSON.parse(await host.ok("roomd health --json"))).toMatchObject({ ready: true, acceleration: "kvm" });
  });
});
