/**
 * A host as users have it: systemd, KVM, the kernel's vsock, project quotas. roomd is installed there from its package, set up, used,
 * restarted, killed, upgraded, rebooted and purged, in this order; each test continues from the state of the previous one.
 */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { until } from "../harness/guests.ts";
import type { Json } from "../harness/json.ts";
import { bootHost, bootHostWithCopiedTemplate, DATA, INSTALL, PURGE, storyOf, WITH_KEY } from "./installed.ts";
import type { VirtualHost } from "./machine.ts";
import { LEFT_OUT } from "./virtual-host.ts";

const EXEC = `${WITH_KEY} roomd exec demo agent-1 --`;
/** Emulated, a start of the service takes half a minute. */
const SLOW_MS = 300_000;
/** For other work of the emulated processor the service waits for less; for locks that others hold, for many seconds. */
const MAX_WAIT_MS = 1_000;

let host: VirtualHost;
let leftOut: string | null = null;

/** The sandbox's processes and those of the service, by the control group that they are in. */
async function groups(): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  const listing = await host.ok(
    "for d in /sys/fs/cgroup/roomd.slice/*.scope /sys/fs/cgroup/system.slice/roomd.service; do [ -d $d ] || continue; " +
      'for p in $(cat $d/cgroup.procs); do echo "$(basename $d) $(cat /proc/$p/comm)"; done; done',
  );
  for (const line of listing.split("\n").filter(Boolean)) {
    const [group = "", program = ""] = line.split(" ");
    found[group] = [...(found[group] ?? []), program];
  }
  return found;
}

/** Output for the person who runs the test: the two commands, and the state after each step. */
const tell = (when: string, text: string) => console.log(`--- ${when}\n${text}`);
const tellGroups = async (when: string) => tell(`${when}: control groups`, JSON.stringify(await groups(), null, 2));

/** Runs a step of `other_users.py` on the host. */
async function otherUsers(step: string): Promise<Json> {
  const files = ["other_users.py", "neighbours.py", "on_host.py"].map((name) => join(import.meta.dirname, name));
  for (const file of files)
    await host.ok(`mkdir -p /run/host; cat >/run/host/${basename(file)} <<'END'\n${readFileSync(file, "utf8")}END`);
  return JSON.parse((await host.ok(`python3 /run/host/other_users.py ${step}`)).split("\n").at(-1) ?? "");
}

const currentCount = async () => Number(await host.ok(`${EXEC} cat /mnt/drive/count`));

if (LEFT_OUT !== null)
  console.log(`a template's build, restarts, upgrades and a reboot of a virtual host: left out, because ${LEFT_OUT}`);
const longTest = test.skipIf(LEFT_OUT !== null);

