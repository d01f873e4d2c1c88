/**
 * The host users of a guest's processes, and the resources out of their reach: the view of a guest that broke out of one of them. And
 * guests notice nothing of it.
 */
import { spawnSync } from "node:child_process";
import { chownSync, existsSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import {
  DRIVE_RANGE,
  driveRoot,
  orgTemplateGroup,
  sandboxIds,
  templateGroup,
} from "../../daemon/host/isolation/ids.ts";
import { kvmGroups } from "../../daemon/host/isolation/index.ts";
import { HOST_PORT } from "../../shared/agent-protocol/messages.ts";
import { BINARY, type Json, type TestDaemon } from "../harness/daemon.ts";
import { commandLineOf, type Part, processesOf, testAlone, until, withGuests } from "../harness/guests.ts";
import { orgTemplate } from "../harness/images/own-template.ts";

const BASE = 1_900_019_712;
const NOBODY_IN_PARTICULAR = 12_345;
const PARTS: Part[] = ["qemu", "virtiofsd", "vsock"];
/** A boot of three emulated processors on two cores takes several times as long while they wait for each other's locks. */
const BOOT_MS = 300_000;
const VHOST_USER = {
  env: { ROOMD_VSOCK_TRANSPORT: "vhost-user", ROOMD_LIMITS_VCPUS: "3", ROOMD_LIMITS_SANDBOX_START: "5m" },
};

/** The fields of /proc/<pid>/status, as they are written there. */
function statusOf(pid: number): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/status`, "utf8").trim().split("\n");
  return Object.fromEntries(lines.map((line) => [line.split(":")[0], line.slice(line.indexOf(":") + 1).trim()]));
}

const four = (id: number) => [id, id, id, id].join("\t");
const environOf = (pid: number) => readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").filter(Boolean).sort();
const none = "0000000000000000";

/** Whether a user could do this to a file: `-r`, `-w`, `-x`. */
function may(uid: number, permission: string, path: string, group?: number): boolean {
  const groups = group === undefined ? "--clear-groups" : `--groups=${group}`;
  const as = [`--reuid=${uid}`, `--regid=${uid}`, groups, "--bounding-set=-all", "--inh-caps=-all"];
  const { status, stderr } = spawnSync("setpriv", [...as, "test", permission, path], { encoding: "utf8" });
  if (status === null || status > 1) throw new Error(`test ${permission} ${path}: ${status} ${stderr}`);
  return status === 0;
}

withGuests("the users of guests' processes", VHOST_USER, (guests) => {
  const sandboxes: Record<string, Json> = {};
  const rooms: Record<string, Json> = {};
  const dir = (name: string) => join(guests.daemon.dataDir, "sandboxes", sandboxes[name].sandbox_id);
  const disk = (name: string) => join(dir(name), `disk-${sandboxes[name].sandbox_id}.qcow2`);
  const run = (name: string) => join(guests.daemon.runtimeDir, "g", sandboxes[name].sandbox_id);
  const drive = (room: string) => join(guests.daemon.dataDir, "rooms", rooms[room].room_uid, "drive");
  const ids = (name: string) => sandboxIds(BASE, sandboxes[name].sandbox_id);

  beforeAll(async () => {
    const { daemon } = guests;
    for (const room of ["one", "two"]) rooms[room] = await daemon.room(room);
    sandboxes.ann = await daemon.sandbox("one", "ann", guests.cid());
    sandboxes.bob = await daemon.sandbox("two", "bob", guests.cid());
  });

  test("are separate, with no rights and a clean environment", () => {
    const seen = new Set<number>();
    for (const name of ["ann", "bob"]) {
      const { sandbox_id, room_id } = sandboxes[name];
      const root = driveRoot(BASE, rooms[room_id].room_uid);
      const users: Record<Part, number> = { qemu: ids(name).qemu, vsock: ids(name).vsock, virtiofsd: root };
      for (const part of PARTS) {
        const pids = processesOf(guests.daemon, part, sandbox_id);
        expect([part, pids.length > 0]).toEqual([part, true]);
        for (const pid of pids) {
          const status = statusOf(pid);
          expect([part, status.Uid, status.Gid]).toEqual([part, four(users[part]), four(users[part])]);
          const groups = part === "qemu" ? [...kvmGroups(), templateGroup(BASE)].join(" ") : "";
          expect([part, status.Groups, status.NoNewPrivs]).toEqual([part, groups, "1"]);
          expect([part, status.CapInh, status.CapAmb]).toEqual([part, none, none]);
          expect(readFileSync(`/proc/${pid}/limits`, "utf8")).toMatch(/^Max core file size +0 +0 /m);
          expect(environOf(pid).map((line) => line.split("=")[0])).toEqual(expect.arrayContaining(["LANG", "PATH"]));
          expect(environOf(pid).filter((line) => !/^(LANG|PATH|PWD|OLDPWD|SHLVL|_)=/.test(line))).toEqual([]);
          expect(environOf(pid).join()).not.toMatch(/ROOMD|BUN/);
          if (part === "virtiofsd") continue;
          expect([part, status.CapPrm, status.CapEff, status.CapBnd]).toEqual([part, none, none, none]);
          seen.add(users[part]);
        }
      }
      // virtiofsd has its privileges only in a user namespace; that namespace's root is unprivileged outside.
      for (const pid of processesOf(guests.daemon, "virtiofsd", sandbox_id)) {
        expect(readlinkSync(`/proc/${pid}/ns/user`)).not.toBe(readlinkSync("/proc/self/ns/user"));
        for (const map of ["uid_map", "gid_map"]) {
          const [inside, outside, count] = readFileSync(`/proc/${pid}/${map}`, "utf8").trim().split(/\s+/).map(Number);
          expect([inside, outside, count]).toEqual([0, root, DRIVE_RANGE]);
        }
      }
      // The process that serves the guest, which its parent only waits for.
      const server = processesOf(guests.daemon, "virtiofsd", sandbox_id).at(-1) ?? 0;
      expect(statusOf(server).Seccomp).toBe("2");
      expect(BigInt(`0x${statusOf(server).CapEff}`) & (1n << 21n)).toBe(0n); // no CAP_SYS_ADMIN
      for (const kind of ["mnt", "pid", "net"]) {
        expect(readlinkSync(`/proc/${server}/ns/${kind}`)).not.toBe(readlinkSync(`/proc/self/ns/${kind}`));
      }
      expect(statusOf(processesOf(guests.daemon, "qemu", sandbox_id)[0] ?? 0).Seccomp).toBe("2");
    }
    expect(seen.size).toBe(4);
  });

  test("are in an own network namespace without interfaces", () => {
    const networkOf = (pid: number | "self") => readlinkSync(`/proc/${pid}/ns/net`);
    const seen = [networkOf("self")];
    for (const name of ["ann", "bob"]) {
      for (const part of ["qemu", "vsock"] as const) {
        const [pid = 0] = processesOf(guests.daemon, part, sandboxes[name].sandbox_id);
        expect([name, part, seen.includes(networkOf(pid))]).toEqual([name, part, false]);
        seen.push(networkOf(pid));
        const interfaces = readFileSync(`/proc/${pid}/net/dev`, "utf8").match(/^ *\S+(?=:)/gm);
        expect([part, interfaces?.map((line) => line.trim())]).toEqual([part, ["lo"]]);
        // The loopback has its addresses while it is up.
        expect([part, readFileSync(`/proc/${pid}/net/fib_trie`, "utf8")]).toEqual([part, ""]);
        expect([part, readFileSync(`/proc/${pid}/net/if_inet6`, "utf8")]).toEqual([part, ""]);
        // Nor sockets of the host that have no path.
        expect([part, readFileSync(`/proc/${pid}/net/unix`, "utf8").includes("@")]).toEqual([part, false]);
      }
    }
  });

  test("keep the secret that proves the host to a guest in their process record, and nowhere else", async () => {
    const { daemon } = guests;
    const secretOf = (name: string): string =>
      JSON.parse(readFileSync(join(run(name), "processes.json"), "utf8")).secret;
    const secrets = ["ann", "bob"].map(secretOf);
    for (const secret of secrets) expect(secret).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set(secrets).size).toBe(2);
    expect(statSync(join(run("ann"), "processes.json")).mode & 0o777).toBe(0o600);
    await daemon.sh("one", "ann", "true");
    for (const secret of secrets) {
      // The content of a backup: records, drives, logs and disks.
      expect(spawnSync("grep", ["-rlF", secret, daemon.dataDir], { encoding: "utf8" }).stdout).toBe("");
      expect(daemon.log).not.toContain(secret);
      expect(JSON.stringify(await daemon.ok("GET", "/v1/rooms/one/sandboxes/ann"))).not.toContain(secret);
    }
  });

  test("reach their own sandbox's files, and nothing else of the service", () => {
    const { dataDir, runtimeDir } = guests.daemon;
    const { qemu, vsock } = ids("ann");
    const root = driveRoot(BASE, rooms.one.room_uid);
    const own: [number, string, string][] = [
      [qemu, "-w", disk("ann")],
      [qemu, "-w", join(run("ann"), "vm", "qmp.sock")],
      [qemu, "-w", join(run("ann"), "fs", "drive.sock")],
      [qemu, "-w", join(run("ann"), "vsock", "device.sock")],
      [vsock, "-w", join(run("ann"), "vsock", `guest.sock_${HOST_PORT}`)],
      [root, "-w", drive("one")],
    ];
    for (const [uid, permission, path] of own)
      expect([uid, path, may(uid, permission, path)]).toEqual([uid, path, true]);

    const closed = [
      dataDir,
      runtimeDir,
      join(dataDir, "roomd.db"),
      join(dataDir, "roomd.db-wal"),
      join(dataDir, "rooms"),
      join(dataDir, "sandboxes"),
      join(runtimeDir, "g"),
      join(run("ann"), "processes.json"),
      join(dir("ann"), "vmm.log"),
      disk("bob"),
      join(dir("bob"), "console"),
      ...["vm/qmp.sock", "vm/qmp2.sock", "vm/console.sock", "fs/drive.sock", "vsock/device.sock"].map((socket) =>
        join(run("bob"), socket),
      ),
      join(run("bob"), "vsock", `guest.sock_${HOST_PORT}`),
      drive("two"),
      "/dev/mem",
      "/etc/shadow",
    ];
    for (const uid of [qemu, vsock, root, NOBODY_IN_PARTICULAR]) {
      for (const path of closed) {
        // Something is there: that a name is wrong must not look like being kept out.
        if (!path.startsWith("/dev")) expect(statSync(path)).toBeTruthy();
        for (const permission of ["-r", "-w"])
          expect([uid, permission, path, may(uid, permission, path)]).toEqual([uid, permission, path, false]);
      }
    }
    // Not even within one sandbox: QEMU not its drive or the daemon's end of its vsock, the others not its disk or monitor.
    const inner: [number, string][] = [
      [qemu, drive("one")],
      [qemu, join(run("ann"), "vsock", `guest.sock_${HOST_PORT}`)],
      [qemu, dir("ann")],
      [qemu, run("ann")],
      [vsock, disk("ann")],
      [vsock, join(run("ann"), "vm", "qmp.sock")],
      [root, disk("ann")],
      [root, join(run("ann"), "vm", "qmp.sock")],
      [NOBODY_IN_PARTICULAR, drive("one")],
      [NOBODY_IN_PARTICULAR, disk("ann")],
    ];
    for (const [uid, path] of inner) expect([uid, path, may(uid, "-w", path)]).toEqual([uid, path, false]);
    // Templates are read by QEMU's users, which are in their group, and written by none.
    for (const name of ["root.qcow2", "memory"]) {
      const template = join(dataDir, "templates", "default", "current", name);
      const own = templateGroup(BASE);
      expect([name, may(qemu, "-r", template, own), may(qemu, "-w", template, own)]).toEqual([name, true, false]);
      for (const uid of [vsock, root, NOBODY_IN_PARTICULAR])
        expect([name, uid, may(uid, "-r", template)]).toEqual([name, uid, false]);
    }
  });

  test("appear as the guest's own users on its drive, and vice versa", async () => {
    const { daemon } = guests;
    const look = (path: string) => daemon.sh("one", "ann", `stat -c '%u:%g %a' /mnt/drive/${path}`);
    await daemon.ok("POST", "/v1/rooms/one/drive/write", { path: "api/file", content: "from the host", mode: "0640" });
    expect(await look("api/file")).toBe("0:0 640");
    expect(await look("api")).toMatch(/^0:0 /);
    expect(await daemon.sh("one", "ann", "cat /mnt/drive/api/file")).toBe("from the host");

    const script = [
      "cd /mnt/drive",
      "echo guest > made && chmod 4750 made && chown 1000:33 made",
      "mkdir sticky && chmod 1777 sticky && ln -s made link && mkfifo fifo && chown -h 65535:65535 link",
      "setpriv --reuid=1000 --regid=1000 --clear-groups sh -c 'echo mine > sticky/mine && chmod 600 sticky/mine'",
      "! setpriv --reuid=1001 --regid=1001 --clear-groups cat sticky/mine",
      "! setpriv --reuid=1001 --regid=1001 --clear-groups rm -f sticky/mine",
      "chown 0:0 made && chmod 640 made",
      "echo more >> api/file && truncate -s 4 api/file",
    ].join(" && ");
    await daemon.sh("one", "ann", script);
    expect(await look("made")).toBe("0:0 640");
    expect(await look("sticky")).toBe("0:0 1777");
    expect(await look("sticky/mine")).toBe("1000:1000 600");
    expect(await look("link")).toBe("65535:65535 777");
    const root = driveRoot(BASE, rooms.one.room_uid);
    expect(statSync(join(drive("one"), "sticky", "mine")).uid).toBe(root + 1000);
    expect(statSync(join(drive("one"), "made")).uid).toBe(root);
    expect((await daemon.ok("GET", "/v1/rooms/one/drive/read?path=sticky/mine")).content).toBe("mine\n");
    expect((await daemon.ok("GET", "/v1/rooms/one/drive/stat?path=sticky/mine")).mode).toBe("0600");
    // Ids above the range are unmapped, and devices would be the host's.
    expect((await daemon.exec("one", "ann", { command: "chown 70000 /mnt/drive/made" })).exit_code).not.toBe(0);
    expect((await daemon.exec("one", "ann", { command: "mknod /mnt/drive/disk b 7 0" })).exit_code).not.toBe(0);
    // The API can still change files that the guest has taken ownership of.
    await daemon.sh("one", "ann", "chown 1000:1000 /mnt/drive && mkdir -m 700 /mnt/drive/shut");
    await daemon.ok("POST", "/v1/rooms/one/drive/write", { path: "shut/in", content: "x" });
    expect(await look("shut/in")).toMatch(/^0:0 /);
    await daemon.ok("DELETE", "/v1/rooms/one/drive/delete?path=shut&recursive=true");
  });

  test("are the same after a kill of the daemon, and its guests continue", async () => {
    const { daemon } = guests;
    await daemon.restart("SIGKILL");
    expect(await daemon.sh("one", "ann", "echo still > /mnt/drive/still && cat /mnt/drive/still")).toBe("still");
    const listener = join(run("ann"), "vsock", `guest.sock_${HOST_PORT}`);
    expect([may(ids("ann").vsock, "-w", listener), may(ids("bob").vsock, "-w", listener)]).toEqual([true, false]);
  });

  test(
    "serve cold-booted guests, and leave nothing",
    async () => {
      const { daemon } = guests;
      const booted = await daemon.sandbox("one", "cold", guests.cid(), { vcpu_count: 3 });
      expect(booted.start_mode).toBe("cold");
      expect(await daemon.sh("one", "cold", "cat /mnt/drive/still; nproc; cat /sys/devices/system/cpu/online")).toBe(
        "still\n3\n0-2",
      );
      for (const [room, name] of [
        ["one", "cold"],
        ["one", "ann"],
        ["two", "bob"],
      ]) {
        await daemon.ok("DELETE", `/v1/rooms/${room}/sandboxes/${name}`);
      }
      await until("nothing of the sandboxes remains", () =>
        daemon.leftovers().every((line) => line.includes("/rooms/")),
      );
      for (const room of ["one", "two"]) await daemon.ok("DELETE", `/v1/rooms/${room}?drive=delete`);
      expect(daemon.leftovers()).toEqual([]);
    },
    BOOT_MS + 60_000,
  );
});

interface Qemu {
  pid: number;
  sandbox_id: string;
  /** The directory of the template that it started from. */
  version: string;
}

/** Checks one QEMU's view of the host: its own directories, and no process, template or sandbox of others. */
function sees({ dataDir, runtimeDir }: TestDaemon, qemu: Qemu, others: readonly Qemu[]): void {
  const inside = (...path: string[]) => join(`/proc/${qemu.pid}/root`, ...path);
  const namesIn = (...path: string[]) => readdirSync(inside(...path)).sort();
  expect(readlinkSync(`/proc/${qemu.pid}/ns/mnt`)).not.toBe(readlinkSync("/proc/self/ns/mnt"));
  expect([namesIn("proc"), namesIn("old")]).toEqual([[], []]);
  expect(namesIn("dev").filter((name) => !/^(null|zero|full|u?random|kvm)$/.test(name))).toEqual([]);
  expect(namesIn("etc").filter((name) => !/^(alternatives|ld\.so\.cache)$/.test(name))).toEqual([]);
  expect(namesIn(dataDir, "sandboxes")).toEqual([qemu.sandbox_id]);
  expect(namesIn(runtimeDir)).toEqual(["g"]);
  expect(namesIn(runtimeDir, "g")).toEqual([qemu.sandbox_id]);
  expect(namesIn(dataDir)).toEqual(["org-templates", "sandboxes"]);
  expect(namesIn(qemu.version)).toContain("memory");
  for (const { sandbox_id, version, pid } of others) {
    expect(existsSync(inside(version))).toBe(false);
    expect(readlinkSync(`/proc/${pid}/ns/mnt`)).not.toBe(readlinkSync(`/proc/${qemu.pid}/ns/mnt`));
    const mounts = readFileSync(`/proc/${qemu.pid}/mountinfo`, "utf8");
    expect(mounts).toContain(qemu.sandbox_id);
    expect(mounts).not.toContain(sandbox_id);
  }
}

withGuests("a drive of an older version", VHOST_USER, (guests) => {
  test("is served by root with few capabilities, and stays owned by root", async () => {
    const { daemon } = guests;
    const { room_uid } = await daemon.room("old");
    const directory = join(daemon.dataDir, "rooms", room_uid, "drive");
    for (const path of [directory, dirname(directory)]) chownSync(path, 0, 0);
    const { sandbox_id } = await daemon.sandbox("old", "ann", guests.cid());
    await daemon.ok("POST", "/v1/rooms/old/drive/write", { path: "f", content: "x" });
    expect(await daemon.sh("old", "ann", "chown 33:33 /mnt/drive/f && stat -c %u:%g /mnt/drive/f")).toBe("33:33");
    expect(statSync(join(directory, "f")).uid).toBe(33);
    const kept = [0, 1, 3, 4, 6, 7, 8, 21, 27, 31].reduce((all, bit) => all | (1n << BigInt(bit)), 0n);
    for (const pid of processesOf(daemon, "virtiofsd", sandbox_id)) {
      const status = statusOf(pid);
      expect([status.Uid, status.NoNewPrivs]).toEqual([four(0), "1"]);
      expect(BigInt(`0x${status.CapBnd}`) & ~kept).toBe(0n);
    }
  });
});

testAlone(
  "QEMUs of different organizations share only the groups for KVM and host templates, and cannot see each other",
  VHOST_USER,
  async (daemon) => {
    const operator = { authorization: `Bearer ${daemon.operatorKey}` };
    const made = await daemon.api("POST", "/v1/orgs", { name: "other" }, operator);
    const orgs = [
      { org_id: daemon.orgId, key: daemon.apiKey },
      { org_id: made.body.org_id, key: made.body.api_key },
    ];
    const own: string[] = [];
    const groups: number[][] = [];
    const qemus: Qemu[] = [];
    for (const [at, { org_id, key }] of orgs.entries()) {
      const version = orgTemplate(daemon, org_id, "own");
      own.push(join(version, "memory"));
      const headers = { authorization: `Bearer ${key}` };
      expect((await daemon.api("POST", "/v1/rooms", { room_id: "r" }, headers)).status).toBe(201);
      const { status, body } = await daemon.api(
        "POST",
        "/v1/rooms/r/sandboxes/from-template",
        { agent_id: "a", guest_cid: 9100 + at, memory_mib: 256, template_id: "own" },
        headers,
      );
      expect([status, body.start_mode]).toEqual([201, "snapshot"]);
      const [pid = 0] = processesOf(daemon, "qemu", body.sandbox_id);
      groups.push(statusOf(pid).Groups?.split(" ").map(Number) ?? []);
      qemus.push({ pid, sandbox_id: body.sandbox_id, version });
    }
    const common = [...kvmGroups(), templateGroup(BASE)];
    expect(groups).toEqual([
      [...common, orgTemplateGroup(BASE, 0)],
      [...common, orgTemplateGroup(BASE, 1)],
    ]);
    for (const qemu of qemus)
      sees(
        daemon,
        qemu,
        qemus.filter((other) => other !== qemu),
      );
    for (const [at, file] of own.entries()) {
      expect([statSync(file).gid, statSync(file).mode & 0o777]).toEqual([orgTemplateGroup(BASE, at), 0o640]);
      const readers = [0, 1].map((number) => may(NOBODY_IN_PARTICULAR, "-r", file, orgTemplateGroup(BASE, number)));
      expect(readers).toEqual([at === 0, at === 1]);
      expect(may(NOBODY_IN_PARTICULAR, "-r", file, templateGroup(BASE))).toBe(false);
    }
    // Of a version of before, which a daemon that starts finds.
    chownSync(own[0] ?? "", 0, templateGroup(BASE));
    await daemon.restart("SIGKILL");
    expect(statSync(own[0] ?? "").gid).toBe(orgTemplateGroup(BASE, 0));
    // It hibernates and comes back with its own group.
    expect(await daemon.sh("r", "a", "echo on")).toBe("on");
    await daemon.ok("POST", "/v1/rooms/r/sandboxes/a/hibernate");
    expect(await daemon.sh("r", "a", "echo again")).toBe("again");
  },
);

testAlone(
  "without mount namespaces QEMU has its own user, and doctor warns",
  {
    ...VHOST_USER,
    program: [
      "unshare",
      "--mount",
      "sh",
      "-c",
      'mount --bind /bin/false /usr/sbin/pivot_root && exec "$@"',
      "sh",
      BINARY,
    ],
  },
  async (daemon) => {
    await daemon.room("plain");
    const { sandbox_id } = await daemon.sandbox("plain", "ann", 9100);
    expect(await daemon.sh("plain", "ann", "echo x > /mnt/drive/x && cat /mnt/drive/x")).toBe("x");
    const [qemu = 0] = processesOf(daemon, "qemu", sandbox_id);
    expect(statusOf(qemu).Uid).toBe(four(sandboxIds(BASE, sandbox_id).qemu));
    expect(existsSync(`/proc/${qemu}/root/proc/self`)).toBe(true);
    const { checks } = await daemon.ok("GET", "/health");
    expect(checks.find(({ id }: Json) => id === "isolation")).toMatchObject({
      status: "warn",
      message: expect.stringContaining("mount namespaces"),
      remedy: expect.any(String),
    });
  },
);

testAlone(
  "without separate users, as configured, guests run and doctor warns",
  { env: { ROOMD_ISOLATION_UID_BASE: "0" } },
  async (daemon) => {
    await daemon.room("plain");
    const { sandbox_id } = await daemon.sandbox("plain", "ann", 9100);
    expect(await daemon.sh("plain", "ann", "echo x > /mnt/drive/x && cat /mnt/drive/x")).toBe("x");
    const [qemu = 0] = processesOf(daemon, "qemu", sandbox_id);
    expect(statusOf(qemu).Uid).toBe(four(0));
    const { checks } = await daemon.ok("GET", "/health");
    expect(checks.find(({ id }: Json) => id === "isolation")).toMatchObject({
      status: "warn",
      remedy: expect.any(String),
    });
  },
);

withGuests("caller-supplied text in command lines", VHOST_USER, (guests) => {
  /** A process's command line with its typed values by their names. */
  const shapeOf = (daemon: TestDaemon, part: Part, record: Json, roomUid: string) =>
    commandLineOf(processesOf(daemon, part, record.sandbox_id)[0] ?? 0).map((word) =>
      word
        .replaceAll(record.sandbox_id, "SANDBOX")
        .replaceAll(roomUid, "ROOM")
        .replace(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, "UUID")
        .replace(new RegExp(`^${record.guest_cid}$`), "CID"),
    );

  test("changes only typed values", async () => {
    const { daemon } = guests;
    const plain = await daemon.room("plain");
    const odd = await daemon.room("a..b--c__d");
    const tame = await daemon.sandbox("plain", "tame", guests.cid());
    const nasty = "a,b=c,,file=/etc/passwd\n-device x\r\t\"'`$(id);%s\\ \u202e😀";
    const deep = JSON.parse(`${'{"a":'.repeat(50)}1${"}".repeat(50)}`);
    const wild = await daemon.sandbox(odd.room_id, "A.-_.--sandbox..on__S", guests.cid(), {
      labels: { [`k${"x".repeat(20)}`]: "on,obsolete=allow" },
      env: {
        NASTY: nasty,
        __proto__x: "1",
        constructor: nasty,
        LD_PRELOAD: "/mnt/drive/x.so",
        DEEP: JSON.stringify(deep),
      },
      memory_mib: 320,
    });
    for (const part of PARTS) {
      const shape = shapeOf(daemon, part, wild, odd.room_uid);
      expect([part, shape.length > 3]).toEqual([part, true]);
      expect([part, shape]).toEqual([part, shapeOf(daemon, part, tame, plain.room_uid)]);
      const [pid = 0] = processesOf(daemon, part, wild.sandbox_id);
      expect(readFileSync(`/proc/${pid}/environ`, "utf8")).not.toMatch(/NASTY|LD_PRELOAD|A\.-_/);
    }
    expect((await daemon.exec(odd.room_id, wild.agent_id, { command: 'printf %s "$NASTY"' })).stdout).toBe(nasty);
  });

  test("is refused if it could be more than a value", async () => {
    const { daemon } = guests;
    await daemon.room("strict");
    const create = (body: unknown) => daemon.api("POST", "/v1/rooms/strict/sandboxes/from-template", body);
    const good = { agent_id: "x", guest_cid: guests.cid(), memory_mib: 256 };
    const before = daemon.leftovers();
    const names = [
      "a,b",
      "a\nb",
      "a\0b",
      "a b",
      "-a",
      "../a",
      "a/b",
      "",
      "é",
      "x".repeat(129),
      "sbx_a",
      "a=b",
      "a,share=off",
    ];
    const bodies: unknown[] = [
      ...names.map((agent_id) => ({ ...good, agent_id })),
      ...["default,x", "../default", "default\0", "default/current", "-h"].map((template_id) => ({
        ...good,
        template_id,
      })),
      ...["9100,x=y", 9100.5, -1, 1e300, "0x2400", null, [9100], { a: 1 }].map((guest_cid) => ({ ...good, guest_cid })),
      ...["256M", "256,slots=8", 256.5, -256, 1e12, null, true].map((memory_mib) => ({ ...good, memory_mib })),
      ...["1,maxcpus=9", 0, 1.5, 1e9].map((vcpu_count) => ({ ...good, vcpu_count })),
      { ...good, env: { "A=B": "1" } },
      { ...good, env: { A: "nul\0" } },
      { ...good, env: { A: { b: 1 } } },
      { ...good, env_json: `{"__proto__":${"[".repeat(100_000)}${"]".repeat(100_000)}}` },
      `{"agent_id":"x","guest_cid":9200,"memory_mib":256,"__proto__":{"vcpu_count":64}}`,
      `{"agent_id":"x","guest_cid":9200,"memory_mib":256,"constructor":{"prototype":{}}}`,
      `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`,
    ];
    for (const body of bodies) {
      const { status } = await create(body);
      expect([JSON.stringify(body).slice(0, 120), status >= 400 && status < 500]).toEqual([
        JSON.stringify(body).slice(0, 120),
        true,
      ]);
    }
    expect(daemon.leftovers()).toEqual(before);
    expect(readdirSync(join(daemon.dataDir, "rooms"))).toHaveLength(3);
  });
});
