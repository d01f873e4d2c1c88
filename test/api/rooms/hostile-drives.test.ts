/**
 * File trees that root in a guest makes in seconds, made here on the room's drive as guests make them: their cost to others while they are
 * measured, listed, extended and erased, and that nothing of them remains.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { LONG, shortOrLong, until } from "../../harness/guests.ts";
import { makeNest } from "../../harness/nest.ts";
import { OtherOrg } from "../../harness/other-org.ts";

const GIB = 1024 ** 3;
const LEVELS = shortOrLong("levels of a deep tree", 5_000, 100_000);
const NAMES = shortOrLong("names in a wide directory", 20_000, 1_000_000);
const HOLES_GIB = shortOrLong("GiB of a file of holes", 2, 10);
const DEADLINE_MS = LONG ? 1_800_000 : 120_000;
/** Number of concurrent calls of the attacker. */
const AT_ONCE = 16;

let daemon: TestDaemon;
let other: OtherOrg;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_DRIVE_LIMIT_GIB: "20", ROOMD_DRIVE_LIMIT_ENTRIES: "2000000" } });
  other = await OtherOrg.make(daemon);
  await makeRoom("small");
  for (let n = 0; n < AT_ONCE; n++) await write("small", `f${n}`);
  await other.ask(500);
}, 120_000);
afterEach(() => {
  // One is there all the time.
  expect(daemon.leftovers().filter((line) => line.includes("rooms/"))).toHaveLength(1);
});
afterAll(() => daemon.stop(), 120_000);

async function makeRoom(name: string): Promise<string> {
  const { room_uid } = await daemon.room(name);
  return join(daemon.dataDir, "rooms", room_uid, "drive");
}

