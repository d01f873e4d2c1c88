import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RoomFixture } from "./room-fixture.ts";

const CRASH_WRITER = fileURLToPath(new URL("crash-writer.ts", import.meta.url));
const ROUNDS = process.env.ROOMD_TEST_LONG === "1" ? 100 : 8;

let room: RoomFixture;
beforeEach(() => {
  room = new RoomFixture();
});
afterEach(() => room[Symbol.dispose]());

/** Runs the writer from `first` on, kills it some time after its first word, and returns the last it acknowledged. */
async function writeAndKill(first: number, afterMs: number): Promise<Map<string, number>> {
  const child = spawn(process.execPath, [CRASH_WRITER, room.directory, String(first)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, TMPDIR: room.outside },
  });
  let output = "";
  child.stdout.on("data", (bytes) => {
    if (output === "") setTimeout(() => child.kill("SIGKILL"), afterMs);
    output += bytes;
  });
  const [, signal] = await new Promise<unknown[]>((resolve) => child.once("close", (...how) => resolve(how)));
  expect(signal).toBe("SIGKILL");
  return new Map(
    output
      .split("\n")
      .filter(Boolean)
      .map((line) => line.split(" "))
      .map(([label = "", count]) => [label, Number(count)]),
  );
}

const isTemporary = (path: string) => /\.roomd-/.test(path);
const temporaries = () => readdirSync(room.directory, { recursive: true }).map(String).filter(isTemporary);

describe("kill -9 during writes", () => {
  it(`loses no acknowledged write and leaves no partial file (${ROUNDS} times)`, async () => {
    let leftBehind = 0;
    let next = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const last = await writeAndKill(next, Math.random() * 60);
      for (const name of ["written", "put"]) {
        const content = readFileSync(room.path("d", name), "utf8");
        const count = Number(content.split(" ", 1)[0]);
        expect(content === `${count} `.repeat(50_000)).toBe(true);
        expect(count).toBeGreaterThanOrEqual(last.get(name) ?? 0);
        next = Math.max(next, count + 1);
      }
      const lines = readFileSync(room.path("log"), "utf8").split("\n");
      if (last.has("log")) expect(lines).toContain(String(last.get("log")));
      if (last.has("tree")) expect(existsSync(room.path("tree", String(last.get("tree"))))).toBe(false);
      leftBehind += temporaries().length;
      const { items } = (await room.call("fs_list", { limit: 1000 })).body;
      expect(items.map(({ path }) => path).filter(isTemporary)).toEqual([]);
      await room.drive.sweep(room.room);
      expect(temporaries()).toEqual([]);
    }
    console.log(`killed ${ROUNDS} times; ${leftBehind} temporary entries were left and swept`);
  }, 300_000);
});

describe("the sweep", () => {
  it("removes temporary files and trees at any depth, and nothing else", async () => {
    const name = (digit: string) => `.roomd-${digit.repeat(32)}`;
    mkdirSync(room.path("a/b"), { recursive: true });
    mkdirSync(room.path("a", name("1"), "deep/er"), { recursive: true });
    writeFileSync(room.path("a", name("1"), "deep/er/f"), "");
    writeFileSync(room.path("a/b", name("2")), "");
    writeFileSync(room.path(name("3")), "");
    for (const kept of [".roomd-kept", `${name("4")}.txt`, `x${name("5")}`]) writeFileSync(room.path(kept), "");
    await room.drive.sweep(room.room);
    expect(readdirSync(room.directory, { recursive: true }).map(String).sort()).toEqual(
      [".roomd-kept", `${name("4")}.txt`, "a", "a/b", `x${name("5")}`].sort(),
    );
  });
});
