/**
 * The procedures of docs/operations.md for upgrade, backup and restore, executed literally: its blocks marked `sh operations`, on a
 * simulated host. The binary, its data and all of `roomd` are real; systemd and the scripts of packaging/, which have their own tests, are
 * replaced by small stubs, and each host path is under the test's directory.
 */
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { latestVersion } from "../../../daemon/db/migrate.ts";
import { answerOf, BINARY, type Json } from "../../harness/daemon.ts";
import { blocksOf, pageAt } from "../../harness/documents.ts";
import { freePort } from "../../harness/free-port.ts";

const PAGE = pageAt("docs/operations.md");
const SYSTEMD_STAND_IN = `#!/bin/sh -e
# stop, disable --now: SIGTERM, and until the daemon's lock is free
[ "$1" != daemon-reload ] || exit 0
kill "$(cat "$ROOMD_RUNTIME_DIR/daemon.lock")"
flock "$ROOMD_RUNTIME_DIR/daemon.lock" true
`;
const BUILD_STAND_IN = `#!/bin/sh -e
mkdir -p dist && cp ${BINARY} dist/.new && mv dist/.new dist/roomd
`;
const QUICKSTART_STAND_IN = `#!/bin/bash -e
mkdir -p "$HOST/usr/local/lib/roomd" "$HOST/usr/local/bin"
ln -f dist/roomd "$HOST/usr/local/lib/roomd/roomd"
ln -sfT "$HOST/usr/local/lib/roomd/roomd" "$HOST/usr/local/bin/roomd"
exec 3< <(exec setsid "$HOST/usr/local/lib/roomd/roomd" serve 2>>"$HOST/daemon.log")
read -r ready <&3 && [[ $ready == *"is ready at"* ]]
`;

/** The commands of a section of the page. */
function block(section: string): string {
  const found = blocksOf(PAGE, "sh operations").find((each) => each.section === section);
  if (!found) throw new Error(`${PAGE.path} has no commands under ${section}`);
  return found.text;
}

const hosts: Host[] = [];

/** A simulated host: its directories, its services and a checkout. */
class Host {
  readonly root = mkdtempSync("/tmp/roomd-t-");
  readonly data = join(this.root, "var/lib/roomd");
  readonly env: Record<string, string>;
  url = "";
  key = "";

