import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { bytesOf, RoomFixture, streamOf } from "./room-fixture.ts";

const RUN_MS = process.env.ROOMD_TEST_LONG === "1" ? 60_000 : 3000;
const SWAP_LOOP = fileURLToPath(new URL("swap-loop.ts", import.meta.url));

let room: RoomFixture;
beforeEach(() => {
  room = new RoomFixture();
  writeFileSync(`${room.outside}/secret`, "secret");
  mkdirSync(`${room.outside}/kept`);
});
afterEach(() => room[Symbol.dispose]());

/** Starts the other side and waits until it swaps. */
async function startSwapping(): Promise<Disposable> {
  const child = spawn(process.execPath, [SWAP_LOOP, room.directory, room.outside], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((resolve, reject) => {
    child.stdout.once("data", resolve);
    child.once("exit", (code) => reject(new Error(`the other side ended with ${code}`)));
  });
  return { [Symbol.dispose]: () => void child.kill("SIGKILL") };
}

it(
  `never leaves the drive although entries are swapped during every call (${RUN_MS / 1000} s)`,
  async () => {
    const ways = ["absolute", "relative", "dots", "dots-out", "low/a/b/c/outside", "low/a/b/c/inner"];
    const seen = new Map<string, number>();
    const leaks: string[] = [];
    let tries = 0;
    const tryCall = async (
      name: string,
      input: Record<string, unknown>,
      body: ReadableStream<Uint8Array> | null = null,
    ) => {
      tries++;
      // A failure that has no meaning for the caller would be a 500, and is thrown on by codeOf.
      const code = await room.codeOf(name, input, { body });
      seen.set(`${name} ${code}`, (seen.get(`${name} ${code}`) ?? 0) + 1);
    };
    const tryRead = async (name: string, path: string) => {
      tries++;
      const answer = await room.call(name, { path }).catch((error: unknown) => {
        if (error instanceof ServiceError) return null;
        throw error;
      });
      const content = answer?.bytes ? (await bytesOf(answer)).toString() : answer?.body?.content;
      if (content === "secret") leaks.push(`${name} ${path}`);
      seen.set(`${name} ${answer ? "done" : "refused"}`, (seen.get(`${name} ${answer ? "done" : "refused"}`) ?? 0) + 1);
    };
    const tryList = async (input: Record<string, unknown>) => {
      tries++;
      const answer = await room.call("fs_list", input).catch((error: unknown) => {
        if (error instanceof ServiceError) return null;
        throw error;
      });
      if (answer?.body.items.some(({ name }) => name === "kept")) leaks.push(`fs_list ${JSON.stringify(input)}`);
      seen.set(`fs_list ${answer ? "done" : "refused"}`, (seen.get(`fs_list ${answer ? "done" : "refused"}`) ?? 0) + 1);
    };

    {
      using _swapping = await startSwapping();
      const end = performance.now() + RUN_MS;
      for (let round = 0; performance.now() < end; round++) {
        for (const path of ["file", "pipe"]) {
          await tryRead("fs_read", path);
          await tryRead("file_get", path);
          await tryCall("fs_write", { path, content: "public", append: true });
          await tryCall("fs_write", { path, content: "public", if_match: "0" });
        }
        for (const way of ways) {
          await tryRead("fs_read", `${way}/secret`);
          await tryRead("file_get", `${way}/secret`);
          await tryList({ path: way });
          await tryCall("fs_stat", { path: `${way}/secret` });
          await tryCall("fs_write", { path: `${way}/secret`, content: "public", append: true });
          if (round % 4 > 0) continue;
          await tryCall("fs_write", { path: `${way}/new`, content: "public" });
          await tryCall("file_put", { path: `${way}/put` }, streamOf("public"));
          await tryCall("fs_mkdir", { path: `${way}/made/deep` });
          await tryCall("fs_move", { from: `${way}/new`, to: `${way}/moved`, overwrite: true });
          await tryCall("fs_delete", { path: `${way}/moved` });
          await tryCall("fs_delete", { path: `${way}/kept`, recursive: true });
          await tryCall("fs_delete", { path: `${way}/made`, recursive: true });
        }
        await tryList({});
        if (round % 16 === 0) await room.drive.sweep(room.room);
      }
    }
    const counts = [...seen].toSorted().map(([outcome, count]) => `${outcome} ${count}`);
    console.log(`${tries} tries, ${leaks.length} escapes: ${counts.join(", ")}`);
    expect(leaks).toEqual([]);
    expect(readdirSync(room.outside).sort()).toEqual(["kept", "secret"]);
    expect(readFileSync(`${room.outside}/secret`, "utf8")).toBe("secret");
    expect(readdirSync(room.base).sort()).toEqual(["drive", "outside"]);
    // The race was a race: calls met both sides of it.
    expect(seen.get("fs_read done")).toBeGreaterThan(0);
    expect(seen.get("fs_read refused")).toBeGreaterThan(0);
  },
  RUN_MS + 30_000,
);
