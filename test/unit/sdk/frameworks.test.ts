/** Requests of the adapters for frameworks, and their results for a command's end. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sandboxSession } from "../../../sdk/typescript/src/ai-sdk.ts";
import type { Client } from "../../../sdk/typescript/src/client.ts";
import { roomd as provider } from "../../../sdk/typescript/src/computesdk.ts";
import { Execution } from "../../../sdk/typescript/src/execution.ts";
import { Roomd } from "../../../sdk/typescript/src/index.ts";
import type { Sandbox } from "../../../sdk/typescript/src/sandbox.ts";
import { lines, ok, problem, ScriptedService } from "./scripted-service.ts";

let service: ScriptedService;
let end: object;
beforeEach(async () => {
  service = await ScriptedService.start(({ path }) =>
    path.includes("/stream") ? lines({ type: "exit", seq: 1, duration_ms: 1, ...end }) : ok({ sandbox_id: "sbx_1" }),
  );
});
afterEach(() => service.stop());

const session = () => sandboxSession(new Roomd({ url: service.url }).rooms.open("a").sandbox("w"));
const openSandbox = async () => {
  const found = await provider({ url: service.url }).sandbox.getById("a");
  if (!found) throw new Error("It is not there.");
  return found;
};

describe("the exit code of a command", () => {
  test.each([
    ["that a signal has ended", { exit_code: null, signal: "SIGKILL", timed_out: false }, 137],
    ["that was out of time", { exit_code: null, signal: "SIGKILL", timed_out: true }, 124],
    ["that has ended by itself", { exit_code: 3, signal: null, timed_out: false }, 3],
  ])("%s is that of a shell", async (_, ended, exitCode) => {
    end = ended;
    expect((await session().run({ command: "x" })).exitCode).toBe(exitCode);
    const spawned = await session().spawn({ command: "x" });
    expect((await spawned.wait()).exitCode).toBe(exitCode);
    expect((await (await openSandbox()).runCommand("x")).exitCode).toBe(exitCode);
  });
});

describe("a background command has no time limit", () => {
  test("of the AI SDK", async () => {
    end = { exit_code: 0 };
    await (await session().spawn({ command: "x" })).wait();
    expect(service.bodies()[0]).toMatchObject({ timeout_ms: 0 });
  });

  test("of computesdk, unless one is given", async () => {
    const sandbox = await openSandbox();
    await sandbox.runCommand("x", { background: true });
    await sandbox.runCommand("x", { background: true, timeout: 1000 });
    expect(service.bodies().map(({ timeout_ms }) => timeout_ms)).toEqual([0, 1000]);
  });
});

test("computesdk deletes a snapshot in its room, and ignores a missing one", async () => {
  await service.stop();
  service = await ScriptedService.start(({ path }) =>
    path === "/v1/locate/snap_2" ? problem(404, "id_not_found", false) : ok({ room_id: "a" }),
  );
  const { snapshot } = provider({ url: service.url });
  await snapshot?.delete("snap_1");
  await snapshot?.delete("snap_2");
  expect(service.asked.map(({ method, path }) => `${method} ${path}`)).toEqual([
    "GET /v1/locate/snap_1",
    "DELETE /v1/rooms/a/snapshots/snap_1",
    "GET /v1/locate/snap_2",
  ]);
});

describe("output of an AI SDK process is read", () => {
  const PART = Buffer.alloc(64 * 1024, "x");
  const MANY = 512;

  /** A command that writes 32 MiB to each stream, one after the other; `given` is the number of pieces that were requested. */
  const writing = async (abortSignal?: AbortSignal) => {
    const told = { given: 0 };
    const events = async function* () {
      for (const type of ["stdout", "stderr"]) {
        for (let seq = 1; seq <= MANY; seq++) {
          told.given++;
          yield { type, seq, data_b64: PART.toString("base64") };
        }
      }
      yield { type: "exit", seq: 0, exit_code: 0, signal: null, timed_out: false };
    };
    const client = { call: async () => ({ stdin_bytes: 0 }), events } as unknown as Client;
    const execution = new Execution(client, { room_id: "a", sandbox: "w" }, "x");
    const sandbox = { files: {}, start: async () => execution } as unknown as Sandbox;
    const spawned = await sandboxSession(sandbox).spawn({ command: "x", ...(abortSignal ? { abortSignal } : {}) });
    return { told, ...spawned };
  };
  const settled = async (told: { given: number }) => {
    for (let before = -1; before !== told.given; ) {
      before = told.given;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return told.given;
  };

  test("no faster than its consumer reads", async () => {
    const { told, stdout, stderr, wait } = await writing();
    const reader = stdout.getReader();
    await reader.read();
    expect(await settled(told)).toBeLessThan(MANY / 4);
    let bytes = PART.byteLength;
    for (let next = await reader.read(); !next.done; next = await reader.read()) bytes += next.value.byteLength;
    expect(bytes).toBe(MANY * PART.byteLength);
    expect(await wait()).toEqual({ exitCode: 0 });
    await expect(new Response(stderr).bytes()).rejects.toThrow(/ 16 MiB /);
  });

  test("to its end without a consumer, and on kill or cancel", async () => {
    const unread = await writing();
    expect(await unread.wait()).toEqual({ exitCode: 0 });
    const killed = await writing();
    killed.stdout.getReader();
    await settled(killed.told);
    await killed.kill();
    expect(await killed.wait()).toEqual({ exitCode: 0 });
    const cancelled = await writing();
    const reader = cancelled.stdout.getReader();
    await settled(cancelled.told);
    await reader.cancel();
    expect(await cancelled.wait()).toEqual({ exitCode: 0 });
  });

  test("until its signal ends it, also while it waits for its consumer", async () => {
    const ended = new AbortController();
    const { told, stdout, wait } = await writing(ended.signal);
    const reader = stdout.getReader();
    await settled(told);
    const waiting = wait();
    ended.abort();
    await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
    await expect(reader.read()).rejects.toMatchObject({ name: "AbortError" });
  });
});