  constructor(port: number) {
    hosts.push(this);
    chmodSync(this.root, 0o711);
    this.url = `http://127.0.0.1:${port}`;
    const bin = join(this.root, "stand-ins");
    this.env = {
      PATH: `${this.root}/usr/local/bin:${bin}:${process.env.PATH}`,
      HOST: this.root,
      ROOMD_DATA_DIR: this.data,
      ROOMD_RUNTIME_DIR: join(this.root, "run/roomd"),
      ROOMD_HTTP_LISTEN: `127.0.0.1:${port}`,
      ROOMD_SSH_LISTEN: "",
      ROOMD_ACCELERATION: "tcg",
      ROOMD_POOL_SIZE: "0",
      ROOMD_LIMITS_FAILED_LOGINS: "0",
    };
    const scripts = {
      [join(bin, "systemctl")]: SYSTEMD_STAND_IN,
      [join(this.checkout, "packaging/install-host")]: "#!/bin/sh\n",
      [join(this.checkout, "packaging/build")]: BUILD_STAND_IN,
      [join(this.checkout, "packaging/quickstart")]: QUICKSTART_STAND_IN,
    };
    for (const [file, text] of Object.entries(scripts)) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text, { mode: 0o755 });
    }
    mkdirSync(join(this.root, "var/backups"), { recursive: true });
  }

  get checkout(): string {
    return join(this.root, "checkout");
  }

  /** Runs a block of the page in the checkout, with this host's paths. Returns its output. */
  async run(commands: string): Promise<string> {
    const here = commands
      .replace(/(?<=\s)\/(?=(var|run|etc|usr)\/)/g, `${this.root}/`)
      .replace(
        /^.*\btemplate build\b.*$/gm,
        "# templates need minutes and root's tools: test/vm/templates/templates.test.ts",
      )
      .replace("roomd doctor", "{ roomd doctor || [ $? = 1 ]; } # without a template a check fails");
    const child = Bun.spawn(["bash", "-e", "-c", here], {
      cwd: this.checkout,
      env: { ...this.env, ROOMD_URL: this.url, ROOMD_API_KEY: this.key },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [status, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
    expect([here, status, status === 0 ? "" : `${out}${err}`]).toEqual([here, 0, ""]);
    return out;
  }

  async api(method: string, path: string, body?: unknown): Promise<Json> {
    const isBytes = body instanceof Uint8Array;
    const answer = await answerOf(
      await fetch(this.url + path, {
        method,
        headers: {
          authorization: `Bearer ${this.key}`,
          ...(body === undefined || isBytes ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: isBytes ? new Uint8Array(body) : JSON.stringify(body) }),
      }),
    );
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  drive(roomUid: string, ...path: string[]): string {
    return join(this.data, "rooms", roomUid, "drive", ...path);
  }

  get pid(): number {
    return Number(readFileSync(join(this.root, "run/roomd/daemon.lock"), "utf8"));
  }
}

afterAll(() => {
  for (const host of hosts) {
    const lock = join(host.root, "run/roomd/daemon.lock");
    // The pid is not of an unrelated process: the lock is held as long as the daemon lives.
    if (existsSync(lock) && spawnSync("flock", ["--nonblock", lock, "true"]).status !== 0) {
      process.kill(host.pid, "SIGKILL");
      spawnSync("flock", [lock, "true"]);
    }
    rmSync(host.root, { recursive: true, force: true });
  }
});

const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log("backup: left out, because files of other users are restored by root only");
const canMount = spawnSync("unshare", ["--mount", "mount", "-t", "tmpfs", "none", "/mnt"]).status === 0;
if (!canMount) console.log("backup: a restore over a mount point is left out, because nothing can be mounted here");

test.skipIf(!isRoot)(
  "upgrade, backup, restore and removal work as documented in docs/operations.md",
  { timeout: 180_000 },
  async () => {
    const first = new Host(await freePort());
    await first.run("packaging/build && ./packaging/quickstart");
    const { api_key } = JSON.parse(await first.run("dist/roomd init --json")) as { api_key: string };
    first.key = api_key;
    const revoked = JSON.parse(await first.run("roomd key create --name old --json")) as {
      key_id: string;
      key: string;
    };
    await first.run(`roomd key revoke ${revoked.key_id}`);

    // A drive with all that files can have, a room that has ended with its drive kept, and messages.
    const { room_uid } = await first.api("POST", "/v1/rooms", { room_id: "kept", labels: { team: "web" } });
    await first.api("PUT", "/v1/rooms/kept/agents/operator/subscriptions", { topics: ["builds.>"] });
    const bytes = randomBytes(300_000);
    await first.api("PUT", "/v1/rooms/kept/drive/files/in/data.bin", bytes);
    const shaped = first.drive(room_uid, "shaped");
    writeFileSync(shaped, "program", { mode: 0o755 });
    truncateSync(shaped, 64 * 1024 * 1024);
    spawnSync("chown", ["100123:100456", shaped]);
    chmodSync(shaped, 0o4755);
    symlinkSync("/etc/passwd", first.drive(room_uid, "link"));
    spawnSync("mkfifo", [first.drive(room_uid, "pipe")]);
    await first.api("POST", "/v1/rooms", { room_id: "ended" });
    await first.api("DELETE", "/v1/rooms/ended");
    const ended = readdirSync(join(first.data, "retired"));
    expect(ended.length).toBe(1);

    const lost = await first.api("POST", "/v1/rooms", { room_id: "lost" });
    const halved = await first.api("POST", "/v1/rooms", { room_id: "halved" });

    // While it is made, others write: messages, files, rooms that come and go.
    const acknowledged: string[] = [];
    const over = new AbortController();
    const write = async (n: number) => {
      const { message_id } = await first.api("POST", "/v1/rooms/kept/messages", {
        source: "planner",
        destination: "operator",
        payload: { n },
      });
      await first.api("POST", "/v1/rooms/kept/drive/write", { path: `/written/${n}`, content: `${n}\n` });
      await first.api("POST", "/v1/rooms", { room_id: `passing-${n}` });
      await first.api("DELETE", `/v1/rooms/passing-${n}?drive=${n % 2 ? "delete" : "retain"}`);
      acknowledged.push(message_id);
      await first.api("POST", `/v1/rooms/kept/messages/${message_id}/ack`, { agent_id: "operator" });
    };
    const started = Promise.withResolvers<void>();
    const writers = (async () => {
      for (let n = 0; !over.signal.aborted; n++) {
        await write(n);
        if (n === 2) started.resolve();
      }
    })();
    await Promise.race([started.promise, writers]);
    const before = [...acknowledged];
    await first.run(block("Backup"));
    over.abort();
    await writers;
    const backup = join(first.root, "var/backups/roomd.tar");
    expect(statSync(backup).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(first.root, "var/backups"))).toEqual(["roomd.tar"]);
    expect(existsSync(join(first.data, "backup"))).toBe(false);

    // A newer roomd does nothing to the data of a daemon that runs: its schema looks older than this one's for the moment.
    const setSchema = (schema: number) => {
      const code = `new (require("bun:sqlite").Database)(process.argv[1]).run("PRAGMA user_version = ${schema}")`;
      spawnSync(process.execPath, ["-e", code, join(first.data, "roomd.db")]);
    };
    setSchema(0);
    expect(await first.run("roomd org list 2>&1 || echo status $?")).toMatch(/\(pid \d+\).*\n.*\nstatus 1\n$/);
    setSchema(latestVersion());

    // The new binary continues with the same data.
    const old = first.pid;
    const oldBinary = statSync(readlinkSync(`/proc/${old}/exe`)).ino;
    expect(await first.run(block("Upgrade"))).toMatch(/^wrote .*roomd-before\.tar/);
    expect(first.pid).not.toBe(old);
    expect(statSync(readlinkSync(`/proc/${first.pid}/exe`)).ino).not.toBe(oldBinary);
    for (const id of acknowledged) {
      expect(await first.api("GET", `/v1/rooms/kept/messages/${id}`)).toMatchObject({ message_id: id, state: "acked" });
    }
    expect(await first.api("GET", "/v1/orgs/self/audit/verify")).toMatchObject({ ok: true });

    // Another host gets all of it from the archive alone.
    const second = new Host(await freePort());
    second.key = first.key;
    // One room's drive is not in it, as if it had been destroyed between the database's copy and its drive's.
    const unpacked = join(second.root, "unpacked");
    mkdirSync(unpacked);
    spawnSync("tar", ["-xf", backup, "--ignore-zeros", "--sparse", "-C", unpacked]);
    rmSync(join(unpacked, "rooms", lost.room_uid), { recursive: true });
    // Of the other room half is present, and the end record of the archive lists it as being destroyed.
    const endFile = join(unpacked, "backup-end.json");
    const { rooms_ended } = JSON.parse(readFileSync(endFile, "utf8")) as { rooms_ended: Json[] };
    rooms_ended.push({ room_uid: halved.room_uid, keep_drive: false });
    writeFileSync(endFile, JSON.stringify({ rooms_ended }));
    spawnSync("tar", [
      "-cf",
      join(second.root, "var/backups/roomd.tar"),
      "--format=posix",
      "--sparse",
      "-C",
      unpacked,
      ".",
    ]);
    const restored = await second.run(block("Restore"));
    expect(restored).toMatch(/org_\w+: .*\b1 to \d+\b/);
    for (const name of ["lost", "halved"]) {
      expect(restored).toMatch(new RegExp(`^room ${name}\\b`, "m"));
    }
    expect(existsSync(join(second.data, "rooms/rom_late"))).toBe(false);
    const room = await second.api("GET", "/v1/rooms/kept");
    expect(room).toMatchObject({ room_uid, state: "active", labels: { team: "web" } });
    const back = await fetch(`${second.url}/v1/rooms/kept/drive/files/in/data.bin`, {
      headers: { authorization: `Bearer ${second.key}` },
    });
    expect(digest(await back.bytes())).toBe(digest(bytes));
    const [was, is] = [first, second].map((host) => statSync(host.drive(room_uid, "shaped")));
    for (const field of ["mode", "uid", "gid", "size", "mtimeMs"] as const) expect(is?.[field]).toBe(was?.[field]);
    expect(is?.blocks).toBeLessThan(1024);
    expect(readlinkSync(second.drive(room_uid, "link"))).toBe("/etc/passwd");
    expect(statSync(second.drive(room_uid, "pipe")).isFIFO()).toBe(true);
    const folders = [first, second].map((host) => statSync(dirname(host.drive(room_uid))));
    expect([folders[1]?.mode, folders[1]?.gid]).toEqual([folders[0]?.mode, folders[0]?.gid]);
    expect(readdirSync(join(second.data, "retired"))).toEqual(expect.arrayContaining(ended));
    for (const id of before) {
      expect(await second.api("GET", `/v1/rooms/kept/messages/${id}`)).toMatchObject({ state: "acked" });
    }
    const held = await fetch(`${second.url}/v1/me`, { headers: { authorization: `Bearer ${revoked.key}` } });
    expect(held.status).toBe(401);
    // Each listed room is usable: none is without its drive.
    const { items } = await second.api("GET", "/v1/rooms?state=active&limit=1000");
    for (const { room_id } of items) await second.api("GET", `/v1/rooms/${room_id}/drive/list`);
    const names = items.map(({ room_id }: Json) => room_id);
    expect(names).toContain("kept");
    for (const name of ["lost", "halved"]) expect(names).not.toContain(name);
    await second.api("POST", "/v1/rooms/kept/drive/write", { path: "/after", content: "the restore" });

    const onRecord = JSON.parse(await second.run("roomd audit --host --event backup. --json")) as Json;
    expect(onRecord.items.map(({ event }: Json) => event)).toEqual(["backup.restored", "backup.begun"]);

    // Existing data is never overwritten.
    const refused = await second.run("dist/roomd restore /var/backups/roomd.tar 2>&1 || echo status $?");
    expect(refused).toMatch(/\bdata_dir\b.*\nstatus 1\n$/);
    expect(await second.run("roomd backup /var/backups/roomd.tar 2>&1 || echo status $?")).toMatch(
      /\/roomd\.tar .*\nstatus 1/,
    );

    // A guest of the newer service keeps running without a daemon: it is identified by the socket in its arguments.
    const socket = join(first.root, "run/roomd/g", `sbx_${"0".repeat(26)}`, "fs.sock");
    const guest = Bun.spawn(["setsid", "bash", "-c", "read", "guest", "--socket-path", socket], { stdin: "pipe" });
    const after = await first.api("POST", "/v1/rooms", { room_id: "after" });
    expect(await first.run(block("Going back"))).toMatch(/\b1 guest\b/);
    expect(await guest.exited).not.toBe(0);
    expect(await first.api("GET", "/v1/rooms/kept")).toMatchObject({ room_uid, state: "active" });
    const response = await fetch(`${first.url}/v1/rooms/after`, { headers: { authorization: `Bearer ${first.key}` } });
    expect(response.status).toBe(404);
    expect(existsSync(first.drive(after.room_uid))).toBe(false);
  },
);

test.skipIf(!isRoot)(
  "the first retained drive is in a backup that was running when its room was destroyed",
  { timeout: 60_000 },
  async () => {
    const host = new Host(await freePort());
    await host.run("packaging/build && ./packaging/quickstart");
    host.key = JSON.parse(await host.run("dist/roomd init --json")).api_key;
    const { room_uid } = await host.api("POST", "/v1/rooms", { room_id: "first" });
    await host.api("POST", "/v1/rooms/first/drive/write", { path: "/file", content: "kept" });
    // The pipe is full before the database is copied: no drive is read until the reader continues.
    await host.run("roomd backup - | { head -c 512; roomd room destroy first >&2; cat; } > /var/backups/first.tar");
    const fresh = 'ROOMD_DATA_DIR="$HOST/fresh" ROOMD_RUNTIME_DIR="$HOST/fresh-run"';
    const restored = await host.run(`${fresh} dist/roomd restore /var/backups/first.tar`);
    expect(restored).toMatch(/^room first\b/m);
    expect(existsSync(join(host.root, "fresh/rooms", room_uid))).toBe(false);
    expect(readFileSync(join(host.root, "fresh/retired", room_uid, "drive/file"), "utf8")).toBe("kept");
  },
);

test.skipIf(!isRoot)("an invalid backup, or one from a newer roomd, changes nothing", { timeout: 60_000 }, async () => {
  const host = new Host(0);
  await host.run("packaging/build && dist/roomd init >/dev/null && dist/roomd backup /var/backups/roomd.tar");
  const backups = join(host.root, "var/backups");
  writeFileSync(join(backups, "empty.tar"), "");
  writeFileSync(join(backups, "noise.tar"), randomBytes(10_240));
  spawnSync("tar", ["-cf", join(backups, "other.tar"), "-C", host.checkout, "packaging"]);
  // The schema's number is in the database's header, at byte 60.
  const unpacked = join(host.root, "unpacked");
  mkdirSync(unpacked);
  spawnSync("tar", ["-xf", join(backups, "roomd.tar"), "--ignore-zeros", "-C", unpacked]);
  const pack = (name: string, ...without: string[]) => {
    const excluded = without.map((file) => `--exclude=./${file}`);
    spawnSync("tar", ["-cf", join(backups, `${name}.tar`), ...excluded, "-C", unpacked, "."]);
  };
  pack("nameless", "backup.json");
  pack("cut", "backup-end.json");
  const database = readFileSync(join(unpacked, "roomd.db"));
  database.writeUInt32BE(9999, 60);
  writeFileSync(join(unpacked, "roomd.db"), database);
  pack("newer");
  const restore = (name: string) =>
    host.run(`ROOMD_DATA_DIR="$HOST/fresh" dist/roomd restore /var/backups/${name}.tar 2>&1 || echo status $?`);
  for (const [name, pattern] of [
    ["empty", /cannot be unpacked: tar ended with 2: tar: This does not look like a tar archive\./],
    ["noise", /cannot be unpacked: tar ended/],
    ["other", /is not a backup/],
    ["nameless", /is not a backup made by `roomd backup`\./],
    ["cut", /is incomplete: its end is missing\./],
    ["newer", /Its database is from a newer roomd: it has schema 9999/],
    ["none", /cannot be read: ENOENT/],
  ] as const) {
    const output = await restore(name);
    expect(output).toMatch(pattern);
    expect(output).toMatch(/\nstatus 1\n$/);
    const left = existsSync(join(host.root, "fresh")) ? readdirSync(join(host.root, "fresh")) : [];
    expect(left.filter((entry) => entry !== "daemon.lock")).toEqual([]);
  }

  // Drives without a database may be the only remains of a service.
  mkdirSync(join(host.root, "fresh/retired/rom_1"), { recursive: true });
  expect(await restore("roomd")).toMatch(/\bdata_dir\b.*\nstatus 1\n$/);
  rmSync(join(host.root, "fresh/retired/rom_1"), { recursive: true });
  // Drives are renamed into their place, which nothing does to a mount point.
  if (canMount) {
    const mounted = `mkdir "$HOST/disk" && mount --bind "$HOST/disk" "$HOST/fresh/retired"`;
    const output = await host.run(`export ROOMD_DATA_DIR="$HOST/fresh"
      unshare --mount bash -c '${mounted} && dist/roomd restore /var/backups/roomd.tar 2>&1 || echo status $?'`);
    expect(output).toMatch(/\/retired .*\n.*\nstatus 1\n$/);
    expect(readdirSync(join(host.root, "fresh"))).not.toContain("roomd.db");
  }
  symlinkSync("/nowhere", join(host.root, "fresh/rooms"));
  expect(await restore("roomd")).toMatch(/\/rooms .*\n.*\nstatus 1\n$/);
  rmSync(join(host.root, "fresh/rooms"));
  expect(await restore("roomd")).toContain("1 organization, 0 rooms");

  // A link in the place of drives would be all that there is of them in an archive.
  renameSync(join(host.data, "rooms"), join(host.root, "elsewhere"));
  symlinkSync(join(host.root, "elsewhere"), join(host.data, "rooms"));
  expect(await host.run("dist/roomd backup /var/backups/linked.tar 2>&1 || echo status $?")).toMatch(
    /\/rooms .*\n.*\nstatus 1\n$/,
  );
  expect(readdirSync(backups).filter((name) => name.startsWith("linked"))).toEqual([]);
});