describe("installed from its package", () => {
  beforeAll(async () => {
    host = LEFT_OUT === null ? await bootHost() : await bootHostWithCopiedTemplate();
    if ((await host.run("grep -qw svm /proc/cpuinfo")).status !== 0) leftOut = "QEMU's -cpu max has no SVM here";
    if (leftOut !== null) console.log(`the package on a virtual host: left out, because ${leftOut}`);
  }, 2_400_000);

  beforeEach((context) => {
    if (leftOut !== null) context.skip(leftOut);
  });

  afterEach(async ({ task }) => {
    if (task.result?.state === "fail") console.log(await storyOf(host));
  });

  afterAll(() => host?.end());

  test("is installed by apt alone, which ends with the next command", async () => {
    const output = await host.ok(`${INSTALL} /payload/roomd.deb`);
    tell("apt install ./roomd.deb", output);
    expect(output).toMatch(/roomd doctor.*roomd setup/s);
    expect(
      await host.ok("roomd --version; ls /etc/roomd; man -w roomd 2>/dev/null || ls /usr/share/man/man1/roomd.1.gz"),
    ).toContain("config.toml");
  });

  test("reports no problem on such a host", async () => {
    const { checks } = JSON.parse(await host.ok("roomd doctor --json 2>/dev/null"));
    expect(checks.filter(({ status }: { status: string }) => status !== "ok")).toEqual([]);
    expect(checks.map(({ id }: { id: string }) => id)).toEqual(expect.arrayContaining(["acceleration", "vsock"]));
  });

  test("is set up by one command, to a working sandbox", async () => {
    await host.ok(`echo 'template.registries = "*"' >>/etc/roomd/config.toml`);
    const output = await host.ok("roomd setup");
    tell("roomd setup", output);
    await tellGroups("set up");
    expect(await host.ok("systemctl is-active roomd")).toBe("active");
    // A copied template was saved on another host: its sandboxes boot.
    expect(output).toMatch(LEFT_OUT === null ? /agent-1: .*\((snapshot|pool)\)/ : /agent-1: .*\(cold\)/);
    expect(output).toContain("contents compared");
    expect(output).toMatch(/\nexport ROOMD_URL=http:\/\/127\.0\.0\.1:8080\nexport ROOMD_API_KEY=key-/);
    expect(JSON.parse(await host.ok("roomd health --json"))).toMatchObject({
      ready: true,
      topology: "nested",
      acceleration: "kvm",
    });
    await host.ok(
      `${EXEC.replace(" --", " --background --timeout 1h --")} sh -c 'echo kept >/dev/shm/mark; n=0; while :; do n=$((n+1)); echo $n >/mnt/drive/.count && mv /mnt/drive/.count /mnt/drive/count; sleep 1; done'`,
    );
  });

  test("saves its sandbox with its memory under KVM, and resumes it for the next command", async () => {
    expect(await host.ok(`${WITH_KEY} roomd sandbox hibernate demo agent-1`)).toContain("is hibernated");
    expect(await host.ok(`${EXEC} cat /dev/shm/mark`)).toBe("kept");
    const resumed = JSON.parse(await host.ok(`${WITH_KEY} roomd sandbox get demo agent-1 --json`));
    expect(resumed).toMatchObject({ state: "running", status: { reason: "resumed" } });
  });

  test("pulls an organization's image in a separate network without access to private addresses", async () => {
    const { status, text } = await host.run(
      `${WITH_KEY} roomd template request astray --image docker://127.0.0.1:1/app:1`,
    );
    expect([status, text]).toEqual([1, expect.stringContaining("127.0.0.1:1")]);
  });

  longTest("keeps counting in its sandbox during a restart and a kill of the service", async () => {
    await until(
      "the sandbox counts",
      async () => (await host.run(`${EXEC} test -s /mnt/drive/count`)).status === 0,
      SLOW_MS,
    );
    for (const end of ["systemctl restart roomd", "systemctl kill -s KILL roomd"]) {
      const before = await currentCount();
      await host.ok(end);
      await until("the service answers again", async () => (await host.run("roomd health")).status === 0, SLOW_MS);
      expect(
        await until("the sandbox counts on", async () => (await currentCount().catch(() => 0)) > before, SLOW_MS),
      ).toBe(true);
      await tellGroups(end);
    }
  });

  longTest("returns to the previous version if a new one does not start", async () => {
    const before = await currentCount();
    await host.ok(
      "dpkg-deb -R /payload/roomd.deb /root/broken && sed -i 's/^Version: .*/Version: 99/' /root/broken/DEBIAN/control && cp -l /usr/lib/roomd/roomd /root/real && " +
        `printf '#!/bin/sh\\n[ "$1" != serve ] || { echo cannot >&2; exit 3; }\\nexec /root/real "$@"\\n' >/root/roomd && install -m 755 /root/roomd /root/broken/usr/lib/roomd/roomd && ` +
        "dpkg-deb -Zzstd -z1 -b /root/broken /root/broken.deb && rm -r /root/broken",
    );
    const { status } = await host.run(`${INSTALL} /root/broken.deb`);
    expect(status).not.toBe(0);
    expect(await host.ok("systemctl is-active roomd; systemctl show -p ExecStart --value roomd")).toMatch(
      /^active\n.*\/previous\/roomd/,
    );
    expect(
      await until("the sandbox counts on", async () => (await currentCount().catch(() => 0)) > before, SLOW_MS),
    ).toBe(true);
  });

  longTest("is upgraded by apt while its sandbox runs", async () => {
    const before = await currentCount();
    const started = await host.ok("systemctl show -p ExecMainStartTimestampMonotonic --value roomd");
    await host.ok(`${INSTALL} --allow-downgrades /payload/roomd.deb`);
    expect(await host.ok("systemctl show -p ExecMainStartTimestampMonotonic --value roomd")).not.toBe(started);
    expect(await host.ok("systemctl show -p ExecStart --value roomd")).not.toContain("previous");
    expect((await host.run("ls -d /usr/lib/roomd/previous /etc/systemd/system/roomd.service.d/*")).status).not.toBe(0);
    expect(
      await until("the sandbox counts on", async () => (await currentCount().catch(() => 0)) > before, SLOW_MS),
    ).toBe(true);
  });

  longTest("starts automatically after a reboot, with its sandbox, and its next create works", async () => {
    const before = await currentCount();
    await host.reboot(SLOW_MS);
    await until("the service answers", async () => (await host.run("roomd health")).status === 0, SLOW_MS);
    const back = JSON.parse(await host.ok(`${WITH_KEY} roomd sandbox get demo agent-1 --json`));
    expect(back).toMatchObject({ state: "running", status: { reason: "resumed" } });
    expect(
      await until("the sandbox counts on", async () => (await currentCount().catch(() => 0)) > before, SLOW_MS),
    ).toBe(true);
    await host.ok(`${WITH_KEY} roomd sandbox destroy demo agent-1 && roomd sandbox create demo agent-1 --memory 256`);
    // Emulated, it may take longer than the call waits.
    const state = async () => JSON.parse(await host.ok(`${WITH_KEY} roomd sandbox get demo agent-1 --json`)).state;
    await until("the sandbox is running", async () => (await state()) === "running", SLOW_MS);
    expect(await currentCount()).toBeGreaterThan(0);
  });

  test("an unprivileged user and QEMU's user cannot stall it, keep a sandbox from ending, or make it connect to root's socket", async () => {
    const found = await otherUsers("attack");
    tell("the service during attacks", JSON.stringify(found));
    // QEMU's user replaced its sockets by links to the socket: its sandbox is ended for that.
    expect(found.links).toEqual(["/run/root.sock", "/run/root.sock"]);
    expect(found.status.message).toContain("console.sock is not a socket of its directory's owner");
    expect([found.connections, found.leaked]).toEqual([0, ""]);
    // Processes of the other user name the sandbox in their arguments.
    expect([found.left, found.killed]).toEqual([[], 0]);
    // Others keep their readers waiting.
    expect(found.longest_wait_ms).toBeLessThan(MAX_WAIT_MS);
  });

  test("QEMUs of two organizations share only the groups and files of KVM and host templates, and cannot see each other", async () => {
    const { qemus, groups, templates } = await otherUsers("look");
    for (const qemu of qemus) {
      const [sandbox, sockets] = [`${DATA}/sandboxes/${qemu.sandbox_id}`, `/run/roomd/g/${qemu.sandbox_id}`];
      expect(qemu.directories).toEqual({ [templates]: "ro", [sandbox]: "rw", [sockets]: "rw" });
      expect(qemu.names.filter((name: string) => name.startsWith("sbx_"))).toEqual([qemu.sandbox_id, qemu.sandbox_id]);
      expect([qemu.processes, qemu.command_line]).toEqual([[], []]);
      expect(qemu.groups).toHaveLength(groups.length + 1);
    }
    const [one, two] = qemus;
    expect(one.uid).not.toBe(two.uid);
    expect(one.groups.filter((group: number) => two.groups.includes(group)).sort()).toEqual(groups.toSorted());
  });

  test("leaves no files when it is purged", async () => {
    await host.ok(PURGE);
    expect(await groups()).toEqual({});
    expect(await host.ok("pgrep -l 'roomd|qemu|virtiofsd' || true")).toBe("");
    expect(await host.ok(`ls -A ${DATA}`)).toBe("");
    const left = await host.ok(
      "find / -xdev \\( -name '*roomd*' -o -path '*/roomd/*' \\) -not -path '/proc/*' -not -path '/sys/*' -not -path '/payload/*' -not -path '/root/*'",
    );
    const ofDpkgAndSystemd = /^\/var\/(log|lib\/dpkg|lib\/apt|cache)\//;
    const mountPoint = DATA;
    expect(
      left.split("\n").filter((path) => path !== "" && path !== mountPoint && !ofDpkgAndSystemd.test(path)),
    ).toEqual([]);
    expect(
      await host.ok(
        "systemctl list-units --all --no-legend 'roomd*'; systemctl list-unit-files --no-legend 'roomd*' || true",
      ),
    ).toBe("");
  });
});