/** Calls repeatedly, `AT_ONCE` in parallel, until `done`. */
async function hammer(call: (n: number) => Promise<unknown>, done: () => boolean): Promise<void> {
  let n = 0;
  const one = async () => {
    while (!done()) await call(n++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}

/** The same calls on a drive with nothing on it. */
const onSmall = (calls: (name: string, done: () => boolean) => Promise<unknown>) => (done: () => boolean) =>
  calls("small", done);

const write = (name: string, path: string) =>
  daemon.ok("POST", `/v1/rooms/${name}/drive/write`, { path, content: "x", append: true });

/** Makes and deletes directories, each of which used to trigger a new measurement of the drive. */
const changes = (name: string, done: () => boolean) =>
  hammer(async (n) => {
    await daemon.ok("POST", `/v1/rooms/${name}/drive/mkdir`, { path: `new${n}` });
    await daemon.ok("DELETE", `/v1/rooms/${name}/drive/delete?path=new${n}&recursive=true`);
  }, done);

const lists = (name: string, done: () => boolean) =>
  hammer(() => daemon.ok("GET", `/v1/rooms/${name}/drive/list?path=/&limit=10`), done);

/** Has the drive measured, with calls that change it all the while. */
async function measured(name: string, entries: number): Promise<void> {
  let used: Json = null;
  await Promise.all([
    until(
      "the drive is measured",
      async () => {
        const { drive } = await daemon.ok("GET", `/v1/rooms/${name}`);
        if (drive.file_count >= entries) used = drive;
        return used;
      },
      DEADLINE_MS,
    ),
    changes(name, () => used !== null),
  ]);
}

const erased = async (name: string, drive: string) => {
  await daemon.ok("DELETE", `/v1/rooms/${name}?drive=delete`);
  await until("the drive is erased", () => !existsSync(join(drive, "..")), DEADLINE_MS);
};

test(
  "a tree far deeper than PATH_MAX",
  async () => {
    const drive = await makeRoom("deep");
    // Not the free inodes of the disk, which other processes use too.
    const entries = () => spawnSync("find", [daemon.dataDir, "-printf", "x"], { encoding: "utf8" }).stdout.length;
    const before = entries();
    (await makeNest(drive, LEVELS, { files: 1 }))[Symbol.dispose]();
    await other.feels(`measuring ${LEVELS} levels`, () => measured("deep", LEVELS), onSmall(changes));
    expect((await daemon.ok("GET", "/v1/rooms/deep")).drive.file_count).toBe(LEVELS);
    await other.feels(`erasing ${LEVELS} levels`, () => erased("deep", drive));
    expect(entries()).toBeLessThan(before + LEVELS);
  },
  DEADLINE_MS,
);

test(
  "a directory with very many names",
  async () => {
    const drive = await makeRoom("wide");
    mkdirSync(join(drive, "half"));
    for (let n = 0; n < NAMES / 2; n++)
      for (const at of [drive, join(drive, "half")]) writeFileSync(join(at, `f${n}`), "");
    await other.feels(`measuring ${NAMES} names`, () => measured("wide", NAMES), onSmall(changes));
    expect((await daemon.ok("GET", "/v1/rooms/wide")).drive.file_count).toBe(NAMES);
    await other.feels(
      `listing ${NAMES} names, ${AT_ONCE} concurrent calls`,
      async () => {
        let ended = 0;
        await lists("wide", () => ended++ >= 2 * AT_ONCE);
      },
      onSmall(lists),
    );
    await other.feels(`deleting ${NAMES / 2} names by a call`, () =>
      daemon.ok("DELETE", "/v1/rooms/wide/drive/delete?path=half&recursive=true"),
    );
    expect((await daemon.ok("GET", "/v1/rooms/wide")).drive.file_count).toBe(NAMES / 2);
    await other.feels(`erasing ${NAMES / 2} names`, () => erased("wide", drive));
  },
  DEADLINE_MS,
);

test(
  "appends to sparse files",
  async () => {
    const drive = await makeRoom("holes");
    for (let n = 0; n < AT_ONCE; n++) {
      writeFileSync(join(drive, `f${n}`), "");
      truncateSync(join(drive, `f${n}`), HOLES_GIB * GIB);
    }
    const calls = 200 * AT_ONCE;
    const adds = (name: string, done: () => boolean) =>
      hammer(async (n) => (await write(name, `f${n % AT_ONCE}`)).sha256, done);
    await other.feels(
      `${calls} additions to ${HOLES_GIB} GiB`,
      async () => {
        let added = 0;
        await adds("holes", () => added++ >= calls);
      },
      onSmall(adds),
    );
    expect((await write("holes", "f0")).sha256).toBeNull();
    const compares = (name: string, done: () => boolean) => {
      const body = { path: "f0", content: "x", if_match: "0".repeat(64) };
      return hammer(async () => {
        const signal = AbortSignal.timeout(1000);
        await daemon.api("POST", `/v1/rooms/${name}/drive/write`, body, {}, signal).catch(() => {});
      }, done);
    };
    await other.feels(
      `comparing ${HOLES_GIB} GiB for callers that disconnect`,
      async () => {
        let compared = 0;
        await compares("holes", () => compared++ >= 2 * AT_ONCE);
      },
      onSmall(compares),
    );
    await other.feels("erasing sparse files", () => erased("holes", drive));
  },
  DEADLINE_MS,
);

test(
  "long files as JSON for callers that read none of it",
  async () => {
    const drive = await makeRoom("long");
    // Each of these bytes is six in JSON.
    writeFileSync(join(drive, "f"), Buffer.alloc(16 * 1024 ** 2, 1));
    const memory = () => Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${daemon.pid}/status`, "utf8"))?.[1]);
    const before = memory();
    const { hostname, port, host } = new URL(daemon.url);
    const request = `GET /v1/rooms/long/drive/read?path=f HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${daemon.apiKey}\r\n\r\n`;
    const callers = Array.from({ length: AT_ONCE }, () => {
      const caller = connect(Number(port), hostname).on("error", () => {});
      caller.write(request);
      return caller.once("readable", () => caller.read(1));
    });
    await other.feels(`${AT_ONCE} calls read 16 MiB as JSON`, () => Bun.sleep(5000));
    expect((memory() - before) / 1024).toBeLessThan(AT_ONCE * 16);
    for (const caller of callers) caller.destroy();
    const taken = await daemon.ok("GET", "/v1/rooms/long/drive/read?path=f&offset=1");
    expect(taken).toMatchObject({ length: 16 * 1024 ** 2 - 1, eof: true });
    await erased("long", drive);
  },
  DEADLINE_MS,
);

test(
  "rooms that are destroyed at the same time",
  async () => {
    const drives: string[] = [];
    for (let n = 0; n < 5; n++) {
      drives.push(await makeRoom(`end${n}`));
      (await makeNest(drives[n] ?? "", LEVELS / 5))[Symbol.dispose]();
    }
    await other.feels("ending 5 rooms concurrently", () =>
      Promise.all(drives.map((drive, n) => erased(`end${n}`, drive))),
    );
  },
  DEADLINE_MS,
);
